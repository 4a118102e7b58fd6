use candide::{Record, Text};

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    branch: u32,
    #[key]
    name: Text<20>,
    cents: i64,
}

fn main() {}
