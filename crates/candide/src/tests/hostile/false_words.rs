//! Implementations of public traits that are safe code, but give false information about their
//! words.

use super::{Watchdog, commits};
use crate::engine::Protocol;
use crate::schema::WordRange;
use crate::schema::column_type::ColumnType;
use crate::schema::packing::{Packing, Size};
use crate::schema::{AsKey, Buffer, Field, KeyPrefix, KeyRange, RowReader, RowWriter};
use crate::tests::snapshots::collect;
use crate::{
    Column, Database, Error, Group, Hashed, IndexOptions, Key, Ordered, Prefix, Record,
    TableOptions, Whole,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Asserts that `body` panics, and that the panic's message contains `message`.
fn refused<T>(message: &str, body: impl FnOnce() -> T) {
    let payload = catch_unwind(AssertUnwindSafe(body)).err().expect("it is refused");
    let text = payload.downcast_ref::<String>().cloned();
    let text = text
        .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_default();
    assert!(text.contains(message), "{text}");
}

/// A range or a prefix of keys. The keys of the range have the given number of words.
#[derive(Clone, Copy)]
struct OfWords(usize);

impl<K: Key> KeyRange<K> for OfWords {
    fn word_range(&self) -> WordRange {
        WordRange::beginning_with(&[5], self.0)
    }
}

impl<K: Key> KeyPrefix<K> for OfWords {
    fn word_range(&self) -> WordRange {
        WordRange::beginning_with(&[5], self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    id: (u64, u64),
    value: u64,
}

impl Pair {
    const VALUE: Column<Pair, u64> = Column::new(0, 0, "value");
}

impl Record for Pair {
    type Key = (u64, u64);
    type Index = Ordered;
    type Image = [u64; 1];
    const META: crate::schema::Meta = crate::schema::Meta::new("Pair", &[Group::new("row", 1)]);

    fn key(&self) -> (u64, u64) {
        self.id
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }

    fn load(key: &(u64, u64), row: &RowReader<'_>) -> Pair {
        Pair { id: *key, value: Self::VALUE.take(row) }
    }
}

protocol_tests!(all: a_range_of_keys_of_another_width_is_refused);
fn a_range_of_keys_of_another_width_is_refused<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().expect("a database");
    let pairs = db.table::<Pair>("pairs").expect("a table");
    let by_value =
        pairs.create_index("value", Pair::VALUE, IndexOptions::ordered()).expect("an index");
    let mut session = db.session().expect("a session");
    commits(&mut session, |tx| pairs.insert(tx, Pair { id: (5, 1), value: 5 }));
    for words in [0, 1, 3, 9, 40] {
        let (range, message) =
            (OfWords(words), format!("edges of {words} and {words} words for keys of 2"));
        refused(&message, || session.run(|tx| pairs.scan(tx, range, Whole).count()));
        refused(&message, || session.run(|tx| pairs.scan(tx, Prefix(range), ()).count()));
        refused(&message, || session.run(|tx| Ok(pairs.scan_rev(tx, range, Pair::VALUE).count())));
    }
    for words in [0, 2, 9, 40] {
        let (range, message) =
            (OfWords(words), format!("edges of {words} and {words} words for keys of 1"));
        refused(&message, || session.run(|tx| by_value.scan(tx, range, Whole).count()));
        refused(&message, || session.run(|tx| Ok(by_value.scan_rev(tx, range, ()).count())));
    }
    let found = commits(&mut session, |tx| {
        pairs.scan(tx, OfWords(2), Whole).collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(found, [((5, 1), Pair { id: (5, 1), value: 5 })]);
}

/// A number whose type claims another number of words than the bits need.
#[derive(Debug, Clone, Copy)]
struct Wordy<const WORDS: usize>;

impl<const WORDS: usize> Field for Wordy<WORDS> {
    const BITS: u32 = 64;
    const WORDS: usize = WORDS;
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        7
    }

    fn from_buffer(_buffer: &[u64; 1]) -> Wordy<WORDS> {
        Wordy
    }
}

#[test]
fn a_column_beyond_its_group_is_refused() {
    refused("as many words as its bits need", || Column::<Pair, Wordy<0>>::new(0, 1, "value"));
    refused("as many words as its bits need", || Column::<Pair, Wordy<2>>::new(0, 0, "value"));
    refused("reaches beyond its group", || Column::<Pair, u64>::new(0, 1, "value"));
    refused("reaches beyond its group", || Column::<Pair, u64>::new(0, usize::MAX, "value"));
    refused("reaches beyond its word", || Column::<Pair, u8>::packed(0, 0, u32::MAX, "value"));
    refused("group does not exist", || Column::<Pair, u8>::new(1, 0, "value"));
}

#[test]
fn a_derived_column_beyond_its_group_is_not_updated() {
    let sizes: [Size; 2] = [<u64 as ColumnType>::SIZE, <[u64; 9] as ColumnType>::SIZE];
    let beyond = "reaches beyond its group";
    refused(beyond, || {
        Column::<Pair, [u64; 9]>::derived(0, Packing::new([sizes[0]]), 0, "value").place()
    });
    refused(beyond, || {
        Column::<Pair, u64>::derived(0, Packing::new([sizes[1], sizes[0]]), 1, "value").place()
    });
    refused(beyond, || {
        Column::<Pair, u64>::derived(1, Packing::new([sizes[0]]), 0, "value").place()
    });
    refused("as its bits need", || Packing::new([<Wordy<0> as ColumnType>::SIZE]));
    assert_eq!(
        Column::<Pair, u64>::derived(0, Packing::new([sizes[0]]), 0, "value").place(),
        Pair::VALUE.place()
    );
}

/// An image that has fewer words with each call.
#[derive(Clone, Copy)]
struct Shrinking {
    words: [u64; 2],
    left: usize,
}

impl Buffer for Shrinking {
    const ZERO: Shrinking = Shrinking { words: [0; 2], left: 2 };

    fn set(&mut self, index: usize, word: u64) {
        self.words[index] = word;
    }

    fn words(&mut self) -> &mut [u64] {
        let few = SHRUNK.get();
        &mut self.words[..self.left - few]
    }
}

std::thread_local! {
    /// The number of words by which images have shrunk.
    static SHRUNK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shrunk(u64, u64);

impl Record for Shrunk {
    type Key = u64;
    type Index = Hashed;
    type Image = Shrinking;
    const META: crate::schema::Meta = crate::schema::Meta::new("Shrunk", &[Group::new("row", 2)]);

    fn key(&self) -> u64 {
        self.0
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words().fill(self.1);
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Shrunk {
        Shrunk(*key, row.words()[0])
    }
}

protocol_tests!(all: a_row_of_another_number_of_words_is_refused);
fn a_row_of_another_number_of_words_is_refused<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().expect("a database");
    let rows = db.table::<Shrunk>("rows").expect("a table");
    let mut session = db.session().expect("a session");
    commits(&mut session, |tx| rows.insert(tx, Shrunk(1, 1)));
    SHRUNK.set(1);
    let message = "another number of words than before";
    refused(message, || session.run(|tx| rows.insert(tx, Shrunk(2, 2))));
    refused(message, || session.run(|tx| rows.put(tx, Shrunk(1, 2))));
    refused(message, || session.run(|tx| rows.modify(tx, 1, Whole, |row| row.1 = 3).map(drop)));
    SHRUNK.set(0);
    let found = commits(&mut session, |tx| Ok((rows.get(tx, 1, Whole)?, rows.get(tx, 2, Whole)?)));
    assert_eq!(found, (Some(Shrunk(1, 1)), None));
    commits(&mut session, |tx| rows.insert(tx, Shrunk(2, 2)));
}

/// A key of one word. Its type claims the widths of another number of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wide<const WORDS: usize, const BITS: u32>;

impl<const WORDS: usize, const BITS: u32> AsKey<Wide<WORDS, BITS>> for Wide<WORDS, BITS> {
    type Given = Self;

    fn into_key(self) -> Option<Self> {
        Some(self)
    }
}

impl<const WORDS: usize, const BITS: u32> Key for Wide<WORDS, BITS> {
    type Words = [u64; 1];
    const WORDS: usize = WORDS;
    const WIDTHS: &'static [u32] = &[BITS];

    fn words(&self) -> [u64; 1] {
        [0]
    }

    fn from_words(_words: &[u64]) -> Self {
        Wide
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keyed<const WORDS: usize, const BITS: u32>;

impl<const WORDS: usize, const BITS: u32> Record for Keyed<WORDS, BITS> {
    type Key = Wide<WORDS, BITS>;
    type Index = Hashed;
    type Image = [u64; 1];
    const META: crate::schema::Meta = crate::schema::Meta::new("Keyed", &[Group::new("row", 1)]);

    fn key(&self) -> Wide<WORDS, BITS> {
        Wide
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words()[0] = 1;
    }

    fn load(_key: &Wide<WORDS, BITS>, _: &RowReader<'_>) -> Self {
        Keyed
    }
}

#[test]
fn keys_of_false_widths_are_refused() {
    let db = Database::new();
    let problem = |error: Option<Error>| error.expect("it is refused").to_string();
    let longer = problem(db.table::<Keyed<3, 64>>("longer").err());
    assert!(
        longer.contains("its key has 3 words, but `Key::WIDTHS` has the widths of 1"),
        "{longer}"
    );
    for wide in [
        problem(db.table::<Keyed<1, 65>>("wide").err()),
        problem(db.table::<Keyed<1, 0>>("none").err()),
    ] {
        assert!(wide.contains("1 to 64 are possible"), "{wide}");
    }
    assert!(db.table::<Keyed<1, 64>>("right").is_ok());
}

std::thread_local! {
    /// The number of calls for the words of an [`Unsteady`] key that will still give the right
    /// number of words.
    static HONEST: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

/// Returns the number of words that an [`Unsteady`] key gives at this call.
fn words_now() -> usize {
    match HONEST.get() {
        usize::MAX => 1,
        0 => 64,
        left => {
            HONEST.set(left - 1);
            1
        }
    }
}

/// Words whose number changes from call to call.
#[derive(Clone, Copy)]
struct UnsteadyWords([u64; 64]);

impl AsRef<[u64]> for UnsteadyWords {
    fn as_ref(&self) -> &[u64] {
        &self.0[..words_now()]
    }
}

/// A key of one word, which sometimes gives more words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unsteady(u64);

impl AsKey<Unsteady> for Unsteady {
    type Given = Self;

    fn into_key(self) -> Option<Self> {
        Some(self)
    }
}

impl Key for Unsteady {
    type Words = UnsteadyWords;
    const WIDTHS: &'static [u32] = &[64];

    fn words(&self) -> UnsteadyWords {
        UnsteadyWords([self.0; 64])
    }

    fn from_words(words: &[u64]) -> Unsteady {
        Unsteady(words[0])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfUnsteady(u64);

impl Record for OfUnsteady {
    type Key = Unsteady;
    type Index = Hashed;
    type Image = [u64; 1];
    const META: crate::schema::Meta =
        crate::schema::Meta::new("OfUnsteady", &[Group::new("row", 1)]);

    fn key(&self) -> Unsteady {
        Unsteady(self.0)
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words()[0] = self.0;
    }

    fn load(key: &Unsteady, _: &RowReader<'_>) -> OfUnsteady {
        OfUnsteady(key.0)
    }
}

protocol_tests!(all: row_types_that_return_more_words_are_not_compared_beyond_their_group);
/// An index compares as many words of a record as the key gives, so it must compare the same words
/// whose number was checked.
fn row_types_that_return_more_words_are_not_compared_beyond_their_group<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let db = Database::<P>::builder().build().expect("a database");
    for options in [TableOptions::default(), TableOptions::default().ordered()] {
        let name = format!("{options:?}");
        let rows = db.table_with::<OfUnsteady>(&name, options).expect("a table");
        let mut session = db.session().expect("a session");
        commits(&mut session, |tx| rows.insert_many(tx, [1, 2].map(OfUnsteady)));
        let keys = [Unsteady(1), Unsteady(2)];
        // A hash index requests the words of each key first to hash them, and then to compare them.
        let asked = if rows.core().index.is_ordered() { 2 } else { 4 };
        for honest in 0..6 {
            HONEST.set(honest);
            let found = catch_unwind(AssertUnwindSafe(|| {
                session.run(|tx| rows.find_many(tx, &keys).map(drop))
            }));
            HONEST.set(usize::MAX);
            assert_eq!(found.ok(), (honest >= asked).then_some(Ok(())), "{honest} honest calls");
        }
        for honest in 0..6 {
            let message = "another number of words than `Key::WORDS`";
            HONEST.set(honest);
            let found = catch_unwind(AssertUnwindSafe(|| {
                session.run(|tx| {
                    let row = rows.get(tx, Unsteady(1), Whole)?;
                    assert_eq!(rows.get(tx, Unsteady(3), Whole)?, None);
                    rows.put(tx, OfUnsteady(1))?;
                    Ok(row)
                })
            }));
            HONEST.set(usize::MAX);
            if let Err(panic) = found {
                let text = panic.downcast_ref::<&str>().map_or("", |text| text);
                assert!(text.contains(message), "{text}");
            }
        }
        let found = commits(&mut session, |tx| rows.iter(tx, ()).count());
        assert_eq!(found, 2);
    }
}

#[test]
fn row_types_that_return_more_words_are_refused_in_snapshots() {
    let _watchdog = Watchdog::new();
    let db = Database::<crate::Mvcc>::builder().manual_epochs(1).build().expect("a database");
    let options = TableOptions::default().ordered();
    let rows = db.table_with::<OfUnsteady>("rows", options).expect("a table");
    let mut session = db.session().expect("a session");
    commits(&mut session, |tx| rows.insert_many(tx, (0..9).map(OfUnsteady)));
    let snapshot = db.snapshot();
    commits(&mut session, |tx| (0..9).try_for_each(|id| rows.delete(tx, Unsteady(id))));
    collect(&db, &mut session);
    let deleted_index = rows.core().deleted_index().expect("an index of deleted records");
    assert!(!deleted_index.is_empty());
    let message = "another number of words than `Key::WORDS`";
    HONEST.set(1);
    refused(message, || snapshot.run(|tx| rows.find_many(tx, &[Unsteady(1)]).map(drop)));
    HONEST.set(usize::MAX);
    assert_eq!(snapshot.run(|tx| rows.contains(tx, Unsteady(1))), Ok(true));
}

/// A pair of numbers. The functions of the pair accept exactly its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Exact(u32, u32);

impl AsKey<Exact> for Exact {
    type Given = Self;

    fn into_key(self) -> Option<Self> {
        Some(self)
    }
}

impl Key for Exact {
    type Words = [u64; 2];
    const WIDTHS: &'static [u32] = &[32, 32];

    fn words(&self) -> [u64; 2] {
        [self.0.into(), self.1.into()]
    }

    fn from_words(words: &[u64]) -> Exact {
        let [first, second]: [u64; 2] = words.try_into().expect("two words");
        Exact(first as u32, second as u32)
    }

    fn show(words: &[u64], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{words:?}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, candide_derive::Key)]
#[key(crate = crate)]
struct OfExact {
    one: Exact,
    number: u8,
    option: Option<Exact>,
    other: Exact,
}

#[test]
fn components_of_keys_receive_exactly_their_words() {
    fn check<K: Key + PartialEq + std::fmt::Debug>(key: K, text: &str) {
        let words = key.words();
        assert_eq!(K::from_words(words.as_ref()), key);
        assert_eq!(crate::schema::Shown::of::<K>(&words).to_string(), text);
    }
    let (one, other) = (Exact(1, 2), Exact(3, 4));
    check((one, 7u8), "([1, 2], 7)");
    check((one, other), "([1, 2], [3, 4])");
    check((one, 7u8, other), "([1, 2], 7, [3, 4])");
    check((one, other, one, 7u8), "([1, 2], [3, 4], [1, 2], 7)");
    check((Some(one), other), "(Some([1, 2]), [3, 4])");
    check(((7u8, one), other), "((7, [1, 2]), [3, 4])");
    check(
        OfExact { one, number: 7, option: Some(other), other },
        "OfExact([1, 2], 7, Some([3, 4]), [3, 4])",
    );
}
