use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[index]
    share: f64,
}

fn main() {}
