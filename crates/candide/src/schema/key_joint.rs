//! Words of parts of a key, one behind the other.

#![forbid(unsafe_code)]

use super::key_words::KeyWords;

/// The words of a part of a key, behind which the words `Next` of another part can follow.
///
/// Few words of integers stay an array of exactly their number: their copies are short, and
/// comparing them is a few instructions. The words of a part with a text or bytes are a
/// `KeyWords`.
#[diagnostic::on_unimplemented(
    message = "a struct of more than four words cannot be a component of a tuple, of an option, or of a key of several fields",
    label = "a key with a component of more than four words",
    note = "derive `candide::Key` for a struct that has all components as fields, and make it the key: \
            its components have any number of words"
)]
pub trait Before<Next>: AsRef<[u64]> {
    /// The words of both parts.
    type Both: ZeroWords;

    /// Returns the words of `self`, followed by those of `next`.
    fn before(self, next: Next) -> Self::Both;
}

/// Words of a key that can be made from their number.
pub trait ZeroWords: AsRef<[u64]> + Copy {
    /// Returns `count` words, all zero.
    fn zeros(count: usize) -> Self;
}

impl<const N: usize> ZeroWords for [u64; N] {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn zeros(_: usize) -> [u64; N] {
        [0; N]
    }
}

impl ZeroWords for KeyWords {
    fn zeros(count: usize) -> KeyWords {
        KeyWords::zeros(count)
    }
}

macro_rules! one_more_word {
    ($($count:literal of $($index:literal),+;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Before<[u64; 1]> for [u64; $count - 1] {
            type Both = [u64; $count];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn before(self, [next]: [u64; 1]) -> [u64; $count] {
                [$(self[$index],)+ next]
            }
        }
    )*};
}

one_more_word! {
    2 of 0;
    3 of 0, 1;
    4 of 0, 1, 2;
}

macro_rules! before {
    ($($this:ty, $next:ty $(where $n:ident)?;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl $(<const $n: usize>)? Before<$next> for $this {
            type Both = KeyWords;

            fn before(self, next: $next) -> KeyWords {
                KeyWords::of([self.as_ref(), next.as_ref()])
            }
        }
    )*};
}

before! {
    KeyWords, KeyWords;
    KeyWords, [u64; N] where N;
    [u64; N], KeyWords where N;
    [u64; 1], [u64; 2];
    [u64; 1], [u64; 3];
    [u64; 1], [u64; 4];
    [u64; 2], [u64; 2];
    [u64; 2], [u64; 3];
    [u64; 2], [u64; 4];
    [u64; 3], [u64; 2];
    [u64; 3], [u64; 3];
    [u64; 3], [u64; 4];
    [u64; 4], [u64; 1];
    [u64; 4], [u64; 2];
    [u64; 4], [u64; 3];
    [u64; 4], [u64; 4];
}
