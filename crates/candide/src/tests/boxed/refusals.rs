//! What programs cannot do with the words of values.

use super::{Probe, scene, settle};
use crate::engine::Protocol;
use crate::tests::rows::Item;
use crate::{Abort, Error, TableOptions};

protocol_tests!(all: no_program_opens_a_table_of_values_as_rows);
fn no_program_opens_a_table_of_values_as_rows<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    let refused = db.table::<Item>("values").map(drop);
    assert!(matches!(&refused, Err(Error::TableType { table, .. }) if table == "values"));
    type Other<T, P> = crate::api::ValueTable<u64, T, crate::Ordered, P>;
    let refused = Other::<u64, P>::open(&db, "values", TableOptions::default()).map(drop);
    assert!(matches!(refused, Err(Error::TableType { .. })), "values of another type");
    let again = Other::<Probe, P>::open(&db, "values", TableOptions::default()).unwrap();
    assert_eq!(db.run(|tx| Ok(again.read(tx, 1)?.number())), Ok(0));
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    let refused = Other::<Probe, P>::open(&db, "items", TableOptions::default()).map(drop);
    assert!(matches!(refused, Err(Error::TableType { .. })), "rows are no values");
    settle(&db, &again, &ledger);
}

protocol_tests!(all: a_table_of_another_database_is_refused);
fn a_table_of_another_database_is_refused<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let (other, others, _) = scene::<P>();
    db.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    let refusals = other.run(|tx| {
        Ok([
            values.get(tx, 1).map(drop),
            values.put(tx, 1, ledger.probe()),
            values.set(tx, 1, ledger.probe()),
            values.insert(tx, 2, ledger.probe()),
            values.delete(tx, 1),
        ])
    });
    assert_eq!(refusals, Ok([Err(Abort::ForeignTable); 5]));
    assert_eq!(ledger.alive().len(), 1, "what was refused is dropped");
    settle(&other, &others, &super::Ledger::default());
    settle(&db, &values, &ledger);
}
