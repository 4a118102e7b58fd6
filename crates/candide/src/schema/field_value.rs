//! Values of columns as updates take them.

#![forbid(unsafe_code)]

use super::field::{Bytes, Field, Text};

/// The argument of [`Column::set`](crate::Column::set) for a column of type `T`: a value of that
/// type. A text is also given as `&str` or `String`, and bytes as an array of `u8`.
///
/// ```
/// use candide::{Abort, Database, Record, Text};
///
/// #[derive(Record, Clone, Copy)]
/// struct User {
///     #[key]
///     id: u64,
///     name: Text<8>,
/// }
///
/// let db = Database::new();
/// let users = db.table::<User>("users")?;
/// db.run(|tx| {
///     users.insert(tx, User { id: 1, name: Text::default() })?;
///     users.update(tx, 1, User::NAME.set("ann"))
/// })?;
/// assert_eq!(db.run(|tx| users.read(tx, 1, User::NAME))?, "ann");
/// // The update is refused, and the transaction has no effect unless the closure goes on.
/// let long = db.run(|tx| users.update(tx, 1, User::NAME.set("Wolfgang Amadeus")));
/// assert_eq!(long, Err(Abort::TextTooLong));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the column has the type `{T}`, and `{Self}` is no value of it",
    label = "expected a value of type `{T}`",
    note = "a column of type `Text<N>` is also set to a `&str` or a `String`, one of `Bytes<N>` to a `[u8; N]`"
)]
pub trait FieldValue<T>: private::Sealed<T> {
    /// Returns the value; `None` if it is a text that is too long.
    fn into_value(self) -> Option<T>;
}

/// An update takes what does not fit for a text, so other crates do not implement the trait.
mod private {
    pub trait Sealed<T> {}
}

impl<T: Field> private::Sealed<T> for T {}

impl<T: Field> FieldValue<T> for T {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_value(self) -> Option<T> {
        Some(self)
    }
}

macro_rules! text_values {
    ($($text:ty),*) => {$(
        impl<const N: usize> private::Sealed<Text<N>> for $text {}

        #[diagnostic::do_not_recommend]
        impl<const N: usize> FieldValue<Text<N>> for $text {
            #[inline]
            fn into_value(self) -> Option<Text<N>> {
                Text::new(self.as_ref()).ok()
            }
        }
    )*};
}

text_values!(&str, &&str, String, &String);

macro_rules! bytes_values {
    ($($bytes:ty),*) => {$(
        impl<const N: usize> private::Sealed<Bytes<N>> for $bytes {}

        #[diagnostic::do_not_recommend]
        impl<const N: usize> FieldValue<Bytes<N>> for $bytes {
            #[inline]
            fn into_value(self) -> Option<Bytes<N>> {
                Some(self.into())
            }
        }
    )*};
}

bytes_values!([u8; N], &[u8; N]);
