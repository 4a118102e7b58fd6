//! What looks back: the open snapshots of a database, as protocols with versions keep them.

#![forbid(unsafe_code)]

use crate::epoch::Moment;
use crate::sync::{Mutant, Mutex, lock, mutant};

/// The open snapshots of a database, and who looks through what they see.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// Their timestamps, in rising order, with the moments at which they were opened.
    snapshots: Vec<(u64, Moment)>,
    /// How many threads look through chains of undo records, for those that no reader sees any
    /// more, or to count them. While there is one, others retire what they otherwise would free.
    lookers: usize,
    /// What was put aside by commits up to this timestamp may have been freed, but for what an open
    /// snapshot sees.
    gone: u64,
}

impl Open {
    fn copy(&self, into: &mut Vec<u64>) {
        into.clear();
        into.extend(self.snapshots.iter().rev().map(|&(ts, _)| ts));
    }
}

impl Snapshots {
    /// The timestamps in falling order. One that is opened later is not below any timestamp that
    /// this thread knows of, or it is of an attempt that has been running since.
    pub(crate) fn copy(&self, into: &mut Vec<u64>) {
        lock(&self.0).copy(into);
    }

    /// The same for who may free what was put aside by commits up to `until`, and will look through
    /// chains if there are open snapshots. Returns whether another session does so; and gives a
    /// timestamp that has been reached by all attempts that run, but for those which see what an
    /// open snapshot keeps.
    pub(crate) fn begin_looking(&self, into: &mut Vec<u64>, until: u64) -> (bool, u64) {
        let mut open = lock(&self.0);
        open.copy(into);
        open.gone = open.gone.max(until);
        let others = open.lookers > 0;
        open.lookers += usize::from(!into.is_empty());
        (others, open.gone)
    }

    /// Calls `look` while nothing is freed that was put aside by a commit after the timestamp which
    /// it is given, or after the oldest open snapshot's. The caller is pinned.
    pub(crate) fn look<T>(&self, look: impl FnOnce(u64) -> T) -> T {
        let mut open = lock(&self.0);
        open.lookers += 1;
        let gone = open.snapshots.first().map_or(open.gone, |&(oldest, _)| oldest.min(open.gone));
        drop(open);
        let _listed = Listed(self);
        look(gone)
    }

    /// Ends that the caller looks through chains.
    pub(crate) fn end_looking(&self) {
        lock(&self.0).lookers -= 1;
    }

    /// Opens one of now, which is what the clock says, at a moment that the caller has read; gives
    /// its timestamp.
    pub(crate) fn open(&self, since: Moment, now: impl FnOnce() -> u64) -> u64 {
        let snapshots = &mut lock(&self.0).snapshots;
        let now = now();
        // It is not below any of them: each was the clock's under the same lock.
        snapshots.push((now, since));
        now
    }

    /// Adds what a running attempt sees, which began at that time and moment, and is pinned since:
    /// nothing of it has been taken away. It may be older than others that are open.
    pub(crate) fn keep(&self, time: u64, since: Moment) {
        let snapshots = &mut lock(&self.0).snapshots;
        let place = snapshots.partition_point(|&(open, _)| open <= time);
        if !mutant(Mutant::KeptUnlisted) {
            snapshots.insert(place, (time, since));
        }
    }

    /// Closes one.
    pub(crate) fn close(&self, ts: u64, since: Moment) {
        let snapshots = &mut lock(&self.0).snapshots;
        let first = snapshots.partition_point(|&(open, _)| open < ts);
        let place = snapshots[first..]
            .iter()
            .position(|&open| open == (ts, since))
            .map(|place| first + place);
        if !mutant(Mutant::KeptUnlisted) || place.is_some() {
            snapshots.remove(place.expect("a snapshot is closed once"));
        }
    }

    /// The timestamp of the oldest, and the moment at which it was opened.
    pub(crate) fn oldest(&self) -> Option<(u64, Moment)> {
        lock(&self.0).snapshots.iter().copied().min_by_key(|&(_, since)| since)
    }
}

/// A session that looks through chains, until this is dropped.
struct Listed<'a>(&'a Snapshots);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.end_looking();
    }
}
