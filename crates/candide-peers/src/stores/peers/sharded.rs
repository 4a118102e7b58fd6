//! Hand-written two-phase locking: maps in shards, each with a lock of its own. A transaction names
//! the rows that it may touch, takes the locks of their shards in ascending order, and holds the
//! locks until it ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, once, there,
};

/// Maps in shards.
pub(crate) struct Sharded;

impl Peer for Sharded {
    const NAME: &'static str = "sharded";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str = "1024 std::sync::Mutexes per table, each around a HashMap, taken in order for the rows that a \
                               transaction names beforehand; cannot roll back";
    const ROLE: Role = Role::Yardstick;
    type Store<V: Value> = Shards<V>;
}

/// The number of shards of each table.
const COUNT: usize = 1024;

type Map<V> = HashMap<u64, V, RandomState>;

/// A shard, on cache lines of its own.
#[repr(align(128))]
struct Shard<V>(Mutex<Map<V>>);

/// All shards. The shards of one table are adjacent.
pub(crate) struct Shards<V>(Vec<Shard<V>>);

/// Returns the number of a row's shard. The high bits of the product depend on all bits of the key.
fn shard_of(place: Place) -> usize {
    let mixed = place.key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - COUNT.ilog2());
    place.table * COUNT + mixed as usize
}

impl<V: Value> Store<V> for Shards<V> {
    type Session<'s> = &'s Shards<V>;

    fn open(size: Size) -> Result<Self, Failure> {
        Ok(Shards((0..size.tables * COUNT).map(|_| Shard(Mutex::default())).collect()))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        for (key, value) in rows {
            let shard = &mut self.0[shard_of(Place { table, key })];
            shard.0.get_mut().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        }
        Ok(())
    }

    fn session(&self) -> Result<&Shards<V>, Failure> {
        Ok(self)
    }
}

impl<V: Value> Shards<V> {
    fn lock(&self, places: impl Iterator<Item = Place>) -> Held<'_, V> {
        let mut numbers: Vec<usize> = places.map(shard_of).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lock = |number: usize| {
            (number, self.0[number].0.lock().unwrap_or_else(PoisonError::into_inner))
        };
        Held(numbers.into_iter().map(lock).collect())
    }
}

impl<V: Value> Session<V> for &Shards<V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut held = self.lock(work.places());
        once(|| work.run(&mut held))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut held = self.lock(work.places());
        once(|| work.run(&mut held))
    }
}

/// The locked shards of a transaction, each with its number, in ascending order.
struct Held<'s, V>(Vec<(usize, MutexGuard<'s, Map<V>>)>);

impl<V: Value> Held<'_, V> {
    #[inline]
    fn map(&mut self, place: Place) -> Result<&mut Map<V>, Stopped> {
        let index = self.0.binary_search_by_key(&shard_of(place), |&(number, _)| number);
        let index = there(index.ok(), place)?;
        Ok(&mut self.0[index].1)
    }
}

impl<V: Value> Read<V> for Held<'_, V> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        there(self.map(place)?.get(&place.key).copied(), place)
    }
}

impl<V: Value> Write<V> for Held<'_, V> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.map(place)?.insert(place.key, value);
        Ok(())
    }

    #[inline]
    fn modify<T>(&mut self, place: Place, change: impl Fn(&mut V) -> T) -> Result<T, Stopped> {
        Ok(change(there(self.map(place)?.get_mut(&place.key), place)?))
    }
}
