//! The opening of a database with a place: whether it may lead, and what the place lacks.

#![forbid(unsafe_code)]

use super::compare::{Compare, Different, Names};
use super::note::{Known, Note};
use super::options::ReplicateOptions;
use crate::access::{Access, Patience};
use crate::error::ReachError;
use crate::follower::{Follower, Progress};
use crate::leader::{Claim, Leader, Position, led};
use crate::name::Name;
use crate::object::Object;
use crate::place::Place;
use crate::random;
use crate::receiver::{Receiver, Refusal};
use candide_log::OpenError;
use candide_log::format::Uuid;
use candide_log::store::{Feed, Unopened};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often one object is tried before what has happened meanwhile is looked at.
pub(super) const PATIENCE: Patience =
    Patience { calls: 5, pause: Duration::from_millis(5), pause_max: Duration::from_millis(100) };

/// A lead that has begun.
#[derive(Debug)]
pub(super) struct Led {
    /// The database whose log the place has.
    pub(super) database: Uuid,
    pub(super) leader: Leader,
    pub(super) known: Known,
    /// The bytes of records that the place lacks.
    pub(super) bytes: u64,
    /// Whether the place lacks a part of the log that a checkpoint contains.
    pub(super) lacks_log: bool,
}

/// What opens databases with a place.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) place: Arc<dyn Place>,
    pub(super) options: ReplicateOptions,
}

impl Opener {
    pub(super) fn access(&self, database: Uuid) -> Access {
        Access { place: Arc::clone(&self.place), database, patience: Patience::default() }
    }

    /// Checks that neither the directory of the database nor the folder of the place is in the
    /// other one, or the same.
    pub(super) fn check_apart(&self, unopened: &Unopened<'_>) -> Result<(), OpenError> {
        let (Some(place), Some(dir)) = (self.place.path(), unopened.path()) else { return Ok(()) };
        if let (Ok(place), Ok(dir)) = (place.canonicalize(), dir.canonicalize())
            && (place.starts_with(&dir) || dir.starts_with(&place))
        {
            let (place, dir) = (place.display(), dir.display());
            let what = format!(
                "the place {place} and the directory {dir} of the database are in one another; \
                 name a place elsewhere"
            );
            return Err(OpenError::Remote(what.into()));
        }
        Ok(())
    }

    /// Claims for a database that is new. The place is empty.
    pub(super) fn claim_new(&self, feed: &Feed) -> Result<Led, OpenError> {
        let access = self.access(feed.uuid());
        if let Some(claim) = access.newest_claim().map_err(refused)? {
            return Err(refused(led(&access, &claim).unwrap_or_else(|error| error)));
        }
        let remember = |bytes: &[u8]| feed.remember(bytes);
        let leader = self.claim(&access, Note::default(), &remember, None, &mut Empty)?;
        let position = leader.position();
        let known = Known { position, local: feed.place(), words: 0, cut: (0, 0) };
        Ok(Led { database: feed.uuid(), leader, known, bytes: 0, lacks_log: false })
    }

    /// Claims for a database that has files. `own` is its identity.
    pub(super) fn claim_again(&self, unopened: &Unopened<'_>, own: Uuid) -> Result<Led, OpenError> {
        let of_own = || Note { database: own, ..Note::default() };
        let note = Note::of(unopened)?.unwrap_or_else(of_own);
        if note.is_following {
            let what = "this directory follows the database whose log is in the place, and a \
                        promotion of it has not ended; follow again, and promote";
            return Err(OpenError::Remote(what.into()));
        }
        let database = note.database;
        let access = self.access(database);
        let position = note.known.map(|known| known.position);
        let newest = access.newest_claim_since(position.map_or(0, Position::claimed));
        let newest = newest.map_err(refused)?;
        let first = unopened.first();
        let begin = note.known.map_or(first, |known| known.local);
        // What the checkpoint contains is not in the log any more.
        let lacks_log = begin < first || note.known.is_none() && unopened.checkpoint().is_some();
        let compare = || Compare::new(unopened.blocks(begin)?, begin, note.known);
        match &newest {
            None if note.known.is_some() => {
                let what = "the place is empty, and the log of this directory was there";
                return Err(OpenError::Remote(what.into()));
            }
            Some(claim) if !note.numbers.contains(&claim.header.number) => {
                if lacks_log {
                    let what = "another directory leads, and a part of the log here that the \
                                place is not known to have is only in a checkpoint";
                    return Err(OpenError::Diverged { what: what.to_string() });
                }
                self.check_all_there(&access, note.known, compare()?, unopened)?;
                if !self.options.takes_over {
                    return Err(refused(led(&access, claim).unwrap_or_else(|error| error)));
                }
            }
            _ => {}
        }
        let remember = |bytes: &[u8]| unopened.remember(bytes);
        if lacks_log {
            // Without a note, the local place is before all.
            let known = note.known.unwrap_or_default();
            // What the checkpoint contains cannot be compared. It was made after this directory
            // had led, so nothing is lost if no other one has since. The newest claim may be one
            // of this directory that has not led.
            let last = position.map_or(0, |position| position.last.generation);
            let mut own = Own { access: &access, numbers: &note.numbers.clone(), last };
            let leader = self.claim(&access, note, &remember, position, &mut own)?;
            let known = Known { position: leader.position(), ..known };
            let behind = Known { local: first, ..Known::default() };
            let bytes = behind.lacking(unopened)?;
            return Ok(Led { database, leader, known, bytes, lacks_log });
        }
        let (mut compare, numbers) = (compare()?, note.numbers.clone());
        let leader = self.claim(&access, note, &remember, position, &mut compare)?;
        if let Some((generation, there)) = &compare.tables {
            // The process that led before may have changed tables until the claim.
            let claim = access.read_existing(Name::Claim(*generation)).map_err(refused)?;
            if !numbers.contains(&claim.header.number) {
                there.check(&Names::of(unopened.tables()))?;
            }
        }
        let known = compare.known(leader.position());
        let (bytes, _) = compare.rest()?;
        Ok(Led { database, leader, known, bytes, lacks_log })
    }

    /// Checks that the place has everything of the local log, of which another process has led a
    /// later generation; and, for a process that takes over, that both have the same tables.
    fn check_all_there(
        &self,
        access: &Access,
        known: Option<Known>,
        mut compare: Compare<'_>,
        unopened: &Unopened<'_>,
    ) -> Result<(), OpenError> {
        let position = known.map(|known| known.position).unwrap_or_default();
        let Access { place, database, patience } = access.clone();
        let mut follower = Follower::new(place, database, position, patience);
        let mut last = position.last;
        loop {
            last = if compare.has_met_snapshot { last } else { follower.position().last };
            match follower.step(&mut compare) {
                Ok(Progress::Nothing) => break,
                Ok(_) => {}
                // A claim would end the lead of the other process, and not begin one.
                Err(error @ ReachError::Receiver(_)) if self.options.takes_over => {
                    return Err(refused(error));
                }
                // What goes on behind the end of the local log is the other process's.
                Err(ReachError::Receiver(_)) => break,
                Err(error) => return Err(refused(error)),
            }
        }
        let has_met_snapshot = compare.has_met_snapshot;
        let tables = compare.tables.take().filter(|_| self.options.takes_over);
        match compare.rest()?.1 {
            0 => tables.map_or(Ok(()), |(_, there)| there.check(&Names::of(unopened.tables()))),
            count => {
                let (place, generation) = (last.place, last.generation);
                let what = match has_met_snapshot {
                    true => format!(
                        "{count} transactions cannot be compared, since the place has only a \
                         snapshot behind block {place} of generation {generation}"
                    ),
                    false => format!(
                        "{count} transactions are only here; both agree up to block {place} of \
                         generation {generation} of the place"
                    ),
                };
                Err(OpenError::Diverged { what })
            }
        }
    }

    fn claim(
        &self,
        access: &Access,
        mut note: Note,
        remember: &dyn Fn(&[u8]) -> io::Result<()>,
        position: Option<Position>,
        receiver: &mut dyn Receiver,
    ) -> Result<Leader, OpenError> {
        let number = random::number();
        note.database = access.database;
        note.add(number);
        let noted = remember(&note.encode());
        noted.map_err(|source| OpenError::Io { file: "REMOTE".to_string(), source })?;
        let claim = Claim {
            database: access.database,
            number,
            earlier: &note.numbers,
            against_others: self.options.takes_over,
            position,
            patience: access.patience,
        };
        let leader = Leader::claim(Arc::clone(&self.place), &claim, receiver).map_err(refused)?;
        Ok(leader.with_patience(PATIENCE))
    }
}

/// A receiver of objects that only this directory may have written.
struct Own<'a> {
    access: &'a Access,
    /// The numbers of its claims.
    numbers: &'a [u64],
    /// The last generation that is known to be its own, or one before.
    last: u64,
}

impl Own<'_> {
    fn check(&mut self, object: &Object) -> Result<(), Refusal> {
        let generation = object.header.generation;
        if generation > self.last {
            let claim = self.access.read_existing(Name::Claim(generation))?;
            if !self.numbers.contains(&claim.header.number) {
                let what = format!(
                    "another directory has led generation {generation} since, and a part of the \
                     log here is only in a checkpoint"
                );
                return Err(Box::new(Different(what)));
            }
            self.last = generation;
        }
        Ok(())
    }
}

impl Receiver for Own<'_> {
    fn begin(&mut self, floor: &Object) -> Result<(), Refusal> {
        self.check(floor)
    }

    fn part(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, block: &Object) -> Result<(), Refusal> {
        self.check(block)
    }
}

/// A receiver for a place that is empty.
struct Empty;

impl Receiver for Empty {
    fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
        self.refuse()
    }

    fn part(&mut self, _: &Object) -> Result<(), Refusal> {
        self.refuse()
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        self.refuse()
    }

    fn block(&mut self, _: &Object) -> Result<(), Refusal> {
        self.refuse()
    }
}

impl Empty {
    fn refuse(&self) -> Result<(), Refusal> {
        Err(Box::new(Different("the place has commits, and this directory is new".to_string())))
    }
}

/// Returns the reason why a place cannot be used, as an error of opening.
pub(super) fn refused(error: ReachError) -> OpenError {
    match error {
        ReachError::Led { generation, since, last } => {
            OpenError::Led { generation, since, last_block: last }
        }
        ReachError::Receiver(refusal) => match refusal.downcast::<Different>() {
            Ok(different) => OpenError::Diverged { what: different.0 },
            Err(refusal) => OpenError::Remote(refusal),
        },
        other => OpenError::Remote(Box::new(other)),
    }
}
