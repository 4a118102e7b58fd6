use candide::{Abort, Database, Record};

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[index(hash)]
    owner: u64,
    cents: i64,
}

fn main() {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts").unwrap();
    let by_owner = accounts.index(Account::BY_OWNER);
    let _ = db.run(|tx| {
        for row in accounts.scan(tx, 1..5, Account::CENTS) {
            row?;
        }
        let _ = by_owner.scan_rev(tx, 1..5, Account::CENTS);
        Ok(())
    });
}
