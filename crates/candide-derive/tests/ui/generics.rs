use candide::{Key, Record};

#[derive(Record, Clone, Copy)]
struct Account<T> {
    #[key]
    id: u64,
    value: T,
}

#[derive(Key, Clone, Copy)]
struct Id<const N: usize>(u64);

fn main() {}
