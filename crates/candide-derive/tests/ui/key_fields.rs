use candide::Record;

#[derive(Record, Clone, Copy)]
#[index(name = by_id, columns(id))]
struct Account {
    #[key]
    #[group(keys)]
    id: u64,
    #[key]
    #[index]
    part: u64,
    cents: i64,
}

fn main() {}
