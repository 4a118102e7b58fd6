use candide::{Abort, Database, Prefix, Record, Text, Tx};

#[derive(Record, Clone, Copy)]
#[index(columns(name, id))]
struct Customer {
    #[key]
    id: u64,
    name: Text<16>,
}

fn main() -> Result<(), candide::Error> {
    let db = Database::new();
    let customers = db.table::<Customer>("customers")?;
    let by_name = customers.index(Customer::BY_NAME_ID);
    // Is the name "sm", or does it begin with "sm"?
    db.run(|tx: &Tx<'_>| -> Result<usize, Abort> { by_name.scan(tx, Prefix(("sm",)), ()).count() })?;
    Ok(())
}
