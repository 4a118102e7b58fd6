//! Deferred operations on rows: steps, which run when their transaction commits.

#![forbid(unsafe_code)]

use super::later::{Held, Inputs, Later, Values, Work, admit_inputs};
use super::row::Row;
use super::table::Table;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::{CellAt, PlacedUnit};
use crate::schema::{
    AsKey, Buffer, ImageSink, Key, NoLong, Pinned, Projection, Record, RowMeta, Unit, Words,
    decoded, store_in,
};
use crate::txn::{InsertTarget, Stager, StepList, Tx};
use std::borrow::Borrow;
use std::rc::Rc;

/// A step on columns of a row.
struct ColumnStep<R: Record, Pr, H, F, T> {
    at: CellAt,
    unit: Unit,
    key: R::Key,
    projection: Pr,
    inputs: H,
    function: F,
    /// What the function has returned, while the columns are stored. If that fails, the result is
    /// dropped with the step, when nothing is locked.
    result: Option<T>,
}

impl<R, Pr, H, F, T> Work<T> for ColumnStep<R, Pr, H, F, T>
where
    R: Record,
    Pr: Projection<R> + 'static,
    H: Held,
    T: 'static,
    F: FnMut(&mut Pr::Value, H::Values<'_>) -> T + 'static,
{
    fn unit(&self) -> Option<CellAt> {
        Some(self.at)
    }

    fn is_ready(&self) -> bool {
        self.inputs.are_known()
    }

    fn run(&mut self, image: &mut [u64]) -> Result<T, Abort> {
        const { assert!(!Pr::LONG, "no step changes strings or bytes of any length") }
        let guards = self.inputs.guards()?;
        let mut words = Pr::EMPTY;
        self.projection.copy(self.unit, Words::Own(image), &mut words);
        let mut value = decoded::<R, Pr>(&self.projection, &self.key, &words, Pinned::by(image))?;
        self.result = Some((self.function)(&mut value, H::values(&guards)));
        let sink = &mut ImageSink::<R>::new(self.unit, image);
        self.projection.assign(&self.key, &value, sink)?;
        Ok(self.result.take().expect("the function has returned it"))
    }
}

/// The step that makes one unit of a row which is inserted before its columns are known.
struct RowStep<R: Record> {
    at: CellAt,
    unit: PlacedUnit,
    key: R::Key,
    row: Later<R>,
}

impl<R: Record> Work<()> for RowStep<R> {
    fn unit(&self) -> Option<CellAt> {
        Some(self.at)
    }

    fn is_ready(&self) -> bool {
        !self.row.is_pending()
    }

    fn run(&mut self, image: &mut [u64]) -> Result<(), Abort> {
        let row = self.row.value()?;
        check_key(&row, &self.key);
        store_unit(&row, self.unit, image)
    }
}

/// Stores the words of a unit of a row in `image`.
pub(super) fn store_unit<R: Record>(
    row: &R,
    unit: PlacedUnit,
    image: &mut [u64],
) -> Result<(), Abort> {
    const { assert!(R::LONG.is_empty(), "no step makes strings or bytes of any length") }
    let mut words = R::Image::ZERO;
    let words = &store_in(row, &mut words, &mut NoLong)?[unit.start()..];
    image.copy_from_slice(&words[..image.len()]);
    Ok(())
}

pub(super) fn check_key<R: Record>(row: &R, key: &R::Key) {
    let is_same = row.key().words().as_ref() == key.words().as_ref();
    assert!(is_same, "the row of `defer_insert` has the key that is given with it");
}

impl<R: Record, P: Protocol> Row<'_, R, P> {
    /// As [`Table::defer`].
    ///
    /// # Errors
    /// As [`Table::defer`].
    pub fn defer<Pr: Projection<R> + 'static, I: Inputs, T: 'static>(
        &self,
        projection: Pr,
        inputs: I,
        step: impl FnMut(&mut Pr::Value, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        let mut parts = Some((inputs.hold(), step));
        let later = self.try_defer(projection, &mut parts);
        if let (Err(_), Some(parts)) = (&later, parts) {
            self.tx.steps().keep(parts);
        }
        later
    }

    /// Does the work of [`Row::defer`]. Takes the parts of the step unless it is refused.
    /// As [`Row::defer`], with inputs that are held already.
    pub(super) fn defer_held<Pr: Projection<R> + 'static, H: Held, T: 'static>(
        &self,
        projection: Pr,
        inputs: H,
        step: impl FnMut(&mut Pr::Value, H::Values<'_>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        let mut parts = Some((inputs, step));
        let later = self.try_defer(projection, &mut parts);
        if let (Err(_), Some(parts)) = (&later, parts) {
            self.tx.steps().keep(parts);
        }
        later
    }

    fn try_defer<Pr: Projection<R> + 'static, H: Held, T: 'static>(
        &self,
        projection: Pr,
        parts: &mut Option<(H, impl FnMut(&mut Pr::Value, H::Values<'_>) -> T + 'static)>,
    ) -> Result<Later<T>, Abort> {
        let unit = self.table.unit_of_step(&projection)?;
        let (inputs, _) = parts.as_ref().expect("the caller has the parts");
        admit_inputs(inputs, self.tx)?;
        let mut later = None;
        self.staging(|Stager { state, engine, table, record, .. }| {
            let at = table.layout.at(*record, unit);
            state.admit_update(engine, at)?;
            let (inputs, function) = parts.take().expect("there are the parts of one step");
            let key = self.key;
            let result = None;
            let work = ColumnStep::<R, Pr, _, _, T> {
                at,
                unit,
                key,
                projection,
                inputs,
                function,
                result,
            };
            let stage = |list: Rc<StepList>, number| state.stage_step(engine, at, list, number);
            later = Some(Later::step(self.tx.steps(), work, stage)?);
            Ok(())
        })?;
        Ok(later.expect("the step is staged"))
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the unit of the columns of a step.
    ///
    /// # Errors
    /// Why there can be no such step.
    pub(super) fn unit_of_step<Pr: Projection<R>>(&self, projection: &Pr) -> Result<Unit, Abort> {
        const {
            assert!(
                !Pr::INDEXED,
                "a step changes no indexed columns; they are changed by `modify` or `put`"
            );
        }
        let groups = projection.groups();
        if !groups.is_power_of_two() {
            return Err(Abort::SeveralGroups);
        }
        let core = self.core();
        core.restrictions.check_change(groups)?;
        let mut indexed = false;
        projection.places(&mut |place| indexed |= core.indexes.covers(place));
        if indexed {
            return Err(Abort::Indexed);
        }
        Ok(core.layout.unit_of(groups.trailing_zeros() as u8))
    }

    /// Defers a *step*: a change of columns of a row that is made when the transaction commits, and
    /// returns a value. `step` gets the columns as they are then, and the values of `inputs`, which
    /// earlier steps of the transaction have returned. What `step` returns is the value of the
    /// [`Later`], which can be an input of further steps, a condition of the commit
    /// ([`Tx::require`]), or the result of the transaction ([`Database::run_deferred`]).
    ///
    /// [`Database::run_deferred`]: crate::Database::run_deferred
    ///
    /// A step reads nothing before the commit, so the transaction has not observed the row, and no
    /// change of the row by others makes it run again. See the [guide](crate::guide#when-to-defer)
    /// for what this gains.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert_many(tx, [1, 2].map(|id| Account { id, cents: 500 })))?;
    /// // Half of account 1 goes to account 2. The transaction reads nothing.
    /// let paid = db.run_deferred(|tx| {
    ///     let half = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| {
    ///         let half = *cents / 2;
    ///         *cents -= half;
    ///         half
    ///     })?;
    ///     accounts.defer(tx, 2, Account::CENTS, &half, |cents, half| *cents += half)?;
    ///     Ok(half)
    /// });
    /// assert_eq!(paid, Ok(250));
    /// assert_eq!(db.run(|tx| accounts.read(tx, 2, Account::CENTS)), Ok(750));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// The steps of a transaction run in the order of the program, after everything that the
    /// transaction has read is validated, and together with its other updates of the same rows in
    /// their order. A step runs at most once in an attempt; not if the closure returns an error, or
    /// an earlier operation or step has failed. Under protocols that run one transaction at a time
    /// it runs at once, and under all protocols it runs when [`Later::now`] asks for its result. So
    /// a step may run in an attempt that then has no effect.
    ///
    /// While a step runs, its row is locked. So it should be short, and it must not wait for other
    /// threads. It cannot begin a transaction, in a session that it has captured either, wait for
    /// the log ([`Pending::wait`](crate::Pending::wait), [`sync`](crate::Database::sync)), or make
    /// a checkpoint: all these return [`Abort::Nested`], and opening a snapshot panics. If a step
    /// panics, the transaction has no effect, and the panic goes on in the caller of `run`.
    ///
    /// `step` is called once, but is an `FnMut`: what it captures, and a result that nothing takes,
    /// is dropped after the transaction, when nothing is locked. If the attempt is repeated, it is
    /// dropped before the next one, while the thread's session is in use:
    /// [`Database::run`](crate::Database::run) then returns [`Abort::Nested`].
    ///
    /// Until the commit, the transaction cannot read the columns' group in this row
    /// ([`Abort::NotYet`]), but by [`Later::now`]. This concerns operations that read without a
    /// value, too: [`len`](Table::len), [`count`](Table::count) and [`is_empty`](Table::is_empty)
    /// read the first group of each row, and in a table with indexes [`put`](Table::put) and
    /// [`delete`](Table::delete) read the groups of indexed columns.
    /// ([`contains`](Table::contains) answers.) At the end of a [part](Tx::attempt) that
    /// succeeds, its steps are left to the commit, and so are the updates of the same groups: they
    /// may still fail then.
    ///
    /// The columns lie in one group, and no index contains any of them. The following compiles only
    /// without the attribute `#[index]`:
    ///
    /// ```compile_fail,E0080
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, #[index] owner: u64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// db.run(|tx| accounts.defer(tx, 1, Account::OWNER, (), |owner, ()| *owner = 0).map(drop))?;
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key; [`Abort::SeveralGroups`] if the
    /// columns lie in several groups; [`Abort::Indexed`] if
    /// [`create_index`](Table::create_index) has created an index on one of the columns; the errors
    /// of [misuse](Later#life) of an input; [`Abort::MemoryLimit`] as [`Table::update`], and those
    /// of [every operation](Table#errors-of-every-operation).
    #[doc(alias = "later")]
    pub fn defer<Pr: Projection<R> + 'static, I: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
        inputs: I,
        step: impl FnMut(&mut Pr::Value, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        match self.find_to_write(tx, key) {
            Ok(row) => row.defer(projection, inputs, step),
            Err(abort) => {
                tx.steps().keep((inputs.hold(), step));
                Err(abort)
            }
        }
    }

    /// Inserts a row whose key is known now, and whose columns are known when the transaction
    /// commits.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, Whole};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// struct Line { #[key] number: u64, account: u64, left: i64 }
    ///
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 500 }))?;
    /// let lines = db.table::<Line>("lines")?;
    /// db.run(|tx| {
    ///     let left = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| {
    ///         *cents -= 80;
    ///         *cents
    ///     })?;
    ///     lines.defer_insert(tx, 7, left.map(|&left| Line { number: 7, account: 1, left }))
    /// })?;
    /// let line = db.run(|tx| lines.read(tx, 7, Whole));
    /// assert_eq!(line, Ok(Line { number: 7, account: 1, left: 420 }));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// Until the commit, the transaction cannot read the row ([`Abort::NotYet`]).
    ///
    /// # Errors
    /// [`Abort::Duplicate`] if a row with this key exists; [`Abort::Indexed`] if the table has
    /// secondary indexes, whose keys must be known; [`Abort::NotFound`] if no row can have this
    /// key ([`AsKey`]); the errors of [misuse](Later#life) of `row`; [`Abort::MemoryLimit`], and
    /// those of [every operation](Table#errors-of-every-operation).
    ///
    /// # Panics
    /// At the commit, if the row has another key. The transaction then has no effect.
    pub fn defer_insert(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        row: impl Into<Later<R>>,
    ) -> Result<(), Abort> {
        let Some(key) = key.into_key() else { return Err(self.find_impossible_to_write(tx)) };
        self.defer_insert_of(tx, *key.borrow(), row.into())
    }

    /// Does the work of [`Table::defer_insert`] for a key that a row can have.
    pub(super) fn defer_insert_of(
        &self,
        tx: &Tx<'_, P>,
        key: R::Key,
        row: Later<R>,
    ) -> Result<(), Abort> {
        row.admit(tx)?;
        if !self.core().indexes.is_empty() {
            return Err(Abort::Indexed);
        }
        let state = &mut *tx.state.borrow_mut();
        state.admit_write()?;
        let InsertTarget { record, is_new } = self.record_for(tx, state, &key)?;
        let (core, engine) = (self.core(), tx.engine);
        state.whole_or_failed(|state| {
            // No operation reads these words: the steps replace them.
            let mut zeros = R::Image::ZERO;
            let zeros = &*zeros.words();
            if is_new {
                state.stage_new_words(engine, core, record, zeros)?;
            } else if !state.insert_again(engine, core, record, zeros)? {
                return Err(state.outcome_at(Abort::Duplicate, core.layout.first_of(record)));
            }
            for &unit in core.layout.placed_units() {
                let at = unit.of(record);
                let work = RowStep { at, unit, key, row: row.clone() };
                let stage = |list: Rc<StepList>, number| state.stage_step(engine, at, list, number);
                Later::step(tx.steps(), work, stage)?;
            }
            Ok(())
        })
    }
}

impl<P: Protocol> Tx<'_, P> {
    /// Makes `condition` a condition of the commit: if it is false then, the transaction fails with
    /// [`Abort::Guard`] and has no effect.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert_many(tx, [1, 2].map(|id| Account { id, cents: 50 })))?;
    /// let paid = db.run(|tx| {
    ///     let covered = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| {
    ///         *cents -= 80;
    ///         *cents >= 0
    ///     })?;
    ///     tx.require(&covered)?;
    ///     accounts.update(tx, 2, Account::CENTS.add(80))
    /// });
    /// assert_eq!(paid, Err(Abort::Guard));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// Within a [part](Tx::attempt) it is a condition of the commit, too, unless the part is
    /// undone.
    ///
    /// # Errors
    /// [`Abort::Guard`] if the condition is known already, and false; the transaction then ends in
    /// this error even if the closure ignores it. The errors of [misuse](Later#life).
    pub fn require(&self, condition: &Later<bool>) -> Result<(), Abort> {
        condition.admit(self)?;
        match condition.require() {
            Err(Abort::Guard) => Err(self.fail(Abort::Guard)),
            // An earlier failure, of a step, counts more.
            Err(outcome) => {
                self.fail(outcome);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
