use candide::Record;

enum Colour {
    Red,
}

#[derive(Clone, Copy)]
struct Address {
    street: u32,
}

#[derive(Record, Clone)]
struct Person {
    #[key]
    id: u64,
    name: String,
    photo: Vec<u8>,
    nickname: Option<String>,
    waited: std::time::Duration,
    colour: Colour,
    address: Address,
}

fn main() {}
