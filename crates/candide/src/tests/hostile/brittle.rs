//! A hand-written row type. Every function of the type may panic: those of rows, keys and columns,
//! and those that compute index keys.

use super::super::threads::spawn;
use super::{Deliberate, Watchdog, commits, deliberate};
use crate::engine::Protocol;
use crate::schema::{AsKey, Buffer, Field, RowReader, RowWriter};
use crate::sync::size::Sample;
use crate::tests::entries::{assert_entries_match_rows, linked_records};
use crate::{
    Abort, Column, Database, Error, Group, Hashed, Index, IndexOptions, Key, Ordered, Record,
    Session, Table, TableOptions, Tx, Whole,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// The number of calls of a row's own code that will still succeed before one panics; `None` if
    /// no call panics.
    static FUSE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Counts a call, and panics if the fuse is used up. Every function of the row type calls this
/// function first.
fn burn() {
    match FUSE.get() {
        None => {}
        Some(0) => {
            FUSE.set(None);
            deliberate()
        }
        Some(left) => FUSE.set(Some(left - 1)),
    }
}

/// Runs `body` with a fuse of `length` calls. Returns the result of `body`; `None` if a call has
/// panicked.
fn with_fuse<T>(length: usize, body: impl FnOnce() -> T) -> Option<T> {
    FUSE.set(Some(length));
    let result = catch_unwind(AssertUnwindSafe(body));
    FUSE.set(None);
    match result {
        Ok(value) => Some(value),
        Err(panic) if panic.is::<Deliberate>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// A number whose conversions may panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fragile(u64);

impl AsKey<Fragile> for Fragile {
    type Given = Self;

    fn into_key(self) -> Option<Self> {
        Some(self)
    }
}

impl Key for Fragile {
    type Words = [u64; 1];
    const WIDTHS: &'static [u32] = &[64];

    fn words(&self) -> [u64; 1] {
        burn();
        [self.0]
    }

    fn from_words(words: &[u64]) -> Fragile {
        burn();
        Fragile(words[0])
    }
}

/// The word of a [`Fragile`] that has been copied from a record.
#[derive(Clone, Copy)]
struct FragileWord(u64);

impl Buffer for FragileWord {
    const ZERO: FragileWord = FragileWord(0);

    fn set(&mut self, _index: usize, word: u64) {
        burn();
        self.0 = word;
    }
}

impl Field for Fragile {
    const BITS: u32 = 64;
    type Buffer = FragileWord;

    fn word(&self, _index: usize) -> u64 {
        burn();
        self.0
    }

    fn from_buffer(buffer: &FragileWord) -> Fragile {
        burn();
        Fragile(buffer.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Brittle {
    id: Fragile,
    value: Fragile,
    count: u64,
}

impl Brittle {
    const VALUE: Column<Brittle, Fragile> = Column::new(0, 0, "value");
    const COUNT: Column<Brittle, u64> = Column::new(1, 0, "count");

    fn new(id: u64) -> Brittle {
        Brittle { id: Fragile(id), value: Fragile(100 + id), count: 0 }
    }
}

impl Record for Brittle {
    type Key = Fragile;
    type Index = Hashed;
    type Image = [u64; 2];
    const META: crate::schema::Meta =
        crate::schema::Meta::new("Brittle", &[Group::new("value", 1), Group::new("count", 1)]);

    fn key(&self) -> Fragile {
        burn();
        self.id
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        burn();
        Self::VALUE.put(row, &self.value);
        Self::COUNT.put(row, &self.count);
    }

    fn load(key: &Fragile, row: &RowReader<'_>) -> Brittle {
        burn();
        Brittle { id: *key, value: Self::VALUE.take(row), count: Self::COUNT.take(row) }
    }
}

const ROWS: u64 = 10;

struct Shelf<P: Protocol> {
    db: Database<P>,
    table: Table<Brittle, P>,
    by_value: Index<Brittle, Fragile, Ordered, P>,
}

impl<P: Protocol> Shelf<P> {
    fn new(options: TableOptions) -> Shelf<P> {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let table = db.table_with::<Brittle>("brittle", options).unwrap();
        let by_value = table
            .create_index("by_value", Brittle::VALUE, IndexOptions::ordered().unique())
            .unwrap();
        db.run(|tx| table.insert_many(tx, (0..ROWS).map(Brittle::new))).unwrap();
        Shelf { db, table, by_value }
    }

    /// Calls all functions of the row type, by every kind of operation.
    fn script(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        let (table, id) = (&self.table, Fragile);
        let mut scan = table.iter(tx, Whole);
        scan.next().transpose()?.expect("there are rows");
        table.insert(tx, Brittle::new(10))?;
        table.insert_many(tx, (11..14).map(Brittle::new))?;
        assert_eq!(
            tx.attempt(|tx| {
                table.insert(tx, Brittle { value: Fragile(102), ..Brittle::new(20) })
            }),
            Err(Abort::NotUnique)
        );
        table.put(tx, Brittle { value: Fragile(201), ..Brittle::new(1) })?;
        table.put(tx, Brittle::new(14))?;
        table.modify(tx, &id(2), Brittle::VALUE, |value| value.0 += 200)?;
        table.update(tx, &id(3), Brittle::COUNT.add(1))?;
        table.upsert(tx, Brittle::new(15), Brittle::COUNT.add(1))?;
        table.upsert(tx, Brittle::new(4), Brittle::COUNT.add(1))?;
        table.read(tx, &id(4), Whole)?;
        table.read_for_update(tx, &id(5), Brittle::VALUE)?;
        table.delete(tx, &id(6))?;
        table.insert(tx, Brittle { count: 5, ..Brittle::new(6) })?;
        table.delete(tx, &id(7))?;
        for row in table.find_many(tx, &[id(8), id(9)])? {
            row.modify((Brittle::VALUE, Brittle::COUNT), |(value, count)| {
                (value.0, *count) = (value.0 + 300, 1)
            })?;
        }
        self.by_value.read(tx, &Fragile(105), Brittle::COUNT)?;
        self.by_value.scan(tx, Fragile(100)..Fragile(110), Whole).for_each(drop)?;
        scan.for_each(drop)
    }

    fn rows(&self) -> Vec<Brittle> {
        let mut rows = Vec::new();
        self.table.for_each_quiescent(|row| rows.push(*row)).unwrap();
        rows.sort_by_key(|row| row.id);
        rows
    }

    /// Asserts that the rows equal `wanted`, that the indexes agree with them, and that every row
    /// can be written.
    fn assert_unharmed(&self, wanted: &[Brittle]) {
        std::thread::scope(|scope| {
            spawn(scope, || {
                assert_eq!((self.db.health().oldest_pin, self.rows()), (None, wanted.to_vec()));
                let mut session = self.db.session().unwrap();
                assert_entries_match_rows(&mut session, &self.table);
                let all = || (0..=20).map(Fragile);
                commits(&mut session, |tx| {
                    let rewrite = |id| {
                        self.table
                            .put(tx, Brittle { value: Fragile(1_000 + id), ..Brittle::new(id) })
                    };
                    all().try_for_each(|id| rewrite(id.0))
                });
                commits(&mut session, |tx| {
                    all().try_for_each(|id| self.table.delete(tx, &id))?;
                    self.table.insert_many(tx, wanted.iter().copied())
                });
                assert_eq!(self.rows(), wanted);
                assert_entries_match_rows(&mut session, &self.table);
            });
        });
    }
}

protocol_tests!(all: a_panic_in_any_function_of_a_row_type_undoes_the_transaction);
fn a_panic_in_any_function_of_a_row_type_undoes_the_transaction<P: Protocol>() {
    let (watchdog, mut sample) = (Watchdog::new(), Sample::one_in(3));
    for options in [TableOptions::default(), TableOptions::default().ordered()] {
        let shelf = Shelf::<P>::new(options);
        let rows = shelf.rows();
        let mut calls = 0;
        loop {
            if !sample.has_next() {
                calls += 1;
                continue;
            }
            watchdog.step(format!("call {calls} of a row's code under {}", P::NAME));
            let mut session = shelf.db.session().unwrap();
            if let Some(done) = with_fuse(calls, || session.run(|tx| shelf.script(tx))) {
                assert_eq!(done, Ok(()));
                break;
            }
            // The session can continue.
            assert_eq!(
                session.run(|tx| shelf.script(tx).and(Err(Abort::Duplicate))),
                Err::<(), _>(Abort::Duplicate)
            );
            drop(session);
            shelf.assert_unharmed(&rows);
            calls += 1;
        }
        assert!(calls > 60, "only {calls} calls of a row's code");
        shelf.assert_unharmed(&shelf.rows());
    }
}

protocol_tests!(all: a_panic_caught_by_a_closure_leaves_no_partial_row);
/// Operations on whole rows get all words from the row type before they change a record, and
/// operations in a part are undone. After a panic of others, the transaction has no effect.
fn a_panic_caught_by_a_closure_leaves_no_partial_row<P: Protocol>() {
    type Operation<P> = fn(&Table<Brittle, P>, &Tx<'_, P>) -> Result<(), Abort>;
    let operations: [Operation<P>; 10] = [
        |table, tx| table.insert(tx, Brittle::new(10)),
        |table, tx| table.insert_many(tx, [Brittle::new(10)]),
        |table, tx| table.put(tx, Brittle { value: Fragile(201), ..Brittle::new(1) }),
        |table, tx| table.put(tx, Brittle::new(14)),
        |table, tx| table.upsert(tx, Brittle::new(15), Brittle::COUNT.add(1)).map(drop),
        |table, tx| {
            tx.attempt(|tx| table.modify(tx, Fragile(2), Brittle::VALUE, |value| value.0 += 200))
        },
        |table, tx| table.insert_if_absent(tx, Brittle::new(16)).map(drop),
        |table, tx| table.delete(tx, Fragile(6)),
        |table, tx| table.modify(tx, Fragile(2), Brittle::VALUE, |value| value.0 += 200),
        |table, tx| {
            table.modify(tx, Fragile(3), (Brittle::COUNT, Brittle::VALUE), |(count, value)| {
                (*count, value.0) = (1, 500)
            })
        },
    ];
    let watchdog = Watchdog::new();
    for (number, operation) in operations.into_iter().enumerate() {
        let shelf = Shelf::<P>::new(TableOptions::default());
        let rows = shelf.rows();
        let mut calls = 0;
        let mut refused = 0;
        loop {
            watchdog.step(format!("call {calls} in operation {number} under {}", P::NAME));
            let mut session = shelf.db.session().unwrap();
            let mut done = None;
            let ended = session.run(|tx| {
                done = with_fuse(calls, || operation(&shelf.table, tx));
                Ok(())
            });
            drop(session);
            if let Some(done) = done {
                assert_eq!((done, ended), (Ok(()), Ok(())));
                break;
            }
            match ended {
                Ok(()) => {}
                Err(abort) => {
                    assert_eq!(abort, Abort::Panicked);
                    refused += 1;
                }
            }
            shelf.assert_unharmed(&rows);
            calls += 1;
        }
        assert!(calls > 0, "operation {number} calls none of a row's code");
        assert_eq!(refused > 0, number > 6, "{refused} refused in operation {number}");
        shelf.assert_unharmed(&shelf.rows());
    }
}

/// A table without indexes, with rows that are counted.
struct Tally<P: Protocol> {
    db: Database<P>,
    table: Table<Brittle, P>,
}

impl<P: Protocol> Tally<P> {
    fn new() -> Tally<P> {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let table = db.table("brittle").unwrap();
        db.run(|tx| table.insert_many(tx, (0..ROWS).map(Brittle::new))).unwrap();
        Tally { db, table }
    }

    fn count(&self, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
        self.table.update(tx, Fragile(id), Brittle::COUNT.add(1))
    }

    /// Counts row 1, and then updates its value. A call of the row's code panics after `calls`
    /// others. Returns whether the call has panicked.
    fn panics(&self, tx: &Tx<'_, P>, calls: usize) -> bool {
        let update = (Brittle::COUNT.add(1), Brittle::VALUE.set(Fragile(7)));
        let done = with_fuse(calls, || self.table.update(tx, Fragile(1), update));
        assert!(matches!(done, None | Some(Ok(()))));
        done.is_none()
    }

    /// Counts row 3 in a part that is undone.
    fn undo_part(&self, tx: &Tx<'_, P>) {
        let undone = tx.attempt(|tx| self.count(tx, 3).and(Err::<(), _>(Abort::Duplicate)));
        assert_eq!(undone, Err(Abort::Duplicate));
    }

    /// Returns the counts of the rows 1 to 4.
    fn counts(&self) -> [u64; 4] {
        let ids = [1, 2, 3, 4].map(Fragile);
        let read = |tx: &Tx<'_, P>| -> Result<_, Abort> {
            let mut counts = [0; 4];
            for (id, count) in ids.into_iter().zip(&mut counts) {
                *count = self.table.read(tx, id, Brittle::COUNT)?;
            }
            Ok(counts)
        };
        self.db.run(read).unwrap()
    }
}

protocol_tests!(all: a_panic_caught_within_a_part_leaves_no_partial_operation);
fn a_panic_caught_within_a_part_leaves_no_partial_operation<P: Protocol>() {
    let mut refused = 0;
    for calls in 0.. {
        let tally = Tally::<P>::new();
        let (mut panicked, mut part) = (false, Ok(()));
        let ended = tally.db.run(|tx| {
            tally.count(tx, 2)?;
            part = tx.attempt(|tx| {
                tally.count(tx, 3)?;
                panicked = tally.panics(tx, calls);
                tally.count(tx, 3)
            });
            tally.undo_part(tx);
            tally.count(tx, 4)
        });
        let wanted = match (panicked, part) {
            (false, _) => [1, 1, 2, 1],
            (true, Ok(())) => [0, 1, 2, 1],
            (true, Err(_)) => [0, 1, 0, 1],
        };
        assert_eq!((ended, tally.counts()), (Ok(()), wanted), "call {calls}");
        if !panicked {
            assert_eq!(part, Ok(()));
            break;
        }
        if let Err(abort) = part {
            assert_eq!(abort, Abort::Panicked);
            refused += 1;
        }
    }
    assert!(refused > 0);
}

protocol_tests!(all: a_part_that_panics_leaves_the_transaction_usable);
fn a_part_that_panics_leaves_the_transaction_usable<P: Protocol>() {
    for calls in 0.. {
        let tally = Tally::<P>::new();
        let mut panicked = false;
        let ended = tally.db.run(|tx| {
            tally.count(tx, 2)?;
            let part = catch_unwind(AssertUnwindSafe(|| {
                tx.attempt(|tx| {
                    tally.count(tx, 3)?;
                    if tally.panics(tx, calls) { deliberate() } else { Ok::<_, Abort>(()) }
                })
            }));
            panicked = part.map_err(|panic| assert!(panic.is::<Deliberate>())).is_err();
            tally.count(tx, 4)
        });
        let wanted = if panicked { [0, 1, 0, 1] } else { [1, 1, 1, 1] };
        assert_eq!((ended, tally.counts()), (Ok(()), wanted), "call {calls}");
        if !panicked {
            assert!(calls > 0);
            break;
        }
    }
}

protocol_tests!(all: a_panic_caught_within_a_transaction_leaves_no_partial_operation);
fn a_panic_caught_within_a_transaction_leaves_no_partial_operation<P: Protocol>() {
    let mut refused = 0;
    for calls in 0.. {
        // The closure continues, returns an error, or panics.
        let end = |end: fn() -> Result<(), Abort>| {
            let tally = Tally::<P>::new();
            let mut panicked = false;
            let ended = catch_unwind(AssertUnwindSafe(|| {
                tally.db.run(|tx| {
                    tally.count(tx, 2)?;
                    panicked = tally.panics(tx, calls);
                    tally.undo_part(tx);
                    tally.count(tx, 4)?;
                    end()
                })
            }));
            (ended.map_err(|panic| panic.is::<Deliberate>()), tally.counts(), panicked)
        };
        let (ended, counts, panicked) = end(|| Ok(()));
        let is_refused = ended == Ok(Err(Abort::Panicked));
        let wanted = match (panicked, is_refused) {
            (false, _) => [1, 1, 0, 1],
            (true, false) => [0, 1, 0, 1],
            (true, true) => [0; 4],
        };
        assert_eq!(counts, wanted, "call {calls}");
        assert!(is_refused || ended == Ok(Ok(())));
        let error = if is_refused { Abort::Panicked } else { Abort::Duplicate };
        assert_eq!(end(|| Err(Abort::Duplicate)), (Ok(Err(error)), [0; 4], panicked));
        assert_eq!(end(|| deliberate()), (Err(true), [0; 4], panicked));
        refused += usize::from(is_refused);
        if !panicked {
            break;
        }
    }
    assert!(refused > 0);
}

protocol_tests!(overlapping: a_conflict_is_reported_rather_than_a_caught_panic);
/// Another transaction changes a row that was read before the panic, or after it. So the attempt is
/// repeated, and the panic counts only if it comes again.
fn a_conflict_is_reported_rather_than_a_caught_panic<P: Protocol>() {
    for (comes_again, changes_before) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let tally = Tally::<P>::new();
        let (mut session, mut other) = (tally.db.session().unwrap(), tally.db.session().unwrap());
        let mut attempts = 0;
        let ended = session.run(|tx| {
            attempts += 1;
            let read = tally.table.read(tx, Fragile(4), Brittle::COUNT)?;
            let mut change = || commits(&mut other, |tx| tally.count(tx, 4));
            if attempts == 1 && changes_before {
                change();
            }
            if attempts == 1 || comes_again {
                // The last call of the row's code in this operation.
                assert!((0..3).rev().any(|calls| tally.panics(tx, calls)));
            }
            if attempts == 1 && !changes_before {
                change();
            }
            tally.table.update(tx, Fragile(2), Brittle::COUNT.add(10 + read))
        });
        let counts = if comes_again { [0, 0, 0, 1] } else { [0, 11, 0, 1] };
        let wanted = if comes_again { Err(Abort::Panicked) } else { Ok(()) };
        match (ended, attempts) {
            // A protocol that orders by timestamps can put the outcome before the change.
            (Err(Abort::Panicked), 1) => assert_eq!(tally.counts(), [0, 0, 0, 1]),
            ended => assert_eq!((ended, tally.counts()), ((wanted, 2), counts)),
        }
    }
}

protocol_tests!(all: effects_and_counts_of_a_panic_that_is_not_validated_are_those_of_a_retry);
fn effects_and_counts_of_a_panic_that_is_not_validated_are_those_of_a_retry<P: Protocol>() {
    let tally = Tally::<P>::new();
    let before = tally.db.stats();
    let effects = std::rc::Rc::new(Cell::new(0));
    let add = |tx: &Tx<'_, P>, number| {
        let effects = effects.clone();
        tx.on_commit(move || effects.set(effects.get() + number));
    };
    let panics = |tx: &Tx<'_, P>| (0..3).rev().any(|calls| tally.panics(tx, calls));
    // A part within a part: each catches a panic.
    let ended = tally.db.run(|tx| {
        add(tx, 1);
        let outer = tx.attempt(|tx| {
            add(tx, 10);
            let inner = tx.attempt(|tx| {
                add(tx, 100);
                assert!(panics(tx));
                Ok::<_, Abort>(())
            });
            assert_eq!(inner, Err(Abort::Panicked));
            tally.count(tx, 2)?;
            let inner = tx.attempt(|tx| {
                assert!(panics(tx));
                Err::<(), _>(Abort::Duplicate)
            });
            assert_eq!(inner, Err(Abort::Duplicate));
            assert!(panics(tx));
            let inner = tx.attempt(|tx| {
                add(tx, 1000);
                assert!(panics(tx));
                tally.count(tx, 3)
            });
            assert!(matches!(inner, Ok(()) | Err(Abort::Panicked)));
            Ok::<_, Abort>(())
        });
        assert_eq!(outer, Err(Abort::Panicked));
        tally.count(tx, 4)
    });
    assert_eq!((ended, effects.get(), tally.counts()), (Ok(()), 1, [0, 0, 0, 1]));
    // The panic comes before a part that succeeds, and before a part that is undone.
    let ended = tally.db.run(|tx| {
        add(tx, 1);
        tally.count(tx, 2)?;
        assert!(panics(tx));
        assert_eq!(tx.attempt(|tx| tally.count(tx, 3)), Ok(()));
        tally.undo_part(tx);
        Ok(())
    });
    assert_eq!((ended, effects.get(), tally.counts()), (Err(Abort::Panicked), 1, [0, 0, 0, 1]));
    let place = Abort::ALL.iter().position(|abort| *abort == Abort::Panicked).unwrap();
    let after = tally.db.stats();
    assert_eq!(after.aborts[place] - before.aborts[place], 1);
    assert_eq!(after.retries, before.retries);
}

protocol_tests!(all: a_duplicate_key_and_a_panic_in_one_transaction_are_both_reported);
fn a_duplicate_key_and_a_panic_in_one_transaction_are_both_reported<P: Protocol>() {
    let (id, value) = (Fragile, Brittle::VALUE);
    // Row 1 waits for the key of row 2 while an operation panics, and gets it or not.
    for (in_part, gets_it) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut refused = 0;
        for calls in 0.. {
            let shelf = Shelf::<P>::new(TableOptions::default());
            let rows = shelf.rows();
            let table = &shelf.table;
            let (mut panicked, mut part) = (false, Ok::<_, Abort>(()));
            let ended = shelf.db.run(|tx| {
                table.modify(tx, id(1), value, |value| value.0 = 102)?;
                let mut panics = |tx: &Tx<'_, P>| {
                    let change = |value: &mut Fragile| value.0 = 300;
                    let done = with_fuse(calls, || table.modify(tx, id(3), value, change));
                    panicked = done.is_none();
                };
                if in_part {
                    part = tx.attempt(|tx| {
                        panics(tx);
                        Ok(())
                    });
                } else {
                    panics(tx);
                }
                if gets_it {
                    table.modify(tx, id(2), value, |value| value.0 = 101)?;
                }
                Ok(())
            });
            let is_refused = ended == Err(Abort::Panicked);
            refused += usize::from(is_refused || part.is_err());
            match (gets_it, is_refused) {
                (_, true) => assert!(panicked && !in_part),
                (true, _) => assert_eq!(ended, Ok(())),
                (false, _) => assert_eq!(ended, Err(Abort::NotUnique)),
            }
            let mut wanted = rows;
            if ended == Ok(()) {
                (wanted[1].value, wanted[2].value) = (id(102), id(101));
                if !panicked {
                    wanted[3].value = id(300);
                }
            }
            shelf.assert_unharmed(&wanted);
            if !panicked {
                break;
            }
        }
        assert!(refused > 0);
    }
}

protocol_tests!(all: a_panic_while_an_index_is_built_leaves_no_index);
fn a_panic_while_an_index_is_built_leaves_no_index<P: Protocol>() {
    let watchdog = Watchdog::new();
    let shelf = Shelf::<P>::new(TableOptions::default());
    let rows = shelf.rows();
    let create = || {
        shelf.table.create_index(
            "by_both",
            (Brittle::VALUE, Brittle::COUNT),
            IndexOptions::ordered(),
        )
    };
    let mut calls = 0;
    while with_fuse(calls, || create().map(drop)).is_none_or(|made| made.is_err()) {
        watchdog.step(format!("call {calls} of an index's code under {}", P::NAME));
        assert_eq!(shelf.table.core().indexes.kept().count(), 1, "there is no half of an index");
        shelf.assert_unharmed(&rows);
        calls += 1;
    }
    assert!(calls > 20, "only {calls} calls of an index's code");
    assert!(matches!(create(), Err(Error::IndexExists { .. })));
    shelf.assert_unharmed(&rows);
}

protocol_tests!(all: a_panic_while_all_rows_are_visited_leaves_the_table_as_it_was);
fn a_panic_while_all_rows_are_visited_leaves_the_table_as_it_was<P: Protocol>() {
    let watchdog = Watchdog::new();
    let shelf = Shelf::<P>::new(TableOptions::default());
    let rows = shelf.rows();
    let mut calls = 0;
    loop {
        watchdog.step(format!("call {calls} of a row's code in a visit of all under {}", P::NAME));
        if let Some(done) = with_fuse(calls, || shelf.table.for_each_quiescent(|_| ())) {
            assert_eq!(done.unwrap(), ROWS as usize);
            break;
        }
        shelf.assert_unharmed(&rows);
        calls += 1;
    }
    assert!(calls >= ROWS as usize, "only {calls} calls of a row's code");
    let exported = with_fuse(0, || shelf.table.export(&mut Vec::new()));
    assert_eq!(exported.expect("an export runs no code of a row's").unwrap(), ROWS);
}

protocol_tests!(all: a_panic_in_a_single_read_leaves_no_pin);
fn a_panic_in_a_single_read_leaves_no_pin<P: Protocol>() {
    let shelf = Shelf::<P>::new(TableOptions::default());
    let rows = shelf.rows();
    let mut session = shelf.db.session().unwrap();
    let mut calls = 0;
    while with_fuse(calls, || shelf.table.get_now(&mut session, &Fragile(3), Brittle::VALUE))
        .is_none()
    {
        // The check runs while the session still exists.
        assert_eq!(shelf.db.health().oldest_pin, None, "after call {calls} under {}", P::NAME);
        calls += 1;
    }
    assert!(calls >= 3, "only {calls} calls of a row's code");
    drop(session);
    shelf.assert_unharmed(&rows);
}

protocol_tests!(all: records_of_panicked_transactions_are_buried);
fn records_of_panicked_transactions_are_buried<P: Protocol>() {
    let shelf = Shelf::<P>::new(TableOptions::default().ordered());
    let mut session: Session<P> = shelf.db.session().unwrap();
    for calls in 0..100 {
        let done =
            with_fuse(calls, || session.run(|tx| shelf.script(tx).and(Err::<(), _>(Abort::Guard))));
        assert!(matches!(done, None | Some(Err(Abort::Guard))), "{done:?}");
    }
    assert_eq!(session.run(|tx| shelf.table.clear(tx)), Ok(ROWS as usize));
    for _ in 0..10 {
        shelf.db.inner.engine.epochs.pass();
        session.run(|_| Ok(())).unwrap();
    }
    assert_eq!((shelf.db.memory().garbage, linked_records(&mut session, &shelf.table)), (0, 0));
}
