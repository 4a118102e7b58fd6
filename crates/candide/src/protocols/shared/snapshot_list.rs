//! The list of open snapshots of a database, for protocols with versions.

#![forbid(unsafe_code)]

use crate::epoch::Moment;
use crate::sync::{Mutex, lock};
use std::ops::Range;

/// The open snapshots of a database, and the number of threads that search chains of undo records.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// The snapshots' timestamps, in ascending order, each with the moment at which the snapshot
    /// was opened.
    snapshots: Vec<(u64, Moment)>,
    /// The number of threads that search chains of undo records, to prune the chains or to count
    /// versions. While it is not zero, other threads retire undo records instead of freeing them.
    lookers: usize,
    /// A timestamp. The undo records of commits up to this timestamp may have been freed, except
    /// records that an open snapshot sees.
    gone: u64,
}

impl Open {
    fn copy(&self, into: &mut Vec<u64>) {
        into.clear();
        into.extend(self.snapshots.iter().rev().map(|&(ts, _)| ts));
    }
}

impl Snapshots {
    /// Copies the timestamps of the open snapshots in descending order. A snapshot registered later
    /// has a timestamp that is not below any timestamp known to this thread, or else is the view of
    /// an attempt that is running now, or one of these.
    pub(crate) fn copy(&self, into: &mut Vec<u64>) {
        lock(&self.0).copy(into);
    }

    /// Copies the timestamps for a session that may free the undo records of commits up to `until`,
    /// and counts the session as searching chains if snapshots are open. Returns whether another
    /// thread searches chains, and a timestamp that all running attempts have reached, except
    /// attempts that read in an open snapshot.
    pub(crate) fn begin_looking(&self, into: &mut Vec<u64>, until: u64) -> (bool, u64) {
        let mut open = lock(&self.0);
        open.copy(into);
        open.gone = open.gone.max(until);
        let others = open.lookers > 0;
        open.lookers += usize::from(!into.is_empty());
        (others, open.gone)
    }

    /// Calls `look` with a timestamp that is not above the timestamp of the oldest open snapshot.
    /// While `look` runs, no undo record of a later commit is freed. The caller is pinned.
    pub(crate) fn look<T>(&self, look: impl FnOnce(u64) -> T) -> T {
        let mut open = lock(&self.0);
        open.lookers += 1;
        let gone = open.snapshots.first().map_or(open.gone, |&(oldest, _)| oldest.min(open.gone));
        drop(open);
        let _listed = Listed(self);
        look(gone)
    }

    /// Stops counting the caller as searching chains.
    pub(crate) fn end_looking(&self) {
        lock(&self.0).lookers -= 1;
    }

    /// Opens a snapshot at the timestamp `now()`, and returns that timestamp. `since` is the
    /// current moment, as the caller has read it.
    pub(crate) fn open(&self, since: Moment, now: impl FnOnce() -> u64) -> u64 {
        let snapshots = &mut lock(&self.0).snapshots;
        let now = now();
        // `now` is not below the timestamp of any open snapshot, since each was read from the clock
        // under this lock.
        snapshots.push((now, since));
        now
    }

    /// Adds the view of a running attempt, which began at timestamp `time` and moment `since`. The
    /// attempt has been pinned since then, so nothing that it sees has been collected. Or adds
    /// another snapshot at the timestamp of one that is open. The view may be older than other open
    /// snapshots.
    pub(crate) fn keep(&self, time: u64, since: Moment) {
        let snapshots = &mut lock(&self.0).snapshots;
        let place = snapshots.partition_point(|&(open, _)| open <= time);
        snapshots.insert(place, (time, since));
    }

    /// Closes a snapshot.
    pub(crate) fn close(&self, ts: u64, since: Moment) {
        let snapshots = &mut lock(&self.0).snapshots;
        let first = snapshots.partition_point(|&(open, _)| open < ts);
        let place = snapshots[first..]
            .iter()
            .position(|&open| open == (ts, since))
            .map(|place| first + place);
        snapshots.remove(place.expect("a snapshot is closed once"));
    }

    /// Returns the timestamp of the oldest open snapshot, and the moment at which it was opened;
    /// `None` if no snapshot is open.
    pub(crate) fn oldest(&self) -> Option<(u64, Moment)> {
        lock(&self.0).snapshots.iter().copied().min_by_key(|&(_, since)| since)
    }
}

/// Returns the newest open snapshot that sees a version written at the start of this range and
/// replaced at its end.
pub(crate) fn seen_by(snapshots: &[u64], ts: Range<u64>) -> Option<u64> {
    // Timestamps are in descending order: if the first snapshot that does not see the successor
    // does not see this version, no snapshot does.
    let first = snapshots.partition_point(|&snapshot| snapshot >= ts.end);
    snapshots.get(first).copied().filter(|&snapshot| snapshot >= ts.start)
}

/// Counts a thread as searching chains until this value is dropped.
struct Listed<'a>(&'a Snapshots);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.end_looking();
    }
}
