//! Lists: rows with an array. The order of a list is the order of its appends.

use candide::schema::{Projection, Refused, Updater};
use candide::{Abort, Database, Error, Protocol, Record, Table, Tx, Whole};
use candide_check::black::ListOp;

use super::{Object, VALUES};

/// The number of places in a list.
const CAPACITY: usize = VALUES as usize;

/// Lists of values, one for each key.
pub struct Lists;

/// A list, of which the first `length` places are filled.
#[derive(Record, Clone, Copy, Debug)]
#[record(ordered)]
pub struct List {
    /// The key.
    #[key]
    pub id: u64,
    /// The number of values.
    pub length: u32,
    /// The values, followed by zeros.
    pub values: [u64; CAPACITY],
}

impl List {
    fn push(&mut self, value: u64) {
        self.values[self.length as usize] = value;
        self.length += 1;
    }

    fn of_one(id: u64, value: u64) -> List {
        let mut list = List { id, length: 0, values: [0; CAPACITY] };
        list.push(value);
        list
    }
}

/// Appends a value to a list without reading it.
#[derive(Debug, Clone, Copy)]
struct Append(u64);

/// The columns of a list that an append changes.
type Columns = (candide::Column<List, u32>, candide::Column<List, [u64; CAPACITY]>);

impl Updater<List> for Append {
    type Target = Columns;

    fn target(&self) -> Columns {
        (List::LENGTH, List::VALUES)
    }

    fn apply(
        &self,
        (length, values): &mut <Columns as Projection<List>>::Value,
    ) -> Result<(), Refused> {
        values[*length as usize] = self.0;
        *length += 1;
        Ok(())
    }
}

impl Object for Lists {
    type Op = ListOp;
    type Tables<P: Protocol> = Table<List, P>;

    const TABLE: &'static str = "lists";

    fn create<P: Protocol>(db: &Database<P>) -> Result<Table<List, P>, Error> {
        db.table(Self::TABLE)
    }

    fn read<P: Protocol>(
        lists: &Table<List, P>,
        tx: &Tx<'_, P>,
        key: u64,
    ) -> Result<ListOp, Abort> {
        let list = lists.get(tx, &key, (List::LENGTH, List::VALUES))?;
        let values = list.map_or(Vec::new(), |(length, values)| values[..length as usize].to_vec());
        Ok(ListOp::Read { key, values })
    }

    fn write<P: Protocol>(
        lists: &Table<List, P>,
        tx: &Tx<'_, P>,
        key: u64,
        value: u64,
        way: u8,
    ) -> Result<ListOp, Abort> {
        let appended = match way % 4 {
            0 => lists.modify_if_present(
                tx,
                &key,
                (List::LENGTH, List::VALUES),
                |(length, values)| {
                    values[*length as usize] = value;
                    *length += 1;
                },
            )?,
            1 => match lists.get(tx, &key, Whole)? {
                Some(mut list) => {
                    list.push(value);
                    lists.put(tx, list)?;
                    Some(())
                }
                None => None,
            },
            _ => match lists.update_with(tx, &key, Append(value)) {
                Ok(()) => Some(()),
                Err(Abort::NotFound) => None,
                Err(other) => return Err(other),
            },
        };
        if appended.is_none() {
            lists.insert(tx, List::of_one(key, value))?;
        }
        Ok(ListOp::Append { key, value })
    }
}
