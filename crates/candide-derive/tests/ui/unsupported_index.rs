use candide::Record;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    #[index]
    share: [u8; 3],
}

fn main() {}
