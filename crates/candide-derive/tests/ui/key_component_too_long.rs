use candide::{Key, Record, Text};

#[derive(Key, Clone, Copy)]
struct Name {
    first: Text<20>,
    last: Text<20>,
}

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    branch: u32,
    #[key]
    name: Name,
    cents: i64,
}

fn main() {}
