use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

fn main() {
    let _ = Account::ID.set(1);
}
