//! Tables and indexes whose keys have components of many types and any number of words, beside keys
//! in the order of the standard library.
//!
//! Below the public interface keys are words, so protocols do not see their types. These tests call
//! protocols through [`Erased`](crate::any::Erased): each type of keys is compiled once, and not
//! once for each protocol.

use crate::common::{builder, ok};
use candide::schema::{IndexKind, KeyColumn, KeyPrefix, RowReader, RowWriter};
use candide::{
    Abort, Bytes, Column, Database, Equals, Group, Hashed, IndexOptions, Key, Ordered, Prefix,
    Protocol, Record, Table, TableOptions, Text, Tx, Whole,
};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Bound;

/// A row whose key has type `K`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row<K, I> {
    key: K,
    value: u64,
    kind: PhantomData<fn() -> I>,
}

/// What the keys of these tests can do.
trait Shape: Key + Ord + Debug {}

impl<K: Key + Ord + Debug> Shape for K {}

impl<K: Shape, I: IndexKind + Copy> Row<K, I> {
    const KEY: KeyColumn<Row<K, I>, K> = KeyColumn::new("key", |key| *key);
    const VALUE: Column<Row<K, I>, u64> = Column::new(0, 0, "value");

    fn new(key: K, value: usize) -> Row<K, I> {
        Row { key, value: value as u64, kind: PhantomData }
    }
}

impl<K: Shape, I: IndexKind + Copy> Record for Row<K, I> {
    type Key = K;
    type Index = I;
    type Image = [u64; 1];
    const META: candide::schema::Meta = candide::schema::Meta::new("Row", &[Group::new("row", 1)]);

    fn key(&self) -> K {
        self.key
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }

    fn load(key: &K, row: &RowReader<'_>) -> Row<K, I> {
        Row { key: *key, value: Self::VALUE.take(row), kind: PhantomData }
    }
}

/// A struct of five components, each of which may have several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, candide_derive::Key)]
#[key(crate = crate)]
struct Five {
    name: Text<9>,
    number: i16,
    mark: Option<Text<8>>,
    wide: i128,
    last: (bool, Bytes<3>),
}

/// A struct of so few words that it can be a component of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, candide_derive::Key)]
#[key(crate = crate)]
struct Few(i8, u128, Option2);

/// An enum with the values of an option of a `bool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, candide_derive::Key)]
#[key(crate = crate)]
enum Option2 {
    None,
    Some,
}

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).expect("the text fits")
}

fn bounds<K: Copy>(one: K, other: K, number: usize) -> (Bound<K>, Bound<K>) {
    let bound = |key, kind| match kind {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    };
    (bound(one, number % 3), bound(other, number / 3 % 3))
}

/// Inserts the keys at odd places of the sorted `keys`, and checks what is found: by key, in ranges
/// in both directions, and by indexes on the key. Then deletes some of them.
fn check<P: Protocol, K: Shape>(keys: &[K]) {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    for apart in [true, false] {
        let options = TableOptions::default().contention_aware_keys(apart);
        check_ordered::<P, K>(&keys, options);
        check_hashed::<P, K>(&keys, options);
    }
}

/// Returns every second key, with its place.
fn present<K: Copy>(keys: &[K]) -> Vec<(K, u64)> {
    keys.iter().enumerate().skip(1).step_by(2).map(|(place, &key)| (key, place as u64)).collect()
}

fn filled<P: Protocol, K: Shape, I: IndexKind + Copy>(
    db: &Database<P>,
    keys: &[K],
    options: TableOptions,
) -> Table<Row<K, I>, P> {
    let table = db.table_with::<Row<K, I>>("rows", options).unwrap();
    let rows = present(keys);
    ok(db.run(|tx| {
        table.insert_many(tx, rows.iter().rev().map(|&(key, place)| Row::new(key, place as usize)))
    }));
    table
}

/// Checks what lookups by key find.
fn check_lookups<P: Protocol, K: Shape, I: IndexKind + Copy>(
    tx: &Tx<'_, P>,
    table: &Table<Row<K, I>, P>,
    keys: &[K],
) -> Result<(), Abort> {
    for (place, key) in keys.iter().enumerate() {
        let wanted = (place % 2 == 1).then_some(place as u64);
        assert_eq!(table.get(tx, key, Row::<K, I>::VALUE)?, wanted, "{key:?}");
        let other = keys[(place + 1) % keys.len()];
        let [one, other] = table.find_many(tx, &[*key, other])?;
        assert_eq!(one.get(Whole)?.map(|row| (row.key, row.value)), wanted.map(|v| (*key, v)));
        assert_eq!(other.get(())?.is_some(), (place + 1) % keys.len() % 2 == 1);
    }
    Ok(())
}

fn check_hashed<P: Protocol, K: Shape>(keys: &[K], options: TableOptions) {
    let db = builder::<P>().build().unwrap();
    let table = filled::<P, K, Hashed>(&db, keys, options);
    ok(db.run(|tx| check_lookups(tx, &table, keys)));
    let mut all =
        ok(db.run(|tx| table.iter(tx, Row::<K, Hashed>::VALUE).collect::<Result<Vec<_>, _>>()));
    all.sort_unstable();
    assert_eq!(all, present(keys));
    if 2 * K::WORDS <= 32 {
        let by_key =
            table.create_index("by_key", Row::<K, Hashed>::KEY, IndexOptions::hashed()).unwrap();
        let unique = table
            .create_index("unique", Row::<K, Hashed>::KEY, IndexOptions::hashed().unique())
            .unwrap();
        ok(db.run(|tx| {
            for (place, &key) in keys.iter().enumerate() {
                let found = by_key.rows(tx, key, ()).collect::<Result<Vec<_>, _>>()?;
                assert_eq!((found.len(), unique.contains(tx, key)?), (place % 2, place % 2 == 1));
            }
            Ok::<_, Abort>(())
        }));
    }
}

fn check_ordered<P: Protocol, K: Shape>(keys: &[K], options: TableOptions) {
    let db = builder::<P>().build().unwrap();
    let table = filled::<P, K, Ordered>(&db, keys, options);
    let value = Row::<K, Ordered>::VALUE;
    let rows = present(keys);
    let in_range = |range: &(Bound<K>, Bound<K>)| {
        let is_in = |key: &K| std::ops::RangeBounds::contains(range, key);
        rows.iter().copied().filter(|(key, _)| is_in(key)).collect::<Vec<_>>()
    };
    let by_key = (2 * K::WORDS <= 32).then(|| {
        table.create_index("by_key", Row::<K, Ordered>::KEY, IndexOptions::ordered()).unwrap()
    });
    ok(db.run(|tx| {
        check_lookups(tx, &table, keys)?;
        for (number, (&one, &other)) in
            keys.iter().flat_map(|one| keys.iter().map(move |other| (one, other))).enumerate()
        {
            let range = bounds(one, other, number * 5 + number / 9);
            let mut wanted = in_range(&range);
            let found = table.scan(tx, range, value).collect::<Result<Vec<_>, _>>()?;
            assert_eq!(found, wanted, "{range:?}");
            wanted.reverse();
            let found = table.scan_rev(tx, range, value).collect::<Result<Vec<_>, _>>()?;
            assert_eq!(found, wanted, "{range:?}");
            if let Some(by_key) = &by_key {
                assert_eq!(by_key.count(tx, range)?, wanted.len(), "{range:?}");
                let found = by_key.scan_rev(tx, range, value).map(|row| Ok(row?.1));
                let found = found.collect::<Result<Vec<_>, Abort>>()?;
                assert!(found.iter().eq(wanted.iter().map(|(_, place)| place)), "{range:?}");
            }
        }
        Ok::<_, Abort>(())
    }));
    ok(db.run(|tx| rows.iter().step_by(2).try_for_each(|(key, _)| table.delete(tx, key))));
    let left: Vec<_> = rows.iter().copied().skip(1).step_by(2).collect();
    ok(db.run(|tx| {
        assert_eq!(table.scan(tx, .., value).collect::<Result<Vec<_>, _>>()?, left);
        let places = left.iter().map(|&(_, place)| place).rev();
        if let Some(by_key) = &by_key {
            let found = by_key.scan_rev(tx, .., value).map(|row| Ok(row?.1));
            assert!(found.collect::<Result<Vec<_>, Abort>>()?.into_iter().eq(places));
        }
        Ok::<_, Abort>(())
    }));
}

/// Returns all pairs of two lists.
fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))).collect()
}

const TEXTS: [&str; 8] = ["", "\0", "\0\0", "a", "a\0", "abcdefgh", "abcdefgh\0", "ü\u{10ffff}"];

protocol_tests!(erased: keys_of_one_component_are_found_in_their_order);
fn keys_of_one_component_are_found_in_their_order<P: Protocol>() {
    check::<P, _>(&[i8::MIN, -2, -1, 0, 1, i8::MAX]);
    check::<P, _>(&[i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX]);
    check::<P, _>(&[0, 1, u64::MAX - 1, u64::MAX]);
    check::<P, _>(&[i128::MIN, -1 << 64, (-1 << 64) - 1, -1, 0, 1 << 64, i128::MAX]);
    check::<P, _>(&['\0', 'a', '\u{d7ff}', '\u{e000}', char::MAX]);
    check::<P, _>(&[false, true]);
    check::<P, _>(&TEXTS.map(text::<9>));
    check::<P, _>(&["", "\0"].map(text::<1>));
    check::<P, _>(
        &[[0; 17], [255; 17], *b"0123456789abcdef\0", *b"0123456789abcdef\x01"].map(Bytes::new),
    );
    check::<P, _>(&[None, Some(u64::MAX), Some(0), Some(1)]);
    check::<P, _>(&[None, Some(None), Some(Some(text::<9>(""))), Some(Some(text("\0")))]);
    check::<P, _>(&[None, Some((false, 0)), Some((false, i16::MIN)), Some((true, -1))]);
}

protocol_tests!(erased: keys_of_several_components_are_found_in_their_order);
fn keys_of_several_components_are_found_in_their_order<P: Protocol>() {
    let texts = ["", "\0", "a\0", "abcdefghi"].map(text::<9>);
    check::<P, _>(&pairs(&texts, &[i8::MIN, 0, i8::MAX]));
    check::<P, _>(&pairs(&[u8::MAX, 0], &texts));
    check::<P, _>(&pairs(&[None, Some(text::<0>(""))], &texts));
    check::<P, _>(&pairs(&[false, true], &[None, Some(0u16), Some(u16::MAX)]));
    let wide = [i128::MIN, -1, 0, i128::MAX];
    let triples = pairs(&pairs(&[Some(-1i32), None], &wide), &['a', char::MAX]);
    check::<P, _>(&triples.iter().map(|&((a, b), c)| (a, b, c)).collect::<Vec<_>>());
    check::<P, _>(&triples.iter().map(|&((a, b), c)| (c, (a, b))).collect::<Vec<_>>());
    check::<P, _>(&triples.iter().map(|&((a, b), c)| (c, Some((b, a)))).collect::<Vec<_>>());
    check::<P, _>(&triples.iter().map(|&((a, b), c)| (a, c, b, c)).collect::<Vec<_>>());
    let few = pairs(&pairs(&[-1, 0], &[0, u128::MAX]), &[Option2::None, Option2::Some]);
    let few: Vec<_> = few.into_iter().map(|((a, b), c)| Few(a, b, c)).collect();
    check::<P, _>(&few);
    check::<P, _>(&few.iter().map(|&few| (few, texts[1], Some(few))).collect::<Vec<_>>());
}

fn fives() -> Vec<Five> {
    let mut fives = Vec::new();
    for name in ["", "a", "a\0"].map(text) {
        for (number, wide) in [(-1, i128::MAX), (0, i128::MIN), (0, -1)] {
            for mark in [None, Some(text("\0"))] {
                let last = (number == 0, Bytes::new(*b"a\0b"));
                fives.push(Five { name, number, mark, wide, last });
            }
        }
    }
    fives
}

protocol_tests!(erased: keys_of_many_words_are_found_in_their_order);
fn keys_of_many_words_are_found_in_their_order<P: Protocol>() {
    check::<P, _>(&fives());
    // These keys differ only in the last of 32 words, or in the first.
    let long = "x".repeat(240);
    let texts = [long.clone(), format!("{long}\0"), format!("\0{long}"), format!("{long}abcdefgh")];
    check::<P, _>(&texts.map(|long| text::<248>(&long)));
    check::<P, _>(&pairs(&pairs(&[-1i8, 1], &[text::<224>(&long[16..])]), &[0u64, 1, u64::MAX]));
}

/// Checks that a prefix finds the keys that `begins_so` accepts, in both directions.
fn check_prefix<P: Protocol, K: Shape>(
    tx: &Tx<'_, P>,
    table: &Table<Row<K, Ordered>, P>,
    prefix: impl KeyPrefix<K> + Copy,
    begins_so: impl Fn(&K) -> bool,
) -> Result<(), Abort> {
    let mut wanted =
        table.scan(tx, .., ()).map(|row| Ok(row?.0)).collect::<Result<Vec<K>, Abort>>()?;
    wanted.retain(begins_so);
    let found = table.scan(tx, Prefix(prefix), ()).map(|row| Ok(row?.0));
    assert_eq!(found.collect::<Result<Vec<K>, Abort>>()?, wanted);
    wanted.reverse();
    let found = table.scan_rev(tx, Prefix(prefix), ()).map(|row| Ok(row?.0));
    assert_eq!(found.collect::<Result<Vec<K>, Abort>>()?, wanted);
    Ok(())
}

protocol_tests!(erased: prefix_scans_find_exactly_the_keys_with_the_prefix);
fn prefix_scans_find_exactly_the_keys_with_the_prefix<P: Protocol>() {
    let tuples = pairs(
        &pairs(&[0u8, 1, u8::MAX], &["", "\0", "a", "a\0", "ab"].map(text::<9>)),
        &pairs(&[None, Some(0u16), Some(u16::MAX)], &[i8::MIN, -1, i8::MAX]),
    );
    let tuples: Vec<_> = tuples.into_iter().map(|((a, b), (c, d))| (a, b, c, d)).collect();
    for apart in [true, false] {
        let options = TableOptions::default().contention_aware_keys(apart);
        let db = builder::<P>().build().unwrap();
        let table = filled::<P, _, Ordered>(&db, &tuples, options);
        ok(db.run(|tx| {
            for &(a, b, c, d) in &tuples {
                check_prefix(tx, &table, (a,), |key| key.0 == a)?;
                check_prefix(tx, &table, (&a, Equals(b.as_str())), |key| (key.0, key.1) == (a, b))?;
                check_prefix(tx, &table, (a, &b, c), |key| (key.0, key.1, key.2) == (a, b, c))?;
                assert_eq!(
                    table.get(tx, (a, &b.to_string(), c, &d), ())?.is_some(),
                    table.contains(tx, (a, b, c, d))?
                );
            }
            check_prefix(tx, &table, (0, Equals("longer than nine bytes")), |_| false)?;
            check_prefix(tx, &table, (0, "a", None), |key| {
                (key.0, key.1 == "a", key.2) == (0, true, None)
            })
        }));
        let db = builder::<P>().build().unwrap();
        let table = filled::<P, _, Ordered>(&db, &fives(), options);
        ok(db.run(|tx| {
            for five in fives() {
                let Five { name, number, mark, wide, .. } = five;
                check_prefix(tx, &table, (Equals(name.as_str()),), |key| key.name == name)?;
                check_prefix(tx, &table, (name, number, mark), |key| {
                    (key.name, key.number, key.mark) == (name, number, mark)
                })?;
                check_prefix(tx, &table, (name, &number, mark, wide), |key| {
                    (key.name, key.number, key.mark, key.wide) == (name, number, mark, wide)
                })?;
            }
            check_prefix(tx, &table, ("a", -1, Equals(Some("\0"))), |key| {
                (key.name, key.number, key.mark) == (text("a"), -1, Some(text("\0")))
            })?;
            check_prefix(tx, &table, ("a", -1, Equals(Some("too long!"))), |_| false)
        }));
    }
}

protocol_tests!(concurrent: lookups_accept_keys_in_every_form);
/// The forms in which the components of a key can be given. All of them name the same row.
fn lookups_accept_keys_in_every_form<P: Protocol>() {
    type Key = (u8, Text<4>, Option<Text<4>>);
    let db = builder::<P>().build().unwrap();
    let table = db.table::<Row<Key, Ordered>>("rows").unwrap();
    let value = Row::<Key, Ordered>::VALUE;
    let (name, mark) = (text("ab"), Some(text("")));
    let key = (7, name, mark);
    let (string, boxed): (String, Box<str>) = ("ab".to_string(), "ab".into());
    let cow = std::borrow::Cow::from("ab");
    ok(db.run(|tx| {
        table.insert(tx, Row::new(key, 1))?;
        assert_eq!(table.get(tx, (7, "ab", Some("")), value)?, Some(1));
        assert_eq!(table.get(tx, (&7, &"ab", mark), value)?, Some(1));
        assert_eq!(table.get(tx, (7, &string, &mark), value)?, Some(1));
        assert_eq!(table.get(tx, (7, string.clone(), Some("")), value)?, Some(1));
        assert_eq!(table.get(tx, (7, &*boxed, Some("")), value)?, Some(1));
        assert_eq!(table.get(tx, (7, &*cow, Some("")), value)?, Some(1));
        assert_eq!(table.get(tx, (&key.0, &key.1, &key.2), value)?, Some(1));
        assert_eq!(table.get(tx, &key, value)?, Some(1));
        assert_eq!(table.get(tx, &&key, value)?, Some(1));
        assert_eq!(table.get(tx, (7, "ab", None::<&str>), value)?, None);
        assert_eq!(table.find_many(tx, [key, key])?.map(|row| row.read(value)), [Ok(1), Ok(1)]);
        // Components that no row can have, wherever they are.
        let long = "abcde";
        assert_eq!(table.get(tx, (7, long, Some("")), value)?, None);
        assert_eq!(table.get(tx, (7, "ab", Some(long)), value)?, None);
        assert_eq!(table.update(tx, (7, long, mark), value.set(2)), Err(Abort::NotFound));
        assert_eq!(table.update_with(tx, (7, long, mark), Never), Err(Abort::NotFound));
        assert!(!table.update_if_present(tx, (7, "ab", Some(long)), value.set(2))?);
        assert_eq!(table.modify_if_present(tx, (7, long, mark), value, |_| ())?, None);
        assert_eq!(table.get_for_update(tx, (7, long, mark), value)?, None);
        assert!(!table.delete_if_present(tx, (7, long, mark))?);
        assert_eq!(table.find(tx, (7, long, mark)).map(drop), Err(Abort::NotFound));
        assert_eq!(table.count(tx, Prefix((7, Equals(long))))?, 0);
        assert_eq!(table.scan_rev(tx, Prefix((7, Equals(long))), ()).next(), None);
        assert_eq!(table.count(tx, Prefix((7, Equals(&string))))?, 1);
        Ok::<_, Abort>(())
    }));
    let mut session = db.session().unwrap();
    assert_eq!(table.get_now(&mut session, (7, "ab", Some("")), value), Ok(Some(1)));
    assert_eq!(table.get_now(&mut session, (7, "abcde", Some("")), value), Ok(None));
}

/// An updater of a row that does not exist.
#[derive(Debug, Clone, Copy)]
struct Never;

impl crate::schema::Updater<Row<(u8, Text<4>, Option<Text<4>>), Ordered>> for Never {
    type Target = Column<Row<(u8, Text<4>, Option<Text<4>>), Ordered>, u64>;

    fn target(&self) -> Self::Target {
        Row::<_, Ordered>::VALUE
    }

    fn apply(&self, _: &mut u64) -> Result<(), crate::schema::Refused> {
        unreachable!("there is no such row")
    }
}
