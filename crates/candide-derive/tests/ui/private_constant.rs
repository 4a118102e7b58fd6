mod bank {
    #[derive(candide::Record, Clone, Copy)]
    #[index(columns(cents, secret))]
    pub struct Account {
        #[key]
        pub id: u64,
        pub cents: i64,
        #[index]
        secret: u32,
    }
}

fn main() {
    let _ = (bank::Account::ID, bank::Account::CENTS);
    let _ = bank::Account::SECRET;
    let _ = bank::Account::BY_SECRET;
    let _ = bank::Account::BY_CENTS_SECRET;
}
