use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    id: u64,
    cents: i64,
}

fn main() {}
