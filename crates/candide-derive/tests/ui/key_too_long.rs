use candide::{Bytes, Key, Record, Text};

#[derive(Key, Clone, Copy)]
struct Names(Text<200>, Text<200>);

#[derive(Key, Clone, Copy)]
struct Name(Text<249>, u8);

#[derive(Key, Clone, Copy)]
struct Image(Bytes<257>);

#[derive(Record, Clone, Copy)]
struct File {
    #[key]
    id: u64,
    #[index]
    name: Text<1000>,
}

fn main() {}
