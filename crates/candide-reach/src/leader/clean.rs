//! Deleting what floors cover.

#![forbid(unsafe_code)]

use super::Leader;
use crate::error::ReachError;
use crate::name::Name;
use crate::object::Kind;
use std::time::Duration;

impl Leader {
    /// Deletes what the newest floor of this leader covers that is at least as old as `keep`: the
    /// blocks up to its snapshot, of all generations, and older snapshots. Followers that are
    /// reading them have that long. Claims, floors, seals and ends stay for ever.
    ///
    /// Returns the number of deleted objects. Without such a floor, nothing is deleted.
    ///
    /// # Errors
    /// [`ReachError::Place`], [`ReachError::Damaged`]: some objects were not deleted. Another call
    /// goes on.
    pub fn clean(&self, keep: Duration) -> Result<u64, ReachError> {
        let (covered, (mut from, is_done)) = {
            let state = self.state();
            let old = state.floors.iter().rfind(|floor| floor.made.elapsed() >= keep);
            let Some(floor) = old else { return Ok(0) };
            (floor.place, state.deleted)
        };
        let mut deleted = 0;
        if !is_done {
            deleted += self.clean_earlier()?;
            self.state().deleted.1 = true;
        }
        while from < covered {
            from += 1;
            self.delete(Name::Log(self.generation, from))?;
            deleted += 1;
            self.state().deleted.0 = from;
        }
        for name in self.access.list(&Name::snapshots())? {
            let Name::Snapshot(generation, place, _) = name else { continue };
            if (generation, place) < (self.generation, covered) {
                self.delete(name)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Deletes the blocks of earlier generations, which any floor of this one covers. What a list
    /// lacks is left to a later leader.
    fn clean_earlier(&self) -> Result<u64, ReachError> {
        let mut deleted = 0;
        for name in self.access.list(&Name::logs())? {
            let Name::Log(generation, _) = name else { continue };
            if generation >= self.generation {
                break;
            }
            let object = self.access.read(name)?;
            if object.is_some_and(|object| object.header.kind != Kind::End) {
                self.delete(name)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    fn delete(&self, name: Name) -> Result<(), ReachError> {
        self.access.repeat(|place| place.delete(&name.to_string()))
    }
}
