use candide::Record;

#[derive(Record, Clone, Copy)]
#[index]
#[index(name = by_nothing, columns())]
#[index(columns(owner, city))]
#[index(name = twice, columns(a, a))]
#[index(name = many, columns(a, b, c, d, e))]
#[index(name = by_a, columns(a, b))]
#[unique(name = by_a, columns(b, c))]
struct Account {
    #[key]
    id: u64,
    owner: u64,
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
}

fn main() {}
