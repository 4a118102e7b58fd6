use candide::{Field, Key, Record, Table, Tables};

#[derive(Field, Clone, Copy)]
struct Nothing {}

#[derive(Field, Clone, Copy)]
enum State {
    Open,
    Closed,
}

#[derive(Field, Clone, Copy)]
struct Pair<T> {
    one: T,
    other: T,
}

#[derive(Field, Clone, Copy)]
#[field(ordered)]
struct Point {
    x: i32,
}

#[derive(Tables)]
struct Handles(Table<Row>);

#[derive(Tables)]
struct Named {
    #[table(title = "rows")]
    rows: Table<Row>,
}

#[derive(Record, Clone, Copy)]
struct Row {
    #[key]
    id: u64,
}

#[derive(Key, Field, Clone, Copy)]
struct Both(u64);

fn main() {}
