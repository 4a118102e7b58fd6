//! Inputs of steps.

#![forbid(unsafe_code)]

use super::{Later, Owned, Slot};
use crate::error::Abort;
use std::cell::Ref;

/// Inputs of a step: values that earlier steps of the same transaction return.
///
/// Implemented by `()`, by a [`Later`] and a reference to one, whose value the step gets by
/// reference, and by tuples of at most six inputs. A value that is known is passed on by
/// [`Later::ready`], or captured by the step.
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
    /// What a step gets: references to the values.
    type Values<'a>;
    #[doc(hidden)]
    type Held: 'static;
    #[doc(hidden)]
    type Guards<'a>;

    /// Returns handles that can be kept.
    #[doc(hidden)]
    fn hold(self) -> Self::Held;

    /// Calls `each` for every input.
    #[doc(hidden)]
    fn each(held: &Self::Held, each: &mut dyn FnMut(&dyn Owned));

    /// Borrows the values.
    #[doc(hidden)]
    fn guards(held: &Self::Held) -> Result<Self::Guards<'_>, Abort>;

    #[doc(hidden)]
    fn values<'v>(guards: &'v Self::Guards<'_>) -> Self::Values<'v>;
}

mod private {
    use super::Later;

    pub trait Sealed {}
    impl Sealed for () {}
    impl<T> Sealed for Later<T> {}
    impl<T> Sealed for &Later<T> {}
}

impl Inputs for () {
    type Values<'a> = ();
    type Held = ();
    type Guards<'a> = ();

    fn hold(self) {}

    fn each((): &(), _: &mut dyn FnMut(&dyn Owned)) {}

    fn guards((): &()) -> Result<(), Abort> {
        Ok(())
    }

    fn values((): &()) {}
}

impl<T: 'static> Inputs for &Later<T> {
    type Values<'a> = &'a T;
    type Held = Later<T>;
    type Guards<'a> = Ref<'a, T>;

    fn hold(self) -> Later<T> {
        self.clone()
    }

    fn each(held: &Later<T>, each: &mut dyn FnMut(&dyn Owned)) {
        each(held.0.core());
    }

    fn guards(held: &Later<T>) -> Result<Ref<'_, T>, Abort> {
        let slot = held.0.core().slot.borrow();
        Ref::filter_map(slot, |slot| if let Slot::Value(value) = slot { Some(value) } else { None })
            .map_err(|slot| match &*slot {
                Slot::Failed(abort) => *abort,
                Slot::Taken => Abort::LaterTaken,
                Slot::Pending | Slot::Value(_) => Abort::NotYet,
            })
    }

    fn values<'v>(guards: &'v Ref<'_, T>) -> &'v T {
        guards
    }
}

impl<T: 'static> Inputs for Later<T> {
    type Values<'a> = &'a T;
    type Held = Later<T>;
    type Guards<'a> = Ref<'a, T>;

    fn hold(self) -> Later<T> {
        self
    }

    fn each(held: &Later<T>, each: &mut dyn FnMut(&dyn Owned)) {
        <&Later<T>>::each(held, each);
    }

    fn guards(held: &Later<T>) -> Result<Ref<'_, T>, Abort> {
        <&Later<T>>::guards(held)
    }

    fn values<'v>(guards: &'v Ref<'_, T>) -> &'v T {
        guards
    }
}

macro_rules! tuple_inputs {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<$($name: Inputs),+> Inputs for ($($name,)+) {
            type Values<'a> = ($($name::Values<'a>,)+);
            type Held = ($($name::Held,)+);
            type Guards<'a> = ($($name::Guards<'a>,)+);

            fn hold(self) -> Self::Held {
                ($(self.$index.hold(),)+)
            }

            fn each(held: &Self::Held, each: &mut dyn FnMut(&dyn Owned)) {
                $($name::each(&held.$index, each);)+
            }

            fn guards(held: &Self::Held) -> Result<Self::Guards<'_>, Abort> {
                Ok(($($name::guards(&held.$index)?,)+))
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
