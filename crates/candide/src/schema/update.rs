//! Updates as data: operations of a transaction on a unit, evaluated when the unit's new version is
//! fixed.
//!
//! Staging an update does not read the row. The update becomes [`Op`]s in the write set, with
//! operands in an arena. At commit, under the lock, each operation is evaluated on the words as
//! they are then. Built-in operations stay data, so they can be combined, logged and shipped. A
//! user's own operation is a small plain value and a function.

use super::column::Updatable;
use super::column::{Column, ColumnKind, Projection};
use super::field::{Buffer, Field};
use super::field_type::FieldType;
use super::field_value::FieldValue;
use super::group::start_of;
use super::long::LongSink;
use super::operation::{Arithmetic, Code, Sink};
use super::place::{LongColumn, Place};
use super::record::Record;
use super::record::RowMeta;
use super::summand::Summand;
use super::unit::Unit;
use crate::error::Abort;
use std::marker::PhantomData;

/// A commit-time update: blind, so that it conflicts only with transactions that read the row.
///
/// Implemented by column updates, which [`Column::set`], [`Column::add`] and similar functions
/// make, and by tuples of updates. A user's own computation is an [`Updater`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an update of columns of `{R}`",
    label = "expected an update, such as `{R}::COLUMN.set(value)` or `{R}::COLUMN.add(1)`",
    note = "`put` replaces a whole row; `modify` takes a closure, which changes columns that the transaction reads",
    note = "several columns are updated by a tuple of at most six updates"
)]
pub trait Update<R: Record>: private::Sealed {
    /// Whether the update may set a column of any length.
    #[doc(hidden)]
    const LONG: bool = false;

    /// Whether the update is one operation on one column of any length.
    #[doc(hidden)]
    const SOLE_LONG: bool = false;

    /// Passes the update's operations to `sink`, in order.
    #[doc(hidden)]
    fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort>;

    /// Returns the place of the first column that is set to a text that does not fit. An update
    /// with such a column is not staged.
    #[doc(hidden)]
    fn misfit(&self) -> Option<Place>;
}

mod private {
    pub trait Sealed {}
    impl<R, T> Sealed for super::ColumnUpdate<R, T> {}
}

/// An update of one column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnUpdate<R, T> {
    place: Place,
    row: PhantomData<fn(R)>,
    code: Code,
    operand: T,
    /// The bounds of guards, as words: only numbers have bounds, and values of other types may be
    /// large.
    at_least: Option<[u64; 2]>,
    at_most: Option<[u64; 2]>,
}

/// Commit-time updates of columns that no index contains.
impl<R: Record, T: Field, A: ColumnKind> Column<R, T, A> {
    fn update(self, code: Code, operand: T) -> ColumnUpdate<R, T> {
        ColumnUpdate {
            place: self.place(),
            row: PhantomData,
            code,
            operand,
            at_least: None,
            at_most: None,
        }
    }

    /// Sets the column to `value`. A text is also given as `&str` or `String`, bytes as an array.
    /// If a text does not fit, the operation that takes the update fails with
    /// [`Abort::TextTooLong`].
    #[inline]
    pub fn set(self, value: impl FieldValue<T>) -> ColumnUpdate<R, T>
    where
        A: Updatable,
    {
        match value.into_value() {
            Some(value) => self.update(Code::Set, value),
            // An update with this code is refused before it is staged: it does not fit.
            None => self.update(Code::User, T::from_buffer(&T::Buffer::ZERO)),
        }
    }
}

/// Commit-time updates of columns of integers that no index contains.
impl<R: Record, T, A: ColumnKind> Column<R, T, A> {
    /// Adds `summand`. If the sum is out of the type's range, the transaction fails with
    /// [`Abort::Overflow`].
    #[expect(
        clippy::should_implement_trait,
        reason = "`column + 1` would not say that it is an update"
    )]
    pub fn add(self, summand: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::Add, summand)
    }

    /// Subtracts `subtrahend`. If the difference is out of the type's range, the transaction fails
    /// with [`Abort::Overflow`].
    #[expect(
        clippy::should_implement_trait,
        reason = "`column - 1` would not say that it is an update"
    )]
    pub fn sub(self, subtrahend: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::Sub, subtrahend)
    }

    /// Adds `summand`, and wraps around at the ends of the type's range, so the update cannot fail.
    /// Under [`Mvto`](crate::Mvto) such updates of numbers of at most 64 bits are deferred, so they
    /// neither wait for one another nor make one another start over. After sixteen have been
    /// deferred, the next one applies them, as any other update does. In a database with files no
    /// update is deferred, since the log takes results.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Page { #[key] id: u32, hits: u8 }
    /// # let db = Database::new();
    /// # let pages = db.table::<Page>("pages")?;
    /// db.run(|tx| pages.insert(tx, Page { id: 1, hits: 250 }))?;
    /// db.run(|tx| pages.update(tx, 1, Page::HITS.wrapping_add(10)))?;
    /// assert_eq!(db.run(|tx| pages.read(tx, 1, Page::HITS)), Ok(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrapping_add(self, summand: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::WrappingAdd, summand)
    }

    /// Subtracts `subtrahend`, and wraps around at the ends of the type's range; see
    /// [`Column::wrapping_add`].
    pub fn wrapping_sub(self, subtrahend: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::WrappingSub, subtrahend)
    }

    /// Raises the column to `floor` if it is lower.
    pub fn max(self, floor: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::Max, floor)
    }

    /// Lowers the column to `ceiling` if it is higher.
    pub fn min(self, ceiling: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Summand,
    {
        self.update(Code::Min, ceiling)
    }
}

/// Returns the words of a value of one or two words.
#[cfg_attr(not(debug_assertions), inline(always))]
fn two_words<T: Field>(value: &T) -> [u64; 2] {
    [value.word(0), if T::WORDS == 2 { value.word(1) } else { 0 }]
}

impl<R, T: Summand> ColumnUpdate<R, T> {
    /// Guards the update: if the new value is below `bound`, the transaction fails with
    /// [`Abort::Guard`] and has no effect.
    #[must_use]
    pub fn at_least(self, bound: T) -> ColumnUpdate<R, T> {
        ColumnUpdate { at_least: Some(two_words(&bound)), ..self }
    }

    /// Guards the update: if the new value is above `bound`, the transaction fails with
    /// [`Abort::Guard`] and has no effect.
    #[must_use]
    pub fn at_most(self, bound: T) -> ColumnUpdate<R, T> {
        ColumnUpdate { at_most: Some(two_words(&bound)), ..self }
    }
}

impl<R: Record, T: Field> Update<R> for ColumnUpdate<R, T> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort> {
        // The place repeats the constants of `T`, so that the compiler knows them.
        let place = Place { words: T::WORDS as u16, mask: Column::<R, T>::MASK, ..self.place };
        if self.code == Code::Set && self.at_least.is_none() && self.at_most.is_none() {
            return sink.set(place, |index| self.operand.word(index));
        }
        let Self { code, at_least, at_most, .. } = *self;
        let operand = two_words(&self.operand);
        let arithmetic = Arithmetic { code, operand, at_least, at_most };
        sink.compute(place, T::SIGNED, arithmetic)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn misfit(&self) -> Option<Place> {
        // Only a text may not fit. For other types this is a constant.
        let misfits = matches!(T::TYPE, FieldType::ShortText { .. }) && self.code == Code::User;
        misfits.then_some(self.place)
    }
}

/// An update that sets a column whose values have any length, or that guards it, as
/// [`Column::set`](crate::Column::set) and [`Column::equals`](crate::Column::equals) make it.
///
/// The operation that takes the update asks the given value for its bytes more than once. A value
/// that then has none, or has some although it had none before, may make the operation panic.
pub struct LongUpdate<R, V> {
    place: Place,
    name: &'static str,
    value: V,
    bytes: LongBytes<V>,
    is_guard: bool,
    row: PhantomData<fn(R)>,
}

impl<R, V: Clone> Clone for LongUpdate<R, V> {
    fn clone(&self) -> Self {
        let LongUpdate { place, name, bytes, is_guard, row, .. } = *self;
        LongUpdate { place, name, value: self.value.clone(), bytes, is_guard, row }
    }
}

impl<R, V: Copy> Copy for LongUpdate<R, V> {}

/// A function that returns the bytes of a value, `None` of the empty one and of none of an option;
/// or the reason why it has none.
type LongBytes<V> = fn(&V) -> Result<Option<&[u8]>, &str>;

impl<R, V> std::fmt::Debug for LongUpdate<R, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongUpdate").field("column", &self.name).finish_non_exhaustive()
    }
}

impl<R, V> LongUpdate<R, V> {
    pub(crate) fn new(
        (place, name): (Place, &'static str),
        value: V,
        bytes: LongBytes<V>,
    ) -> LongUpdate<R, V> {
        LongUpdate { place, name, value, bytes, is_guard: false, row: PhantomData }
    }

    /// Returns the guard that the column has the value.
    pub(crate) fn guard(self) -> LongUpdate<R, V> {
        LongUpdate { is_guard: true, ..self }
    }
}

impl<R, V> private::Sealed for LongUpdate<R, V> {}

impl<R: Record, V> Update<R> for LongUpdate<R, V> {
    const LONG: bool = true;
    const SOLE_LONG: bool = true;

    #[inline]
    fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort> {
        let Place { group, word, .. } = self.place;
        let word = start_of(R::GROUPS, group.into()) + usize::from(word);
        let column = LongColumn { word, name: self.name };
        let word = match (self.bytes)(&self.value) {
            Ok(Some(bytes)) => sink.keep(column, bytes)?,
            Ok(None) => 0,
            Err(problem) => return Err(sink.refuse(column, problem.to_owned())),
        };
        match self.is_guard {
            true => sink.guard(self.place, word),
            false => sink.set(self.place, |_| word),
        }
    }

    fn misfit(&self) -> Option<Place> {
        None
    }
}

macro_rules! tuple_updates {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<R: Record, $($name: Update<R>),+> Update<R> for ($($name,)+) {
            const LONG: bool = $($name::LONG)||+;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort> {
                $(self.$index.stage(sink)?;)+
                Ok(())
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn misfit(&self) -> Option<Place> {
                None $(.or_else(|| self.$index.misfit()))+
            }
        }
    )*};
}

tuple_updates! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}

/// The refusal of an updater: its update must not happen, and the transaction fails with
/// [`Abort::Guard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// A user's own commit-time update: a small plain value, and a function on some columns of one
/// group.
///
/// `apply` runs when the transaction commits, on the row at that time; or earlier, if the
/// transaction reads the updated columns; or later, on any thread that needs the row, if the
/// updater is [total](Updater::TOTAL). `apply` may run more than once. `apply` must depend on
/// nothing but `self` and `value`, and must not use the database: the row is locked meanwhile. If
/// `apply` panics before the transaction has ended, the transaction has no effect and the panic
/// continues in the caller of `run`.
pub trait Updater<R: Record>: Copy + Send + Sync + 'static {
    /// The columns that the updater reads and writes. The columns lie in one group, and no index
    /// contains any of them. The following compiles only without the attribute `#[index]`:
    ///
    /// ```compile_fail,E0080
    /// use candide::schema::{Indexed, Refused, Updater};
    /// use candide::{Column, Database, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Account {
    ///     #[key]
    ///     id: u64,
    ///     #[index]
    ///     owner: u32,
    /// }
    ///
    /// #[derive(Clone, Copy)]
    /// struct Disown;
    ///
    /// impl Updater<Account> for Disown {
    ///     type Target = Column<Account, u32, Indexed>;
    ///
    ///     fn target(&self) -> Self::Target {
    ///         Account::OWNER
    ///     }
    ///     fn apply(&self, owner: &mut u32) -> Result<(), Refused> {
    ///         *owner = 0;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let db = Database::new();
    /// let accounts = db.table::<Account>("accounts")?;
    /// db.run(|tx| accounts.update_with(tx, 1, Disown))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    type Target: Projection<R>;

    /// Whether `apply` succeeds on every value: it neither refuses nor panics. If so,
    /// [`Mvto`](crate::Mvto) may defer the updater, like column updates that cannot fail. The
    /// transaction then commits without reading the row, and the next transaction that needs the
    /// row applies the updater; but not in a database with files. Deferring needs room: an updater
    /// of 8 bytes can be deferred on a group of 8 bytes, and one of 48 bytes on a group of 40
    /// bytes.
    ///
    /// If a total updater fails nevertheless, that is an error in the program. If its transaction
    /// has not committed yet, the transaction ends in a panic, without effect. Under other
    /// protocols the transaction never has committed yet. Under `Mvto` it is the case in these
    /// situations:
    /// * The transaction reads the updated columns, changes the same group in another way that may
    ///   fail, has inserted or put the row itself, or ends in an error of its closure.
    /// * There was no room, or many updates of the row had been deferred already.
    ///
    /// If the transaction has committed, the panic hook reports the panic on the thread that
    /// applies the updater, and that thread continues. The row is as if all other updates had been
    /// made, but not this one. Neither the hook nor the updater may use the database.
    const TOTAL: bool = false;

    /// Returns the columns that the updater reads and writes.
    fn target(&self) -> Self::Target;

    /// Applies the update to `value`, the columns of the row.
    ///
    /// # Errors
    /// [`Refused`], if the update must not happen. If the updater is declared total, a refusal is
    /// an error in the program and leads to a panic: either the transaction has no effect, or only
    /// this update has none ([`Updater::TOTAL`]).
    fn apply(&self, value: &mut <Self::Target as Projection<R>>::Value) -> Result<(), Refused>;
}

/// A sink that sets words of an image.
pub(crate) struct ImageSink<'a, R> {
    unit: Unit,
    image: &'a mut [u64],
    record: PhantomData<R>,
}

impl<'a, R> ImageSink<'a, R> {
    /// Returns a sink that sets words of an image of `unit`.
    pub(crate) fn new(unit: Unit, image: &'a mut [u64]) -> ImageSink<'a, R> {
        ImageSink { unit, image, record: std::marker::PhantomData }
    }
}

/// A sink that only evaluates the words. If the user's code panics, it panics here, before any word
/// has been staged.
pub(crate) struct DryRun;

impl LongSink for DryRun {
    fn keep(&mut self, _: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        Ok(0)
    }
}

impl Sink for DryRun {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort> {
        (0..usize::from(place.words)).for_each(|index| _ = word(index));
        Ok(())
    }

    fn compute(
        &mut self,
        _place: Place,
        _signed: bool,
        _arithmetic: Arithmetic,
    ) -> Result<(), Abort> {
        Ok(())
    }
}

/// Leaves columns of any length empty, since no updater and no step has them.
impl<R> LongSink for ImageSink<'_, R> {
    fn keep(&mut self, _: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        Ok(0)
    }
}

impl<R: Record> Sink for ImageSink<'_, R> {
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort> {
        let first = self.unit.offset_of(R::GROUPS, place.group) + usize::from(place.word);
        for index in 0..usize::from(place.words) {
            let mask = place.mask << place.shift;
            self.image[first + index] =
                self.image[first + index] & !mask | word(index) << place.shift & mask;
        }
        Ok(())
    }

    fn compute(&mut self, _: Place, _: bool, _: Arithmetic) -> Result<(), Abort> {
        unreachable!("assigning a value only sets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Op;

    fn op(code: Code, signed: bool, bits: u32, shift: u8) -> Op {
        let mask = u64::MAX >> (64 - bits);
        Op {
            code,
            signed,
            shift,
            at_least: true,
            at_most: false,
            mask,
            word: 0,
            words: 1,
            operand: 0,
        }
    }

    #[test]
    fn updates_by_arithmetic_stay_within_their_column() {
        let add = op(Code::Add, true, 16, 16);
        let word = 0xaaaa_bbbb_7ffe_cccc;
        assert_eq!(add.compute(&[1, 0, 0], word), Ok(0xaaaa_bbbb_7fff_cccc));
        assert_eq!(add.compute(&[2, 0, 0], word), Err(Abort::Overflow));
        assert_eq!(add.compute(&[0xffff, 0, 0], word), Ok(0xaaaa_bbbb_7ffd_cccc));
    }

    #[test]
    fn guards_compare_as_numbers() {
        let sub = op(Code::Sub, true, 64, 0);
        assert_eq!(sub.compute(&[5, 0, 0], 5), Ok(0));
        assert_eq!(sub.compute(&[6, 0, 0], 5), Err(Abort::Guard));
        assert_eq!(sub.compute(&[6, -1i64 as u64, 0], 5), Ok(-1i64 as u64));
        let unsigned = op(Code::Sub, false, 64, 0);
        assert_eq!(unsigned.compute(&[6, 0, 0], 5), Err(Abort::Guard));
        assert_eq!(Op { at_least: false, ..unsigned }.compute(&[6, 0, 0], 5), Err(Abort::Overflow));
        assert_eq!(op(Code::Max, false, 8, 0).compute(&[9, 0, 0], 7), Ok(9));
        assert_eq!(
            op(Code::Min, true, 64, 0).compute(&[-9i64 as u64, i64::MIN as u64, 0], 7),
            Ok(-9i64 as u64)
        );
    }

    #[test]
    fn numbers_of_one_word_give_the_same_as_numbers_of_any_size() {
        const CODES: [Code; 7] = [
            Code::Set,
            Code::Add,
            Code::Sub,
            Code::WrappingAdd,
            Code::WrappingSub,
            Code::Max,
            Code::Min,
        ];
        let numbers = |bits: u32| {
            let ends = [0, 1, 2, u64::MAX, u64::MAX - 1, i64::MAX as u64, i64::MIN as u64];
            let narrow = [1 << (bits - 1), (1 << (bits - 1)) - 1, u64::MAX >> (64 - bits)];
            ends.into_iter().chain(narrow)
        };
        let mut small = 0;
        for (bits, shift) in [(1, 63), (8, 5), (31, 0), (32, 32), (63, 1), (64, 0)] {
            for (code, signed) in CODES.into_iter().flat_map(|code| [(code, false), (code, true)]) {
                for (at_least, at_most) in [(false, false), (true, false), (false, true)] {
                    let op = Op { at_least, at_most, ..op(code, signed, bits, shift) };
                    for (operand, current) in
                        numbers(bits).flat_map(|one| numbers(bits).map(move |other| (one, other)))
                    {
                        for bound in numbers(bits) {
                            let operands = [operand, bound, bound];
                            let wide = op.compute_any(&operands, current);
                            let computed = op.compute_small(&operands, current);
                            assert!(
                                computed.is_none_or(|word| wide == Ok(word)),
                                "{op:?}, {operands:x?}, {current:x}: {computed:x?}, not {wide:x?}"
                            );
                            small += usize::from(computed.is_some());
                        }
                    }
                }
            }
        }
        assert!(small > 10_000, "{small} computed without wide numbers");
    }
}
