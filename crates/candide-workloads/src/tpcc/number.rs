//! The numbers of new orders.

use candide::{Abort, Later, Protocol, Record, Table, Tx};

use super::rows::OrderId;

/// The number of a new order.
pub(super) enum Number {
    /// It is known.
    Known(OrderId),
    /// The district's row gives it when the transaction commits.
    Late(Later<OrderId>),
}

impl Number {
    /// Returns the number; 0 if it comes later.
    pub(super) fn known(&self) -> OrderId {
        match self {
            Number::Known(id) => *id,
            Number::Late(_) => 0,
        }
    }

    /// Inserts a row, into which `set` has put the number.
    pub(super) fn insert<R: Record + Copy, P: Protocol>(
        &self,
        tx: &Tx<'_, P>,
        table: &Table<R, P>,
        mut row: R,
        set: fn(&mut R, OrderId),
    ) -> Result<(), Abort> {
        match self {
            Number::Known(id) => {
                set(&mut row, *id);
                table.insert(tx, row)
            }
            Number::Late(id) => {
                set(&mut row, id.now(tx)?);
                table.insert(tx, row)
            }
        }
    }
}
