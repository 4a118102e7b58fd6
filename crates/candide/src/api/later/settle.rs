//! Results of transactions whose values come later.

#![forbid(unsafe_code)]

use super::handle::Later;
use super::value::{Origin, Owned, Slot};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::txn::{StepList, Tx};
use std::cell::Cell;
use std::rc::Rc;

/// The result of a closure that [`run_deferred`](crate::Database::run_deferred) runs: something
/// made of [`Later`]s, whose values `run_deferred` returns.
///
/// Implemented by a [`Later`], by tuples of at most eight results, by `Vec`, `Option`, arrays, by
/// `Result` (with any error), and by `()`. A value that is known takes part as [`Later::ready`].
///
/// ```
/// # use candide::{Database, Later, Record};
/// # #[derive(Record, Clone, Copy)]
/// # struct Counter { #[key] id: u64, hits: u64 }
/// # let db = Database::new();
/// # let counters = db.table::<Counter>("counters")?;
/// # db.run(|tx| counters.insert_many(tx, (0..3).map(|id| Counter { id, hits: id })))?;
/// let (name, hits): (&str, Vec<u64>) = db.run_deferred(|tx| {
///     let hit = |id| {
///         counters.defer(tx, id, Counter::HITS, (), |hits, ()| {
///             *hits += 1;
///             *hits
///         })
///     };
///     let hits = (0..3).map(hit).collect::<Result<Vec<_>, _>>()?;
///     Ok((Later::ready("hits"), hits))
/// })?;
/// assert_eq!((name, hits), ("hits", vec![1, 2, 3]));
/// # Ok::<(), candide::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of `Later`s",
    label = "the closure of `run_deferred` returns `Later`s",
    note = "`Later::ready(value)` makes a `Later` of a value that is known; `run` returns any value as it is"
)]
pub trait Settle: private::Sealed {
    /// What `run_deferred` returns: the values in the place of the [`Later`]s.
    type Settled;

    /// Checks, before the commit, that the values can be taken out after it.
    #[doc(hidden)]
    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort>;

    /// Takes the values out, after the commit.
    #[doc(hidden)]
    fn settle(self) -> Self::Settled;
}

/// A check of a result of a transaction.
pub struct Admission<'a> {
    is_own: &'a dyn Fn(&Rc<StepList>) -> bool,
    /// The number of this check. A value with this number takes part already.
    number: u64,
    /// The outcome of the first computation that has failed already.
    failure: Cell<Option<Abort>>,
}

thread_local! {
    static ADMISSIONS: Cell<u64> = const { Cell::new(0) };
}

/// Returns a closure that calls `body`, and checks its result.
pub(in crate::api) fn admitted<P: Protocol, S: Settle, E: From<Abort>>(
    mut body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
) -> impl FnMut(&Tx<'_, P>) -> Result<S, E> {
    move |tx| {
        let result = body(tx)?;
        let number = ADMISSIONS.get() + 1;
        ADMISSIONS.set(number);
        let admission =
            Admission { is_own: &|list| tx.has_steps_in(list), number, failure: Cell::new(None) };
        result.admit(&admission)?;
        // An earlier failure, of a step, counts more.
        if let Some(outcome) = admission.failure.get() {
            tx.fail(outcome);
        }
        Ok(result)
    }
}

mod private {
    use super::super::handle::Later;

    pub trait Sealed {}
    impl Sealed for () {}
    impl<T> Sealed for Later<T> {}
    impl<S: Sealed> Sealed for Option<S> {}
    impl<S: Sealed, E> Sealed for Result<S, E> {}
    impl<S: Sealed> Sealed for Vec<S> {}
    impl<S: Sealed, const N: usize> Sealed for [S; N] {}
}

impl Settle for () {
    type Settled = ();

    fn admit(&self, _: &Admission<'_>) -> Result<(), Abort> {
        Ok(())
    }

    fn settle(self) {}
}

impl<T: 'static> Settle for Later<T> {
    type Settled = T;

    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
        let core = self.0.core();
        match core.origin()? {
            Origin::Known => {}
            Origin::Open(list) if (admission.is_own)(list) => {}
            Origin::Open(_) | Origin::Committed => return Err(Abort::ForeignLater),
        }
        core.is_needed.set(true);
        admission.failure.set(admission.failure.get().or(core.failure()));
        if core.claim.replace(admission.number) == admission.number {
            return Err(Abort::LaterTaken);
        }
        Ok(())
    }

    fn settle(self) -> T {
        match self.0.core().slot.replace(Slot::Taken) {
            Slot::Value(value) => value,
            _ => panic!("a transaction that `on_commit` has begun has returned the same `Later`"),
        }
    }
}

impl<S: Settle> Settle for Option<S> {
    type Settled = Option<S::Settled>;

    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
        self.iter().try_for_each(|result| result.admit(admission))
    }

    fn settle(self) -> Option<S::Settled> {
        self.map(S::settle)
    }
}

impl<S: Settle, E> Settle for Result<S, E> {
    type Settled = Result<S::Settled, E>;

    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
        self.iter().try_for_each(|result| result.admit(admission))
    }

    fn settle(self) -> Result<S::Settled, E> {
        self.map(S::settle)
    }
}

impl<S: Settle> Settle for Vec<S> {
    type Settled = Vec<S::Settled>;

    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
        self.iter().try_for_each(|result| result.admit(admission))
    }

    fn settle(self) -> Vec<S::Settled> {
        self.into_iter().map(S::settle).collect()
    }
}

impl<S: Settle, const N: usize> Settle for [S; N] {
    type Settled = [S::Settled; N];

    fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
        self.iter().try_for_each(|result| result.admit(admission))
    }

    fn settle(self) -> [S::Settled; N] {
        self.map(S::settle)
    }
}

macro_rules! tuple_results {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<$($name: Settle),+> Settle for ($($name,)+) {
            type Settled = ($($name::Settled,)+);

            fn admit(&self, admission: &Admission<'_>) -> Result<(), Abort> {
                $(self.$index.admit(admission)?;)+
                Ok(())
            }

            fn settle(self) -> Self::Settled {
                ($(self.$index.settle(),)+)
            }
        }
    )*};
}

tuple_results! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
