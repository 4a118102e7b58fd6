use candide::Record;

#[derive(Record, Clone, Copy)]
#[record(groups(balance, history, balance, unused))]
struct Account {
    #[key]
    id: u64,
    #[group(balence)]
    cents: i64,
    #[group(balance)]
    pending: i64,
    #[group(history)]
    months: [i64; 12],
    #[group(row)]
    owner: u32,
}

#[derive(Record, Clone, Copy)]
#[record(groups())]
struct Item {
    #[key]
    id: u64,
    #[group(bids)]
    highest: u32,
}

fn main() {}
