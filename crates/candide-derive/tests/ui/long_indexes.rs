use candide::{Database, IndexOptions, Record, Text};

type Name = String;

#[derive(Record, Clone)]
struct Fixed {
    #[key]
    id: u64,
    #[index(bytes = 64)]
    number: u32,
}

#[derive(Record, Clone)]
#[index(columns(number, name(bytes = 64)))]
struct Short {
    #[key]
    id: u64,
    number: u32,
    name: Text<16>,
}

#[derive(Record, Clone)]
struct Aliased {
    #[key]
    id: u64,
    #[index]
    name: Name,
}

#[derive(Record, Clone)]
#[unique(columns(number, other, name(bytes = 240)))]
struct TooLong {
    #[key]
    id: u64,
    number: u32,
    other: u32,
    name: String,
}

#[derive(Record, Clone)]
struct User {
    #[key]
    id: u64,
    number: u32,
    name: String,
    #[unique(bytes = 120)]
    email: String,
}

fn main() -> Result<(), candide::Error> {
    let db = Database::new();
    let users = db.table::<User>("users")?;
    users.create_index("by_name", User::NAME, IndexOptions::ordered())?;
    users.create_index("by_number", User::NUMBER.bytes::<64>(), IndexOptions::ordered())?;
    db.run(|tx| {
        users.update(tx, 1, User::EMAIL.set("ann@example.org"))?;
        users.index(User::BY_EMAIL).get(tx, 7, User::ID)
    })?;
    Ok(())
}
