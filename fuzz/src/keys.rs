//! Keys are unchanged by encoding in words, and the words have the order of the values, whether or
//! not components share words.

use crate::Choices;
use candide::{Bytes, Database, Key, Record, TableOptions, Text, Whole};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A few variants, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
pub enum Kind {
    /// The first.
    Low,
    /// The variant between.
    Middle,
    /// The last.
    High,
}

/// A key of many components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
pub struct Compound {
    kind: Kind,
    small: i8,
    flag: bool,
    name: Text<11>,
    maybe: Option<u16>,
    letter: char,
    large: i64,
    bytes: Bytes<3>,
}

/// A row whose key has components of less than a word, which can share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(ordered)]
pub struct Place {
    #[key]
    shelf: i8,
    #[key]
    row: u16,
    #[key]
    number: i64,
    #[key]
    column: u32,
    count: u64,
}

fn text<const N: usize>(choices: &mut Choices<'_>) -> Text<N> {
    let letters = ["", "\0", "a", "b", "ab", "z", "é", "\u{ffff}"];
    let mut text = String::new();
    for _ in 0..choices.below(5) {
        let next = letters[choices.below(letters.len())];
        if text.len() + next.len() <= N {
            text.push_str(next);
        }
    }
    Text::new(&text).expect("it was kept short")
}

fn compound(choices: &mut Choices<'_>) -> Compound {
    let kind = [Kind::Low, Kind::Middle, Kind::High][choices.below(3)];
    let (small, flag, name) = (choices.byte() as i8, choices.below(2) == 1, text(choices));
    let maybe = (choices.below(2) == 1).then(|| choices.word() as u16);
    let letter = char::from_u32(choices.word() as u32 % 0x11_0000).unwrap_or('?');
    let large =
        if choices.below(2) == 1 { choices.word() as i64 } else { i64::from(choices.byte() as i8) };
    Compound {
        kind,
        small,
        flag,
        name,
        maybe,
        letter,
        large,
        bytes: Bytes::new(std::array::from_fn(|_| choices.byte())),
    }
}

/// Asserts that two keys have the order of their words, and that decoding the words gives each key.
fn check<K: Key + Ord + Debug>(first: K, second: K) {
    let (a, b) = (first.words(), second.words());
    let (a, b) = (a.as_ref(), b.as_ref());
    assert_eq!((a.len(), b.len()), (K::WORDS, K::WORDS));
    assert_eq!(a.cmp(b), first.cmp(&second), "{first:?} and {second:?} as {a:x?} and {b:x?}");
    for (key, words) in [(first, a), (second, b)] {
        assert_eq!(K::from_words(words), key);
        for (&word, &width) in words.iter().zip(K::WIDTHS) {
            assert!(
                width == 64 || word >> width == 0,
                "{key:?} uses more than {width} bits in {words:x?}"
            );
        }
    }
}

/// Checks the keys that the bytes choose.
pub fn run(bytes: &[u8]) {
    let choices = &mut Choices::new(bytes);
    let mut before = compound(choices);
    let mut rows = BTreeMap::new();
    while !choices.is_over() && rows.len() < 64 {
        let key = compound(choices);
        check(before, key);
        check(before.name, key.name);
        check(before.maybe, key.maybe);
        check((before.letter, before.small, before.kind), (key.letter, key.small, key.kind));
        check((before.name, before.small), (key.name, key.small));
        check(
            (before.small, before.name, before.maybe, before.large as i128),
            (key.small, key.name, key.maybe, key.large as i128),
        );
        let maybe = |key: &Compound| key.maybe.map(|_| (key.name, key.bytes));
        check(maybe(&before), maybe(&key));
        check(before.large as i128 * 0x1_0000_0001, key.large as i128 * 0x1_0000_0001);
        let place = (key.small, key.maybe.unwrap_or(7), key.large, u32::from(key.letter));
        check(
            (before.small, before.maybe.unwrap_or(7), before.large, u32::from(before.letter)),
            place,
        );
        rows.insert(place, rows.len() as u64);
        before = key;
    }
    for apart in [true, false] {
        let db = Database::new();
        let options = TableOptions::default().contention_aware_keys(apart);
        let places = db.table_with::<Place>("places", options).expect("a new table");
        db.run(|tx| {
            for (&(shelf, row, number, column), &count) in &rows {
                places.insert(tx, Place { shelf, row, number, column, count })?;
            }
            let scanned = places.scan(tx, .., Place::COUNT).collect::<Result<Vec<_>, _>>()?;
            assert!(
                scanned.iter().map(|(key, count)| (key, count)).eq(&rows),
                "{scanned:?} instead of {rows:?}"
            );
            let (some, bound) = (rows.len() / 2, rows.keys().nth(rows.len() / 2));
            if let Some(&bound) = bound {
                assert_eq!(places.count(tx, ..bound)?, some);
                assert_eq!(places.scan_rev(tx, bound.., ()).count(), rows.len() - some);
                assert_eq!(places.read(tx, &bound, Whole)?.count, rows[&bound]);
            }
            Ok(())
        })
        .expect("no other transaction is in the way");
    }
}
