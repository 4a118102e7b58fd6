//! Candide's tables, hashed and ordered, under the default protocol.

use std::marker::PhantomData;

use candide::schema::{IndexKind, RowReader, RowWriter};
use candide::{Abort, Column, Database, Group, Hashed, Ordered, Protocol, Record, Session, Table};

use crate::{BATCH, Handle, Key, Kind, Map, Role};

/// A row: the key and one word.
struct Row<K, I> {
    key: K,
    value: u64,
    index: PhantomData<fn() -> I>,
}

impl<K: Copy, I> Clone for Row<K, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, I> Copy for Row<K, I> {}

impl<K: Key, I: IndexKind> Row<K, I> {
    const VALUE: Column<Row<K, I>, u64> = Column::new(0, 0, "value");

    fn new(key: &K) -> Row<K, I> {
        Row { key: *key, value: key.value(), index: PhantomData }
    }
}

impl<K: Key, I: IndexKind> Record for Row<K, I> {
    type Key = K;
    type Index = I;
    type Image = [u64; 1];
    const META: candide::schema::Meta = candide::schema::Meta::new("Row", &[Group::new("value", 1)]);

    fn key(&self) -> K {
        self.key
    }
    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }
    fn load(key: &K, row: &RowReader<'_>) -> Row<K, I> {
        Row { key: *key, value: Self::VALUE.take(row), index: PhantomData }
    }
}

/// A database type, with its protocol.
trait Runs {
    type Protocol: Protocol;
}

impl<P: Protocol> Runs for Database<P> {
    type Protocol = P;
}

/// The default protocol of the engine.
type Default = <Database as Runs>::Protocol;

/// The division of a batch of operations into transactions.
pub(super) trait Usage: Sync + 'static {
    /// The names of a hashed table and of an ordered table with this usage.
    const NAMES: [&'static str; 2];
    /// Whether all inserts of a batch are one transaction.
    const TOGETHER: bool = false;

    fn lookup<K: Key, I: IndexKind>(
        rows: &mut Rows<'_, K, I, Self>,
        keys: &[K],
    ) -> Result<Option<u64>, Abort>
    where
        Self: Sized;
}

/// One operation per transaction.
pub(super) struct Single;
/// One operation per transaction. Lookups use no closure.
pub(super) struct Alone;
/// All operations of a batch in one transaction.
pub(super) struct Batched;
/// All operations of a batch in one transaction. The lookups of the batch are made by one call.
pub(super) struct Together;

/// The table and its database.
pub(super) struct Rowed<K: Key, I: IndexKind, U> {
    database: Database,
    table: Table<Row<K, I>, Default>,
    usage: PhantomData<U>,
}

/// A hashed table.
pub(super) type Hash<K, U> = Rowed<K, Hashed, U>;
/// An ordered table.
pub(super) type Sorted<K, U> = Rowed<K, Ordered, U>;

/// A thread's session.
pub(super) struct Rows<'m, K: Key, I: IndexKind, U> {
    session: Session<Default>,
    table: &'m Table<Row<K, I>, Default>,
    usage: PhantomData<U>,
}

impl<K: Key, I: IndexKind, U: Usage> Rowed<K, I, U> {
    fn made() -> Self {
        let database = Database::new();
        let table = database.table("rows").expect("it is the only table");
        Rowed { database, table, usage: PhantomData }
    }

    fn opened(&self) -> Rows<'_, K, I, U> {
        let session = self.database.session().expect("the number of sessions is unlimited");
        Rows { session, table: &self.table, usage: PhantomData }
    }
}

impl<K: Key, U: Usage> Map<K> for Hash<K, U> {
    const NAME: &'static str = U::NAMES[0];
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Candide;
    type Handle<'m> = Rows<'m, K, Hashed, U>;

    fn new() -> Self {
        Self::made()
    }

    fn handle(&self) -> Self::Handle<'_> {
        self.opened()
    }
}

impl<K: Key, U: Usage> Map<K> for Sorted<K, U> {
    const NAME: &'static str = U::NAMES[1];
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Candide;
    type Handle<'m> = Rows<'m, K, Ordered, U>;

    fn new() -> Self {
        Self::made()
    }

    fn handle(&self) -> Self::Handle<'_> {
        self.opened()
    }
}

impl<K: Key, I: IndexKind, U: Usage> Rows<'_, K, I, U> {
    #[inline]
    fn insert_all(&mut self, keys: &[K]) {
        let Rows { session, table, .. } = self;
        let inserted = if U::TOGETHER {
            session.run(|tx| keys.iter().try_for_each(|key| table.insert(tx, Row::new(key))))
        } else {
            keys.iter().try_for_each(|key| session.run(|tx| table.insert(tx, Row::new(key))))
        };
        inserted.expect("the keys are new");
    }

    #[inline]
    fn lookup_all(&mut self, keys: &[K]) -> Option<u64> {
        U::lookup(self, keys).expect("lookups fail only for a while")
    }
}

impl<K: Key, U: Usage> Handle<K> for Rows<'_, K, Hashed, U> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        self.insert_all(keys);
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        self.lookup_all(keys)
    }
}

impl<K: Key, U: Usage> Handle<K> for Rows<'_, K, Ordered, U> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        self.insert_all(keys);
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        self.lookup_all(keys)
    }

    #[inline]
    fn scan<A: std::default::Default>(
        &mut self,
        from: &K,
        count: usize,
        step: impl Fn(&mut A, &K, u64),
    ) -> A {
        let Rows { session, table, .. } = self;
        let scanned = session.run(|tx| {
            let mut sum = A::default();
            for row in table.scan(tx, *from.., Row::VALUE).take(count) {
                let (key, value) = row?;
                step(&mut sum, &key, value);
            }
            Ok(sum)
        });
        scanned.expect("scans fail only for a while")
    }
}

impl Usage for Single {
    const NAMES: [&'static str; 2] = ["candide", "candide-ordered"];

    #[inline]
    fn lookup<K: Key, I: IndexKind>(
        rows: &mut Rows<'_, K, I, Self>,
        keys: &[K],
    ) -> Result<Option<u64>, Abort> {
        sum_of(keys, |key| rows.session.run(|tx| rows.table.get(tx, key, Row::VALUE)))
    }
}

impl Usage for Alone {
    const NAMES: [&'static str; 2] = ["candide-now", "candide-ordered-now"];

    #[inline]
    fn lookup<K: Key, I: IndexKind>(
        rows: &mut Rows<'_, K, I, Self>,
        keys: &[K],
    ) -> Result<Option<u64>, Abort> {
        sum_of(keys, |key| rows.table.get_now(&mut rows.session, key, Row::VALUE))
    }
}

impl Usage for Batched {
    const NAMES: [&'static str; 2] = ["candide-10", "candide-ordered-10"];
    const TOGETHER: bool = true;

    #[inline]
    fn lookup<K: Key, I: IndexKind>(
        rows: &mut Rows<'_, K, I, Self>,
        keys: &[K],
    ) -> Result<Option<u64>, Abort> {
        found(rows.session.run(|tx| {
            keys.iter().try_fold(0u64, |sum, key| {
                Ok(sum.wrapping_add(rows.table.read(tx, key, Row::VALUE)?))
            })
        }))
    }
}

impl Usage for Together {
    const NAMES: [&'static str; 2] = ["candide-many", "candide-ordered-many"];
    const TOGETHER: bool = true;

    #[inline]
    fn lookup<K: Key, I: IndexKind>(
        rows: &mut Rows<'_, K, I, Self>,
        keys: &[K],
    ) -> Result<Option<u64>, Abort> {
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

/// Looks up `keys` one by one, and returns the sum of the values found; `None` if a row is missing.
#[inline]
fn sum_of<K>(
    keys: &[K],
    mut get: impl FnMut(&K) -> Result<Option<u64>, Abort>,
) -> Result<Option<u64>, Abort> {
    let mut sum = 0u64;
    for key in keys {
        match get(key)? {
            Some(value) => sum = sum.wrapping_add(value),
            None => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// Converts the error of a missing row into `None`.
fn found(sum: Result<u64, Abort>) -> Result<Option<u64>, Abort> {
    match sum {
        Ok(sum) => Ok(Some(sum)),
        Err(Abort::NotFound) => Ok(None),
        Err(abort) => Err(abort),
    }
}
