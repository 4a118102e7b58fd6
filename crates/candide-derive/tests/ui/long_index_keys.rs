use candide::{Field, Key, Record};

#[derive(Key, Clone, Copy)]
struct Seat {
    row: u8,
    number: u16,
}

#[derive(Field, Clone, Copy)]
struct Point {
    x: i32,
    y: i32,
}

#[derive(Record, Clone)]
#[index(columns(id(bytes = 8), name))]
struct KeyInAnIndex {
    #[key]
    id: u64,
    name: String,
}

#[derive(Record, Clone)]
struct KeyField {
    #[key(bytes = 8)]
    id: u64,
    name: String,
}

#[derive(Record, Clone)]
struct KeyComponent {
    #[key]
    id: u64,
    #[key]
    #[index(bytes = 8)]
    number: u32,
    name: String,
}

#[derive(Record, Clone)]
#[index(columns(seat.row(bytes = 1), name))]
struct KeyPart {
    #[key]
    seat: Seat,
    name: String,
}

#[derive(Record, Clone)]
#[index(columns(at.x: i32(bytes = 4), name))]
struct Part {
    #[key]
    id: u64,
    at: Point,
    name: String,
}

#[derive(Record, Clone)]
struct Zero {
    #[key]
    id: u64,
    #[unique(bytes = 0)]
    name: String,
}

#[derive(Record, Clone)]
struct OneTooMany {
    #[key]
    id: u64,
    #[unique(bytes = 241)]
    name: String,
}

fn main() {}
