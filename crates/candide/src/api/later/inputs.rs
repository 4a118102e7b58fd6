//! Inputs of steps.

#![forbid(unsafe_code)]

use super::handle::Later;
use super::value::{Held, Owned, Slot};
use crate::error::Abort;
use std::cell::Ref;

/// Inputs of a step: values that earlier steps of the same transaction return.
///
/// Implemented by `()`, by a [`Later`] and a reference to one, whose value the step gets by
/// reference, and by tuples of at most six inputs ([`Values`]). A value that is known is passed on
/// by [`Later::ready`], or captured by the step.
///
/// ```
/// # use candide::{Database, Record};
/// # #[derive(Record, Clone, Copy)]
/// # struct Jar { #[key] id: u64, sweets: u64 }
/// # let db = Database::new();
/// # let jars = db.table::<Jar>("jars")?;
/// # db.run(|tx| jars.insert_many(tx, (1..=3).map(|id| Jar { id, sweets: 10 * id })))?;
/// db.run(|tx| {
///     let one = jars.defer(tx, 1, Jar::SWEETS, (), |sweets, ()| std::mem::take(sweets))?;
///     let two = jars.defer(tx, 2, Jar::SWEETS, (), |sweets, ()| std::mem::take(sweets))?;
///     jars.defer(tx, 3, Jar::SWEETS, (&one, two), |sweets, (one, two)| *sweets += one + two)
/// })?;
/// assert_eq!(db.run(|tx| jars.read(tx, 3, Jar::SWEETS)), Ok(60));
/// # Ok::<(), candide::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a step",
    label = "expected `()`, a `Later`, or a tuple of at most six of them",
    note = "a step captures values that are known; `Later::ready(value)` makes a `Later` of one"
)]
pub trait Inputs: private::Sealed {
    /// The handles on the inputs that a step keeps.
    #[doc(hidden)]
    type Held: Held;

    #[doc(hidden)]
    fn hold(self) -> Self::Held;
}

/// What a step gets of its inputs `I`: nothing of `()`, a reference to the value of a [`Later`],
/// and a tuple of a tuple.
pub type Values<'a, I> = <<I as Inputs>::Held as Held>::Values<'a>;

mod private {
    use super::super::handle::Later;

    pub trait Sealed {}
    impl Sealed for () {}
    impl<T> Sealed for Later<T> {}
    impl<T> Sealed for &Later<T> {}
}

impl Inputs for () {
    type Held = ();

    fn hold(self) {}
}

impl Held for () {
    type Values<'a> = ();
    type Guards<'a> = ();

    fn each(&self, _: &mut dyn FnMut(&dyn Owned)) {}

    fn guards(&self) -> Result<(), Abort> {
        Ok(())
    }

    fn values((): &()) {}
}

impl<T: 'static> Inputs for Later<T> {
    type Held = Later<T>;

    fn hold(self) -> Later<T> {
        self
    }
}

impl<T: 'static> Inputs for &Later<T> {
    type Held = Later<T>;

    fn hold(self) -> Later<T> {
        self.clone()
    }
}

impl<T: 'static> Held for Later<T> {
    type Values<'a> = &'a T;
    type Guards<'a> = Ref<'a, T>;

    fn each(&self, each: &mut dyn FnMut(&dyn Owned)) {
        each(self.0.core());
    }

    fn guards(&self) -> Result<Ref<'_, T>, Abort> {
        let slot = self.0.core().slot.borrow();
        Ref::filter_map(slot, |slot| if let Slot::Value(value) = slot { Some(value) } else { None })
            .map_err(|slot| match &*slot {
                Slot::Failed(abort) | Slot::Misused(abort) => *abort,
                Slot::Taken => Abort::LaterTaken,
                Slot::Pending | Slot::Value(_) => Abort::NotYet,
            })
    }

    fn values<'v>(guards: &'v Ref<'_, T>) -> &'v T {
        guards
    }
}

macro_rules! tuple_inputs {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<$($name: Inputs),+> Inputs for ($($name,)+) {
            type Held = ($($name::Held,)+);

            fn hold(self) -> Self::Held {
                ($(self.$index.hold(),)+)
            }
        }

        impl<$($name: Held),+> Held for ($($name,)+) {
            type Values<'a> = ($($name::Values<'a>,)+);
            type Guards<'a> = ($($name::Guards<'a>,)+);

            fn each(&self, each: &mut dyn FnMut(&dyn Owned)) {
                $(self.$index.each(each);)+
            }

            fn guards(&self) -> Result<Self::Guards<'_>, Abort> {
                Ok(($(self.$index.guards()?,)+))
            }

            fn values<'v>(guards: &'v Self::Guards<'_>) -> Self::Values<'v> {
                ($($name::values(&guards.$index),)+)
            }
        }
    )*};
}

tuple_inputs! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}
