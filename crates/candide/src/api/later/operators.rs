//! Operators on numbers that come later.

#![forbid(unsafe_code)]

use super::handle::Later;
use crate::error::Abort;
use std::ops::{Add, Mul, Neg, Sub};

/// An integer with which a [`Later`] computes: all of them, from `u8` to `i128`.
///
/// The operators `+`, `-`, `*` and the unary `-` are checked. A result outside of the type's range
/// has no value, and a transaction that uses it fails with [`Abort::Overflow`], as an update of a
/// column does: as an input of a step, as a condition of the commit, or as its result. Each operand
/// is a `Later`, a reference to one, or a number; at least one is a `Later`.
///
/// ```
/// # use candide::{Abort, Database, Later, Record};
/// # #[derive(Record, Clone, Copy)]
/// # struct Account { #[key] id: u64, cents: i64 }
/// # let db = Database::new();
/// # let accounts = db.table::<Account>("accounts")?;
/// # db.run(|tx| accounts.insert_many(tx, [1, 2].map(|id| Account { id, cents: 500 })))?;
/// let total = db.run_deferred(|tx| {
///     let one = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| *cents)?;
///     let two = accounts.defer(tx, 2, Account::CENTS, (), |cents, ()| *cents)?;
///     Ok(2 * (&one + two) - 1)
/// });
/// assert_eq!(total, Ok(1999));
/// assert_eq!((Later::ready(i64::MAX) + 1).get(), Err(Abort::Overflow));
/// assert_eq!(Later::ready(i64::MAX).wrapping_add(1).get(), Ok(i64::MIN));
/// # Ok::<(), candide::Error>(())
/// ```
pub trait Arithmetic: private::Sealed + Copy + 'static {
    #[doc(hidden)]
    fn add_checked(self, other: Self) -> Option<Self>;
    #[doc(hidden)]
    fn sub_checked(self, other: Self) -> Option<Self>;
    #[doc(hidden)]
    fn mul_checked(self, other: Self) -> Option<Self>;
    #[doc(hidden)]
    fn neg_checked(self) -> Option<Self>;
    #[doc(hidden)]
    fn add_wrapping(self, other: Self) -> Self;
    #[doc(hidden)]
    fn sub_wrapping(self, other: Self) -> Self;
    #[doc(hidden)]
    fn mul_wrapping(self, other: Self) -> Self;
}

mod private {
    pub trait Sealed {}
}

impl<T: Arithmetic> Later<T> {
    /// Adds, and wraps around at the ends of the type's range, so that the sum cannot fail.
    #[must_use]
    pub fn wrapping_add(&self, summand: impl Into<Later<T>>) -> Later<T> {
        both(self.clone(), summand.into(), |one, other| Some(one.add_wrapping(other)))
    }

    /// Subtracts, and wraps around at the ends of the type's range, so that the difference cannot
    /// fail.
    #[must_use]
    pub fn wrapping_sub(&self, subtrahend: impl Into<Later<T>>) -> Later<T> {
        both(self.clone(), subtrahend.into(), |one, other| Some(one.sub_wrapping(other)))
    }

    /// Multiplies, and wraps around at the ends of the type's range, so that the product cannot
    /// fail.
    #[must_use]
    pub fn wrapping_mul(&self, factor: impl Into<Later<T>>) -> Later<T> {
        both(self.clone(), factor.into(), |one, other| Some(one.mul_wrapping(other)))
    }
}

impl<T> From<&Later<T>> for Later<T> {
    fn from(later: &Later<T>) -> Later<T> {
        later.clone()
    }
}

/// Returns what `function` makes of two numbers; [`Abort::Overflow`] if it makes nothing of them.
fn both<T: Arithmetic>(
    one: Later<T>,
    other: Later<T>,
    function: fn(T, T) -> Option<T>,
) -> Later<T> {
    Later::of((one, other), move |(one, other): (&T, &T)| {
        function(*one, *other).ok_or(Abort::Overflow)
    })
}

/// Returns what `function` makes of a number; [`Abort::Overflow`] if it makes nothing of it.
fn with<T: Arithmetic>(one: Later<T>, function: impl Fn(T) -> Option<T> + 'static) -> Later<T> {
    Later::of(one, move |one: &T| function(*one).ok_or(Abort::Overflow))
}

macro_rules! operators {
    ($($operator:ident $name:ident $checked:ident;)*) => {$(
        impl<T: Arithmetic> $operator<Later<T>> for Later<T> {
            type Output = Later<T>;

            fn $name(self, other: Later<T>) -> Later<T> {
                both(self, other, T::$checked)
            }
        }

        impl<T: Arithmetic> $operator<&Later<T>> for Later<T> {
            type Output = Later<T>;

            fn $name(self, other: &Later<T>) -> Later<T> {
                both(self, other.clone(), T::$checked)
            }
        }

        impl<T: Arithmetic> $operator<T> for Later<T> {
            type Output = Later<T>;

            fn $name(self, other: T) -> Later<T> {
                with(self, move |one| one.$checked(other))
            }
        }

        impl<T: Arithmetic> $operator<Later<T>> for &Later<T> {
            type Output = Later<T>;

            fn $name(self, other: Later<T>) -> Later<T> {
                both(self.clone(), other, T::$checked)
            }
        }

        impl<T: Arithmetic> $operator<&Later<T>> for &Later<T> {
            type Output = Later<T>;

            fn $name(self, other: &Later<T>) -> Later<T> {
                both(self.clone(), other.clone(), T::$checked)
            }
        }

        impl<T: Arithmetic> $operator<T> for &Later<T> {
            type Output = Later<T>;

            fn $name(self, other: T) -> Later<T> {
                with(self.clone(), move |one| one.$checked(other))
            }
        }
    )*};
}

operators! {
    Add add add_checked;
    Sub sub sub_checked;
    Mul mul mul_checked;
}

impl<T: Arithmetic> Neg for Later<T> {
    type Output = Later<T>;

    fn neg(self) -> Later<T> {
        with(self, T::neg_checked)
    }
}

impl<T: Arithmetic> Neg for &Later<T> {
    type Output = Later<T>;

    fn neg(self) -> Later<T> {
        with(self.clone(), T::neg_checked)
    }
}

macro_rules! arithmetic {
    ($($int:ident)*) => {$(
        impl private::Sealed for $int {}

        impl Arithmetic for $int {
            fn add_checked(self, other: $int) -> Option<$int> {
                self.checked_add(other)
            }

            fn sub_checked(self, other: $int) -> Option<$int> {
                self.checked_sub(other)
            }

            fn mul_checked(self, other: $int) -> Option<$int> {
                self.checked_mul(other)
            }

            fn neg_checked(self) -> Option<$int> {
                self.checked_neg()
            }

            fn add_wrapping(self, other: $int) -> $int {
                self.wrapping_add(other)
            }

            fn sub_wrapping(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }

            fn mul_wrapping(self, other: $int) -> $int {
                self.wrapping_mul(other)
            }
        }

        numbers_first! { $int Add add add_checked Sub sub sub_checked Mul mul mul_checked }
    )*};
}

macro_rules! numbers_first {
    ($int:ident $($operator:ident $name:ident $checked:ident)*) => {$(
        impl $operator<Later<$int>> for $int {
            type Output = Later<$int>;

            fn $name(self, other: Later<$int>) -> Later<$int> {
                with(other, move |other| self.$checked(other))
            }
        }

        impl $operator<&Later<$int>> for $int {
            type Output = Later<$int>;

            fn $name(self, other: &Later<$int>) -> Later<$int> {
                with(other.clone(), move |other| self.$checked(other))
            }
        }
    )*};
}

arithmetic! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
