//! The values of objects.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::cell::Cell;
use super::cells::{BoxedCells, CellTable};
use super::elements::ElementTable;
use super::entry::Entry;
use super::maps::MapTable;
use super::value_types::ValueTypes;
use super::words::short_name;
use crate::api::{Table, ValueTable};
use crate::engine::Protocol;
use crate::schema::{Field, IndexKind, Key};
use std::any::{TypeId, type_name};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A type that a transactional object can hold.
/// * Every type of columns ([`Field`]) with at most 512 bytes. In a database that is
///   [open](crate::Database::open) in a directory, named objects of these values are durable.
///   Several numbers in one value: an array, such as `TBox<[i64; 3]>`. An enum, and a struct of one
///   field, can derive [`Key`](macro@crate::Key), and are then fields. For a struct with several
///   fields, a row of a [`Table`] is the better choice, since its columns are read and updated one
///   by one.
/// * [`Boxed<T>`] for a `T` of any type that is `Send`, `Sync` and `'static`. Such objects are in
///   memory only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value for transactional objects",
    label = "neither a type of columns nor a boxed value",
    note = "objects hold the types that columns can have, of at most 512 bytes, and `candide::objects::Boxed<T>` for any type `T`"
)]
pub trait Stored: ValueTypes + Send + Sync + 'static + private::Sealed {
    /// The table of cells with such values.
    #[doc(hidden)]
    type Cells<P: Protocol>: CellTable<P, Value = Self>;
    /// The table of a map with such values.
    #[doc(hidden)]
    type Map<K: Key, I: IndexKind, P: Protocol>: MapTable<P> + ElementTable<K, Self, P>;

    /// Returns the type's name, and a number that differs between layouts.
    #[doc(hidden)]
    fn type_name() -> (String, u64);
}

mod private {
    use super::{Boxed, Field};

    pub trait Sealed {}
    impl<V: Field> Sealed for V {}
    impl<T> Sealed for Boxed<T> {}
}

impl<V: Field> Stored for V {
    type Cells<P: Protocol> = Table<Cell<V>, P>;
    type Map<K: Key, I: IndexKind, P: Protocol> = Table<Entry<K, V, I>, P>;

    fn type_name() -> (String, u64) {
        (short_name::<V>(), V::LAYOUT)
    }
}

impl<T: Send + Sync + 'static> Stored for Boxed<T> {
    type Cells<P: Protocol> = BoxedCells<T, P>;
    type Map<K: Key, I: IndexKind, P: Protocol> = ValueTable<K, T, I, P>;

    fn type_name() -> (String, u64) {
        let mut hasher = DefaultHasher::new();
        TypeId::of::<T>().hash(&mut hasher);
        (format!("Boxed<{}>", type_name::<T>()), hasher.finish())
    }
}
