//! The numbers of new orders.

use std::cell::Cell;
use std::rc::Rc;

use candide::{Abort, Later, Protocol, Record, Row, Table, Tx};

use super::rows::{District, OrderId};

/// The number of a new order.
pub(super) enum Number {
    /// It is known.
    Known(OrderId),
    /// The district's row gives it when the transaction commits. The cell says whether the row has
    /// been asked.
    Late(Later<OrderId>, Rc<Cell<bool>>),
}

/// Draws a number from the number of a district's next order.
pub(super) fn draw(next: &mut OrderId) -> OrderId {
    *next += 1;
    *next - 1
}

impl Number {
    /// Returns the number; 0 if it comes later.
    pub(super) fn known(&self) -> OrderId {
        match self {
            Number::Known(id) => *id,
            Number::Late(..) => 0,
        }
    }

    /// Leaves it to the commit to draw the number from the district's row.
    pub(super) fn late<P: Protocol>(place: &Row<'_, District, P>) -> Result<Number, Abort> {
        let is_drawn = Rc::new(Cell::new(false));
        let drawn = is_drawn.clone();
        let id = place.defer(District::NEXT_ORDER, (), move |next, ()| {
            drawn.set(true);
            draw(next)
        })?;
        Ok(Number::Late(id, is_drawn))
    }

    /// Returns whether the number was left to the commit, and the engine has drawn it before.
    pub(super) fn is_early(&self) -> bool {
        matches!(self, Number::Late(_, is_drawn) if is_drawn.get())
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
            Number::Late(id, _) => {
                let row = id.map(move |&id| {
                    let mut row = row;
                    set(&mut row, id);
                    row
                });
                table.defer_insert_at(tx, &row.map(|row| Some(row.key())), row)
            }
        }
    }
}
