//! Candide's default protocol, with rows whose values are bytes of any length, as the other stores
//! keep them.

use candide::{DefaultProtocol, Record, Session, Table, Tx};

use super::candide_table::{opened, run};
use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Size, Stopped, Store, Value, Write, Writing,
};

/// Candide with values of any length.
pub(crate) struct CandideLong;

impl Peer for CandideLong {
    const NAME: &'static str = "candide-occ-long";
    const CRATE: Option<&'static str> = Some("candide");
    const USE: &'static str =
        "as candide-occ, but a value is a column of Vec<u8>, which a read lends; serializable";
    const ROLE: Role = Role::Candide;
    type Store<V: Value> = Tables;
}

/// A row: the key and the bytes of the value.
#[derive(Clone, Record)]
pub(crate) struct LongRow {
    #[key]
    key: u64,
    value: Vec<u8>,
}

/// A database and its tables.
pub(crate) struct Tables {
    database: candide::Database,
    tables: Vec<Table<LongRow>>,
}

impl<V: Value> Store<V> for Tables {
    type Session<'s> = Sessions<'s>;

    fn open(size: Size) -> Result<Self, Failure> {
        let database = candide::Database::new();
        let tables = opened(&database, size)?;
        Ok(Tables { database, tables })
    }

    fn load(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (u64, V)> + Send,
    ) -> Result<(), Failure> {
        for (key, value) in rows {
            let row = LongRow { key, value: value.to_bytes().as_ref().to_vec() };
            self.database.run(|tx| self.tables[table].insert(tx, row.clone()))?;
        }
        Ok(())
    }

    fn session(&self) -> Result<Sessions<'_>, Failure> {
        Ok(Sessions { session: self.database.session()?, tables: &self.tables })
    }
}

/// A thread's session.
pub(crate) struct Sessions<'s> {
    session: Session<DefaultProtocol>,
    tables: &'s [Table<LongRow>],
}

impl<V: Value> crate::stores::Session<V> for Sessions<'_> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let tables = self.tables;
        run(&mut self.session, |tx| work.run(&mut Running { tx, tables }))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let tables = self.tables;
        run(&mut self.session, |tx| work.run(&mut Running { tx, tables }))
    }
}

/// A transaction.
struct Running<'t, 's> {
    tx: &'t Tx<'s>,
    tables: &'t [Table<LongRow>],
}

impl<V: Value> Read<V> for Running<'_, '_> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let table = &self.tables[place.table];
        Ok(table.read_with(self.tx, &place.key, LongRow::VALUE, V::from_bytes)?)
    }
}

impl<V: Value> Write<V> for Running<'_, '_> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        let set = LongRow::VALUE.set(value.to_bytes());
        Ok(self.tables[place.table].update(self.tx, &place.key, set)?)
    }
}
