use candide::{Abort, Database, Record, Session, Table, Whole};

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

fn rows_stay_in_their_closure(db: &Database, accounts: &Table<Account>) {
    let _ = db.run(|tx| {
        let row = accounts.find(tx, 1)?;
        Ok::<_, Abort>(row)
    });
}

fn scans_stay_in_their_closure(session: &mut Session, accounts: &Table<Account>) {
    let _ = session.run(|tx| Ok::<_, Abort>(accounts.iter(tx, Whole)));
}

fn a_closure_may_run_again(db: &Database, accounts: &Table<Account>, note: String) {
    let _ = db.run(|tx| {
        accounts.insert(tx, Account { id: 1, cents: 0 })?;
        Ok::<_, Abort>(note)
    });
}

fn main() {}
