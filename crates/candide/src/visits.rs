//! Visits: the times during which the process's own threads refer to a database, of which they have
//! no handle.
//!
//! If a program drops its last handle meanwhile, the visitor ends the database, and the files stay
//! locked until then. So an opening that finds files locked waits for the visits that are going on,
//! and tries again.

#![forbid(unsafe_code)]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A guard: the thread may turn weak references to databases into strong ones, and drops these
/// before the guard.
#[derive(Debug)]
pub(crate) struct Visit {
    number: u64,
}

/// The visits of all threads.
struct Visits {
    begun: u64,
    /// The numbers of the visits that are going on.
    present: Vec<u64>,
    /// The number of calls of [`await_visits`] so far.
    #[cfg(test)]
    awaited: u64,
}

static VISITS: Mutex<Visits> = Mutex::new(Visits {
    begun: 0,
    present: Vec::new(),
    #[cfg(test)]
    awaited: 0,
});

/// Where threads sleep that wait for the end of visits.
static ENDED: Condvar = Condvar::new();

fn visits() -> MutexGuard<'static, Visits> {
    VISITS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Visit {
    pub(crate) fn begin() -> Visit {
        let mut visits = visits();
        visits.begun += 1;
        let number = visits.begun;
        visits.present.push(number);
        Visit { number }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        visits().present.retain(|&present| present != self.number);
        ENDED.notify_all();
    }
}

/// Waits until all visits that have begun before the call have ended. The caller has no visit.
pub(crate) fn await_visits() {
    let mut visits = visits();
    let last = visits.begun;
    #[cfg(test)]
    {
        visits.awaited += 1;
    }
    while visits.present.iter().any(|&present| present <= last) {
        visits = ENDED.wait(visits).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::tests::rows::Item;
    use crate::tests::waiting::eventually;
    use crate::{Database, LogOptions, Occ};
    use candide_log::disk::SimDisk;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn an_opening_waits_for_the_end_that_another_thread_gives_the_database() {
        let disk = SimDisk::new();
        let open = || {
            Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new()).unwrap()
        };
        let db = open();
        let items = db.table::<Item>("items").unwrap();
        db.run(|tx| items.insert(tx, Item::new(1, 5))).unwrap();
        let weak = Arc::downgrade(&db.inner);
        let (sender, receiver) = channel();
        let visitor = std::thread::spawn(move || {
            let _visit = Visit::begin();
            let _last = weak.upgrade().unwrap();
            let awaited = visits().awaited;
            sender.send(()).unwrap();
            eventually("the opening waits", || visits().awaited > awaited);
        });
        receiver.recv().unwrap();
        drop((db, items));
        let db = open();
        visitor.join().unwrap();
        let again = db.table::<Item>("items").unwrap();
        assert_eq!(again.for_each_quiescent(|_| ()), Ok(1));
        let in_use = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new());
        assert!(matches!(in_use, Err(candide_log::OpenError::InUse { .. })), "{in_use:?}");
    }
}
