//! Reading and creating objects of one database, until the fate of each is known.

#![forbid(unsafe_code)]

use crate::error::ReachError;
use crate::name::{NUMBER_MAX, Name};
use crate::object::{Header, Kind, Link, Object};
use crate::place::{Created, LIST_MAX, Place, PlaceError};
use candide_log::format::Uuid;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a call is repeated that has had no answer, and how long the pauses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The number of calls in all, at least 1.
    pub calls: u32,
    /// The first pause. Each one is twice as long as the one before.
    pub pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for Patience {
    /// Returns 12 calls with pauses from 10 ms to 2 s, some 9 s in all.
    fn default() -> Patience {
        Patience { calls: 12, pause: Duration::from_millis(10), pause_max: Duration::from_secs(2) }
    }
}

impl Patience {
    /// Pauses after the call of this number, from 1. Returns whether there is another one.
    fn pause(&self, call: u32) -> bool {
        if call >= self.calls {
            return false;
        }
        let pause = self.pause.saturating_mul(1 << (call - 1).min(20)).min(self.pause_max);
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        true
    }
}

/// What became of a creation whose fate is known.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The object has the offered bytes.
    Own,
    /// The name is taken by another object.
    Other(Object),
}

/// A place as the objects of one database see it.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) place: Arc<dyn Place>,
    pub(crate) database: Uuid,
    pub(crate) patience: Patience,
}

impl Access {
    /// Repeats a call that has had no answer.
    pub(crate) fn repeat<T>(
        &self,
        call: impl Fn(&dyn Place) -> Result<T, PlaceError>,
    ) -> Result<T, ReachError> {
        let mut calls = 0;
        loop {
            calls += 1;
            match call(&*self.place) {
                Err(PlaceError::Unknown(_)) if self.patience.pause(calls) => {}
                answer => return answer.map_err(ReachError::Place),
            }
        }
    }

    /// Reads an object and checks that it is the one of its name. `None` if there is none, or none
    /// that can be read yet.
    pub(crate) fn read(&self, name: Name) -> Result<Option<Object>, ReachError> {
        let text = name.to_string();
        let bytes = self.repeat(|place| place.read(&text))?;
        bytes.map(|bytes| self.check(name, bytes)).transpose()
    }

    /// Checks that bytes are the object of a name of this database.
    pub(crate) fn check(&self, name: Name, bytes: Vec<u8>) -> Result<Object, ReachError> {
        let object = Object::decode(bytes).map_err(|error| ReachError::malformed(name, &error))?;
        let Header { kind, database, generation, place, part, .. } = object.header;
        if database != self.database {
            return Err(ReachError::OtherDatabase { name: name.to_string(), found: database });
        }
        let is_here = match name {
            Name::Claim(of) => kind == Kind::Claim && generation == of,
            Name::Log(of, at) => kind.is_logged() && (generation, place) == (of, at),
            Name::Snapshot(of, at, number) => {
                kind == Kind::Part && (generation, place, part) == (of, at, number)
            }
            Name::Floor(of, number) => {
                matches!(kind, Kind::Floor | Kind::Seal) && (generation, place) == (of, number)
            }
        };
        if !is_here {
            let what = format!("it is {kind:?} {place} (part {part}) of generation {generation}");
            return Err(ReachError::damaged(name, what));
        }
        Ok(object)
    }

    /// Creates an object, always with the same bytes, until it is known whether they are there.
    pub(crate) fn create(&self, name: Name, bytes: &[u8]) -> Result<Settled, ReachError> {
        let text = name.to_string();
        let mut calls = 0;
        loop {
            calls += 1;
            let created = self.place.create(&text, bytes);
            let unsettled = match created {
                Ok(Created::New) => return Ok(Settled::Own),
                Ok(Created::Exists) => PlaceError::Unknown(format!("{text} cannot be read yet")),
                Err(error @ PlaceError::Unknown(_)) => error,
                Err(error) => return Err(error.into()),
            };
            // What exists may be from an earlier request of this process.
            match self.place.read(&text) {
                Ok(Some(found)) if found == bytes => return Ok(Settled::Own),
                Ok(Some(found)) => return self.check(name, found).map(Settled::Other),
                Ok(None) | Err(PlaceError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if !self.patience.pause(calls) {
                return Err(unsettled.into());
            }
        }
    }

    /// Returns all names that a list shows, which is a hint.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Name>, ReachError> {
        let mut names = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.repeat(|place| place.list(prefix, &after))?;
            let is_complete = page.len() < LIST_MAX;
            names.extend(page.iter().filter_map(|name| Name::parse(name)));
            // A place that lists the same names again would be listed for ever.
            match page.last() {
                Some(last) if !is_complete && *last > after => after.clone_from(last),
                _ => return Ok(names),
            }
        }
    }

    /// Returns the largest number among names that a list shows, or nearly the largest; 0 without
    /// any. `name` makes the names, which have no gaps. Long lists are not read as a whole.
    fn largest(&self, prefix: &str, name: impl Fn(u64) -> Name) -> Result<u64, ReachError> {
        let number = |name: Name| match name {
            Name::Claim(number) | Name::Log(_, number) | Name::Floor(_, number) => number,
            Name::Snapshot(..) => 0,
        };
        // The number of the last name of the list behind a number, and whether it is complete.
        let page = |after: u64| -> Result<(u64, bool), ReachError> {
            let after = if after == 0 { String::new() } else { name(after).to_string() };
            let names = self.repeat(|place| place.list(prefix, &after))?;
            let last = names.iter().rev().find_map(|name| Name::parse(name)).map_or(0, number);
            Ok((last, names.len() < LIST_MAX))
        };
        // `low` was listed, and nothing behind `high`.
        let (mut low, mut is_complete) = page(0)?;
        let mut high: Option<u64> = None;
        let mut step = LIST_MAX as u64;
        while !is_complete {
            let after = match high {
                // One list has all that is left.
                Some(high) if high.saturating_sub(low) <= LIST_MAX as u64 => low,
                Some(high) => low + (high - low) / 2,
                None => low.saturating_add(step).min(NUMBER_MAX),
            };
            let (last, is_last) = page(after)?;
            if last > after {
                (low, is_complete) = (last, is_last);
                step = step.saturating_mul(2);
            } else {
                (high, is_complete) = (Some(after), after <= low);
            }
        }
        Ok(low)
    }

    /// Returns the last object of a gapless sequence of names, and the number of the first free
    /// one. A list is where the search begins; only what was read counts.
    fn last_of(
        &self,
        prefix: &str,
        name: impl Fn(u64) -> Name,
    ) -> Result<(Option<Object>, u64), ReachError> {
        let hint = self.largest(prefix, &name)?;
        let mut last = if hint > 0 { self.read(name(hint))? } else { None };
        let mut next = if last.is_some() { hint + 1 } else { 1 };
        while let Some(object) = self.read(name(next))? {
            last = Some(object);
            next += 1;
        }
        Ok((last, next))
    }

    /// Returns the newest claim; `None` in a place without claims.
    pub(crate) fn newest_claim(&self) -> Result<Option<Object>, ReachError> {
        Ok(self.last_of(&Name::claims(), Name::Claim)?.0)
    }

    /// Returns the newest claim of a place that has had that of generation `known`, unless that is
    /// 0. `None` in a place without claims.
    ///
    /// # Errors
    /// [`PlaceError::Unknown`]: the claims that can be read are all older, so it is not known whose
    /// the newest one is.
    pub(crate) fn newest_claim_since(&self, known: u64) -> Result<Option<Object>, ReachError> {
        match self.newest_claim()? {
            Some(claim) if claim.header.generation < known => {
                let what = format!("{} cannot be read yet", Name::Claim(known));
                Err(PlaceError::Unknown(what).into())
            }
            newest => Ok(newest),
        }
    }

    /// Returns the floors of a generation as they are now.
    pub(crate) fn floors(&self, generation: u64) -> Result<Floors, ReachError> {
        let name = |number| Name::Floor(generation, number);
        let (last, next) = self.last_of(&Name::floors_of(generation), name)?;
        match last {
            Some(seal) if seal.header.kind == Kind::Seal => {
                let newest = match seal.header.place - 1 {
                    0 => None,
                    number => Some(self.floor(generation, number)?),
                };
                Ok(Floors { newest, next, seal: Some(seal) })
            }
            newest => Ok(Floors { newest, next, seal: None }),
        }
    }

    /// Reads a floor that is known to exist.
    pub(crate) fn floor(&self, generation: u64, number: u64) -> Result<Object, ReachError> {
        let name = Name::Floor(generation, number);
        let found = self.read_existing(name)?;
        match found.header.kind {
            Kind::Floor => Ok(found),
            _ => Err(ReachError::damaged(name, "it is a seal, and later floors exist")),
        }
    }

    /// Reads an object that exists, if not for all readers at once.
    pub(crate) fn read_existing(&self, name: Name) -> Result<Object, ReachError> {
        let mut calls = 0;
        loop {
            calls += 1;
            if let Some(object) = self.read(name)? {
                return Ok(object);
            }
            if !self.patience.pause(calls) {
                return Err(ReachError::damaged(
                    name,
                    "it is missing, and another object names it",
                ));
            }
        }
    }

    /// Returns the last object of a log, as far as a list shows it, and what can be read behind.
    /// Objects behind an end or a gap, which a leader had under way, are not of the log.
    pub(crate) fn last_logged(&self, generation: u64) -> Result<Option<Object>, ReachError> {
        let name = |place| Name::Log(generation, place);
        let (found, _) = self.last_of(&Name::log_of(generation), name)?;
        let Some(found) = found else { return Ok(None) };
        let known = found.known_before();
        if known + 1 == found.header.place {
            return Ok(Some(found));
        }
        let mut last = if known > 0 { self.read(name(known))? } else { None };
        let mut is_gap = false;
        for place in known + 1..=found.header.place {
            match self.read(name(place))? {
                Some(end) if end.header.kind == Kind::End => return Ok(Some(end)),
                Some(object) if !is_gap => last = Some(object),
                Some(_) => {}
                None => is_gap = true,
            }
        }
        Ok(last)
    }
}

/// The floors of a generation.
#[derive(Debug)]
pub(crate) struct Floors {
    pub(crate) newest: Option<Object>,
    /// The first free number.
    pub(crate) next: u64,
    pub(crate) seal: Option<Object>,
}

/// Returns an error unless an object of a log names the one before.
pub(crate) fn check_link(object: &Object, before: Link) -> Result<(), ReachError> {
    let named = object.header.before;
    if named == before {
        return Ok(());
    }
    let Header { generation, place, .. } = object.header;
    let what =
        format!("it comes behind {}, and names {} as the one before", show(before), show(named));
    Err(ReachError::damaged(Name::Log(generation, place), what))
}

fn show(link: Link) -> String {
    match link.generation {
        0 => "no object".to_string(),
        generation => format!("{} with CRC {:#010x}", Name::Log(generation, link.place), link.crc),
    }
}

/// Returns the time for people, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}
