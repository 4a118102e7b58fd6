use candide::Record;

#[derive(Record, Clone, Copy)]
#[record(sorted)]
#[key]
struct Account {
    #[key(first)]
    id: u64,
    #[group]
    cents: i64,
    #[group()]
    limit: i64,
    #[group(a)]
    #[group(b)]
    a: u8,
    #[column]
    b: u8,
    #[record(hash)]
    c: u8,
    #[index(sorted)]
    d: u8,
    #[index(hash, ordered)]
    e: u8,
    #[index(name = f1, name = f2)]
    f: u8,
    #[index]
    #[unique]
    g: u8,
    #[index(columns(g, f))]
    h: u8,
    #[colour(blue)]
    i: u8,
}

#[derive(Record, Clone, Copy)]
#[record(hash, ordered)]
struct Both {
    #[key]
    id: u64,
}

fn main() {}
