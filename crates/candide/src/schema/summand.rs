//! Columns that have arithmetic: updates by it, and sums.

#![forbid(unsafe_code)]

use super::field::Field;

/// A type whose columns have updates by arithmetic, and sums: the integers, and structs of one
/// integer that derive [`Key`](crate::Key) or [`Field`](macro@crate::Field).
///
/// ```
/// # use candide::{Database, Record};
/// # #[derive(Record, Clone, Copy)]
/// # struct Account { #[key] id: u64, wei: u128 }
/// # let db = Database::new();
/// # let accounts = db.table::<Account>("accounts")?;
/// db.run(|tx| {
///     accounts.insert_many(tx, (1..=3).map(|id| Account { id, wei: 1 << 100 }))?;
///     accounts.update(tx, 1, Account::WEI.sub(1 << 99).at_least(0))?;
///     assert_eq!(accounts.sum(tx, Account::WEI)?, (3 << 100) - (1 << 99));
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the type `{Self}` has no arithmetic here",
    label = "not an integer",
    note = "columns of integers have `add`, `sub`, `min`, `max` and sums; other columns are changed by `set` and `modify`, and \
            `fold` makes other summaries"
)]
pub trait Summand: Field + private::Sealed {
    /// The type of a sum: `i64` and `u64` for numbers of at most 64 bits, `i128` and `u128` for
    /// those of 128.
    type Sum;
    /// A sum that any number of rows leaves in its range.
    #[doc(hidden)]
    type Total: Copy + Default;

    /// Returns the sum with this number added.
    #[doc(hidden)]
    fn added_to(self, total: Self::Total) -> Self::Total;

    /// Returns the sum, if its type can hold it.
    #[doc(hidden)]
    fn sum_of(total: Self::Total) -> Option<Self::Sum>;
}

mod private {
    pub trait Sealed {}
    impl<T: super::Newtype> Sealed for T {}
    impl Sealed for u128 {}
    impl Sealed for i128 {}

    pub trait OfOneWord {}
    impl<T: super::Newtype> OfOneWord for T {}
}

/// A struct around a field of type [`Newtype::Of`], which derived code implements this for. It has
/// the arithmetic of the field.
pub trait Newtype: Field {
    /// The type of the field.
    type Of: Summand;

    /// Returns the field.
    fn of(&self) -> Self::Of;
}

/// A struct of one number that derives [`Key`](crate::Key) or
/// [`Field`](macro@crate::Field) keeps the number's updates.
#[diagnostic::do_not_recommend]
impl<T: Newtype> Summand for T {
    type Sum = <T::Of as Summand>::Sum;
    type Total = <T::Of as Summand>::Total;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn added_to(self, total: Self::Total) -> Self::Total {
        self.of().added_to(total)
    }

    fn sum_of(total: Self::Total) -> Option<Self::Sum> {
        T::Of::sum_of(total)
    }
}

/// A number of one word: the integers of at most 64 bits. [`Summand`] are all integers.
#[diagnostic::on_unimplemented(
    message = "the type `{Self}` has no arithmetic here",
    label = "not an integer of at most 64 bits",
    note = "columns of integers of at most 64 bits have `add`, `sub`, `min`, `max` and sums; other columns are changed by `set` and `modify`"
)]
pub trait Number: Summand + private::OfOneWord {
    /// Returns the number unchanged.
    #[doc(hidden)]
    fn widen(self) -> i128;
}

/// A struct of one number that derives [`Key`](crate::Key) or [`Field`](macro@crate::Field) is a
/// number, too.
#[diagnostic::do_not_recommend]
impl<T: Newtype> Number for T
where
    T::Of: Number,
{
    fn widen(self) -> i128 {
        self.of().widen()
    }
}

macro_rules! summands {
    ($($int:ty: $sum:ty;)*) => {$(
        impl private::Sealed for $int {}
        impl private::OfOneWord for $int {}

        impl Number for $int {
            fn widen(self) -> i128 {
                self as i128
            }
        }

        impl Summand for $int {
            type Sum = $sum;
            // Fewer than 2^64 numbers of at most 64 bits do not leave the range.
            type Total = i128;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn added_to(self, total: i128) -> i128 {
                total + self.widen()
            }

            fn sum_of(total: i128) -> Option<Self::Sum> {
                total.try_into().ok()
            }
        }
    )*};
}

summands! {
    u8: u64;
    u16: u64;
    u32: u64;
    u64: u64;
    usize: u64;
    i8: i64;
    i16: i64;
    i32: i64;
    i64: i64;
    isize: i64;
}

impl Summand for u128 {
    type Sum = u128;
    /// The low bits, and the number of carries.
    type Total = (u128, i64);

    fn added_to(self, (low, high): (u128, i64)) -> (u128, i64) {
        let (sum, carry) = low.overflowing_add(self);
        (sum, high + i64::from(carry))
    }

    fn sum_of((low, high): (u128, i64)) -> Option<u128> {
        (high == 0).then_some(low)
    }
}

impl Summand for i128 {
    type Sum = i128;
    /// The low bits, and the bits above them.
    type Total = (u128, i64);

    fn added_to(self, (low, high): (u128, i64)) -> (u128, i64) {
        let (sum, carry) = low.overflowing_add(self as u128);
        (sum, high + i64::from(carry) - i64::from(self < 0))
    }

    fn sum_of((low, high): (u128, i64)) -> Option<i128> {
        let sum = low as i128;
        (high == -i64::from(sum < 0)).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum<T: Summand>(numbers: &[T]) -> Option<T::Sum> {
        T::sum_of(numbers.iter().fold(T::Total::default(), |total, number| number.added_to(total)))
    }

    #[test]
    fn sums_are_exact_whatever_the_order_of_the_numbers() {
        assert_eq!(sum(&[u128::MAX - 1, 1]), Some(u128::MAX));
        assert_eq!(sum(&[u128::MAX, 1]), None);
        assert_eq!(sum(&[i128::MAX, 1, -1]), Some(i128::MAX));
        assert_eq!(sum(&[i128::MIN, -1, -5, 6, 7]), Some(i128::MIN + 7));
        assert_eq!(sum(&[i128::MAX, 1]), None);
        assert_eq!(sum(&[i128::MIN, -1]), None);
        assert_eq!(sum(&[-1i128, -2, 1]), Some(-2));
        assert_eq!((sum(&[i64::MAX, 1, -1]), sum(&[u64::MAX, 1])), (Some(i64::MAX), None));
        assert_eq!(sum::<i128>(&[]), Some(0));
    }
}
