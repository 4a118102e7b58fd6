//! The text of keys, made from their words. Conflict reports and row handles show this text.

#![forbid(unsafe_code)]

use std::fmt::{self, Debug, Formatter, Write};

/// The [`Key::show`](super::Key::show) of a key type.
pub type Show = fn(&[u64], &mut Formatter<'_>) -> fmt::Result;

/// The text shown in place of missing words.
pub(super) const MORE: &str = "..";

/// The words of a key, and the function that writes them as text.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) show: Show,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (self.show)(self.words, f)
    }
}

impl Debug for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (self.show)(self.words, f)
    }
}

/// Writes the name of a composite, and in parentheses its components, as far as `words` contains
/// them.
pub fn show_components(
    name: &str,
    components: &[(usize, Show)],
    mut words: &[u64],
    f: &mut Formatter<'_>,
) -> fmt::Result {
    write!(f, "{name}(")?;
    for (number, &(count, show)) in components.iter().enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        let (its, rest) = words.split_at(count.min(words.len()));
        show(its, f)?;
        if its.len() < count {
            break;
        }
        words = rest;
    }
    f.write_char(')')
}

/// Writes the name of an enum's variant.
pub fn show_variant(names: &[&str], words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    let name = words.first().and_then(|&position| names.get(usize::try_from(position).ok()?));
    f.write_str(name.unwrap_or(&MORE))
}

/// Writes the bytes in `words`, as a text if `text` and as a byte string otherwise. `length` is the
/// number of bytes; `None` if words are missing.
pub(crate) fn show_bytes(
    words: &[u64],
    length: Option<usize>,
    text: bool,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if words.is_empty() && length.is_none() {
        return f.write_str(MORE);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let bytes = &bytes[..length.map_or(bytes.len(), |length| length.min(bytes.len()))];
    let more = if length.is_none() { MORE } else { "" };
    if text {
        // A text that is cut may end within a character.
        let whole = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        write!(f, "{:?}{more}", if length.is_none() { whole.trim_end_matches('\0') } else { whole })
    } else {
        write!(f, "b\"{}\"{more}", bytes.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::AsKey;
    use crate::{Bytes, Key, Text};

    #[derive(Clone, Copy, candide_derive::Key)]
    #[key(crate = crate)]
    enum Color {
        Red,
        Green,
    }

    #[derive(Clone, Copy, candide_derive::Key)]
    #[key(crate = crate)]
    struct Name {
        branch: i16,
        last: Text<20>,
        first: Text<8>,
    }

    #[derive(Clone, Copy, candide_derive::Key)]
    #[key(crate = crate)]
    struct Id(u64);

    /// A hand-written key type that does not implement `show`.
    #[derive(Clone, Copy)]
    struct Plain;

    impl AsKey<Plain> for Plain {
        type Given = Self;

        fn into_key(self) -> Option<Self> {
            Some(self)
        }
    }

    impl Key for Plain {
        type Words = [u64; 2];
        const WIDTHS: &'static [u32] = &[64, 64];

        fn words(&self) -> [u64; 2] {
            [4, 5]
        }

        fn from_words(_: &[u64]) -> Plain {
            Plain
        }
    }

    /// Returns the text shown for a key's first `count` words.
    fn shown<K: Key>(key: K, count: usize) -> String {
        super::Shown { words: &key.words().as_ref()[..count], show: K::show }.to_string()
    }

    fn whole<K: Key>(key: K) -> String {
        shown(key, K::WORDS)
    }

    #[test]
    fn keys_are_displayed_as_values_of_their_types() {
        assert_eq!(
            [whole(7u64), whole(-1i64), whole(i8::MIN), whole(u128::MAX)].join(" "),
            format!("7 -1 -128 {}", u128::MAX)
        );
        assert_eq!(
            [whole(true), whole('\n'), whole(Some(-3i32)), whole(None::<u8>)].join(" "),
            r"true '\n' Some(-3) None"
        );
        assert_eq!(whole((1u8, -2i64, false)), "(1, -2, false)");
        assert_eq!(
            [whole(Color::Red), whole(Color::Green), whole(Id(9))].join(" "),
            "Red Green Id(9)"
        );
        let text = |text| Text::<20>::new(text).unwrap();
        assert_eq!(
            [whole(text("")), whole(text("Smith")), whole(text("\"\0"))].join(" "),
            r#""" "Smith" "\"\0""#
        );
        assert_eq!(whole(Bytes::<3>::new(*b"a\0\xff")), r#"b"a\x00\xff""#);
        let name = Name {
            branch: -3,
            last: text("Thunder-ten-tronckh"),
            first: Text::new("Candide").unwrap(),
        };
        assert_eq!(whole(name), r#"Name(-3, "Thunder-ten-tronckh", "Candide")"#);
        assert_eq!(whole(Plain), "[4, 5]");
    }

    #[test]
    fn a_truncated_key_is_displayed_as_words() {
        let text = |text| Text::<20>::new(text).unwrap();
        assert_eq!(shown(text("Smith"), 3), r#""Smith".."#);
        assert_eq!(shown(text("Thunder-ten-tronckh"), 2), r#""Thunder-ten-tron".."#);
        // This prefix ends within a character.
        assert_eq!(shown(text("1234567ä"), 1), r#""1234567".."#);
        assert_eq!(shown(Bytes::<16>::new(*b"0123456789abcdef"), 1), r#"b"01234567".."#);
        assert_eq!(
            [shown(u128::MAX, 1), shown(Some(1u8), 1), shown(None::<u8>, 1)].join(" "),
            ".. Some(..) None"
        );
        let name = Name { branch: -3, last: text("Martin"), first: Text::new("x").unwrap() };
        assert_eq!(shown(name, 4), r#"Name(-3, "Martin"..)"#);
        assert_eq!(shown(name, 5), r#"Name(-3, "Martin", ..)"#);
        assert_eq!(shown(Plain, 1), "[4, ..]");
    }
}
