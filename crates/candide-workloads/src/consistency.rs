//! The findings of a check.

/// The invariants that were examined, and a sentence for each that does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Consistency {
    /// The number of invariants that were examined.
    pub checked: usize,
    /// One sentence for each invariant that does not hold.
    pub failed: Vec<String>,
    /// Other notes on the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Consistency {
    /// Adds the findings of another check.
    pub fn merge(&mut self, other: Consistency) {
        self.checked += other.checked;
        self.failed.extend(other.failed);
        self.notes.extend(other.notes);
    }

    /// Counts one examined invariant. If `holds` is `false`, adds the sentence that `failure`
    /// returns.
    pub(crate) fn expect(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            self.failed.push(failure());
        }
    }
}
