//! Chains of commits, under the policy `pipelined`.

use super::super::rows::Item;
use super::{count, explore, race};
use crate::index::Found;
use crate::policy::Policy;
use crate::protocols::Occ;
use crate::sync::Ordering;
use crate::{Abort, Database, Table, Tx};

fn add(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.update(tx, 0, Item::COUNT.add(1))
}

/// Two commits change one row. The later one may take the row over from the earlier one, which has
/// executed and has not released it: then all that it sees of that one comes through the desk.
#[test]
fn loom_a_row_is_taken_over() {
    explore(2, || {
        let builder = Database::<Occ>::builder().policy(Policy::Pipelined);
        let db = builder.timestamp_splitting(false).build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        db.session().unwrap().run(|tx| table.insert(tx, Item::new(0, 0))).unwrap();
        assert_eq!(race(&db, &table, add, add), (true, true), "tame commits do not fail");
        assert_eq!(count(&db, &table, [0]), [2], "no update is lost");
        let Found::Record(record) = table.core().index.find(&[0]) else { panic!("it is there") };
        let at = table.core().layout.first_of(record);
        assert_eq!(at.cell_word(1).load(Ordering::Relaxed), 0, "a lock is left");
    });
}
