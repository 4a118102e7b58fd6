use candide::{Column, Record};

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    months: [i64; 12],
}

const THIRTEENTH: Column<Account, i64> = Account::MONTHS.at(12);

fn main() {
    let _ = THIRTEENTH;
}
