//! Keys that are tuples of keys.

#![forbid(unsafe_code)]

use super::field_type::FieldType;
use super::hash::hash_numbers;
use super::key::{AsKey, Key, joined_widths};
use super::key_joint::Before;
use super::key_text::{Show, show_components};
use super::prefix::PrefixEnd;
use super::range::{Beginning, KeyPrefix, WordRange};
use std::fmt;

/// A composite, ordered by its first component, then by the second.
impl<A: Key, B: Key> Key for (A, B)
where
    A::Words: Before<B::Words>,
{
    type Words = <A::Words as Before<B::Words>>::Both;
    const WIDTHS: &'static [u32] = joined_widths::<A, B>();
    const KEY_LAYOUT: u64 = hash_numbers(&[A::KEY_LAYOUT, B::KEY_LAYOUT]);
    const KEY_TYPE: &'static FieldType =
        &FieldType::Struct { name: "", bits: 0, parts: &[("0", A::KEY_TYPE), ("1", B::KEY_TYPE)] };

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn words(&self) -> Self::Words {
        self.0.words().before(self.1.words())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_words(words: &[u64]) -> (A, B) {
        let (first, last) = words.split_at(A::WORDS);
        (A::from_words(first), B::from_words(last))
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_components("", &[(A::WORDS, A::show), (B::WORDS, B::show)], words, f)
    }
}

macro_rules! longer_tuples {
    ($($($name:ident $index:tt),+ and $last:ident $last_index:tt;)*) => {$(
        /// A composite, ordered by its first component, then by the second, and so on.
        impl<$($name: Key,)+ $last: Key> Key for ($($name,)+ $last,)
        where
            ($($name,)+): Key<Words: Before<$last::Words>>,
        {
            type Words = <<($($name,)+) as Key>::Words as Before<$last::Words>>::Both;
            const WIDTHS: &'static [u32] = joined_widths::<($($name,)+), $last>();
            const KEY_LAYOUT: u64 = hash_numbers(&[$($name::KEY_LAYOUT,)+ $last::KEY_LAYOUT]);
            const KEY_TYPE: &'static FieldType = &FieldType::Struct {
                name: "",
                bits: 0,
                parts: &[
                    $((stringify!($index), $name::KEY_TYPE),)+
                    (stringify!($last_index), $last::KEY_TYPE),
                ],
            };

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn words(&self) -> Self::Words {
                ($(self.$index,)+).words().before(self.$last_index.words())
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_words(words: &[u64]) -> Self {
                let (first, last) = words.split_at(<($($name,)+)>::WORDS);
                let first = <($($name,)+)>::from_words(first);
                ($(first.$index,)+ $last::from_words(last))
            }

            fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let components = [$(($name::WORDS, $name::show as Show),)+ ($last::WORDS, $last::show)];
                show_components("", &components, words, f)
            }
        }
    )*};
}

longer_tuples! {
    A 0, B 1 and C 2;
    A 0, B 1, C 2 and D 3;
}

macro_rules! tuple_prefixes {
    ($([$($given:ident as $name:ident $index:tt),*] $end:ident as $last:ident $at:tt of $($rest:ident),*;)*) => {$(
        impl<$($name: Key,)* $last: Key, $($rest: Key,)* $($given: AsKey<$name> + Copy,)* $end>
            KeyPrefix<($($name,)* $last, $($rest,)*)> for ($($given,)* $end,)
        where
            ($($name,)* $last, $($rest,)*): Key,
            $end: PrefixEnd<$last>,
        {
            fn word_range(&self) -> WordRange {
                let empty = Beginning::of_words(<($($name,)* $last, $($rest,)*)>::WORDS);
                let beginning = empty$(.and::<$name, _>(self.$index))*;
                PrefixEnd::<$last>::add_to(self.$at, beginning).range()
            }
        }
    )*};
}

tuple_prefixes! {
    [] X as A 0 of B;
    [] X as A 0 of B, C;
    [X as A 0] Y as B 1 of C;
    [] X as A 0 of B, C, D;
    [X as A 0] Y as B 1 of C, D;
    [X as A 0, Y as B 1] Z as C 2 of D;
    [X as A 0] Y as B 1 of;
    [X as A 0, Y as B 1] Z as C 2 of;
    [X as A 0, Y as B 1, Z as C 2] W as D 3 of;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::range::Prefix;
    use crate::schema::{Bytes, KeyRange, Shown, Text};
    use std::fmt::Debug;

    fn text(text: &str) -> Text<9> {
        Text::new(text).expect("it is short")
    }

    /// Checks that words have the order of the keys, and become the keys again.
    fn keeps_order<K: Key + Ord + Debug>(mut keys: Vec<K>) {
        keys.sort_unstable();
        let mut words = Vec::new();
        for &key in &keys {
            let its = key.words();
            assert_eq!((K::from_words(its.as_ref()), its.as_ref().len()), (key, K::WORDS));
            assert!(
                its.as_ref()
                    .iter()
                    .zip(K::WIDTHS)
                    .all(|(&word, &bits)| word <= u64::MAX >> (64 - bits))
            );
            words.push(its.as_ref().to_vec());
        }
        assert!(words.is_sorted(), "{keys:?}: {words:?}");
    }

    /// Returns all pairs of two lists.
    fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
        first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))).collect()
    }

    #[test]
    fn components_of_any_number_of_words_keep_their_order() {
        let texts = ["", "x", "x\0", "xy", "abcdefgh", "abcdefghi"].map(text);
        let (small, wide) = ([-1i8, 0, 1], [0, u128::from(u64::MAX), u128::MAX]);
        let (bytes, options) = ([*b"\0\0", *b"ab"].map(Bytes::new), [None, Some(0u16), Some(7)]);
        keeps_order(pairs(&texts, &small));
        keeps_order(pairs(&small, &texts));
        keeps_order(pairs(&texts, &texts));
        keeps_order(pairs(&wide, &small));
        keeps_order(pairs(&small, &wide));
        keeps_order(pairs(&options, &wide));
        keeps_order(pairs(&bytes, &options));
        let triples = pairs(&pairs(&small, &texts), &wide);
        keeps_order(triples.iter().map(|&((a, b), c)| (a, b, c)).collect());
        keeps_order(triples.iter().map(|&((a, b), c)| (c, a, b)).collect());
        keeps_order(triples.iter().map(|&((a, b), c)| (a, b, c, b)).collect());
        keeps_order(triples.iter().map(|&((a, b), c)| (c, a, a, b)).collect());
        keeps_order(triples.iter().map(|&((a, b), c)| (a, a, a, (c, b))).collect());
    }

    #[test]
    fn options_have_components_of_any_number_of_words() {
        keeps_order([None, Some(text("")), Some(text("x")), Some(text("abcdefghi"))].to_vec());
        keeps_order(
            [None, Some((0u8, text(""))), Some((0, text("x"))), Some((1, text("")))].to_vec(),
        );
        keeps_order(vec![None, Some(0u128), Some(1), Some(u128::MAX)]);
        keeps_order(vec![None, Some(None), Some(Some(0u64)), Some(Some(u64::MAX))]);
    }

    #[test]
    fn prefixes_have_components_of_any_number_of_words() {
        fn holds<K: Key>(range: impl KeyRange<K>, key: K) -> bool {
            range.word_range().contains(key.words().as_ref())
        }
        let (x, y) = (text("x"), text("x\0"));
        assert!(holds(Prefix((x,)), (x, 7u8)) && !holds(Prefix((x,)), (y, 7u8)));
        assert!(
            holds(Prefix((x, 7u8)), (x, 7u8, u128::MAX)) && holds(Prefix((x, 7u8)), (x, 7u8, y))
        );
        assert!(
            !holds(Prefix((x, 7u8)), (x, 8u8, 0u128)) && !holds(Prefix((x, 7u8)), (y, 7u8, 0u128))
        );
        assert!(
            holds(Prefix((7u8, x)), (7u8, x, y, 0u64))
                && !holds(Prefix((7u8, x)), (7u8, y, x, 0u64))
        );
        assert!(holds(Prefix((1u8, x, 2u8)), (1u8, x, 2u8, y)));
        assert!(
            holds(Prefix((1u8,)), (1u8, x, 2u8, y)) && !holds(Prefix((1u8,)), (2u8, x, 2u8, y))
        );
        assert!(holds(Prefix((x,)), (x, 7u8)) && !holds(Prefix((&x,)), (y, 7u8)));
        assert!(holds(Prefix((1, "x", Some(2))), (1u8, x, Some(2u16), 0u64)));
        assert!(!holds(Prefix(("longer than 9 bytes", 7)), (text("longer th"), 7u8, 0u8)));
        assert!(holds((1u8, x)..(1, y), (1, x)) && !holds((1u8, x)..(1, y), (1, y)));
    }

    #[test]
    fn tuple_keys_are_displayed_as_values() {
        let key = (7u8, text("x"), Some(text("y")), 1u128);
        assert_eq!(
            Shown::of::<(u8, Text<9>, Option<Text<9>>, u128)>(&key.words()).to_string(),
            r#"(7, "x", Some("y"), 1)"#
        );
        assert_eq!(
            Shown::of::<(Text<9>, i8)>(&(text("x"), -7i8).words()).to_string(),
            r#"("x", -7)"#
        );
    }
}
