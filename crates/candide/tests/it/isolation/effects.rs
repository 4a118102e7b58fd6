//! Tests of the effects of transactions outside of the database.

use crate::common::{Item, database_with};
use candide::{Abort, Database, Protocol};

#[test]
fn effects_run_once_after_the_commit() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let effects = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    session
        .run(|tx| {
            let (effects, attempt) = (effects.clone(), tx.attempt_number());
            tx.on_commit(move || effects.borrow_mut().push(attempt));
            let count = table.read(tx, 1, Item::COUNT)?;
            if attempt < 3 {
                other.run(|tx| table.update(tx, 1, Item::COUNT.add(1)))?;
            }
            table.update(tx, 1, Item::OTHER.set(count as u64))
        })
        .unwrap();
    assert_eq!(*effects.borrow(), [3]);
    let failed: Result<(), Abort> = session.run(|tx| {
        tx.on_commit(|| panic!("the transaction did not commit"));
        Err(Abort::NotFound)
    });
    assert_eq!(failed, Err(Abort::NotFound));
}

protocol_tests!(all: an_effect_may_run_a_transaction);
fn an_effect_may_run_a_transaction<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("rows");
    db.run(|tx| {
        let (db, table) = (db.clone(), table.clone());
        tx.on_commit(move || db.run(|tx| table.insert(tx, Item::new(2, 2))).unwrap());
        Ok(())
    })
    .unwrap();
    assert_eq!(db.run(|tx| table.read(tx, 2, Item::COUNT)), Ok(2));
}
