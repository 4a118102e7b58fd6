use candide::{Field, Record, Text, schema::Tag};
use std::time::Instant;

#[derive(Field, Clone, Copy)]
struct Place {
    since: Instant,
    code: u32,
}

#[derive(Field, Clone, Copy)]
enum Work {
    Idle,
    Mail(Instant),
}

#[derive(Field, Clone, Copy)]
enum Done {
    No,
    Yes(u8),
}

#[derive(Record, Clone, Copy)]
struct Job {
    #[key]
    id: u64,
    done: Done,
    name: Text<8>,
}

fn main() {
    // A tag changes with the data.
    let _ = Job::DONE.tag().set(Tag::of(&Done::No));
    let _ = Job::DONE.add(Done::Yes(1));
    let _ = Job::NAME.set(7);
}
