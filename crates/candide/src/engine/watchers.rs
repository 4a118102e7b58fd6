//! Sleeping until something changes that a transaction has observed.
//!
//! An attempt that has called [`Tx::retry`](crate::Tx::retry) is validated, and then *watches* what
//! it has observed: its session sleeps until another transaction may have changed some of that.
//! Then the closure runs again. A wake-up without a change is allowed; a change without a wake-up
//! is not.
//!
//! # Invariants
//! * **WT1** A watcher first adds its entry to the list of [`Watchers`]. Only then does it raise
//!   WATCHED in cells and count itself in tables. A thread that wakes watchers locks the list after
//!   the change for which it wakes them. So either that thread finds the entry, or the watcher,
//!   whose entry came later, finds the change.
//! * **WT2** WATCHED is set in a cell by an exchange of an unlocked word which shows that the cell
//!   has the version that was observed. Locks are taken by exchanges of the same word, and the
//!   owner of a cell finds the flag in the word that it locks. An owner that installs a version
//!   releases the cell without the flag, and then wakes the watchers of the cell; any other owner
//!   releases the cell with the flag. (An owner that releases by a plain store would wipe out a
//!   flag that is set under its lock. A watcher that finds a cell locked does not sleep for the
//!   cell, but for the lock.) Under a latch, which its holder never keeps while it waits, WATCHED
//!   is set if the newest version is the one that was observed. Each commit that has linked a
//!   version under the flag takes the flag, and wakes, once that version is committed.
//! * **WT3** A watcher that has observed a node, or an absent row, counts itself in the table. Then
//!   it exchanges the version of each node for the same version. A session that links a record has
//!   locked the node by an exchange of the same word, and then loads the count. So either the
//!   session finds the count, or the watcher finds the node locked or changed. After the link, the
//!   session wakes the watchers of the table. (An absent record may leave its index while it is
//!   watched. An insert of its key then links a new record.)
//! * **WT4** A sleeping watcher is not pinned, and holds no lock, turn or token. It refers to no
//!   record or node.
//! * **WT5** Everything is watched on which the attempt's `retry` rests: what the closure has read,
//!   also in parts that were undone, and what its writes have assumed, which the end of the attempt
//!   observes.
//! * **WT6** A commit notes the places that it has changed, and its session wakes their watchers
//!   when it has released all its locks, in the same attempt, before any user code runs. After a
//!   link the watchers are woken at once, since other attempts may insert the row.
//!
//! # Cost
//! An install tests a bit of a word that it has in a register, a link loads the count of its table,
//! and the end of an attempt tests the word of places that have changed. A wake-up goes through the
//! entries of all watchers, if there are any; each entry names the places that it watches by one
//! bit in 64.

#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, Mutex, Ordering, Signal, lock};
use std::sync::Arc;

/// The places of a watcher that is woken by every change.
pub(crate) const EVERYWHERE: u64 = u64::MAX;

/// The sessions of a database that sleep until something changes.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    entries: Mutex<Vec<Entry>>,
    /// The number of entries.
    count: AtomicU64,
}

/// A session that is about to sleep, or sleeps.
#[derive(Debug)]
struct Entry {
    /// The places that the session watches, one bit for each class of places.
    places: u64,
    /// Whether the session has been woken.
    woken: Arc<Signal<bool>>,
    /// Whether the entry has been limited to its places.
    #[cfg(test)]
    sleeps: bool,
}

/// The sessions that slept at one moment, for tests.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Asleep(Vec<Arc<Signal<bool>>>);

#[cfg(test)]
impl Asleep {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether all of these sessions have been woken.
    pub(crate) fn are_woken(&self) -> bool {
        self.0.iter().all(|woken| *woken.lock())
    }
}

impl Watchers {
    /// Returns whether there is no entry. The caller has seen WATCHED or the count of a table, or
    /// has excluded all other transactions, and so has each watcher while it added its entry.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a watcher adds its entry before it raises the flag or counts itself in a table
        // (E30). The lock that excludes other transactions orders the rest.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Wakes the sessions that watch the links of a table.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_for_link(&self, table: u16) {
        self.wake(class_of_links(table));
    }

    /// Wakes the sessions that watch one of `places`.
    pub(crate) fn wake(&self, places: u64) {
        if self.is_empty() {
            // The watchers have left their flags.
            return;
        }
        self.wake_entries(places);
    }

    /// Wakes all sessions that sleep.
    pub(crate) fn wake_all(&self) {
        self.wake_entries(EVERYWHERE);
    }

    fn wake_entries(&self, places: u64) {
        for entry in lock(&self.entries).iter().filter(|entry| entry.places & places != 0) {
            entry.woken.call(|woken| *woken = true); // WT1
        }
    }

    /// Adds an entry, which every change wakes. Returns the signal of the entry.
    pub(super) fn enter(&self) -> Arc<Signal<bool>> {
        let woken = Arc::<Signal<bool>>::default();
        self.count.fetch_add(1, Ordering::Relaxed);
        lock(&self.entries).push(Entry {
            places: EVERYWHERE,
            woken: woken.clone(),
            #[cfg(test)]
            sleeps: false,
        });
        woken
    }

    /// Limits an entry to `places`.
    pub(super) fn limit(&self, woken: &Arc<Signal<bool>>, places: u64) {
        let mut entries = lock(&self.entries);
        let entry = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.woken, woken));
        let entry = entry.expect("WT1: the entry is there");
        entry.places = places;
        #[cfg(test)]
        {
            entry.sleeps = true;
        }
    }

    /// Removes an entry.
    pub(super) fn leave(&self, woken: &Arc<Signal<bool>>) {
        lock(&self.entries).retain(|entry| !Arc::ptr_eq(&entry.woken, woken));
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of sessions that are about to sleep, or sleep.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.entries).len()
    }

    /// Returns the sessions that sleep, or have been woken and are about to go on. The call that
    /// makes a change wakes the sessions for which it matters before it returns.
    #[cfg(test)]
    pub(crate) fn asleep(&self) -> Asleep {
        let entries = lock(&self.entries);
        Asleep(
            entries.iter().filter(|entry| entry.sleeps).map(|entry| entry.woken.clone()).collect(),
        )
    }
}

/// Returns the bit of the class to which an address belongs.
pub(crate) fn class_of(address: u64) -> u64 {
    1 << ((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// Returns the bit of the class to which the links of a table belong.
pub(super) fn class_of_links(table: u16) -> u64 {
    class_of((u64::from(table) + 1) << 3)
}
