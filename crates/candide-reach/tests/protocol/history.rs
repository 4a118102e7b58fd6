//! What processes have and have seen, and what must hold of it.

use candide_reach::object::Object;
use candide_reach::{Receiver, Refusal};
use std::collections::BTreeMap;

/// The state of these tests: the numbers of all writes, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes(pub Vec<u64>);

impl Writes {
    /// Returns the payload of a block with one write, which says behind which it was made.
    pub fn payload(behind: u64, write: u64) -> Vec<u8> {
        [behind, write].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }
}

/// Returns the numbers in a payload.
pub fn numbers(payload: &[u8]) -> Vec<u64> {
    payload.chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect()
}

impl Receiver for Writes {
    fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
        self.0.clear();
        Ok(())
    }

    fn part(&mut self, part: &Object) -> Result<(), Refusal> {
        self.0.extend(numbers(part.payload()));
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, block: &Object) -> Result<(), Refusal> {
        let [behind, write] = numbers(block.payload())[..] else { return Err("no write".into()) };
        if behind != self.last() {
            return Err(format!("{write} was made behind {behind}, not {}", self.last()).into());
        }
        self.0.push(write);
        Ok(())
    }
}

/// The time of a write, in turns.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub offered: u64,
    pub acknowledged: Option<u64>,
}

/// All that happened in a history.
#[derive(Debug, Default)]
pub struct Record {
    pub writes: BTreeMap<u64, Times>,
    /// States that processes have shown: each a prefix of the history.
    pub shown: Vec<(&'static str, Writes)>,
    /// How often each kind of event has happened.
    pub events: BTreeMap<&'static str, u64>,
}

impl Record {
    pub fn count(&mut self, event: &'static str) {
        *self.events.entry(event).or_default() += 1;
    }

    /// Judges the record against the log as it is read at the end.
    ///
    /// # Errors
    /// What was lost, doubled, reordered or shown without being in the log.
    pub fn judge(&self, log: &Writes) -> Result<(), String> {
        let places: BTreeMap<u64, usize> = (0..).zip(&log.0).map(|(at, id)| (*id, at)).collect();
        if places.len() != log.0.len() {
            return Err(format!("a write is in the log twice: {:?}", log.0));
        }
        for (write, times) in &self.writes {
            if times.acknowledged.is_some() && !places.contains_key(write) {
                return Err(format!("write {write} was acknowledged and is lost: {:?}", log.0));
            }
        }
        // A write that began after another was acknowledged comes behind it.
        let mut latest = 0;
        for write in &log.0 {
            let times = &self.writes[write];
            if times.acknowledged.is_some_and(|acknowledged| acknowledged < latest) {
                return Err(format!("{write} comes behind a later write: {:?}", log.0));
            }
            latest = latest.max(times.offered);
        }
        for (by, shown) in &self.shown {
            if !log.0.starts_with(&shown.0) {
                return Err(format!("{by} has shown {:?}, and the log is {:?}", shown.0, log.0));
            }
        }
        Ok(())
    }
}
