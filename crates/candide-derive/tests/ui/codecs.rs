use candide::{Codec, Record};

struct Cents;

impl Codec for Cents {
    type Value = f64;
    type Stored = i64;

    fn encode(value: &f64) -> i64 {
        *value as i64
    }

    fn decode(stored: i64) -> Result<f64, String> {
        Ok(stored as f64)
    }
}

struct NoCodec;

#[derive(Record, Clone, Copy)]
struct Options {
    #[key]
    #[record(with = Cents)]
    id: f64,
    #[record]
    empty: f64,
    #[record(hash)]
    of_struct: f64,
    #[record(with = Cents)]
    #[record(with = Cents)]
    twice: f64,
}

#[derive(Record, Clone, Copy)]
struct Unknown {
    #[key]
    id: u64,
    #[record(with = NoCodec)]
    price: f64,
}

#[derive(Record, Clone, Copy)]
struct Other {
    #[key]
    id: u64,
    #[record(with = Cents)]
    price: f32,
}

fn main() {}
