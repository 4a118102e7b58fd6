use candide::Record;
use candide::schema::{Bounded, Free};

#[derive(Record, Clone)]
struct User {
    #[key]
    id: u64,
    name: String,
}

const NAME: Bounded<User, String, Free, 241> = User::NAME.bytes();

fn main() {
    let _ = NAME;
}
