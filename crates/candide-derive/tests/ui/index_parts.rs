use candide::{Field, Key, Record};

#[derive(Field, Clone, Copy)]
struct Point {
    x: i32,
    y: f64,
}

#[derive(Key, Field, Clone, Copy)]
struct Seat {
    row: u8,
    number: u16,
}

#[derive(Record, Clone, Copy)]
#[index(columns(at.x))]
struct NoType {
    #[key]
    id: u64,
    at: Point,
}

#[derive(Record, Clone, Copy)]
#[index(columns(at.x: i32, at.x: i32))]
#[index(columns(seat.row: u8, at))]
struct Twice {
    #[key]
    seat: Seat,
    at: u32,
}

#[derive(Record, Clone, Copy)]
#[index(columns(at.x: i64))]
struct OtherType {
    #[key]
    id: u64,
    at: Point,
}

#[derive(Record, Clone, Copy)]
#[index(columns(at.z: i32))]
struct NoPart {
    #[key]
    id: u64,
    at: Point,
}

fn main() {}
