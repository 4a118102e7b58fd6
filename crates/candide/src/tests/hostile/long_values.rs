//! Rows and texts that are others each time that the engine asks for them, and bytes that are read
//! as a text. Each operation has some effect, or none and a panic, and all blocks are freed once.

use super::super::waiting::eventually;
use super::Watchdog;
use crate::derived::{ColumnType, Packing};
use crate::engine::Protocol;
use crate::schema::{FieldInfo, FieldType, Meta, RowReader, RowWriter};
use crate::{Abort, Column, Database, Group, Hashed, Record, Table, Tx, Whole};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

const WORDS: Packing<2> = Packing::new([<u64 as ColumnType>::SIZE, <u64 as ColumnType>::SIZE]);

/// The texts of which each is asked for in its turn.
const TEXTS: [&str; 6] =
    ["", "short", "a text that has a block", "s", "another text that has a block of its own", ""];

thread_local! {
    /// The number of times that a text was asked for, and how far apart the next ones are.
    static TURN: Cell<(usize, usize)> = const { Cell::new((0, 1)) };
    /// The texts that come before those.
    static FIRST: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn next_text() -> &'static str {
    if let Some(text) = FIRST.with_borrow_mut(Vec::pop) {
        return text;
    }
    let (turn, step) = TURN.get();
    TURN.set((turn + step, step));
    TEXTS[turn % TEXTS.len()]
}

/// Two texts, and the second one as bytes.
#[derive(Debug, Clone)]
struct Fickle(u64);

impl Fickle {
    const ONE: Column<Fickle, String> = Column::derived(0, WORDS, 0, "one");
    const TWO: Column<Fickle, Option<String>> = Column::derived(0, WORDS, 1, "two");
    const TWO_AS_BYTES: Column<Fickle, Vec<u8>> = Column::derived(0, WORDS, 1, "bytes");
}

impl Record for Fickle {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 2];
    const META: Meta = Meta::new("Fickle", &[Group::new("row", 2)]).with_fields(&[
        FieldInfo::of_column("one", &FieldType::LongText, WORDS.place(0, 0), None),
        FieldInfo::of_column(
            "two",
            &FieldType::Optional(&FieldType::LongText),
            WORDS.place(0, 1),
            None,
        ),
    ]);

    fn key(&self) -> u64 {
        self.0
    }

    /// Writes other texts each time, one column twice, or none.
    fn store(&self, row: &mut RowWriter<'_>) {
        let (one, two) = (next_text(), next_text());
        if one != "s" {
            Self::ONE.put(row, &one.to_owned());
        }
        Self::TWO.put(row, &Some(two.to_owned()).filter(|two| two != "s"));
        if two.is_empty() {
            Self::ONE.put(row, &next_text().to_owned());
        }
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Fickle {
        let one = Self::ONE.take(row);
        assert!(TEXTS.contains(&one.as_str()), "{one}");
        Fickle(*key)
    }
}

/// A text that is another one each time.
#[derive(Debug, Clone, Copy)]
struct Shifting;

impl AsRef<str> for Shifting {
    fn as_ref(&self) -> &str {
        next_text()
    }
}

impl AsRef<[u8]> for Shifting {
    fn as_ref(&self) -> &[u8] {
        next_text().as_bytes()
    }
}

/// Does one operation, which may panic.
fn attack<P: Protocol>(rows: &Table<Fickle, P>, tx: &Tx<'_, P>, way: usize) -> Result<(), Abort> {
    let key = way as u64 % 3;
    match way % 8 {
        0 => rows.put(tx, Fickle(key)),
        1 => rows.insert_if_absent(tx, Fickle(key)).map(drop),
        2 => rows.modify_if_present(tx, key, Whole, |_| ()).map(drop),
        3 => rows.modify_if_present(tx, key, (Whole, Fickle::ONE), |_| ()).map(drop),
        4 => rows.update_if_present(tx, key, Fickle::ONE.set(Shifting)).map(drop),
        5 => rows
            .update_if_present(
                tx,
                key,
                (Fickle::TWO_AS_BYTES.set(Shifting), Fickle::ONE.set(Shifting)),
            )
            .map(drop),
        6 => {
            let both = (Fickle::ONE.equals(Shifting), Fickle::TWO_AS_BYTES.equals(Shifting));
            rows.update_if_present(tx, key, both).map(drop)
        }
        _ => rows.delete_if_present(tx, key).map(drop),
    }
}

protocol_tests!(all: texts_that_change_harm_only_their_rows);
fn texts_that_change_harm_only_their_rows<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Fickle>("rows").unwrap();
    for turn in 0..240 {
        TURN.set((turn, 1 + turn % 5));
        let run = || {
            db.run(|tx| {
                for way in 0..3 {
                    let part = tx.attempt(|tx| attack(&rows, tx, turn / 8 + 3 * way));
                    assert!(matches!(part, Ok(()) | Err(Abort::Guard)), "{part:?}");
                }
                attack(&rows, tx, turn)
            })
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => assert!(matches!(result, Ok(()) | Err(Abort::Guard)), "{result:?}"),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
                assert!(text.contains("has had another value before"), "{text}");
            }
        }
        db.run(|tx| {
            rows.iter(tx, (Fickle::ONE, Fickle::TWO)).for_each_with(|_, (one, two)| {
                assert!(TEXTS.contains(&one) && two.is_none_or(|two| TEXTS.contains(&two)));
            })
        })
        .unwrap();
    }
    db.run(|tx| rows.clear(tx)).unwrap();
    eventually("the end of all blocks", || {
        db.run(|_| Ok(())).unwrap();
        db.inner.engine.long_memory().unwrap().in_use() == 0
    });
}

protocol_tests!(all: the_word_of_a_column_is_given_to_no_other);
fn the_word_of_a_column_is_given_to_no_other<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Fickle>("rows").unwrap();
    let say = |texts: &[&'static str]| FIRST.set(texts.iter().rev().copied().collect());
    say(&[TEXTS[2], "short"]);
    db.run(|tx| rows.insert(tx, Fickle(1))).unwrap();
    // The row keeps its first text until it is staged, and then has the second one alone.
    let modify = || {
        say(&[TEXTS[2], "short", TEXTS[2], "short", "s", "short"]);
        db.run(|tx| rows.modify(tx, 1, Whole, |_| ()))
    };
    let panic = catch_unwind(AssertUnwindSafe(modify)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert_eq!(text, "column two has had another value before");
    let texts = db.run(|tx| rows.read(tx, 1, (Fickle::ONE, Fickle::TWO)));
    assert_eq!(texts, Ok((TEXTS[2].to_owned(), Some("short".to_owned()))), "{}", P::NAME);
    db.run(|tx| rows.clear(tx)).unwrap();
    eventually("the end of all blocks", || {
        db.run(|_| Ok(())).unwrap();
        db.inner.engine.long_memory().unwrap().in_use() == 0
    });
}

protocol_tests!(all: bytes_that_are_no_text_are_not_lent_as_one);
fn bytes_that_are_no_text_are_not_lent_as_one<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Fickle>("rows").unwrap();
    TURN.set((1, 1));
    db.run(|tx| rows.put(tx, Fickle(1))).unwrap();
    for bytes in [&[0xff][..], &[0xff; 100]] {
        db.run(|tx| rows.update(tx, 1, Fickle::TWO_AS_BYTES.set(bytes))).unwrap();
        let lend = || db.run(|tx| rows.read_with(tx, 1, Fickle::TWO, |two| two.is_some()));
        assert!(catch_unwind(AssertUnwindSafe(lend)).is_err());
        let read = || db.run(|tx| rows.read(tx, 1, Fickle::TWO));
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
        let lent = db.run(|tx| rows.read_with(tx, 1, Fickle::TWO_AS_BYTES, <[u8]>::len));
        assert_eq!(lent, Ok(bytes.len()));
    }
}
