use candide::Record;
use std::time::Instant;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: Instant,
    cents: i64,
}

fn main() {}
