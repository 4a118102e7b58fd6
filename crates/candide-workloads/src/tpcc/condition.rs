//! A condition, and how many rows violate it.

use crate::Consistency;

/// A condition on many rows: the number of rows that violate it, and a description of the first
/// violation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) name: &'static str,
    failures: u64,
    first: Option<String>,
}

impl Condition {
    pub(super) fn new(name: &'static str) -> Self {
        Condition { name, failures: 0, first: None }
    }

    pub(super) fn expect(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        if !holds {
            self.fail(failure);
        }
    }

    pub(super) fn fail(&mut self, failure: impl FnOnce() -> String) {
        self.failures += 1;
        if self.first.is_none() {
            self.first = Some(failure());
        }
    }

    /// Adds the result of the condition to `consistency`.
    pub(super) fn report(&self, way: &str, consistency: &mut Consistency) {
        consistency.expect(self.failures == 0, || {
            let first = self.first.as_deref().unwrap_or_default();
            let more = if self.failures == 1 {
                String::new()
            } else {
                format!(" (and {} more)", self.failures - 1)
            };
            format!("{way}: condition {}: {first}{more}", self.name)
        });
    }
}
