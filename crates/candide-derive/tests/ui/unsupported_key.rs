use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: f64,
    cents: i64,
}

fn main() {}
