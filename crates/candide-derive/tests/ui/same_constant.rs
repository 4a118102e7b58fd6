use candide::Record;

#[derive(Record, Clone, Copy)]
#[allow(non_snake_case)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
    Cents: i64,
    #[column(ID)]
    other: u8,
    #[index(name = cents)]
    owner: u32,
}

fn main() {}
