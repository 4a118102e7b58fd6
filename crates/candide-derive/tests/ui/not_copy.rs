use candide::{Key, Record};

#[derive(Record)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

#[derive(Key)]
struct Id(u64);

fn main() {}
