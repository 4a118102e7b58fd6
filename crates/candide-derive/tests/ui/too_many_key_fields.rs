use candide::Record;

#[derive(Record, Clone, Copy)]
struct Line {
    #[key]
    warehouse: u32,
    #[key]
    district: u8,
    #[key]
    order: u32,
    #[key]
    number: u8,
    #[key]
    part: u8,
}

fn main() {}
