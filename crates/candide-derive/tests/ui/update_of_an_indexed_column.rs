use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[index]
    owner: u32,
    cents: i64,
}

fn main() {
    let _ = Account::CENTS.add(1);
    let _ = Account::OWNER.set(1);
    let _ = Account::OWNER.add(1);
}
