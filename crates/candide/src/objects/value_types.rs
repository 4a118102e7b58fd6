//! The types by which operations of objects take and return values.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use crate::schema::Field;

/// What the operations of queues, vectors and priority queues take and return, for values of a
/// type that is [`Stored`](super::Stored).
pub trait ValueTypes: Sized {
    /// What operations take: the type itself, or `T` for `Boxed<T>`.
    type Value: Send + Sync + 'static;
    /// What operations return: the type itself, or `&T` for `Boxed<T>`, which lives as long as the
    /// borrow of the transaction.
    type Seen<'t>;
}

impl<V: Field> ValueTypes for V {
    type Value = V;
    type Seen<'t> = V;
}

impl<T: Send + Sync + 'static> ValueTypes for Boxed<T> {
    type Value = T;
    type Seen<'t> = &'t T;
}
