use candide::{Database, Key, Prefix, Record, Table, Text, Tx, Whole};

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    name: Text<16>,
    cents: i64,
    fee: Money,
}

#[derive(Key, Clone, Copy)]
struct Money(i64);

#[derive(Record, Clone, Copy)]
#[record(ordered)]
struct Line {
    #[key]
    order: u32,
    #[key]
    number: u32,
    pieces: u32,
}

fn keys(tx: &Tx<'_>, accounts: Table<Account>, lines: Table<Line>) {
    let _ = accounts.get(tx, "Ann", Account::CENTS);
    let _ = accounts.update(tx, 1u32, Account::CENTS.add(1));
    let _ = lines.get(tx, 7, Whole);
    let _ = lines.scan(tx, 7..9, Whole);
    let _ = lines.scan(tx, Prefix(7), Whole);
}

fn updates(tx: &Tx<'_>, accounts: Table<Account>, row: Account) {
    let _ = accounts.update(tx, 1, row);
    let _ = accounts.update(tx, 1, |account: &mut Account| account.cents += 1);
    let _ = accounts.update(tx, 1, Account::FEE.add(Money(5)));
    let _ = accounts.sum(tx, Account::NAME);
}

fn a_closure_that_takes_what_it_will(tx: &Tx<'_>, accounts: Table<Account>) {
    let _ = accounts.update(tx, 1, |account| account.cents += 1);
}

fn scans(tx: &Tx<'_>, accounts: Table<Account>) {
    let _ = accounts.scan(tx, .., Whole).count();
    let _ = accounts.count(tx, ..);
    let _ = accounts.iter(tx, Whole).rev();
    let _ = accounts.iter(tx, Account::NAME).sum();
}

fn maps(tx: &Tx<'_>, accounts: Table<Account>) {
    accounts.remove(tx, 1);
    accounts.contains_key(tx, 1);
    accounts.entry(tx, 1);
    accounts.range(tx, ..);
    accounts.values(tx);
    accounts.replace(tx);
    for _ in &accounts {}
}

fn stores(db: Database) {
    db.begin_write();
    db.begin();
    db.open_table("accounts");
    db.transaction(|_| {});
}

fn main() {}
