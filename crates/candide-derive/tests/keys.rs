//! Derived keys.

use candide::schema::{KeyPrefix, KeyRange};
use candide::{Bytes, Equals, Key, Prefix, Text};
use std::fmt::Debug;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Level {
    Low = -3,
    Middle = 5,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Single {
    Only,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
struct OrderId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Name {
    last: Text<10>,
    first: Text<5>,
    number: i128,
    r#type: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Line(OrderId, i8, Bytes<9>, Name, Option<bool>);

/// A key around a key that is no column: it is none itself, and needs not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Pair((u32, u32));

fn words<K: Key>(key: K) -> Vec<u64> {
    key.words().as_ref().to_vec()
}

fn keeps_order<K: Key + Ord + Debug>(keys: &[K]) {
    for a in keys {
        assert_eq!(K::from_words(&words(*a)), *a);
        assert_eq!(words(*a).len(), K::WORDS);
        for (word, width) in words(*a).iter().zip(K::WIDTHS) {
            assert!(*width == 64 || word >> width == 0, "{a:?} has wider words than it says");
        }
        for b in keys {
            assert_eq!(words(*a).cmp(&words(*b)), a.cmp(b), "{a:?} {b:?}");
        }
    }
}

fn name(last: &str, first: &str, number: i128, r#type: Level) -> Name {
    Name { last: Text::new(last).unwrap(), first: Text::new(first).unwrap(), number, r#type }
}

fn names() -> Vec<Name> {
    let mut names = Vec::new();
    for last in ["", "a", "a\0", "smithsonia", "smith"] {
        for first in ["", "joe", "joey"] {
            for number in [i128::MIN, -1, 0, i128::MAX] {
                names.push(name(last, first, number, Level::High));
                names.push(name(last, first, number, Level::Low));
            }
        }
    }
    names
}

#[test]
fn enum_keys_are_ordered_as_their_variants_are_declared() {
    assert_eq!([Level::Low, Level::Middle, Level::High].map(|level| words(level)[0]), [0, 1, 2]);
    assert_eq!((Level::WIDTHS, Single::WIDTHS), (&[2][..], &[1][..]));
    assert_eq!(Single::from_words(&[0]), Single::Only);
}

#[test]
fn composite_keys_have_the_order_of_their_components() {
    keeps_order(&names());
    let mut lines = Vec::new();
    for order in [0, 1, u32::MAX] {
        for number in [i8::MIN, 0, 1] {
            for option in [None, Some(false), Some(true)] {
                for name in [name("b", "c", 4, Level::Low), name("b", "d", 3, Level::Middle)] {
                    lines.push(Line(
                        OrderId(order),
                        number,
                        Bytes::new(*b"abcdefghi"),
                        name,
                        option,
                    ));
                    lines.push(Line(
                        OrderId(order),
                        number,
                        Bytes::new(*b"abcdefghh"),
                        name,
                        option,
                    ));
                }
            }
        }
    }
    keeps_order(&lines);
    keeps_order(&[Pair((0, 1)), Pair((1, 0))]);
}

#[test]
fn words_of_a_composite_key_are_those_of_its_components() {
    let key = name("smith", "joe", -1, Level::Middle);
    let parts = [words(key.last), words(key.first), words(key.number), words(key.r#type)].concat();
    assert_eq!(words(key), parts);
    assert_eq!(
        Name::WIDTHS,
        [<Text<10>>::WIDTHS, <Text<5>>::WIDTHS, i128::WIDTHS, Level::WIDTHS].concat()
    );
    assert_eq!(Line::WORDS, 1 + 1 + 2 + Name::WORDS + 2);
}

#[test]
fn a_newtype_is_a_component_of_tuples_and_a_column() {
    fn is_field<T: candide::schema::Field>() -> u32 {
        T::BITS
    }
    keeps_order(&[(OrderId(1), Level::High), (OrderId(2), Level::Low)]);
    assert_eq!(
        (is_field::<OrderId>(), is_field::<Level>(), is_field::<Option<Level>>()),
        (32, 2, 3)
    );
}

#[test]
fn tuples_of_first_components_are_prefixes() {
    fn is_prefix<K: Key, P: KeyPrefix<K>>(_: P) {}
    is_prefix::<Line, _>((OrderId(1),));
    is_prefix::<Line, _>((OrderId(1), 2, Bytes::new([0; 9]), name("", "", 0, Level::Low)));
    let last = (Text::<10>::new("smith").unwrap(),);
    let words = [words(last.0), vec![0; Name::WORDS - <Text<10> as Key>::WORDS]].concat();
    let all = candide::derived::WordRange::beginning_with(
        &words[..<Text<10> as Key>::WORDS],
        Name::WORDS,
    );
    assert_eq!(KeyRange::<Name>::word_range(&Prefix(last)), all);
    assert_eq!(KeyRange::<Name>::word_range(&Prefix((Equals("smith"),))), all);
}
