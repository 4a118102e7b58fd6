//! What the processes of the drill have said, and what must hold of it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use super::tables::Lasts;

/// What the processes have said.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The number of acknowledged transactions.
    pub(super) acknowledged: u64,
    /// The longest time between two acknowledgements.
    pub(super) gap: Duration,
    /// When the last acknowledgement has come.
    last: Option<Instant>,
    /// The last acknowledged transaction of each worker, whichever process has run it.
    lasts: Lasts,
    /// The first and the last acknowledged transaction of each generation and worker.
    done: BTreeMap<(u64, u64), (u64, u64)>,
    /// The last transaction of each worker that the leader of a generation has found.
    opened: BTreeMap<u64, Lasts>,
    /// The numbers that have been drawn.
    drawn: HashSet<u64>,
    /// What had been acknowledged when each of the reads was asked for.
    asked: Vec<Lasts>,
    /// The number of reads that were acknowledged.
    pub(super) reads: u64,
}

impl Ledger {
    /// Notes what the leader of a generation has found.
    pub(super) fn open(&mut self, generation: u64, found: Lasts) -> Result<(), String> {
        match self.opened.insert(generation, found) {
            Some(_) => Err(format!("generation {generation} has begun twice")),
            None => Ok(()),
        }
    }

    /// Notes an acknowledged transaction of the leader of a generation.
    pub(super) fn acknowledge(
        &mut self,
        generation: u64,
        (worker, number): (u64, u64),
        drawn: u64,
        at: Instant,
    ) -> Result<(), String> {
        let found = self.opened.get(&generation).and_then(|lasts| lasts.get(&worker));
        let found = found.copied().unwrap_or(0);
        let (_, last) = self.done.entry((generation, worker)).or_insert((found + 1, found));
        if number != *last + 1 {
            return Err(format!(
                "transaction {number} of worker {worker} in generation {generation} comes after {last}"
            ));
        }
        *last = number;
        if !self.drawn.insert(drawn) {
            return Err(format!("the sequence has given away {drawn} twice"));
        }
        self.acknowledged += 1;
        let last = self.lasts.entry(worker).or_default();
        *last = number.max(*last);
        if let Some(before) = self.last.replace(at) {
            self.gap = self.gap.max(at.saturating_duration_since(before));
        }
        Ok(())
    }

    /// Notes that a read is asked for. Returns its number.
    pub(super) fn ask(&mut self) -> usize {
        self.asked.push(self.lasts.clone());
        self.asked.len() - 1
    }

    /// Notes what a read has found that was acknowledged.
    pub(super) fn see(&mut self, read: usize, found: &Lasts) -> Result<(), String> {
        self.reads += 1;
        let asked = self.asked.get(read).ok_or("an answer to nothing")?;
        for (worker, last) in asked {
            let there = found.get(worker).copied().unwrap_or(0);
            if there < *last {
                return Err(format!(
                    "a read has found transaction {there} of worker {worker}, and {last} had been \
                     acknowledged before it began"
                ));
            }
        }
        Ok(())
    }

    /// Returns the number of acknowledged transactions that a later leader, or the database at the
    /// end, lacks, and which they are.
    pub(super) fn lost(&self, end: &Lasts) -> (u64, Vec<String>) {
        let (mut lost, mut which) = (0, Vec::new());
        for (&(generation, worker), &(first, last)) in &self.done {
            let later = self.opened.range(generation + 1..).next();
            let (found, by) = match later {
                Some((later, found)) => (found, format!("the leader of generation {later}")),
                None => (end, "a standby at the end".to_string()),
            };
            let there = found.get(&worker).copied().unwrap_or(0);
            if there < last {
                lost += last - there.max(first - 1);
                which.push(format!(
                    "transaction {last} of worker {worker} was acknowledged in generation \
                     {generation}, and {by} has found {there}"
                ));
            }
        }
        (lost, which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasts(numbers: &[(u64, u64)]) -> Lasts {
        numbers.iter().copied().collect()
    }

    /// Returns a ledger in which a leader has acknowledged transactions of worker 1, of which the
    /// next leader has found what the argument says.
    fn ledger(found: u64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.open(1, Lasts::new()).unwrap();
        for number in 1..=3 {
            ledger.acknowledge(1, (1, number), number, Instant::now()).unwrap();
        }
        ledger.open(3, lasts(&[(1, found)])).unwrap();
        ledger
    }

    #[test]
    fn an_acknowledged_transaction_that_a_later_leader_lacks_is_lost() {
        assert_eq!(ledger(3).lost(&lasts(&[(1, 3)])), (0, vec![]));
        assert_eq!(ledger(4).lost(&lasts(&[(1, 4)])).0, 0);
        let (lost, which) = ledger(1).lost(&lasts(&[(1, 1)]));
        assert_eq!(lost, 2);
        assert!(which[0].contains("the leader of generation 3 has found 1"), "{which:?}");
        // Acknowledged by a leader that had been superseded before.
        let mut late = ledger(3);
        late.acknowledge(1, (1, 4), 4, Instant::now()).unwrap();
        assert_eq!(late.lost(&lasts(&[(1, 9)])).0, 1);
        let mut end = ledger(3);
        end.acknowledge(3, (1, 4), 4, Instant::now()).unwrap();
        assert_eq!(end.lost(&lasts(&[(1, 4)])).0, 0);
        assert_eq!(end.lost(&lasts(&[(1, 3)])).0, 1);
    }

    #[test]
    fn a_transaction_or_number_that_comes_twice_is_noticed() {
        let now = Instant::now();
        assert!(ledger(3).acknowledge(3, (1, 3), 9, now).is_err());
        assert!(ledger(3).acknowledge(3, (1, 5), 9, now).is_err());
        let twice = ledger(3).acknowledge(3, (1, 4), 2, now).unwrap_err();
        assert!(twice.contains("given away 2 twice"), "{twice}");
        assert!(ledger(3).open(3, Lasts::new()).is_err());
    }

    #[test]
    fn a_read_must_find_what_was_acknowledged_before_it_began() {
        let mut ledger = ledger(3);
        let read = ledger.ask();
        ledger.acknowledge(3, (1, 4), 4, Instant::now()).unwrap();
        assert_eq!(ledger.see(read, &lasts(&[(1, 3)])), Ok(()));
        let stale = ledger.see(read, &lasts(&[(1, 2)])).unwrap_err();
        assert!(stale.contains("3 had been acknowledged before"), "{stale}");
    }
}
