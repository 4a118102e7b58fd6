//! Parts of transactions that are refused for lack of memory, and the memory of undone parts.

use super::entries::linked_records;
use super::indexed_rows::{Filed, Parcel};
use super::rows::Wide;
use super::transactions::run;
use crate::engine::{Protocol, Versions};
use crate::{Abort, Database, Session, Table, Tx};

/// A database without memory for another row, or for many versions.
struct Full<P: Protocol> {
    wide: Table<Wide, P>,
    session: Session<P>,
    _db: Database<P>,
}

fn full<P: Protocol>() -> Full<P> {
    let db = Database::<P>::builder().manual_epochs(1).memory_limit(1 << 20).build().unwrap();
    let wide = db.table::<Wide>("wide").unwrap();
    let mut session = db.session().unwrap();
    let row = |id| Wide { id, first: 0, middle: [0; 20], last: 0 };
    run(&mut session, |tx| wide.insert(tx, row(0)));
    // The rest of the blocks that this takes stay free for some more changes of one column.
    run(&mut session, |tx| wide.update(tx, 0, Wide::FIRST.set(1)));
    let refused = (1..).find_map(|id| session.run(|tx| wide.insert(tx, row(id))).err());
    assert_eq!(refused, Some(Abort::MemoryLimit));
    Full { wide, session, _db: db }
}

/// Updates one row after the other until there is no memory for another version.
fn exhaust<P: Protocol>(wide: &Table<Wide, P>, tx: &Tx<'_, P>) {
    let refused = (0..).find_map(|id| wide.update(tx, id, Wide::FIRST.set(9)).err());
    assert_eq!(refused, Some(Abort::MemoryLimit), "{}", P::NAME);
}

/// Runs a part that is undone.
fn run_undone_part<P: Protocol>(wide: &Table<Wide, P>, tx: &Tx<'_, P>) {
    let undone = tx.attempt(|tx| {
        wide.get(tx, 0, Wide::FIRST)?;
        Err::<(), _>(Abort::Indexed)
    });
    assert_eq!(undone, Err(Abort::Indexed));
}

protocol_tests!(versioned: a_refusal_before_a_part_fails_the_transaction);
fn a_refusal_before_a_part_fails_the_transaction<P: Protocol>() {
    let Full { wide, mut session, .. } = full::<P>();
    let ended = session.run(|tx| {
        exhaust(&wide, tx);
        run_undone_part(&wide, tx);
        Ok(())
    });
    assert_eq!(ended, Err(Abort::MemoryLimit), "{}", P::NAME);
    let ended = session.run(|tx| {
        exhaust(&wide, tx);
        assert_eq!(tx.attempt(|_| Ok::<_, Abort>(())), Ok(()), "it has written nothing");
        Ok(())
    });
    assert_eq!(ended, Err(Abort::MemoryLimit), "{}", P::NAME);
    // The error ends the part in which it was met, too, not only the parts within that part.
    run(&mut session, |tx| {
        let part = tx.attempt(|tx| {
            exhaust(&wide, tx);
            run_undone_part(&wide, tx);
            Ok(())
        });
        assert_eq!(part, Err(Abort::MemoryLimit), "{}", P::NAME);
        Ok(())
    });
    run(&mut session, |tx| {
        assert_eq!(wide.read(tx, 0, Wide::FIRST)?, 1);
        assert_eq!(wide.read(tx, 1, Wide::FIRST)?, 0);
        wide.update(tx, 1, Wide::FIRST.set(2))
    });
}

protocol_tests!(versioned: a_part_that_is_refused_leaves_a_transaction_that_can_commit);
fn a_part_that_is_refused_leaves_a_transaction_that_can_commit<P: Protocol>() {
    let Full { wide, mut session, .. } = full::<P>();
    let last = run(&mut session, |tx| {
        wide.update(tx, 0, Wide::FIRST.set(5))?;
        // The transaction now changes a wider part of the row.
        let part = tx.attempt(|tx| wide.update(tx, 0, Wide::LAST.set(5)));
        let is_refused = part == Err(Abort::MemoryLimit);
        assert_eq!(is_refused, P::Versions::SHORT_WORDS > 0, "{}: {part:?}", P::NAME);
        Ok(if is_refused { 0 } else { 5 })
    });
    let columns = (Wide::FIRST, Wide::LAST);
    assert_eq!(run(&mut session, |tx| wide.read(tx, 0, columns)), (5, last), "{}", P::NAME);
}

protocol_tests!(all: undone_parts_leave_no_record_behind);
fn undone_parts_leave_no_record_behind<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let mut session = db.session().unwrap();
    let row = |number| Filed::from(Parcel::new(1, number));
    for round in 0..10 {
        // In some rounds, nothing else is written.
        let kept = if round % 3 == 0 { 0 } else { 3 };
        run(&mut session, |tx| {
            for number in 0..20 {
                let undone = tx.attempt(|tx| {
                    filed.insert(tx, row(number))?;
                    filed.modify(tx, (1, number), Filed::CODE, |code| *code += 5_000)?;
                    tx.attempt(|tx| filed.delete(tx, (1, number)))?;
                    filed.put(tx, row(number + 100))?;
                    Err::<(), _>(Abort::Indexed)
                });
                assert_eq!(undone, Err(Abort::Indexed));
            }
            filed.insert_many(tx, (0..kept).map(row))
        });
        run(&mut session, |tx| (0..kept).try_for_each(|number| filed.delete(tx, (1, number))));
    }
    for _ in 0..100 {
        db.inner.engine.epochs.pass();
        run(&mut session, |_| Ok(()));
    }
    let left = (db.memory().garbage, linked_records(&mut session, &filed));
    assert_eq!(left, (0, 0), "{}: garbage and linked records", P::NAME);
}
