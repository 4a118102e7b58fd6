//! Translation of updates and rows into operations in the write set.

#![forbid(unsafe_code)]

use super::{InsertTarget, State};
use crate::access::{Intent, OutcomeNote};
use crate::engine::{Engine, Protocol, TableCore};
use crate::error::Abort;
use crate::record::{RecordAt, UserUpdate, long};
use crate::schema::RowMeta;
use crate::schema::{
    Arithmetic, Buffer, Code, ImageSink, LONG_BYTES_MAX, LongColumn, LongSink, NUMBER_OPERANDS,
    NoLong, Op, Place, Projection, Record, Sink, Unit, Updater, WIDE_OPERANDS, store_in,
};
use std::marker::PhantomData;
use std::slice;

/// The staging of one update of one row.
pub(crate) struct Stager<'a, R, P: Protocol> {
    pub(crate) state: &'a mut State<P>,
    pub(crate) engine: &'a Engine<P>,
    pub(crate) table: &'a TableCore,
    pub(crate) record: RecordAt,
    /// The number of the words that the operation has staged, of those that it has kept.
    pub(crate) next_word: usize,
    pub(crate) row: PhantomData<R>,
}

impl<R: Record, P: Protocol> Stager<'_, R, P> {
    /// Stages an update of the columns at `place`, if the row exists. The caller has already
    /// handled the indexes, once for the whole operation, since an index may be added at any time.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn stage(
        &mut self,
        place: Place,
        op: Op,
        push: impl FnOnce(&mut State<P>) -> u32,
    ) -> Result<(), Abort> {
        let unit = self.table.layout.unit_of(place.group);
        let at = self.table.layout.at(self.record, unit);
        self.state.admit_update(self.engine, at)?;
        let word = place.word + unit.offset_of(R::GROUPS, place.group) as u16;
        let op = Op { word, operand: push(self.state), ..op };
        self.state.stage(self.engine, at, Intent::Update, op)
    }

    /// Keeps the bytes of an operation until the attempt ends: those that `stage` passes. After
    /// that the operation, which passes the same bytes, cannot fail for want of memory when a part
    /// of it has been staged. `seen` has the words that the operation has read, by the columns to
    /// which they belong: bytes that equal those of their column are not kept again.
    pub(crate) fn keep_all(
        &mut self,
        seen: &[(LongColumn, u64)],
        stage: impl FnOnce(&mut Keeping<'_, '_, R, P>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        self.next_word = 0;
        self.state.kept.clear();
        stage(&mut Keeping { stager: self, seen })
    }

    /// Keeps bytes for a column until the attempt ends, and returns the word that has or names
    /// them.
    fn keep_bytes(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort> {
        if bytes.len() > LONG_BYTES_MAX {
            let at = self.table.layout.first_of(self.record);
            let note = OutcomeNote::at(Abort::TextTooLong, at);
            return Err(self.state.refuse_too_long(note, column, bytes.len()));
        }
        self.state.stage_long(self.engine, self.table, bytes)
    }

    #[cold]
    fn refuse_value(&mut self, column: LongColumn, problem: String) -> Abort {
        let note = OutcomeNote::at(Abort::Unencodable, self.table.layout.first_of(self.record));
        self.state.refuse_value(note, column, problem)
    }

    /// Returns the words that [`Stager::keep_all`] has kept, with their columns' places.
    pub(crate) fn kept_words(&self) -> Vec<(usize, u64)> {
        self.state.kept.clone()
    }

    /// Stages a user's updater.
    pub(crate) fn stage_user<U: Updater<R>>(&mut self, updater: U) -> Result<(), Abort> {
        let groups = updater.target().groups();
        let group = groups.trailing_zeros() as u8;
        assert!(groups.is_power_of_two(), "the columns of an updater's target lie in one group");
        if !self.table.indexes.writes_are_plain() {
            self.table.restrictions.check_change(groups)?;
            let mut indexed = false;
            updater.target().places(&mut |place| indexed |= self.table.indexes.covers(place));
            if indexed {
                return Err(Abort::Indexed);
            }
        }
        let unit = self.table.layout.unit_of(group);
        let (mut first, mut end) = (usize::MAX, 0);
        updater.target().runs(unit, &mut |word, count| {
            (first, end) = (first.min(word), end.max(word + count));
        });
        let at = self.table.layout.at(self.record, unit);
        self.state.admit_update(self.engine, at)?;
        let is_packed = self.table.layout.packing::<R::Key>().is_some();
        let operand =
            self.state.writes.push_user(UserUpdate::new::<R, U>(updater, unit, is_packed));
        let words = Op::set_words(first as u16, (end - first) as u16);
        let op = Op { code: Code::User, operand, ..words };
        self.state.stage(self.engine, at, Intent::Update, op)
    }

    /// Stages the insertion of a row whose record the attempt has just linked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage_new_row(&mut self, row: &R) -> Result<(), Abort> {
        let mut image = R::Image::ZERO;
        let words = store_in(row, &mut image, &mut NoLong)?;
        self.state.stage_new_words(self.engine, self.table, self.record, words)
    }
}

impl<P: Protocol> State<P> {
    /// Calls `stage`. If code of a row type panics in it, the transaction can only end in
    /// [`Abort::Panicked`], since a part of the operation may have been staged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn whole_or_failed<T>(&mut self, stage: impl FnOnce(&mut State<P>) -> T) -> T {
        let half = Half(self);
        let result = stage(half.0);
        std::mem::forget(half);
        result
    }
}

/// An operation that is not staged completely. Only a panic drops it.
struct Half<'a, P: Protocol>(&'a mut State<P>);

impl<P: Protocol> Drop for Half<'_, P> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        self.0.note_panic();
    }
}

/// Operations on whole rows, given their words outside the key.
impl<P: Protocol> State<P> {
    /// Stages the insertion of a row whose record the attempt has just linked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage_new_words(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        words: &[u64],
    ) -> Result<(), Abort> {
        let first = self.writes.push_operands(words.iter().copied());
        self.stage_new(engine, table, record, first)
    }

    /// Inserts a row in an existing record, unless the record already holds a row. Returns whether
    /// the row was inserted.
    #[inline(never)]
    pub(crate) fn insert_again(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        image: &[u64],
    ) -> Result<bool, Abort> {
        if !self.can_insert(engine, table.layout.first_of(record))? {
            return Ok(false);
        }
        self.make_room(engine, table)?;
        if !table.indexes.writes_are_plain() {
            self.add_entries(engine, table, record, image)?;
        }
        self.stage_image(engine, table, record, image, Intent::Insert)?;
        Ok(true)
    }

    /// Inserts a row, or replaces the row with the same key.
    #[inline]
    pub(crate) fn put(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        image: &[u64],
    ) -> Result<(), Abort> {
        let is_plain = table.indexes.writes_are_plain();
        if !is_plain {
            self.admit_put(engine, table)?;
        }
        self.put_admitted(engine, table, (key, image), is_plain)
    }

    /// Inserts or replaces a row, which the caller has been admitted to do. The writes of the table
    /// are plain or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put_admitted(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (key, image): (&[u64], &[u64]),
        is_plain: bool,
    ) -> Result<(), Abort> {
        let InsertTarget { record, is_new } = self.record_for(engine, table, key)?;
        if !is_new {
            self.make_room(engine, table)?;
        }
        if !is_plain {
            self.replace_entries(engine, table, record, image)?;
        }
        self.stage_image(engine, table, record, image, Intent::Put)
    }

    /// Admits a put into a table whose writes are not plain, before anything is linked.
    #[cold]
    #[inline(never)]
    fn admit_put(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        self.admit(engine, table)?;
        self.admit_write()?;
        table.restrictions.check_change(u64::MAX)
    }

    /// Stages the changes of the entries of a row that `image` is about to replace.
    #[cold]
    #[inline(never)]
    fn replace_entries(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        image: &[u64],
    ) -> Result<(), Abort> {
        if table.indexes.is_empty() {
            return Ok(());
        }
        self.change_row(engine, table, (record, false), &mut |words| {
            words.copy_from_slice(image);
            Ok(())
        })
    }

    /// Stages all words of a row. The caller has been admitted to write.
    fn stage_image(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        image: &[u64],
        intent: Intent,
    ) -> Result<(), Abort> {
        let first = self.writes.push_operands(image.iter().copied());
        for unit in table.layout.placed_units() {
            let at = unit.of(record);
            let op = Op {
                operand: first + unit.start() as u32,
                ..Op::set_words(0, at.payload_words() as u16)
            };
            self.stage_admitted(engine, at, intent, op)?;
        }
        Ok(())
    }

    /// Stages the removal of a record's row, if the row exists, and of the row's entries.
    pub(crate) fn delete_row(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<(), Abort> {
        if !table.indexes.writes_are_plain() {
            self.admit_delete(engine, table, record)?;
        }
        self.delete_admitted(engine, table, record)
    }

    /// Stages the deletion of a row. The caller has been admitted to delete it, and has staged the
    /// removal of its entries.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn delete_admitted(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<(), Abort> {
        let first = table.layout.first_of(record);
        if !self.can_delete(engine, first)? {
            return Err(self.outcome_at(Abort::NotFound, first));
        }
        for at in table.layout.cells(record) {
            self.stage(engine, at, Intent::Delete, Op::DELETE)?;
        }
        Ok(())
    }

    /// Refuses to delete a row that is permanent. Otherwise notes what the delete replaces outside
    /// of the record, and stages the removal of the row's entries.
    #[cold]
    #[inline(never)]
    fn admit_delete(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<(), Abort> {
        if table.restrictions.is_permanent() {
            return Err(Abort::Permanent);
        }
        if !table.layout.named().is_empty() {
            self.note_admitted_value_write(table);
        }
        if table.indexes.is_empty() {
            return Ok(());
        }
        self.remove_entries(engine, table, record)
    }
}

/// A sink that refuses changes of frozen columns and of those of a secondary index, before any
/// change is staged.
pub(crate) struct FreeColumnsOnly<'a>(pub(crate) &'a TableCore);

impl FreeColumnsOnly<'_> {
    fn check(&self, place: Place) -> Result<(), Abort> {
        self.0.restrictions.check_change(1 << place.group)?;
        if self.0.indexes.covers(place) { Err(Abort::Indexed) } else { Ok(()) }
    }
}

impl LongSink for FreeColumnsOnly<'_> {
    fn keep(&mut self, _: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        Ok(0)
    }
}

impl Sink for FreeColumnsOnly<'_> {
    fn set(&mut self, place: Place, _: impl Fn(usize) -> u64) -> Result<(), Abort> {
        self.check(place)
    }

    /// A guard of an indexed column changes no entry.
    fn guard(&mut self, place: Place, _: u64) -> Result<(), Abort> {
        self.0.restrictions.check_change(1 << place.group)
    }

    fn compute(&mut self, place: Place, _: bool, _: Arithmetic) -> Result<(), Abort> {
        self.check(place)
    }
}

/// A sink that only keeps the bytes of an operation.
pub(crate) struct Keeping<'a, 's, R, P: Protocol> {
    stager: &'a mut Stager<'s, R, P>,
    /// The words of columns that the operation has read.
    seen: &'a [(LongColumn, u64)],
}

impl<R: Record, P: Protocol> LongSink for Keeping<'_, '_, R, P> {
    fn keep(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort> {
        let of_column = |&&(seen, _): &&(LongColumn, u64)| seen.word == column.word;
        let seen = self.seen.iter().find(of_column).map(|&(_, word)| word);
        // The attempt has read the word, in its pin, from this row (BL2).
        let word = match seen.filter(|&word| long::has(word, bytes, &*self.stager.state)) {
            Some(word) => word,
            None => self.stager.keep_bytes(column, bytes)?,
        };
        self.stager.state.kept.push((column.word, word));
        Ok(word)
    }

    fn refuse(&mut self, column: LongColumn, problem: String) -> Abort {
        self.stager.refuse_value(column, problem)
    }
}

impl<R: Record, P: Protocol> Sink for Keeping<'_, '_, R, P> {
    fn set(&mut self, _: Place, _: impl Fn(usize) -> u64) -> Result<(), Abort> {
        Ok(())
    }

    fn compute(&mut self, _: Place, _: bool, _: Arithmetic) -> Result<(), Abort> {
        Ok(())
    }
}

/// A sink that sets words of an image of a row, with the words of the bytes that
/// [`Stager::keep_all`] has kept.
pub(crate) struct KeptImage<'a, R> {
    image: ImageSink<'a, R>,
    kept: slice::Iter<'a, (usize, u64)>,
}

impl<'a, R> KeptImage<'a, R> {
    /// Returns a sink that sets words of `image`. `kept` is of [`Stager::kept_words`].
    pub(crate) fn new(image: &'a mut [u64], kept: &'a [(usize, u64)]) -> KeptImage<'a, R> {
        KeptImage { image: ImageSink::new(Unit::ROW, image), kept: kept.iter() }
    }
}

impl<R> LongSink for KeptImage<'_, R> {
    fn keep(&mut self, column: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        Ok(kept_for(column, self.kept.next()))
    }

    fn wants_bytes(&self) -> bool {
        false
    }
}

impl<R: Record> Sink for KeptImage<'_, R> {
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort> {
        self.image.set(place, word)
    }

    fn compute(&mut self, place: Place, signed: bool, by: Arithmetic) -> Result<(), Abort> {
        self.image.compute(place, signed, by)
    }
}

/// Returns the word that was kept for a column. A row, or a text, may be another one each time; but
/// a word goes to the column for which it was kept, since it may be the one that the column has
/// had.
fn kept_for(column: LongColumn, kept: Option<&(usize, u64)>) -> u64 {
    let &(_, word) = kept
        .filter(|&&(of, _)| of == column.word)
        .unwrap_or_else(|| panic!("column {} has had another value before", column.name));
    word
}

/// A sink of an update that is one operation on one column of any length: the bytes are kept when
/// it is staged.
pub(crate) struct SoleStager<'a, 's, R, P: Protocol>(pub(crate) &'a mut Stager<'s, R, P>);

impl<R: Record, P: Protocol> LongSink for SoleStager<'_, '_, R, P> {
    fn keep(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort> {
        self.0.keep_bytes(column, bytes)
    }

    fn refuse(&mut self, column: LongColumn, problem: String) -> Abort {
        self.0.refuse_value(column, problem)
    }
}

impl<R: Record, P: Protocol> Sink for SoleStager<'_, '_, R, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort> {
        self.0.set(place, word)
    }

    fn guard(&mut self, place: Place, word: u64) -> Result<(), Abort> {
        self.0.guard(place, word)
    }

    fn compute(&mut self, place: Place, signed: bool, by: Arithmetic) -> Result<(), Abort> {
        self.0.compute(place, signed, by)
    }
}

/// Takes the words of the bytes that [`Stager::keep_all`] has kept.
impl<R: Record, P: Protocol> LongSink for Stager<'_, R, P> {
    fn keep(&mut self, column: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        let kept = self.state.kept.get(self.next_word);
        self.next_word += 1;
        Ok(kept_for(column, kept))
    }

    fn wants_bytes(&self) -> bool {
        false
    }
}

impl<R: Record, P: Protocol> Sink for Stager<'_, R, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort> {
        if place.mask != u64::MAX {
            let arithmetic = Arithmetic {
                code: Code::Set,
                operand: [word(0), 0],
                at_least: None,
                at_most: None,
            };
            return self.compute(place, false, arithmetic);
        }
        let words = (0..usize::from(place.words)).map(word);
        self.stage(place, Op::set_words(place.word, place.words), |state| {
            state.writes.push_operands(words)
        })
    }

    fn guard(&mut self, place: Place, word: u64) -> Result<(), Abort> {
        let op = Op { code: Code::Equals, ..Op::set_words(place.word, place.words) };
        self.stage(place, op, |state| state.writes.push_operands([0, word].into_iter()))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn compute(&mut self, place: Place, signed: bool, arithmetic: Arithmetic) -> Result<(), Abort> {
        let Arithmetic { code, operand, at_least, at_most } = arithmetic;
        let op = Op {
            code,
            signed,
            shift: place.shift,
            at_least: at_least.is_some(),
            at_most: at_most.is_some(),
            mask: place.mask,
            ..Op::set_words(place.word, place.words)
        };
        let [least, most] = [at_least, at_most].map(Option::unwrap_or_default);
        if place.words == 2 {
            let operands = [operand, least, most].into_iter().flatten();
            debug_assert_eq!(operands.clone().count(), WIDE_OPERANDS);
            return self.stage(place, op, |state| state.writes.push_operands(operands));
        }
        let operands: [u64; NUMBER_OPERANDS] = [operand[0], least[0], most[0]];
        self.stage(place, op, |state| state.writes.push_operands(operands.into_iter()))
    }
}
