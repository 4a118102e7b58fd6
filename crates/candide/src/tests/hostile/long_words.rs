//! Rows, columns and images that try to make an address of a value of any length, or to read one.
//! Every attempt is refused, or only harms the row itself.

use super::Watchdog;
use crate::derived::{ColumnType, Packing, Place};
use crate::engine::Protocol;
use crate::schema::{Buffer, FieldInfo, FieldType, Meta, RowReader, RowWriter};
use crate::{Column, Database, Error, Group, Hashed, Occ, Record, Whole};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The places of two words.
const WORDS: Packing<2> = Packing::new([<u64 as ColumnType>::SIZE, <u64 as ColumnType>::SIZE]);

/// An address that no value has.
const FORGED: u64 = 0xdead_bee0 | 2;

/// A number, and a text in the second word.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    id: u64,
    number: u64,
    text: String,
}

thread_local! {
    /// Whether rows write the word of the text as a number.
    static FORGES: Cell<bool> = const { Cell::new(false) };
}

impl Row {
    const NUMBER: Column<Row, u64> = Column::derived(0, WORDS, 0, "number");
    const TEXT: Column<Row, String> = Column::derived(0, WORDS, 1, "text");
    /// The word of the text, as a number.
    const TEXT_AS_NUMBER: Column<Row, u64> = Column::derived(0, WORDS, 1, "forged");
    /// The number, as a text.
    const NUMBER_AS_TEXT: Column<Row, String> = Column::derived(0, WORDS, 0, "forged");

    fn new(id: u64) -> Row {
        Row { id, number: FORGED, text: "a text that has a block".to_string() }
    }
}

const fn place(word: usize) -> Place {
    WORDS.place(0, word)
}

impl Record for Row {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 2];
    const META: Meta = Meta::new("Row", &[Group::new("row", 2)])
        .with_fields(&[FieldInfo::of_column("text", &FieldType::LongText, place(1), None)]);

    fn key(&self) -> u64 {
        self.id
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        Self::NUMBER.put(row, &self.number);
        if FORGES.get() {
            Self::TEXT_AS_NUMBER.put(row, &FORGED);
        } else {
            Self::TEXT.put(row, &self.text);
        }
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Row {
        Row { id: *key, number: Self::NUMBER.take(row), text: Self::TEXT.take(row) }
    }
}

/// Returns the message of the panic that `work` ends in.
fn refused<T>(work: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).err().expect("it is refused");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a message")
}

protocol_tests!(all: no_column_of_another_type_makes_or_follows_an_address);
fn no_column_of_another_type_makes_or_follows_an_address<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Row>("rows").unwrap();
    db.run(|tx| rows.insert(tx, Row::new(1))).unwrap();
    let forge = || db.run(|tx| rows.update(tx, 1, Row::TEXT_AS_NUMBER.set(FORGED)));
    assert!(refused(forge).contains("belongs to a column of strings"));
    let forge = || db.run(|tx| rows.modify(tx, 1, Row::TEXT_AS_NUMBER, |word| *word = FORGED));
    assert!(refused(forge).contains("belongs to a column of strings"));
    let follow = || db.run(|tx| rows.read(tx, 1, Row::NUMBER_AS_TEXT));
    assert!(refused(follow).contains("no column of strings"));
    let set = || db.run(|tx| rows.update(tx, 1, Row::NUMBER_AS_TEXT.set("a text with a block")));
    assert!(refused(set).contains("no column of strings"));
    let read = || db.run(|tx| rows.read_with(tx, 1, Row::NUMBER_AS_TEXT, str::len));
    assert!(refused(read).contains("no column of strings"));
    let scan = || db.run(|tx| rows.iter(tx, Row::NUMBER_AS_TEXT).for_each_with(|_, _| ()));
    assert!(refused(scan).contains("no column of strings"));
    let modify = || db.run(|tx| rows.modify(tx, 1, Row::NUMBER_AS_TEXT, String::clear));
    assert!(refused(modify).contains("no column of strings"));
    let guard = || db.run(|tx| rows.update(tx, 1, Row::NUMBER_AS_TEXT.is_empty()));
    assert!(refused(guard).contains("no column of strings"));
    let column = || Column::<Row, [u64; 2]>::new(0, 0, "both");
    assert!(refused(column).contains("belongs to a column of strings"));
    assert_eq!(db.run(|tx| rows.read(tx, 1, Whole)), Ok(Row::new(1)));
}

#[test]
fn a_row_that_writes_an_address_has_an_empty_text() {
    let db = Database::new();
    let rows = db.table::<Row>("rows").unwrap();
    FORGES.set(true);
    let inserted = db.run(|tx| rows.insert(tx, Row::new(2)));
    FORGES.set(false);
    assert_eq!(inserted, Ok(()));
    assert_eq!(db.run(|tx| rows.read(tx, 2, Row::TEXT)), Ok(String::new()));
}

#[test]
fn words_outside_of_tables_are_not_followed() {
    let words = [1, FORGED];
    let load = || Row::load(&1, &RowReader::new(&words));
    assert!(refused(load).contains("column text has values of any length"));
    let store = || Row::new(1).store(&mut RowWriter::new(&mut [0; 2]));
    assert!(refused(store).contains("column text has values of any length"));
}

/// An image that changes the words in it.
#[derive(Clone, Copy)]
struct Changing([u64; 2]);

impl Buffer for Changing {
    const ZERO: Changing = Changing([0; 2]);

    fn set(&mut self, index: usize, _: u64) {
        self.0[index] = FORGED;
    }

    fn words(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

#[derive(Clone)]
struct OfChanging;

impl Record for OfChanging {
    type Key = u64;
    type Index = Hashed;
    type Image = Changing;
    const META: Meta = Row::META;

    fn key(&self) -> u64 {
        1
    }

    fn store(&self, _: &mut RowWriter<'_>) {}

    fn load(_: &u64, _: &RowReader<'_>) -> OfChanging {
        OfChanging
    }
}

#[test]
fn an_image_that_could_change_an_address_is_refused() {
    let db = Database::<Occ>::default();
    let refused = db.table::<OfChanging>("rows").unwrap_err();
    assert!(matches!(refused, Error::RowType { .. }));
    let expected = "row type Row cannot be stored: its image is of a type of its own; a row with \
                    strings or bytes of any length has `[u64; 2]`";
    assert_eq!(refused.to_string(), expected);
}

/// A row whose columns of bytes and of texts lie next to one another.
#[derive(Debug, Clone, PartialEq, candide_derive::Record)]
#[record(crate = crate)]
struct Mail {
    #[key]
    id: u64,
    subject: String,
    photo: Vec<u8>,
    body: String,
}

/// A text that is another one when it is asked for a certain time.
struct Fickle {
    asked: Cell<u32>,
    /// The times, as bits, at which it is long.
    long_at: u32,
}

const LONG_TEXT: &str = "a text that has a block of its own";

impl Fickle {
    fn new(long_at: u32) -> Fickle {
        Fickle { asked: Cell::new(0), long_at }
    }
}

impl AsRef<str> for Fickle {
    fn as_ref(&self) -> &str {
        let time = self.asked.replace(self.asked.get() + 1);
        if self.long_at >> time & 1 != 0 { LONG_TEXT } else { "short" }
    }
}

protocol_tests!(all: a_text_that_changes_its_mind_takes_no_bytes_of_another_column);
fn a_text_that_changes_its_mind_takes_no_bytes_of_another_column<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().unwrap();
    let mails = db.table::<Mail>("mails").unwrap();
    let text = |text: &str| text.to_owned();
    let before = Mail { id: 1, subject: text("before"), photo: vec![1], body: text("before") };
    for (first, last) in (0..8).flat_map(|first| (0..8).map(move |last| (first, last))) {
        db.run(|tx| mails.put(tx, before.clone())).unwrap();
        let update = || {
            db.run(|tx| {
                let subject = Mail::SUBJECT.set(Fickle::new(first));
                let body = Mail::BODY.set(Fickle::new(last));
                mails.update(tx, 1, (subject, Mail::PHOTO.set([0xff; 30]), body))
            })
        };
        let updated = catch_unwind(AssertUnwindSafe(update)).is_ok_and(|done| done == Ok(()));
        let after = db.run(|tx| mails.read(tx, 1, Whole)).unwrap();
        if updated {
            let is_one = |text: &String| [LONG_TEXT, "short"].contains(&text.as_str());
            assert!(is_one(&after.subject) && is_one(&after.body), "{}: {after:?}", P::NAME);
            assert_eq!(after.photo, [0xff; 30], "{}", P::NAME);
        } else {
            assert_eq!(after, before, "{}", P::NAME);
        }
        let is_stable = [first, last].iter().all(|at| [0, 7].contains(at));
        assert!(updated || !is_stable, "{}: a stable text is refused", P::NAME);
    }
}
