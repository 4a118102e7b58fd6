//! Lookups of keys in several indexes at once, one step of each in turn, so that their cache misses
//! overlap.

#![forbid(unsafe_code)]

use super::node::Found;
use super::ordered::{Descent, Place};
use super::table_index::TableIndex;
use crate::sync::prefetch;

/// One of several lookups.
pub(crate) struct Lookup<'a> {
    index: &'a TableIndex,
    key: &'a [u64],
    progress: Progress,
}

/// The progress of a lookup. The memory that its next step reads is being prefetched.
enum Progress {
    /// In a hash index: the hash of the key, whose bucket is read next.
    Bucket(u64),
    /// In a hash index: the hash of the key, whose probable record is read next.
    Record(u64),
    /// In an ordered index.
    Descent(Descent),
    Ended(Found, Place),
}

impl<'a> Lookup<'a> {
    /// Begins a lookup. The caller is pinned until the lookup has ended.
    pub(crate) fn begin(index: &'a TableIndex, key: &'a [u64]) -> Lookup<'a> {
        let progress = match index {
            TableIndex::Hash(hash) => {
                let hashed = hash.hash(key);
                hash.prefetch_bucket(hashed);
                Progress::Bucket(hashed)
            }
            TableIndex::Ordered(ordered) => Progress::Descent(ordered.begin_descent()),
        };
        Lookup { index, key, progress }
    }

    /// Completes all lookups.
    pub(crate) fn complete(lookups: &mut [Lookup<'_>]) {
        let step_all = |lookups: &mut [Lookup<'_>]| {
            lookups.iter_mut().map(Lookup::step).fold(true, |all, has_ended| all & has_ended)
        };
        while !step_all(lookups) {}
    }

    /// Makes one step, if the lookup has not ended. Returns whether the lookup has ended.
    fn step(&mut self) -> bool {
        self.progress = match (&mut self.progress, self.index) {
            (Progress::Ended(..), _) => return true,
            (Progress::Bucket(hashed), TableIndex::Hash(hash)) => {
                if let Some(record) = hash.likely_record(*hashed) {
                    prefetch(record.block().hint(0));
                }
                Progress::Record(*hashed)
            }
            (Progress::Record(hashed), TableIndex::Hash(hash)) => {
                Progress::Ended(hash.find(self.key, *hashed), Place::default())
            }
            (Progress::Descent(descent), TableIndex::Ordered(ordered)) => {
                match ordered.step_to_place(self.key, descent) {
                    Some((found, place)) => Progress::Ended(found, place),
                    None => return false,
                }
            }
            _ => unreachable!("the progress fits the kind of the index"),
        };
        matches!(self.progress, Progress::Ended(..))
    }

    /// Returns the result of a completed lookup, and where to link a record if there is none.
    pub(crate) fn into_found(self) -> (Found, Place) {
        match self.progress {
            Progress::Ended(found, place) => (found, place),
            _ => unreachable!("the lookup has been completed"),
        }
    }
}
