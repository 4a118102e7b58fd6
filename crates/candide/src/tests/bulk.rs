//! Loading, clearing, exporting and importing of many rows: their promises and refusals.

use super::rows::Item;
use super::{ForProtocol, for_each};
use crate::engine::Protocol;
use crate::protocols::{Serial, under_a_lock};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::{
    Abort, Database, Error, LoadOptions, Occ, Record, RunOptions, StreamError, Table, Tx, Whole,
};
use std::num::NonZeroUsize;

const THREE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

fn filled<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("items").unwrap();
    table.load((0..rows).map(|id| Item::new(id, id as i64)), LoadOptions::new()).unwrap();
    (db, table)
}

/// Returns all rows, in the order of their ids.
fn rows<P: Protocol>(table: &Table<Item, P>) -> Vec<Item> {
    let mut rows = Vec::new();
    table.for_each_quiescent(|row| rows.push(*row)).unwrap();
    rows.sort_unstable_by_key(|row| row.id);
    rows
}

struct LoadsEverything;

impl ForProtocol for LoadsEverything {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("items").unwrap();
        let (calls, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let progress = |rows| {
            calls.fetch_add(1, Ordering::Relaxed);
            most.fetch_max(rows, Ordering::Relaxed);
        };
        let options = LoadOptions::new().workers(THREE).progress(&progress);
        assert_eq!(table.load((0..10_000).map(|id| Item::new(id, 1)), options), Ok(10_000));
        assert!(calls.load(Ordering::Relaxed) > 10);
        assert_eq!(most.load(Ordering::Relaxed), 10_000);
        assert_eq!(rows(&table).len(), 10_000);
        assert_eq!(table.len_estimate(), 10_000);
    }
}

#[test]
fn loading_inserts_every_row_once_and_reports_it() {
    for_each(&LoadsEverything);
}

#[test]
fn loading_inside_a_transaction_that_all_others_wait_for_is_refused() {
    let (db, table) = under_a_lock(|| filled::<Serial>(0));
    let mut session = db.session().unwrap();
    let rows = || (0..10).map(|id| Item::new(id, 0));
    let nested = Error::Load { rows: 0, cause: Abort::Nested };
    for _ in 0..2 {
        let load = |_: &Tx<'_, _>| Ok::<_, Abort>(table.load(rows(), LoadOptions::new()));
        assert_eq!(db.run(load), Ok(Err(nested.clone())));
        assert_eq!(session.run(load), Ok(Err(nested.clone())));
    }
    assert_eq!(table.load(rows(), LoadOptions::new()), Ok(10));
}

#[test]
fn loading_ends_where_the_iterator_does() {
    for workers in [NonZeroUsize::MIN, THREE] {
        let (_db, table) = filled::<Occ>(0);
        let rows = (0..1_000).map_while(|id| (id != 100).then(|| Item::new(id, 0)));
        assert_eq!(table.load(rows, LoadOptions::new().workers(workers)), Ok(100));
    }
}

#[test]
fn a_load_of_which_one_worker_panics_is_over_for_all() {
    let (_db, table) = filled::<Occ>(0);
    let is_first = AtomicBool::new(true);
    let progress = |_: usize| {
        if is_first.swap(false, Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    };
    let options = LoadOptions::new().workers(THREE).progress(&progress);
    let load = || table.load((0..100_000).map(|id| Item::new(id, 0)), options);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).is_err());
    assert!(table.len_estimate() < 50_000, "{} rows", table.len_estimate());
}

#[test]
fn an_import_that_is_refused_says_how_many_rows_there_are() {
    let (_source, from) = filled::<Occ>(2_500);
    let mut stream = Vec::new();
    from.export(&mut stream).unwrap();
    let (db, table) = filled::<Occ>(0);
    // The last row of the stream: behind it are the checksum of its piece, and the end, three
    // words.
    let last = stream.len() - 4 * 8 - 8 * (1 + crate::schema::image_words(Item::GROUPS));
    let id = u64::from_le_bytes(stream[last..last + 8].try_into().unwrap());
    assert_eq!(db.run(|tx| table.insert(tx, Item::new(id, 0))), Ok::<_, Abort>(()));
    let refused = table.import(&mut stream.as_slice());
    // Two pieces; the third has the row in it, and each is a transaction.
    let wanted = 2 * 1_024;
    let Err(StreamError::Refused(Error::Load { rows, cause: Abort::Duplicate })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((rows, self::rows(&table).len()), (wanted, wanted + 1));
}

/// A writer that accepts some bytes, and then no more.
struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    let (_db, table) = filled::<Occ>(5_000);
    assert!(matches!(table.export(&mut Closed(100_000)), Err(StreamError::Io(_))));
}

#[test]
fn loading_ends_at_the_first_refusal_and_says_how_far_it_came() {
    let (_db, table) = filled::<Occ>(0);
    let rows = (0..5_000).map(|number| Item::new(if number == 3_000 { 7 } else { number }, 0));
    match table.load(rows, LoadOptions::new()) {
        Err(Error::Load { rows, cause: Abort::Duplicate }) => {
            assert_eq!(rows, 3_000 / 256 * 256, "whole transactions");
            assert!(table.len_estimate() as usize >= rows);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_iterator_is_the_callers() {
    let (db, table) = filled::<Occ>(0);
    let rows =
        (0..1_000).map(|number| if number == 600 { panic!("mine") } else { Item::new(number, 0) });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        table.load(rows, LoadOptions::new())
    }));
    assert!(result.is_err());
    db.run(|tx| table.put(tx, Item::new(1, 1))).unwrap_or_else(|e: Abort| panic!("{e}"));
}

struct Clears;

impl ForProtocol for Clears {
    fn run<P: Protocol>(&self) {
        let (db, table) = filled::<P>(500);
        let before = rows(&table);
        let cleared_and_filled_again = |tx: &Tx<'_, P>| {
            table.insert(tx, Item::new(1_000, 0))?;
            table.delete(tx, &3)?;
            assert_eq!(table.clear(tx)?, 500, "what the transaction sees: one more and one less");
            assert_eq!(table.clear(tx)?, 0);
            // Some are inserted again, and some of these deleted again.
            (0..500).step_by(3).try_for_each(|id| table.insert(tx, Item::new(id, 7)))?;
            (0..500).step_by(6).try_for_each(|id| table.delete(tx, &id))?;
            let there = |id: &u64| Ok(table.get(tx, id, ())?.is_some());
            (0..500)
                .filter_map(|id| there(&id).map(|is| is.then_some(id)).transpose())
                .collect::<Result<Vec<_>, Abort>>()
        };
        let failed: Result<(), Abort> = db.run(|tx| {
            cleared_and_filled_again(tx)?;
            Err(Abort::NotFound)
        });
        assert_eq!(failed, Err(Abort::NotFound));
        assert_eq!(rows(&table), before, "the error took it back");
        let left: Vec<u64> = (3..500).step_by(6).collect();
        assert_eq!(db.run(cleared_and_filled_again), Ok(left.clone()));
        assert_eq!(rows(&table).iter().map(|row| row.id).collect::<Vec<_>>(), left);
        assert_eq!(db.run(|tx| table.clear(tx)), Ok(left.len()));
        assert_eq!(rows(&table).len(), 0);
    }
}

#[test]
fn clearing_is_part_of_its_transaction() {
    for_each(&Clears);
}

struct InsertsMany;

impl ForProtocol for InsertsMany {
    fn run<P: Protocol>(&self) {
        let (db, table) = filled::<P>(3);
        let refused = db.run(|tx| table.insert_many(tx, [5, 6, 1, 7].map(|id| Item::new(id, 9))));
        assert_eq!(refused, Err(Abort::Duplicate));
        assert_eq!(rows(&table).len(), 3);
        let twice = db.run(|tx| table.insert_many(tx, [5, 6, 5].map(|id| Item::new(id, 9))));
        assert_eq!(twice, Err(Abort::Duplicate));
        let gone_on = db.run(|tx| {
            assert_eq!(
                table.insert_many(tx, [5, 1, 6].map(|id| Item::new(id, 9))),
                Err(Abort::Duplicate)
            );
            table.get(tx, &6, Item::COUNT)
        });
        assert_eq!(gone_on, Ok(None));
        assert_eq!(rows(&table).iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 5]);
    }
}

#[test]
fn insert_many_refuses_like_insert() {
    for_each(&InsertsMany);
}

struct RoundTrip;

impl ForProtocol for RoundTrip {
    fn run<P: Protocol>(&self) {
        for count in [0, 1, 1_023, 1_024, 1_025, 5_000] {
            let (_db, table) = filled::<P>(count);
            let mut stream = Vec::new();
            assert_eq!(table.export(&mut stream).unwrap(), count);
            let (_other, copy) = filled::<P>(0);
            assert_eq!(copy.import(&mut stream.as_slice()).unwrap(), count);
            assert_eq!(rows(&copy), rows(&table));
        }
    }
}

/// Streams have the format in the documentation of `export`, word by word, so that old ones can
/// always be read.
#[test]
fn the_format_is_what_it_was() {
    let (db, table) = filled::<Occ>(0);
    db.run(|tx| table.insert(tx, Item::new(5, -1)))
        .unwrap_or_else(|abort: Abort| panic!("{abort}"));
    let mut stream = Vec::new();
    assert_eq!(table.export(&mut stream).unwrap(), 1);
    let fields = "id: u64 (key)\ncount: i64 (group hot)\nsmall: u8 (group hot)\nflag: bool (group hot)\nother: u64 (group cold)\n";
    let mut begin =
        [u64::from_le_bytes(*b"candide\x03"), 1_414_765_685_153_274_620, 1, 3, fields.len() as u64]
            .to_vec();
    let padded = format!("{fields}\0\0\0\0\0\0\0");
    begin.extend(
        padded.as_bytes().as_chunks().0[..fields.len().div_ceil(8)]
            .iter()
            .map(|&word| u64::from_le_bytes(word)),
    );
    let add = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    begin.push(begin.iter().fold(0xcbf2_9ce4_8422_2325, add));
    let old_begin = [u64::from_le_bytes(*b"candide\x02"), begin[1], 1, 3];
    // The count; the small number and the flag, in one word; the other number, in a group of its
    // own.
    let row = [5, u64::MAX, 7, 100];
    let rest =
        [&[1], &row[..], &[7_645_139_869_971_480_778], &[0, 1, 6_636_593_151_406_678_724]].concat();
    let bytes = |begin: &[u64]| {
        [begin, &rest].concat().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    assert_eq!(stream, bytes(&begin));
    for stream in [bytes(&begin), bytes(&old_begin)] {
        let (_other, copy) = filled::<Occ>(0);
        assert_eq!(copy.import(&mut &stream[..]).unwrap(), 1);
        assert_eq!(rows(&copy), [Item::new(5, -1)]);
    }
}

#[test]
fn what_is_exported_is_what_is_imported() {
    for_each(&RoundTrip);
}

#[test]
fn a_damaged_stream_is_refused_wherever_it_is_damaged() {
    let exported = |rows| {
        let mut stream = Vec::new();
        filled::<Occ>(rows).1.export(&mut stream).unwrap();
        stream
    };
    let is_refused = |stream: &[u8], how: &str| {
        let (_db, copy) = filled::<Occ>(0);
        match copy.import(&mut &*stream) {
            Err(StreamError::Format(problem)) => assert!(!problem.is_empty(), "{how}"),
            Err(StreamError::Schema { .. }) => {}
            other => panic!("{how}: {other:?}"),
        }
    };
    let stream = exported(3);
    (0..stream.len())
        .for_each(|length| is_refused(&stream[..length], &format!("cut after {length} bytes")));
    // With one row, too: then one bit turns the number of rows into the end.
    for stream in [exported(1), stream] {
        for (byte, bit) in (0..stream.len()).flat_map(|byte| [(byte, 1), (byte, 0x80)]) {
            let mut damaged = stream.clone();
            damaged[byte] ^= bit;
            is_refused(&damaged, &format!("bit {bit:#x} of byte {byte} of {}", stream.len()));
        }
        // The uppermost bits of two words: a product turns them only into uppermost bits.
        let last_bytes = || (7..stream.len()).step_by(8);
        for (first, second) in
            last_bytes().flat_map(|first| last_bytes().map(move |second| (first, second)))
        {
            let mut damaged = stream.clone();
            damaged[first] ^= 0x80;
            damaged[second] ^= 0x80;
            if damaged != stream {
                is_refused(
                    &damaged,
                    &format!("the last bits of words at {first} and {second} of {}", stream.len()),
                );
            }
        }
    }
}

#[test]
fn rows_of_another_type_and_rows_that_are_there_are_refused() {
    #[derive(candide_derive::Record, Debug, Clone, Copy)]
    #[record(crate = crate)]
    struct Other {
        #[key]
        _id: u64,
        count: i64,
    }
    let (db, table) = filled::<Occ>(3);
    let mut stream = Vec::new();
    table.export(&mut stream).unwrap();
    let other = db.table::<Other>("others").unwrap();
    let refused = other.import(&mut stream.as_slice()).unwrap_err();
    assert!(matches!(refused, StreamError::Schema { .. }));
    let message =
        r#"the rows of the stream are not the table's: the table has no field "id: u64 (key)"; "#;
    assert!(refused.to_string().starts_with(message), "{refused}");
    assert!(
        db.run(|tx| other.get(tx, &1, Other::COUNT)).is_ok_and(|row: Option<i64>| row.is_none())
    );
    match table.import(&mut stream.as_slice()) {
        Err(StreamError::Refused(Error::Load { rows: 0, cause: Abort::Duplicate })) => {}
        refused => panic!("{refused:?}"),
    }
}

#[test]
fn a_table_in_use_is_not_exported() {
    let (db, table) = filled::<Occ>(3);
    let mut session = db.session().unwrap();
    let inside = session.run(|tx| {
        table.read(tx, &1, Whole)?;
        Ok::<_, Abort>(table.export(&mut Vec::new()))
    });
    assert!(matches!(inside, Ok(Err(StreamError::Refused(Error::NotQuiescent)))));
    assert_eq!(table.export(&mut Vec::new()).unwrap(), 3);
}

#[test]
fn what_is_deleted_while_a_table_grows_is_absent_for_many_lookups() {
    // Few enough that no step moves a whole array of a table of this size.
    const STEP: u64 = 20;
    const FIRST: u64 = 2_000;
    let db = Database::<Occ>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("items").unwrap();
    table.load((0..FIRST).map(|id| Item::new(id, id as i64)), LoadOptions::new()).unwrap();
    let [mut session, mut other] = [(); 2].map(|()| db.session().unwrap());
    for step in 0..200 {
        let first = FIRST + step * STEP;
        // Some of these find that the table has to grow, and move a part of it to the new array.
        let rows = (first..first + STEP).map(|id| Item::new(id, 0));
        session
            .run(|tx| table.insert_many(tx, rows.clone()))
            .unwrap_or_else(|abort: Abort| panic!("{abort}"));
        let keys = std::array::from_fn::<_, 8, _>(|number| step + 200 * number as u64);
        session
            .run(|tx| keys.iter().try_for_each(|key| table.delete(tx, key)))
            .unwrap_or_else(|abort: Abort| panic!("{abort}"));
        // After some epochs the records are unlinked, but not freed, since a session might still
        // read them.
        (0..3).for_each(|_| db.inner.engine.epochs.pass());
        let found = other.run(|_| {
            session.run(|_| Ok::<_, Abort>(()))?;
            session.run_with(RunOptions::new().attempts_max(4), |tx| {
                let found = table.find_many(tx, &keys)?;
                found.iter().map(|row| row.get(Item::COUNT)).collect::<Result<Vec<_>, Abort>>()
            })
        });
        assert_eq!(found, Ok(vec![None; 8]), "deleted with {first} rows");
    }
}
