//! Stores with deliberate faults.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::Role;
use crate::stores::{
    Done, Failure, Peer, Place, Read, Reading, Session, Size, Stopped, Store, Value, Write,
    Writing, once, there,
};

type Rows<V> = HashMap<(usize, u64), V>;

/// Maps behind a mutex. A transaction holds the mutex only during each operation.
pub(super) struct NoIsolation;

impl Peer for NoIsolation {
    const NAME: &'static str = "no-isolation";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str = "loses updates";
    const ROLE: Role = Role::Yardstick;
    type Store<V: Value> = Each<V>;
}

/// The rows, and a lock for each operation.
pub(in crate::stores) struct Each<V>(Mutex<Rows<V>>);

impl<V> Each<V> {
    fn lock(&self) -> MutexGuard<'_, Rows<V>> {
        self.0.lock().unwrap()
    }
}

impl<V: Value> Store<V> for Each<V> {
    type Session<'s> = &'s Each<V>;

    fn open(_: Size) -> Result<Self, Failure> {
        Ok(Each(Mutex::default()))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        self.lock().extend(rows.map(|(key, value)| ((table, key), value)));
        Ok(())
    }

    fn session(&self) -> Result<&Each<V>, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Each<V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        once(|| work.run(self))
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        once(|| work.run(self))
    }
}

impl<V: Value> Read<V> for &Each<V> {
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let found = self.lock().get(&(place.table, place.key)).copied();
        // Lets other threads run between this read and the next operation.
        std::thread::yield_now();
        there(found, place)
    }
}

impl<V: Value> Write<V> for &Each<V> {
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.lock().insert((place.table, place.key), value);
        Ok(())
    }
}

/// A store that, like snapshot isolation, detects conflicts only among the rows that a transaction
/// overwrites.
pub(super) struct WritesOnly;

impl Peer for WritesOnly {
    const NAME: &'static str = "writes-only";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str = "lets write skew through";
    const ROLE: Role = Role::Yardstick;
    type Store<V: Value> = Guarded<V>;
}

/// The rows. Each has the number of times that it was overwritten.
pub(super) struct Guarded<V>(Mutex<Rows<(V, u64)>>);

impl<V: Value> Store<V> for Guarded<V> {
    type Session<'s> = &'s Guarded<V>;

    fn open(_: Size) -> Result<Self, Failure> {
        Ok(Guarded(Mutex::default()))
    }

    fn load(&mut self, table: usize, rows: impl Iterator<Item = (u64, V)>) -> Result<(), Failure> {
        self.0.lock().unwrap().extend(rows.map(|(key, value)| ((table, key), (value, 0))));
        Ok(())
    }

    fn session(&self) -> Result<&Guarded<V>, Failure> {
        Ok(self)
    }
}

impl<V: Value> Session<V> for &Guarded<V> {
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        once(|| {
            work.run(&mut Running { store: self, seen: HashMap::new(), written: HashMap::new() })
        })
    }

    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut retries = 0;
        loop {
            let mut running =
                Running { store: self, seen: HashMap::new(), written: HashMap::new() };
            let done = once(|| work.run(&mut running))?;
            if running.commit() {
                return Ok(Done { retries, ..done });
            }
            retries += 1;
        }
    }
}

/// A transaction.
struct Running<'s, V> {
    store: &'s Guarded<V>,
    seen: HashMap<(usize, u64), u64>,
    written: Rows<V>,
}

impl<V: Value> Running<'_, V> {
    /// Installs the writes, unless one of the rows has been overwritten since it was read.
    fn commit(self) -> bool {
        let mut rows = self.store.0.lock().unwrap();
        if self.written.keys().any(|key| rows[key].1 != self.seen[key]) {
            return false;
        }
        for (key, value) in self.written {
            rows.insert(key, (value, self.seen[&key] + 1));
        }
        true
    }
}

impl<V: Value> Read<V> for Running<'_, V> {
    fn get(&mut self, place: Place) -> Result<V, Stopped> {
        let key = (place.table, place.key);
        let found = self.store.0.lock().unwrap().get(&key).copied();
        let (value, version) = there(found, place)?;
        self.seen.insert(key, version);
        Ok(value)
    }
}

impl<V: Value> Write<V> for Running<'_, V> {
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped> {
        self.written.insert((place.table, place.key), value);
        Ok(())
    }
}
