use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    #[group(keys)]
    id: u64,
    #[key]
    part: u64,
    cents: i64,
}

#[derive(Record, Clone, Copy)]
#[index(name = by_number, columns(id))]
struct Customer {
    #[key]
    #[index]
    id: u64,
    points: u64,
}

fn main() {}
