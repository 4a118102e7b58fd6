//! Candide, under any of its protocols.

use std::marker::PhantomData;
use std::path::Path;

use candide::schema::{RowReader, RowWriter};
use candide::{
    Column, Database, Group, Hashed, Level, LoadOptions, LogOptions, Pending, Protocol, Record,
    Session, Table, TableOptions, Tx,
};

use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Size, Stopped, Store, Value, Write, Writing,
};

/// The engine under `P`.
pub(crate) struct Candide<P>(PhantomData<P>);

/// The names of the protocols, and their names among the peers.
const NAMES: &[(&str, &str)] = &[
    ("occ", "candide-occ"),
    ("tictoc", "candide-tictoc"),
    ("mvcc", "candide-mvcc"),
    ("mvto", "candide-mvto"),
    ("serial", "candide-serial"),
    ("global-lock", "candide-global-lock"),
];

const fn name_of(protocol: &str) -> &'static str {
    let mut index = 0;
    while index < NAMES.len() {
        if equal(NAMES[index].0.as_bytes(), protocol.as_bytes()) {
            return NAMES[index].1;
        }
        index += 1;
    }
    panic!("the protocol has no name among the peers")
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    a.len() == b.len() && index == a.len()
}

impl<P: Protocol> Peer for Candide<P> {
    const NAME: &'static str = name_of(P::NAME);
    const CRATE: Option<&'static str> = Some("candide");
    const USE: &'static str = "hashed tables, a session for each thread; serializable";
    const ROLE: Role = Role::Candide;
    const THREADS_MAX: usize = if P::ONE_SESSION { 1 } else { usize::MAX };
    type Store<V: Value> = Tables<P, V>;
}

impl<P: Protocol> Durable for Candide<P> {
    const NAME: &'static str = name_of(P::NAME);
    const CRATE: Option<&'static str> = Some("candide");
    const USE: &'static str = "Builder::open, Level::Durable: run returns when the commit is durable; hashed tables, a session for \
                               each thread; serializable";
    const ROLE: Role = Role::Candide;
    type Store = Tables<P, i64>;
    type Committer<'s> = Waiting<Sessions<'s, P, i64>>;

    fn open(directory: &Path, size: Size) -> Result<Tables<P, i64>, Failure> {
        Tables::open_in(directory, size)
    }

    fn committer(store: &Tables<P, i64>) -> Result<Self::Committer<'_>, Failure> {
        Ok(Waiting(store.session()?))
    }
}

/// A row: the key and the value.
#[derive(Clone, Copy)]
pub(crate) struct Row<V> {
    key: u64,
    value: V,
}

impl<V: Value> Row<V> {
    const VALUE: Column<Row<V>, V> = Column::new(0, 0, "value");
}

impl<V: Value> Record for Row<V> {
    type Key = u64;
    type Index = Hashed;
    type Image = V::Image;
    const META: candide::schema::Meta =
        candide::schema::Meta::new("Row", &[Group::new("value", V::WORDS)]);

    fn key(&self) -> u64 {
        self.key
    }
    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }
    fn load(key: &u64, row: &RowReader<'_>) -> Row<V> {
        Row { key: *key, value: Self::VALUE.take(row) }
    }
}

/// A database and its tables.
pub(crate) struct Tables<P: Protocol, V: Value> {
    database: Database<P>,
    tables: Vec<Table<Row<V>, P>>,
}

impl<P: Protocol, V: Value> Tables<P, V> {
    /// Opens the database in a directory. Each transaction is durable before it ends.
    pub(super) fn open_in(directory: &Path, size: Size) -> Result<Self, Failure> {
        let options = LogOptions::new().acknowledge(Level::Durable);
        Tables::of(Database::<P>::builder().open(directory, options)?, size)
    }

    fn of(database: Database<P>, size: Size) -> Result<Self, Failure> {
        let tables = opened(&database, size)?;
        Ok(Tables { database, tables })
    }
}

/// Returns new tables of a database.
pub(super) fn opened<R: Record, P: Protocol>(
    database: &Database<P>,
    size: Size,
) -> Result<Vec<Table<R, P>>, Failure> {
    let options = TableOptions::default().capacity(size.rows as usize);
    let table = |number| database.table_with(&format!("table {number}"), options);
    Ok((0..size.tables).map(table).collect::<Result<_, _>>()?)
}

impl<P: Protocol, V: Value> Store<V> for Tables<P, V> {
    type Session<'s> = Sessions<'s, P, V>;

    fn open(size: Size) -> Result<Self, Failure> {
        Tables::of(Database::<P>::builder().build()?, size)
    }

    fn load(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (u64, V)> + Send,
    ) -> Result<(), Failure> {
        self.tables[table].load(rows.map(|(key, value)| Row { key, value }), LoadOptions::new())?;
        Ok(())
    }

    fn session(&self) -> Result<Sessions<'_, P, V>, Failure> {
        Ok(Sessions { session: self.database.session()?, tables: &self.tables })
    }
}

/// A thread's session.
pub(crate) struct Sessions<'s, P: Protocol, V: Value> {
    session: Session<P>,
    tables: &'s [Table<Row<V>, P>],
}

impl<P: Protocol, V: Value> Sessions<'_, P, V> {
    /// Runs a transaction without waiting until it is durable. Returns the transaction and the
    /// number of repetitions after conflicts.
    pub(super) fn run_logged<W: Writing<V>>(
        &mut self,
        work: &W,
    ) -> (Pending<W::Output, Stopped>, u64) {
        let Sessions { session, tables } = self;
        let mut attempts = 0;
        let pending = session.try_run_logged(|tx| {
            attempts += 1;
            work.run(&mut Running { tx, tables })
        });
        (pending, attempts - 1)
    }

    fn run<T>(
        &mut self,
        body: impl Fn(&mut Running<'_, '_, P, V>) -> Result<T, Stopped>,
    ) -> Result<Done<T>, Failure> {
        let Sessions { session, tables } = self;
        run(session, |tx| body(&mut Running { tx, tables }))
    }
}

/// Runs a transaction until it has committed.
pub(super) fn run<P: Protocol, T>(
    session: &mut Session<P>,
    body: impl Fn(&Tx<'_, P>) -> Result<T, Stopped>,
) -> Result<Done<T>, Failure> {
    let mut attempts = 0;
    let end = session.try_run(|tx| {
        attempts += 1;
        body(tx)
    });
    match end {
        Ok(output) => Ok(Done { output, retries: attempts - 1 }),
        Err(Stopped::Conflict) => Err("a conflict that was not repeated".into()),
        Err(Stopped::Failed(failure)) => Err(failure),
    }
}

impl<P: Protocol, V: Value> crate::stores::Session<V> for Sessions<'_, P, V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        self.run(|tx| work.run(tx))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        self.run(|tx| work.run(tx))
    }
}

/// A transaction.
struct Running<'t, 's, P: Protocol, V: Value> {
    tx: &'t Tx<'s, P>,
    tables: &'t [Table<Row<V>, P>],
}

impl<P: Protocol, V: Value> Read<V> for Running<'_, '_, P, V> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        Ok(self.tables[place.table].read(self.tx, &place.key, Row::<V>::VALUE)?)
    }
}

impl<P: Protocol, V: Value> Write<V> for Running<'_, '_, P, V> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        Ok(self.tables[place.table].update(self.tx, &place.key, Row::<V>::VALUE.set(value))?)
    }

    #[inline]
    fn modify<T>(&mut self, place: Place, change: impl Fn(&mut V) -> T) -> Result<T, Stopped> {
        Ok(self.tables[place.table].modify(self.tx, &place.key, Row::<V>::VALUE, change)?)
    }
}
