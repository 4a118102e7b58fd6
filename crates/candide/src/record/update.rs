//! Updates as data: what a transaction wants done to a unit, evaluated when its version is fixed.
//!
//! An update never sees the row when it is made. It becomes [`Op`]s in the write set, with operands
//! in an arena; at commit, under the lock, each is evaluated against the words as they are then.
//! Built-in operations stay data, so they can be combined, logged and shipped; a user's own is a
//! small plain value and a function.

use super::column::{Place, Updatable};
use super::layout::key_of;
use super::{
    CellAt, Column, ColumnKind, Field, Key, KeyPacking, Number, Projection, Record, RecordAt, Unit,
    Words,
};
use crate::error::Abort;
use crate::sync::{AtomicU64, Ordering, read_as_is, write_as_is};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// What an operation does to its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Replaces them.
    Set,
    /// Adds, refusing to overflow.
    Add,
    /// Subtracts, refusing to overflow.
    Sub,
    /// Adds, going round at the ends of the range.
    WrappingAdd,
    /// Subtracts, going round at the ends of the range.
    WrappingSub,
    /// Raises to at least the operand.
    Max,
    /// Lowers to at most the operand.
    Min,
    /// Runs a user's updater over the whole unit.
    User,
    /// Changes no word: the row ceases to exist.
    Delete,
}

/// One operation on a unit.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub(crate) code: Code,
    /// Of numbers: whether negative values exist.
    pub(crate) signed: bool,
    /// Of columns of less than a word: their place in it.
    pub(crate) shift: u8,
    /// Which guards the operands carry.
    pub(crate) at_least: bool,
    pub(crate) at_most: bool,
    /// Unshifted bits of the column.
    pub(crate) mask: u64,
    /// Position within the unit.
    pub(crate) word: u16,
    pub(crate) words: u16,
    /// Where the operands begin in the arena: the words to set; or the number and its two bounds.
    /// Of a user's updater: its number.
    pub(crate) operand: u32,
}

/// Operand words of an arithmetic operation: the number, the lower bound, the upper bound.
pub(crate) const NUMBER_OPERANDS: usize = 3;

impl Op {
    /// The operation that ends a row's existence.
    pub(crate) const DELETE: Op = Op {
        code: Code::Delete,
        signed: false,
        shift: 0,
        at_least: false,
        at_most: false,
        mask: u64::MAX,
        word: 0,
        words: 0,
        operand: 0,
    };

    /// The operation that sets words, without its operands.
    pub(crate) fn set_words(word: u16, words: u16) -> Op {
        Op { code: Code::Set, word, words, ..Op::DELETE }
    }

    /// Whether it replaces whole words (or none) whatever they were, and so can never fail.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.code, Code::Set | Code::Delete)
            && self.mask == u64::MAX
            && !self.at_least
            && !self.at_most
    }

    #[inline]
    pub(crate) fn is_user(&self) -> bool {
        self.code == Code::User
    }

    #[inline]
    pub(crate) fn is_delete(&self) -> bool {
        self.code == Code::Delete
    }

    /// Between which words of a unit, which has so many, those lie that it changes.
    #[inline]
    pub(crate) fn changed(&self, unit_words: usize) -> (u16, u16) {
        if self.is_user() { (0, unit_words as u16) } else { (self.word, self.word + self.words) }
    }

    /// Whether it works on words of another operation on the same unit.
    pub(crate) fn overlaps(&self, other: &Op) -> bool {
        self.is_user()
            || self.word < other.word + other.words && other.word < self.word + self.words
    }

    /// The one word that this operation, which is neither plain nor a user's, makes of `current`.
    #[inline]
    pub(crate) fn compute(&self, operands: &[u64], current: u64) -> Result<u64, Abort> {
        if self.code == Code::Set && !self.at_least && !self.at_most {
            return Ok(
                current & !(self.mask << self.shift) | (operands[0] & self.mask) << self.shift
            );
        }
        let old = self.widen(current >> self.shift);
        let operand = self.widen(operands[0]);
        let new = match self.code {
            Code::Set => operand,
            Code::Add => old + operand,
            Code::Sub => old - operand,
            Code::WrappingAdd => self.widen((current >> self.shift).wrapping_add(operands[0])),
            Code::WrappingSub => self.widen((current >> self.shift).wrapping_sub(operands[0])),
            Code::Max => old.max(operand),
            Code::Min => old.min(operand),
            Code::User | Code::Delete => unreachable!("neither computes one word"),
        };
        // Guards first: who asks for at least nothing of an unsigned column means what is below its
        // range, too.
        if self.at_least && new < self.widen(operands[1])
            || self.at_most && new > self.widen(operands[2])
        {
            return Err(Abort::Guard);
        }
        if self.widen(new as u64) != new {
            return Err(Abort::Overflow);
        }
        Ok(current & !(self.mask << self.shift) | (new as u64 & self.mask) << self.shift)
    }

    /// The number in the low bits of `word`.
    #[inline]
    fn widen(&self, word: u64) -> i128 {
        let word = word & self.mask;
        let sign = self.mask ^ self.mask >> 1;
        if self.signed && word & sign != 0 {
            i128::from((word | !self.mask) as i64)
        } else {
            i128::from(word)
        }
    }
}

/// Takes the operations an update or an assignment consists of. Implemented by a transaction.
pub trait Sink {
    /// Sets the words at `place` to `word(0)`, `word(1)`, ….
    #[doc(hidden)]
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort>;

    /// Computes the number at `place` anew.
    #[doc(hidden)]
    fn compute(&mut self, place: Place, signed: bool, arithmetic: Arithmetic) -> Result<(), Abort>;
}

/// A computation on one number.
#[derive(Debug, Clone, Copy)]
pub struct Arithmetic {
    pub(crate) code: Code,
    pub(crate) operand: u64,
    pub(crate) at_least: Option<u64>,
    pub(crate) at_most: Option<u64>,
}

/// A commit-time update: blind, so that it conflicts with nobody who does not look.
///
/// Column updates, made by [`Column::set`], [`Column::add`] and their like, and tuples of updates.
/// A user's own computation is an [`Updater`].
pub trait Update<R: Record>: private::Sealed {
    /// Hands its operations over, in order.
    #[doc(hidden)]
    fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort>;
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
    /// Bounds as words: only numbers have them, and values of other types may be large.
    at_least: Option<u64>,
    at_most: Option<u64>,
}

/// Commit-time updates, of columns that no index keeps.
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

    /// Sets the column to `value`.
    pub fn set(self, value: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
    {
        self.update(Code::Set, value)
    }

    /// Adds `summand`. If the sum is out of the type's range, the transaction fails with
    /// [`Abort::Overflow`].
    #[expect(
        clippy::should_implement_trait,
        reason = "`column + 1` would not say that it is an update"
    )]
    pub fn add(self, summand: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Number,
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
        T: Number,
    {
        self.update(Code::Sub, subtrahend)
    }

    /// Adds `summand`, going on from the other end of the type's range where that ends: a counter
    /// that cannot fail. Under [`Mvto`](crate::Mvto) such updates neither wait for one another nor
    /// make one another start over, until sixteen have been put off: the next one applies them,
    /// like any other update.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Page { #[key] id: u32, hits: u8 }
    /// # let db = Database::new();
    /// # let pages = db.table::<Page>("pages")?;
    /// db.run(|tx| pages.insert(tx, Page { id: 1, hits: 250 }))?;
    /// db.run(|tx| pages.update(tx, &1, Page::HITS.wrapping_add(10)))?;
    /// assert_eq!(db.run(|tx| pages.read(tx, &1, Page::HITS)), Ok::<_, Abort>(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrapping_add(self, summand: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Number,
    {
        self.update(Code::WrappingAdd, summand)
    }

    /// Subtracts `subtrahend`, going on from the other end of the type's range where that ends; see
    /// [`Column::wrapping_add`].
    pub fn wrapping_sub(self, subtrahend: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Number,
    {
        self.update(Code::WrappingSub, subtrahend)
    }

    /// Raises the column to `floor` if it is lower.
    pub fn max(self, floor: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Number,
    {
        self.update(Code::Max, floor)
    }

    /// Lowers the column to `ceiling` if it is higher.
    pub fn min(self, ceiling: T) -> ColumnUpdate<R, T>
    where
        A: Updatable,
        T: Number,
    {
        self.update(Code::Min, ceiling)
    }
}

impl<R, T: Number> ColumnUpdate<R, T> {
    /// Guards the update: if the new value is below `bound`, the transaction fails with
    /// [`Abort::Guard`] and has no effect.
    #[must_use]
    pub fn at_least(self, bound: T) -> ColumnUpdate<R, T> {
        ColumnUpdate { at_least: Some(bound.word(0)), ..self }
    }

    /// Guards the update: if the new value is above `bound`, the transaction fails with
    /// [`Abort::Guard`] and has no effect.
    #[must_use]
    pub fn at_most(self, bound: T) -> ColumnUpdate<R, T> {
        ColumnUpdate { at_most: Some(bound.word(0)), ..self }
    }
}

impl<R: Record, T: Field> Update<R> for ColumnUpdate<R, T> {
    #[inline(always)]
    fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort> {
        // Of these the compiler knows the type's own, which the place repeats.
        let place = Place { words: T::WORDS as u16, mask: Column::<R, T>::MASK, ..self.place };
        if self.code == Code::Set && self.at_least.is_none() && self.at_most.is_none() {
            return sink.set(place, |index| self.operand.word(index));
        }
        let Self { code, at_least, at_most, .. } = *self;
        let arithmetic = Arithmetic { code, operand: self.operand.word(0), at_least, at_most };
        sink.compute(place, T::SIGNED, arithmetic)
    }
}

macro_rules! tuple_updates {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<R: Record, $($name: Update<R>),+> Update<R> for ($($name,)+) {
            #[inline(always)]
            fn stage(&self, sink: &mut impl Sink) -> Result<(), Abort> {
                $(self.$index.stage(sink)?;)+
                Ok(())
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

/// An updater found that its update must not happen; the transaction fails with [`Abort::Guard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// A user's own commit-time update: a small plain value, and what it does to some columns of one
/// group.
///
/// `apply` runs when the transaction commits, on the row as it then is, or earlier if the
/// transaction reads what it has updated, or later, on whichever thread comes to need the row, if
/// it is [total](Updater::TOTAL); possibly more than once. It must depend on nothing but its value
/// and its argument, and must not use the database: others are kept from the row while it runs. If
/// it panics, the transaction has no effect and the panic goes on to the caller of `run`, unless
/// the transaction is over by then.
pub trait Updater<R: Record>: Copy + Send + Sync + 'static {
    /// The columns it reads and writes; they lie in one group, and no index keeps any of them. This
    /// compiles only without the attribute `#[index]`:
    ///
    /// ```compile_fail,E0080
    /// use candide::{Column, Database, Indexed, Record, Refused, Updater};
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
    /// db.run(|tx| accounts.update_with(tx, &1, Disown))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    type Target: Projection<R>;

    /// Whether `apply` succeeds on every value: it neither refuses nor panics. Then
    /// [`Mvto`](crate::Mvto) may put it off, as it does with updates of columns that cannot fail:
    /// the transaction commits without a look at the row, and whoever needs the row next applies
    /// it. There has to be room for that: a value of 8 bytes beside a group of as many is put off,
    /// one of 48 beside a group of 40.
    ///
    /// An updater that fails all the same is an error in the program. If its transaction can still
    /// be told, that ends in a panic, without effect: under all other protocols, and also under
    /// `Mvto` if it reads what it has updated, does something else to the same group that may fail,
    /// has inserted or put the row itself, or ends in an error of its closure; if there was no
    /// room; or if many updates of the row have been put off already. Otherwise the transaction has
    /// committed, and nobody is left to tell. Then the panic hook reports the panic, on the thread
    /// that has come to apply the updater, which goes on undisturbed; and the row is as if this
    /// update had not been made, and all others had. The hook must not use the database, no more
    /// than the updater.
    const TOTAL: bool = false;

    /// The columns it reads and writes.
    fn target(&self) -> Self::Target;

    /// The update.
    ///
    /// # Errors
    /// [`Refused`], if the update must not happen. Of an updater that is declared total that is an
    /// error in the program, and a panic: the transaction ends in it, without effect, or else only
    /// this update has none ([`Updater::TOTAL`]).
    fn apply(&self, value: &mut <Self::Target as Projection<R>>::Value) -> Result<(), Refused>;
}

/// VersionReservation for an updater's value.
const USER_WORDS: usize = 6;
const _: () = assert!(USER_WORDS <= 7, "there are three bits for the number");
/// Where what is put off says so.
const SPLIT_SHIFT: u32 = 11;
const PACKED_SHIFT: u32 = 12;
const WORDS_SHIFT: u32 = 13;
const ADDRESS_SHIFT: u32 = 16;
type UserValue = [MaybeUninit<u64>; USER_WORDS];

type Run = unsafe fn(&UserUpdate, RecordAt, &mut [u64]) -> Result<(), Abort>;

/// An updater whose type has been forgotten.
#[derive(Clone, Copy)]
pub(crate) struct UserUpdate {
    value: UserValue,
    /// So many of them the value has.
    value_words: u8,
    unit: Unit,
    /// Whether the keys of the records are packed.
    is_packed: bool,
    is_total: bool,
    run: Run,
}

// SAFETY: the value was a `U: Updater`, and updaters are `Send`.
unsafe impl Send for UserUpdate {}

impl UserUpdate {
    /// Forgets the type of an updater that is to be applied to `unit` of records whose keys are
    /// packed, or are not.
    pub(crate) fn new<R: Record, U: Updater<R>>(
        updater: U,
        unit: Unit,
        is_packed: bool,
    ) -> UserUpdate {
        const {
            assert!(size_of::<U>() <= size_of::<UserValue>(), "an updater has at most 48 bytes");
            assert!(
                align_of::<U>() <= align_of::<UserValue>(),
                "an updater is aligned to at most 8 bytes"
            );
            assert!(
                !U::Target::INDEXED,
                "an updater changes no indexed columns; they are changed by `modify` or `put`"
            );
        }
        let mut value: UserValue = [MaybeUninit::uninit(); USER_WORDS];
        // SAFETY: `value` is large and aligned enough (asserted above), and `U: Copy` needs no
        // drop.
        unsafe { value.as_mut_ptr().cast::<U>().write(updater) };
        let value_words = const { size_of::<U>().div_ceil(size_of::<u64>()) as u8 };
        UserUpdate { value, value_words, unit, is_packed, is_total: U::TOTAL, run: run::<R, U> }
    }

    /// As how many words it can be put off; `None` if it cannot, or is not to be.
    pub(crate) fn words_put_off(&self) -> Option<usize> {
        let fits = self.address() >> (u64::BITS - ADDRESS_SHIFT) == 0;
        (self.is_total && fits).then_some(1 + usize::from(self.value_words))
    }

    /// Writes it down, to be applied later; gives how many words that took, as
    /// [`UserUpdate::words_put_off`] said.
    ///
    /// ```text
    /// | function: 48 | words: 3 | packed: 1 | split: 1 | 0: 3 | code: 8 |   | value |   ...
    /// ```
    ///
    /// # Safety
    /// These words are the caller's, as for [`write_as_is`].
    pub(super) unsafe fn write(&self, code: u8, words: &[AtomicU64]) -> usize {
        let flags = u64::from(self.is_packed) << PACKED_SHIFT
            | u64::from(self.unit.is_split()) << SPLIT_SHIFT;
        let head =
            self.address() << ADDRESS_SHIFT | u64::from(self.value_words) << WORDS_SHIFT | flags;
        words[0].store(head | u64::from(code), Ordering::Relaxed);
        for (word, value) in words[1..][..usize::from(self.value_words)].iter().zip(self.value) {
            // SAFETY: the words are the caller's, by this function's contract. Where words hold
            // only numbers, updaters are those of this crate's tests, whose bits are numbers.
            unsafe { write_as_is(word, value) };
        }
        1 + usize::from(self.value_words)
    }

    /// What was written down with this head, for the unit at `at`; and what comes behind it.
    ///
    /// # Safety
    /// [`UserUpdate::write`] has written `head` and what comes first in `words`, of an updater of
    /// this unit, and nobody writes these words meanwhile, as for [`read_as_is`].
    pub(super) unsafe fn read<'a>(
        head: u64,
        words: &'a [AtomicU64],
        at: &CellAt,
    ) -> (UserUpdate, &'a [AtomicU64]) {
        let has = |shift: u32| head >> shift & 1 != 0;
        let value_words = (head >> WORDS_SHIFT) as u8 & 7;
        let (own, behind) = words.split_at(usize::from(value_words));
        let mut value: UserValue = [MaybeUninit::uninit(); USER_WORDS];
        for (value, word) in value.iter_mut().zip(own) {
            // SAFETY: nobody writes these words, by this function's contract.
            *value = unsafe { read_as_is(word) };
        }
        let run = std::ptr::with_exposed_provenance::<()>((head >> ADDRESS_SHIFT) as usize);
        // SAFETY: `write` took this address from a `Run`, and a function stays where it is.
        let run = unsafe { std::mem::transmute::<*const (), Run>(run) };
        let unit = at.unit_of(has(SPLIT_SHIFT));
        (
            UserUpdate {
                value,
                value_words,
                unit,
                is_packed: has(PACKED_SHIFT),
                is_total: true,
                run,
            },
            behind,
        )
    }

    fn address(&self) -> u64 {
        (self.run as *const ()).expose_provenance() as u64
    }

    /// Applies the updater to the image of its unit.
    pub(crate) fn apply(&self, record: RecordAt, image: &mut [u64]) -> Result<(), Abort> {
        // SAFETY: `run` was instantiated in `new` for the type whose value is in `value`; both came
        // from there, if by way of `write`.
        unsafe { (self.run)(self, record, image) }
    }
}

/// # Safety
/// The value of `update` is a `U`.
unsafe fn run<R: Record, U: Updater<R>>(
    update: &UserUpdate,
    record: RecordAt,
    image: &mut [u64],
) -> Result<(), Abort> {
    // SAFETY: holds by this function's contract.
    let updater = unsafe { update.value.as_ptr().cast::<U>().read() };
    let unit = update.unit;
    let target = updater.target();
    let mut words = U::Target::EMPTY;
    target.copy(unit, Words::Own(image), &mut words);
    let packing = if update.is_packed { KeyPacking::new(R::Key::WIDTHS) } else { None };
    let key = key_of(record, packing);
    let mut columns = target.value(&key, &words);
    if let Err(Refused) = updater.apply(&mut columns) {
        assert!(!U::TOTAL, "an updater that is declared total has refused");
        return Err(Abort::Guard);
    }
    target.assign(&key, &columns, &mut ImageSink::<R>::new(unit, image))
}

/// Sets words of an image.
pub(crate) struct ImageSink<'a, R> {
    unit: Unit,
    image: &'a mut [u64],
    record: PhantomData<R>,
}

impl<'a, R> ImageSink<'a, R> {
    /// Sets words of an image of `unit`.
    pub(crate) fn new(unit: Unit, image: &'a mut [u64]) -> ImageSink<'a, R> {
        ImageSink { unit, image, record: std::marker::PhantomData }
    }
}

/// Has a projection give its words, and keeps none: what is the user's may panic then, and not when
/// half of them have been staged.
pub(crate) struct DryRun;

impl Sink for DryRun {
    #[inline(always)]
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
    fn arithmetic_stays_within_its_bits() {
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
}
