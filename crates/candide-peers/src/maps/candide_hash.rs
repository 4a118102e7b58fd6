//! Candide's hash table, under the default protocol.

use std::marker::PhantomData;

use candide::{Abort, Column, Database, Group, Protocol, Record, Session, Table};

use crate::{BATCH, Handle, Key, Kind, Map, Role};

/// A row: the key and one word.
#[derive(Clone, Copy)]
struct Row<K> {
    key: K,
    value: u64,
}

impl<K: Key> Row<K> {
    const VALUE: Column<Row<K>, u64> = Column::new(0, 0, "value");

    fn new(key: &K) -> Row<K> {
        Row { key: *key, value: key.value() }
    }
}

impl<K: Key> Record for Row<K> {
    type Key = K;
    type Index = candide::Hashed;
    type Image = [u64; 1];
    const NAME: &'static str = "Row";
    const GROUPS: &'static [Group] = &[Group::new("value", 1)];

    fn key(&self) -> K {
        self.key
    }
    fn store(&self, words: &mut [u64]) {
        Self::VALUE.put(words, &self.value);
    }
    fn load(key: &K, words: &[u64]) -> Row<K> {
        Row { key: *key, value: Self::VALUE.take(words) }
    }
}

/// Finds the protocol of a database.
trait Runs {
    type Protocol: Protocol;
}

impl<P: Protocol> Runs for Database<P> {
    type Protocol = P;
}

/// The default protocol, whichever that is.
type Default = <Database as Runs>::Protocol;

/// How a batch of operations becomes transactions.
pub(super) trait Usage: Sync + 'static {
    const NAME: &'static str;

    fn insert<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<(), Abort>
    where
        Self: Sized;

    fn lookup<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<Option<u64>, Abort>
    where
        Self: Sized;
}

/// One operation per transaction.
pub(super) struct Single;
/// All of a batch in one transaction.
pub(super) struct Batched;
/// All of a batch in one transaction, looked up together.
pub(super) struct Together;

/// The table, with one operation per transaction.
pub(super) type One<K> = Hash<K, Single>;
/// The table, with ten.
pub(super) type Ten<K> = Hash<K, Batched>;
/// The table, with ten looked up together.
pub(super) type Many<K> = Hash<K, Together>;

/// The table and its database.
pub(super) struct Hash<K: Key, U> {
    database: Database,
    table: Table<Row<K>, Default>,
    usage: PhantomData<U>,
}

/// A thread's session.
pub(super) struct Rows<'m, K: Key, U> {
    session: Session<Default>,
    table: &'m Table<Row<K>, Default>,
    usage: PhantomData<U>,
}

impl<K: Key, U: Usage> Map<K> for Hash<K, U> {
    const NAME: &'static str = U::NAME;
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Candide;
    type Handle<'m> = Rows<'m, K, U>;

    fn new() -> Self {
        let database = Database::new();
        let table = database.table("rows").expect("it is the only table");
        Hash { database, table, usage: PhantomData }
    }

    fn handle(&self) -> Rows<'_, K, U> {
        let session = self.database.session().expect("there may be many");
        Rows { session, table: &self.table, usage: PhantomData }
    }
}

impl<K: Key, U: Usage> Handle<K> for Rows<'_, K, U> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        U::insert(self, keys).expect("the keys are new");
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        U::lookup(self, keys).expect("lookups fail only for a while")
    }

    fn scan<A: std::default::Default>(&mut self, _: &K, _: usize, _: impl Fn(&mut A, &K, u64)) -> A {
        unreachable!("it has no order")
    }
}

impl Usage for Single {
    const NAME: &'static str = "candide";

    #[inline]
    fn insert<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<(), Abort> {
        keys.iter().try_for_each(|key| rows.session.run(|tx| rows.table.insert(tx, Row::new(key))))
    }

    #[inline]
    fn lookup<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<Option<u64>, Abort> {
        let mut sum = 0u64;
        for key in keys {
            match rows.session.run(|tx| rows.table.get(tx, key, Row::VALUE))? {
                Some(value) => sum = sum.wrapping_add(value),
                None => return Ok(None),
            }
        }
        Ok(Some(sum))
    }
}

impl Usage for Batched {
    const NAME: &'static str = "candide-10";

    #[inline]
    fn insert<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<(), Abort> {
        rows.session.run(|tx| keys.iter().try_for_each(|key| rows.table.insert(tx, Row::new(key))))
    }

    #[inline]
    fn lookup<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<Option<u64>, Abort> {
        found(rows.session.run(|tx| {
            keys.iter().try_fold(0u64, |sum, key| Ok(sum.wrapping_add(rows.table.read(tx, key, Row::VALUE)?)))
        }))
    }
}

impl Usage for Together {
    const NAME: &'static str = "candide-many";

    #[inline]
    fn insert<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<(), Abort> {
        rows.session.run(|tx| keys.iter().try_for_each(|key| rows.table.insert(tx, Row::new(key))))
    }

    #[inline]
    fn lookup<K: Key>(rows: &mut Rows<'_, K, Self>, keys: &[K]) -> Result<Option<u64>, Abort> {
        found(rows.session.run(|tx| {
            let (batches, rest) = keys.as_chunks::<BATCH>();
            let mut sum = 0u64;
            for batch in batches {
                let found = rows.table.find_many(tx, batch)?;
                found.iter().for_each(|row| row.prefetch(Row::VALUE));
                for row in &found {
                    sum = sum.wrapping_add(row.read(Row::VALUE)?);
                }
            }
            for key in rest {
                sum = sum.wrapping_add(rows.table.read(tx, key, Row::VALUE)?);
            }
            Ok(sum)
        }))
    }
}

/// Turns the outcome that a row is missing into `None`.
fn found(sum: Result<u64, Abort>) -> Result<Option<u64>, Abort> {
    match sum {
        Ok(sum) => Ok(Some(sum)),
        Err(Abort::NotFound) => Ok(None),
        Err(abort) => Err(abort),
    }
}
