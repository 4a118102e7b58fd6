//! The reports of processes about the database, and the conditions that must hold then.

use std::collections::BTreeMap;

/// The line by which a process reports that it has opened the database and reported its contents.
pub(super) const OPENED: &str = "opened";

/// The reports of all processes.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The number of processes that were killed.
    pub(super) killed: u64,
    /// The number of transactions that were acknowledged.
    pub(super) acknowledged: u64,
    /// The largest number of transactions of one process that were found without having been
    /// acknowledged.
    pub(super) in_flight_max: u64,
    /// The number of the last transaction of each worker that was acknowledged.
    last: BTreeMap<usize, u64>,
}

impl Told {
    /// Hears the lines of one process: `found WORKER NUMBER` for each worker's last transaction in
    /// the database, [`OPENED`], and `done WORKER NUMBER` for each acknowledged transaction. The
    /// last line may be cut off.
    ///
    /// # Errors
    /// A transaction that was acknowledged is not in the database.
    pub(super) fn hear(&mut self, lines: &[String]) -> Result<(), String> {
        let Some(opened) = lines.iter().position(|line| line == OPENED) else { return Ok(()) };
        let mut found: BTreeMap<usize, u64> =
            lines[..opened].iter().filter_map(|line| parse(line, "found")).collect();
        let mut in_flight = 0;
        for (worker, last) in &self.last {
            let there = found.remove(worker).unwrap_or(0);
            if there < *last {
                return Err(format!(
                    "transaction {last} of worker {worker} was acknowledged, and the last one in \
                     the database is {there}"
                ));
            }
            in_flight += there - last;
        }
        in_flight += found.values().sum::<u64>();
        self.in_flight_max = self.in_flight_max.max(in_flight);
        for (worker, number) in lines[opened..].iter().filter_map(|line| parse(line, "done")) {
            let last = self.last.entry(worker).or_default();
            *last = number.max(*last);
            self.acknowledged += 1;
        }
        Ok(())
    }
}

/// Parses a line of a word and two numbers. The line ends with a full stop, unless it was cut off.
fn parse(line: &str, word: &str) -> Option<(usize, u64)> {
    let numbers = line.strip_prefix(word)?.strip_suffix('.')?;
    let (worker, number) = numbers.trim().split_once(' ')?;
    Some((worker.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(told: &mut Told, text: &str) -> Result<(), String> {
        told.hear(&text.lines().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_lost_acknowledged_transaction_is_found_by_the_next_process() {
        let mut told = Told::default();
        hear(&mut told, "opened\ndone 0 1.\ndone 1 1.\ndone 0 2.\ndone 0 31").unwrap();
        assert_eq!(told.acknowledged, 3, "the last line is cut off");
        hear(&mut told, "found 0 4.\nfound 1 1.\nopened\ndone 0 5.").unwrap();
        assert_eq!(told.in_flight_max, 2);
        hear(&mut told, "found 0 3.")
            .expect("the process was killed before it had printed everything");
        let lost = hear(&mut told, "found 0 4.\nfound 1 1.\nopened").unwrap_err();
        assert!(lost.contains("transaction 5 of worker 0 was acknowledged"), "{lost}");
        let lost = hear(&mut told, "found 0 5.\nopened").unwrap_err();
        assert!(lost.contains("the last one in the database is 0"), "{lost}");
    }
}
