use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    name: &'static str,
}

fn main() {}
