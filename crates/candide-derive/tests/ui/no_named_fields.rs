use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account(u64, i64);

fn main() {}
