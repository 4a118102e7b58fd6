use candide::{Database, Record};

#[derive(Record, Clone)]
struct User {
    #[key]
    id: u64,
    name: String,
    photo: Option<Vec<u8>>,
}

#[derive(Record, Clone)]
struct Named {
    #[key]
    name: String,
    cents: i64,
}

#[derive(Record, Clone)]
struct Lists {
    #[key]
    id: u64,
    names: Vec<String>,
    pair: [String; 2],
}

#[derive(candide::Field, Clone)]
struct Part {
    name: String,
}

fn main() -> Result<(), candide::Error> {
    let db = Database::new();
    let users = db.table::<User>("users")?;
    db.run(|tx| {
        users.update(tx, 1, User::NAME.add("s".to_string()))?;
        users.update(tx, 1, User::NAME.set(7))?;
        users.update(tx, 1, User::PHOTO.set("x"))
    })
}
