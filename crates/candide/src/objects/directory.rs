//! The objects of a database by name: a table with a row for each of them.

#![forbid(unsafe_code)]

use super::cells::{CellTable, Cells};
use super::owner::{Owned, Owner, delete_dropped, run_internal};
use super::stored::Stored;
use crate::api::{Database, Table, find_table};
use crate::catalog::TableOptions;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::schema::column::Whole;
use crate::schema::{Column, Group, Hashed, Record, RowType, Text};
use crate::txn::Tx;

/// The names of the tables of objects, which programs cannot name: of objects that are durable if
/// the database is, and of those that are in memory only.
const DIRECTORIES: [&str; 2] = ["candide.objects", "candide.objects.volatile"];

/// The most bytes in the name of an object.
pub(super) const NAME_BYTES: usize = 64;

/// The most bytes of the name of an object's type that are kept.
const TYPE_BYTES: usize = 120;

/// A row of the table of objects.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Named {
    name: Text<NAME_BYTES>,
    /// The object's type, and the number of its cells if it is an array.
    type_name: Text<TYPE_BYTES>,
    /// A number that differs between layouts of values.
    layout: u64,
    /// The number of the object's first cell. In the row without a name, the number of cells that
    /// all objects have.
    first: u64,
}

impl Named {
    const TYPE_NAME: Column<Named, Text<TYPE_BYTES>> = Column::new(0, 0, "type_name");
    const LAYOUT: Column<Named, u64> = Column::new(0, 16, "layout");
    const FIRST: Column<Named, u64> = Column::new(0, 17, "first");

    fn beginning_at(&self, first: u64) -> Named {
        Named { first, ..*self }
    }
}

impl Record for Named {
    type Key = Text<NAME_BYTES>;
    type Index = Hashed;
    type Image = [u64; 18];
    const NAME: &'static str = "Object";
    const GROUPS: &'static [Group] = &[Group::new("object", 18)];

    fn key(&self) -> Text<NAME_BYTES> {
        self.name
    }

    fn store(&self, words: &mut [u64]) {
        Self::TYPE_NAME.put(words, &self.type_name);
        Self::LAYOUT.put(words, &self.layout);
        Self::FIRST.put(words, &self.first);
    }

    fn load(name: &Text<NAME_BYTES>, words: &[u64]) -> Named {
        Named {
            name: *name,
            type_name: Self::TYPE_NAME.take(words),
            layout: Self::LAYOUT.take(words),
            first: Self::FIRST.take(words),
        }
    }
}

/// The type of an object, as the table of objects has it.
pub(super) struct ObjectType {
    pub(super) name: String,
    pub(super) layout: u64,
    /// The number of cells that a new object needs.
    pub(super) cells: u64,
}

impl ObjectType {
    /// Returns the type of an object of `cells` cells.
    pub(super) fn of_cells<V: Stored>(kind: &str, cells: u64) -> ObjectType {
        let (name, layout) = V::type_name();
        ObjectType { name: format!("{kind}<{name}>"), layout, cells }
    }

    /// Returns the row of an object of this type, without its first cell.
    fn named(&self, name: Text<NAME_BYTES>) -> Named {
        Named { name, type_name: self.kept_name(), layout: self.layout, first: 0 }
    }

    /// Returns the type's name, without its end if it is very long.
    fn kept_name(&self) -> Text<TYPE_BYTES> {
        let mut end = self.name.len().min(TYPE_BYTES);
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        Text::new(&self.name[..end]).expect("it has been shortened")
    }
}

/// The function that makes the rows of a new object, which has the given number.
pub(super) type Fill<'f, P> = dyn FnMut(&Tx<'_, P>, u64) -> Result<(), Abort> + 'f;

/// Returns the table of objects.
fn directory<P: Protocol>(inner: &Handle<P>, is_volatile: bool) -> Result<Table<Named, P>, Error> {
    let options = TableOptions::default();
    let options = if is_volatile { options.volatile() } else { options };
    let name = DIRECTORIES[usize::from(is_volatile)];
    let core = find_table(inner, name, options, &RowType::of::<Named>())?;
    Ok(Table::new(inner.clone(), core))
}

/// Finds the object of this name, or makes one. In the transaction that makes it, calls `fill`
/// with the number of its first cell.
///
/// # Errors
/// [`Error::ObjectType`] if there is an object of another type; [`Error::EmptyTableName`],
/// [`Error::LongName`]; errors of tables and of the transaction.
pub(super) fn find_object<P: Protocol>(
    inner: &Handle<P>,
    (name, is_volatile): (&str, bool),
    wanted: &ObjectType,
    fill: &mut Fill<'_, P>,
) -> Result<u64, Error> {
    if name.is_empty() {
        return Err(Error::EmptyTableName);
    }
    let key = Text::new(name)
        .map_err(|_| Error::LongName { name: name.to_owned(), bytes_max: NAME_BYTES })?;
    let (table, other) = (directory(inner, is_volatile)?, directory(inner, !is_volatile)?);
    let object = wanted.named(key);
    let found = run_internal(inner, |tx| {
        for table in [&other, &table] {
            if let Some(found) = table.get(tx, name, Whole)? {
                return Ok(found);
            }
        }
        let first = number_cells(&table, tx, wanted.cells)?;
        let made = object.beginning_at(first);
        table.insert(tx, made)?;
        fill(tx, first)?;
        Ok(made)
    })?;
    if (found.type_name, found.layout) == (object.type_name, object.layout) {
        return Ok(found.first);
    }
    let existing = match found.type_name == object.type_name {
        true => format!("{}, with values of another layout", found.type_name),
        false => found.type_name.to_string(),
    };
    Err(Error::ObjectType { object: name.to_owned(), wanted: wanted.name.clone(), existing })
}

/// Returns the number of the first of `count` new cells.
fn number_cells<P: Protocol>(
    table: &Table<Named, P>,
    tx: &Tx<'_, P>,
    count: u64,
) -> Result<u64, Abort> {
    let all = table.get(tx, "", Named::FIRST)?.unwrap_or(0);
    let name = Text::default();
    table.put(tx, Named { name, type_name: Text::default(), layout: 0, first: all + count })?;
    Ok(all)
}

/// Finds the object of cells that has this name, or makes one with the cells that `values` returns.
pub(super) fn named_cells<C: CellTable<P>, P: Protocol>(
    db: &Database<P>,
    name: &str,
    wanted: &ObjectType,
    values: &dyn Fn(u64) -> C::Value,
) -> Result<Cells<C, P>, Error> {
    let table = C::open(db, true)?;
    let first = find_object(&db.inner, (name, C::VOLATILE), wanted, &mut |tx, first| {
        Cells::fill(&table, tx, first, (0..wanted.cells).map(values))
    })?;
    Ok(Cells::new(table, (first, wanted.cells), None))
}

/// Makes an object of `count` cells without a name, in a transaction of its own.
pub(super) fn unnamed_cells<C: CellTable<P>, P: Protocol>(
    db: &Database<P>,
    count: u64,
    values: &dyn Fn(u64) -> C::Value,
) -> Result<Cells<C, P>, Error> {
    delete_dropped(&db.inner)?;
    let cells = number_unnamed::<C, P>(db, count)?;
    run_internal(&db.inner, |tx| {
        Cells::fill(&cells.table, tx, cells.first, (0..count).map(values))
    })?;
    Ok(cells)
}

/// Makes an object of `count` cells without a name, as a part of a transaction.
pub(super) fn unnamed_cells_in<C: CellTable<P>, P: Protocol>(
    db: &Database<P>,
    tx: &Tx<'_, P>,
    count: u64,
    values: &dyn Fn(u64) -> C::Value,
) -> Result<Cells<C, P>, Error> {
    let cells = number_unnamed::<C, P>(db, count)?;
    Cells::fill(&cells.table, tx, cells.first, (0..count).map(values))?;
    Ok(cells)
}

/// Returns new cells that have no rows yet.
fn number_unnamed<C: CellTable<P>, P: Protocol>(
    db: &Database<P>,
    count: u64,
) -> Result<Cells<C, P>, Error> {
    let table = C::open(db, false)?;
    let first = db.inner.catalog.unnamed.number_cells(count);
    let owner = Owner::new(&db.inner, table.shared_core(), Owned::Cells(first, count));
    Ok(Cells::new(table, (first, count), Some(owner)))
}
