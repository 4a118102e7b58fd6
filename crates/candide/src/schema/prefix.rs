//! Beginnings of keys: `Prefix((7, "Porto", Begins("Ru")))`.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text};
use super::key::{AsKey, Key};
use super::range::{Beginning, beginning_of_bytes, beginning_of_limited};

/// The last component of a [`Prefix`](crate::Prefix) that is a tuple: a text or bytes that begin
/// with this one.
///
/// ```
/// use candide::{Begins, Database, Equals, Prefix, Record, Text};
///
/// #[derive(Record, Clone, Copy)]
/// #[index(columns(name, id))]
/// struct Customer {
///     #[key]
///     id: u64,
///     name: Text<16>,
/// }
///
/// let db = Database::new();
/// let customers = db.table::<Customer>("customers")?;
/// let by_name = customers.index(Customer::BY_NAME_ID);
/// db.run(|tx| {
///     for (id, name) in [(1, "small"), (2, "sm"), (3, "smith"), (4, "snow")] {
///         customers.insert(tx, Customer { id, name: Text::new(name)? })?;
///     }
///     assert_eq!(by_name.scan(tx, Prefix((Begins("sm"),)), ()).count()?, 3);
///     assert_eq!(by_name.scan(tx, Prefix((Equals("sm"),)), ()).count()?, 1);
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begins<T>(pub T);

/// The last component of a [`Prefix`](crate::Prefix) that is a tuple: a component that equals this
/// key, which is given in any form that lookups take. See [`Begins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equals<T>(pub T);

/// The last component of a [`Prefix`](crate::Prefix) that is a tuple: a component of type `K`, or a
/// reference to it; or [`Begins`] and [`Equals`], which say what is meant by a string or slice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` as the last component of a `Prefix` does not say whether the component of type `{K}` equals it or begins with it",
    label = "expected `Equals(..)`, `Begins(..)`, or a value of type `{K}`",
    note = "`Prefix((7, Equals(\"sm\")))` has the keys whose second component is \"sm\", `Prefix((7, Begins(\"sm\")))` those where it begins with \"sm\""
)]
pub trait PrefixEnd<K>: Copy {
    /// Adds the component to the beginning of a key.
    #[doc(hidden)]
    fn add_to(self, beginning: Beginning) -> Beginning;
}

impl<K: Key> PrefixEnd<K> for K {
    #[inline]
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and::<K, _>(self)
    }
}

impl<K: Key> PrefixEnd<K> for &K {
    #[inline]
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and::<K, _>(self)
    }
}

impl<K: Key, G: AsKey<K> + Copy> PrefixEnd<K> for Equals<G> {
    #[inline]
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and::<K, _>(self.0)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> PrefixEnd<Text<N>> for Begins<&str> {
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and_range(&beginning_of_limited::<N>(self.0.as_bytes()))
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> PrefixEnd<Bytes<N>> for Begins<&[u8]> {
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and_range(&beginning_of_bytes::<N>(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::KeyRange;
    use crate::schema::range::Prefix;

    fn holds<K: Key>(range: impl KeyRange<K>, key: K) -> bool {
        range.word_range().contains(key.words().as_ref())
    }

    #[test]
    fn a_last_text_begins_or_equals() {
        let text = |text: &str| Text::<9>::new(text).expect("it is short");
        let texts = ["", "\0", "x", "x\0", "xy", "abcdefgh", "abcdefgh\0", "abcdefghi", "ü"];
        for (one, other) in texts.iter().flat_map(|&a| texts.iter().map(move |&b| (a, b))) {
            let (whole, longer) = ((3u8, text(one)), (3u8, 4u8, 5u8, text(one)));
            assert_eq!(holds(Prefix((3, Begins(other))), whole), one.starts_with(other));
            assert_eq!(holds(Prefix((3, Equals(other))), whole), one == other);
            assert!(!holds(Prefix((2, Begins(other))), whole));
            assert_eq!(holds(Prefix((3, 4, 5, Begins(other))), longer), one.starts_with(other));
            for last in [0, 7, u64::MAX] {
                let key = (3u8, text(one), last);
                assert_eq!(holds(Prefix((3, Begins(other))), key), one.starts_with(other));
                assert_eq!(holds(Prefix((3, Equals(other))), key), one == other);
                assert_eq!(holds(Prefix((3, text(other))), key), one == other);
                assert!(!holds(Prefix((2, Begins(other))), key));
                assert!(!holds(Prefix((4, Begins(other))), key));
                let first = (text(one), last);
                assert_eq!(holds(Prefix((Begins(other),)), first), one.starts_with(other));
            }
        }
        assert!(!holds(Prefix((Begins("longer than 9 bytes"),)), (text("longer th"), 7u8)));
        assert!(!holds(Prefix((Equals("longer than 9 bytes"),)), (text("longer th"), 7u8)));
    }

    #[test]
    fn last_bytes_begin_or_equal() {
        let key = (Bytes::new(*b"abc"), 7u8);
        assert!(holds(Prefix((Begins(&b"ab"[..]),)), key));
        assert!(!holds(Prefix((Begins(&b"b"[..]),)), key));
        assert!(!holds(Prefix((Begins(&b"abcd"[..]),)), key));
        assert!(holds(Prefix((Equals(*b"abc"),)), key) && !holds(Prefix((Equals(*b"abd"),)), key));
    }
}
