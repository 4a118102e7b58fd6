//! The objects of a database by name: a table with a row for each of them.

#![forbid(unsafe_code)]

use super::cells::{CellTable, Cells};
use super::owner::{Owned, Owner, run_internal};
use super::stored::Stored;
use crate::api::{Database, Table, find_table};
use crate::catalog::TableOptions;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::schema::column::Whole;
use crate::schema::{Column, Group, Hashed, Meta, Record, RowReader, RowType, RowWriter, Text};
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
    const META: Meta = Meta::new("Object", &[Group::new("object", 18)]);

    fn key(&self) -> Text<NAME_BYTES> {
        self.name
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        Self::TYPE_NAME.put(row, &self.type_name);
        Self::LAYOUT.put(row, &self.layout);
        Self::FIRST.put(row, &self.first);
    }

    fn load(name: &Text<NAME_BYTES>, row: &RowReader<'_>) -> Named {
        Named {
            name: *name,
            type_name: Self::TYPE_NAME.take(row),
            layout: Self::LAYOUT.take(row),
            first: Self::FIRST.take(row),
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

    /// Returns the type's name. If it is very long, a number that stands for the whole name is in
    /// the place of its end.
    fn kept_name(&self) -> Text<TYPE_BYTES> {
        if let Ok(whole) = Text::new(&self.name) {
            return whole;
        }
        let hash = format!("~{:016x}", hash_of(&self.name));
        let mut end = TYPE_BYTES - hash.len();
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        Text::new(&format!("{}{hash}", &self.name[..end])).expect("it has been shortened")
    }

    /// Checks that an object that exists is of this type. Returns the number of its first cell.
    fn check(&self, name: &str, found: &Named) -> Result<u64, Error> {
        let has_name = found.type_name == self.kept_name();
        match has_name {
            true if found.layout == self.layout => Ok(found.first),
            true => {
                let existing = format!("{}, with values of another layout", found.type_name);
                Err(self.refusal(name, existing))
            }
            false => Err(self.refusal(name, found.type_name.to_string())),
        }
    }

    /// Returns the error that the object of this name is of another type.
    pub(super) fn refusal(&self, name: &str, existing: String) -> Error {
        Error::ObjectType { object: name.to_owned(), wanted: self.name.clone(), existing }
    }
}

/// Returns a hash that never changes, since it is in files: 64-bit FNV-1a.
fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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

/// The tables in which an object may be: the one where it is made, and then the other one.
struct Directories<P: Protocol>([Table<Named, P>; 2]);

impl<P: Protocol> Directories<P> {
    /// Returns the tables, and the name of an object as their key.
    ///
    /// # Errors
    /// [`Error::EmptyTableName`], [`Error::LongName`]; those of tables.
    fn open(
        inner: &Handle<P>,
        (name, is_volatile): (&str, bool),
    ) -> Result<(Directories<P>, Text<NAME_BYTES>), Error> {
        if name.is_empty() {
            return Err(Error::EmptyTableName);
        }
        let key = Text::new(name)
            .map_err(|_| Error::LongName { name: name.to_owned(), bytes_max: NAME_BYTES })?;
        let tables = [directory(inner, is_volatile)?, directory(inner, !is_volatile)?];
        Ok((Directories(tables), key))
    }

    fn find(&self, tx: &Tx<'_, P>, name: &Text<NAME_BYTES>) -> Result<Option<Named>, Abort> {
        let [own, other] = &self.0;
        match other.get(tx, name, Whole)? {
            Some(found) => Ok(Some(found)),
            None => own.get(tx, name, Whole),
        }
    }
}

/// Checks that an object of this name, if there is one, is of this type.
///
/// # Errors
/// As [`find_object`].
pub(super) fn check_type<P: Protocol>(
    inner: &Handle<P>,
    named: (&str, bool),
    wanted: &ObjectType,
) -> Result<(), Error> {
    let (tables, key) = Directories::open(inner, named)?;
    match run_internal(inner, |tx| tables.find(tx, &key))? {
        Some(found) => wanted.check(named.0, &found).map(drop),
        None => Ok(()),
    }
}

/// Finds the object of this name, or makes one. In the transaction that makes it, calls `fill`
/// with the number of its first cell.
///
/// # Errors
/// [`Error::ObjectType`] if there is an object of another type; [`Error::EmptyTableName`],
/// [`Error::LongName`]; errors of tables and of the transaction.
pub(super) fn find_object<P: Protocol>(
    inner: &Handle<P>,
    named: (&str, bool),
    wanted: &ObjectType,
    fill: &mut Fill<'_, P>,
) -> Result<u64, Error> {
    let (tables, key) = Directories::open(inner, named)?;
    let object = wanted.named(key);
    let found = run_internal(inner, |tx| {
        if let Some(found) = tables.find(tx, &key)? {
            return Ok(found);
        }
        let table = &tables.0[0];
        let first = number_cells(table, tx, wanted.cells)?;
        let made = object.beginning_at(first);
        table.insert(tx, made)?;
        fill(tx, first)?;
        Ok(made)
    })?;
    wanted.check(named.0, &found)
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
    let cells = number_unnamed::<C, P>(db, count)?;
    run_internal(&db.inner, |tx| {
        Cells::fill(&cells.table, tx, cells.first, (0..count).map(values))
    })?;
    Ok(cells)
}

/// Makes an object of one cell without a name, as a part of a transaction.
pub(super) fn unnamed_cell_in<C: CellTable<P>, P: Protocol>(
    db: &Database<P>,
    tx: &Tx<'_, P>,
    value: C::Value,
) -> Result<Cells<C, P>, Error> {
    let cells = number_unnamed::<C, P>(db, 1)?;
    Cells::fill(&cells.table, tx, cells.first, [value])?;
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
