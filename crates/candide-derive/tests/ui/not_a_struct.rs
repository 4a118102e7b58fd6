use candide::Record;

#[derive(Record, Clone, Copy)]
enum Account {
    Open,
    Closed,
}

fn main() {}
