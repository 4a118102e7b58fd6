//! The reserve of a database, and the memory that is touched ahead of demand.

use candide::{Abort, Bytes, Database, Error, Occ, Record};
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: usize = 1 << 20;

#[derive(Record, Clone, Copy)]
struct Row {
    #[key]
    id: u64,
    content: Bytes<1000>,
}

fn insert(db: &Database, ids: std::ops::Range<u64>) -> Result<(), Abort> {
    let rows = db.table::<Row>("rows").expect("the limit allows it");
    let ids: Vec<u64> = ids.collect();
    ids.chunks(100).try_for_each(|ids| {
        db.run(|tx| {
            ids.iter()
                .try_for_each(|&id| rows.insert(tx, Row { id, content: Bytes::new([1; 1000]) }))
        })
    })
}

#[test]
fn tables_and_indexes_use_the_reserve_first() {
    let db = Database::<Occ>::builder().reserve(31 * MIB).build().unwrap();
    let before = db.memory();
    assert_eq!((before.ready_bytes, before.reserved_bytes), (32 * MIB, 0));
    insert(&db, 0..10_000).unwrap();
    let after = db.memory();
    assert!(after.reserved_bytes > 10 * MIB, "{after:?}");
    assert!(after.ready_bytes < 22 * MIB, "{after:?}");
    assert_eq!(after.fresh_bytes, 0, "{after:?}");
    insert(&db, 10_000..40_000).unwrap();
    let after = db.memory();
    // How much of it was fresh depends on how soon the provider has run.
    assert!(after.reserved_bytes > 40 * MIB, "more than the reserve: {after:?}");
}

#[test]
fn a_reserve_that_is_too_large_is_refused() {
    let reserve = |bytes| Database::<Occ>::builder().memory_limit(64 * MIB).reserve(bytes);
    let refused = reserve(64 * MIB + 1).build().map(drop).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a reserve of 67108865 bytes exceeds the memory limit of 67108864 bytes; reserve less, or raise the limit"
    );
    assert!(reserve(64 * MIB).build().is_ok());
    let refused = Database::<Occ>::builder().reserve(1 << 50).build().map(drop).unwrap_err();
    assert!(matches!(refused, Error::ReserveAboveFree { bytes, .. } if bytes == 1 << 50));
    let text = refused.to_string();
    assert!(text.contains("1125899906842624 bytes") && text.contains("reserve less"), "{text}");
}

#[test]
fn an_interrupt_ends_reserving() {
    let asked = AtomicUsize::new(0);
    let stopped = || asked.fetch_add(1, Ordering::Relaxed) >= 10;
    let built = Database::<Occ>::builder().reserve(64 * MIB).build_unless(&stopped);
    assert_eq!(built.map(drop).unwrap_err(), Error::Stopped);
    assert!((11..32).contains(&asked.into_inner()), "soon");
}

/// The limit counts what tables take. The reserve and the stretch ahead leave all of it to them.
#[test]
fn memory_touched_ahead_does_not_count_against_the_limit() {
    let insert_all = |db: Database| {
        let refused = (0..).step_by(100).find(|&first| insert(&db, first..first + 100).is_err());
        (refused.expect("the limit is reached"), db.memory())
    };
    let builder = || Database::<Occ>::builder().seed(1).memory_limit(32 * MIB);
    let (rows, _) = insert_all(builder().build().unwrap());
    let (rows_with_reserve, memory) = insert_all(builder().reserve(16 * MIB).build().unwrap());
    assert_eq!(rows, rows_with_reserve);
    assert!(memory.reserved_bytes <= 32 * MIB, "{memory:?}");
}
