//! One lock around everything: the standard library's maps behind its mutex.

use std::collections::HashMap;
use std::sync::{self, PoisonError};

use foldhash::fast::RandomState;

use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, once, there,
};

/// A mutex around maps.
pub(crate) struct Mutex;

impl Peer for Mutex {
    const NAME: &'static str = "mutex";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str =
        "std::sync::Mutex around HashMaps, held for the whole transaction; cannot roll back";
    const ROLE: Role = Role::Yardstick;
    type Store<V: Value> = Locked<V>;
}

/// A map for each table.
pub(super) type Maps<V> = Vec<HashMap<u64, V, RandomState>>;

/// Returns empty maps with room for the rows.
pub(super) fn maps<V>(size: Size) -> Maps<V> {
    let map = |_| HashMap::with_capacity_and_hasher(size.rows as usize, RandomState::default());
    (0..size.tables).map(map).collect()
}

/// The maps and their lock.
pub(crate) struct Locked<V>(sync::Mutex<Maps<V>>);

impl<V: Value> Store<V> for Locked<V> {
    type Session<'s> = &'s Locked<V>;

    fn open(size: Size) -> Result<Self, Failure> {
        Ok(Locked(sync::Mutex::new(maps(size))))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)[table].extend(rows);
        Ok(())
    }

    fn session(&self) -> Result<&Locked<V>, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Locked<V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        once(|| work.run(&mut *maps))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        once(|| work.run(&mut *maps))
    }
}

impl<V: Value> Read<V> for Maps<V> {
    #[inline]
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        there(self[place.table].get(&place.key).copied(), place)
    }
}

impl<V: Value> Write<V> for Maps<V> {
    #[inline]
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self[place.table].insert(place.key, value);
        Ok(())
    }

    #[inline]
    fn modify<T>(&mut self, place: Place, change: impl Fn(&mut V) -> T) -> Result<T, Stopped> {
        Ok(change(there(self[place.table].get_mut(&place.key), place)?))
    }
}
