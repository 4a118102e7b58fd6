//! The anomalies of a history, with their names and the evidence for them.
//!
//! The names come from Adya's thesis ("Weak Consistency: A Generalized Theory and Optimistic
//! Implementations for Distributed Transactions", MIT 1999) and from the papers on snapshot
//! isolation.

use crate::graph::Kind;
use crate::history::{Key, Transaction};
use std::fmt;

/// An anomaly of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anomaly {
    /// G0: a cycle of overwrites.
    DirtyWrite,
    /// G1a: a transaction read a version that was never committed.
    AbortedRead,
    /// G1b: a transaction read a version that its writer replaced before committing.
    IntermediateRead,
    /// G1c: a cycle of overwrites and of reads of written versions.
    CircularInformation,
    /// A transaction read one version and overwrote a later one.
    LostUpdate,
    /// G-single: a cycle with one anti-dependency.
    ReadSkew,
    /// Two transactions each overwrote a version that the other had read.
    WriteSkew,
    /// G2-item: a cycle with several anti-dependencies.
    AntiDependencyCycle,
    /// G2: a cycle that involves a key that entered or left a scanned range.
    Phantom,
    /// A cycle that involves the order of a session.
    SessionOrder,
    /// A cycle that involves the order of transactions in real time.
    RealTime,
    /// Two transactions wrote the same version.
    TwoWriters,
    /// A version without a row was read as a version with a row, or a version with a row was read
    /// as a version without one.
    WrongPresence,
    /// A transaction looked back to a given time. The transaction read a version later than that
    /// time, or did not read a version that existed at that time.
    WrongMoment,
    /// A transaction did not read its own writes, or read two values of a key that it had not
    /// written.
    Internal,
    /// A value was read that was never written.
    UnknownValue,
    /// A list was read with the same element twice.
    DuplicateElement,
    /// An append took effect, or its client got the answer that it had, but a later read does not
    /// contain the appended element.
    LostAppend,
    /// Two reads of a list differ at a position that both contain.
    IncompatibleOrder,
    /// A search through all orders of some transactions found none that explains their reads.
    NoSerialOrder,
    /// An error of the history, not of the database: one value was written twice to the same key.
    RepeatedValue,
}

impl Anomaly {
    /// Returns the anomaly's name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            Self::DirtyWrite => "G0, dirty write",
            Self::AbortedRead => "G1a, aborted read",
            Self::IntermediateRead => "G1b, intermediate read",
            Self::CircularInformation => "G1c, circular information flow",
            Self::LostUpdate => "lost update",
            Self::ReadSkew => "G-single, read skew",
            Self::WriteSkew => "write skew",
            Self::AntiDependencyCycle => "G2-item, anti-dependency cycle",
            Self::Phantom => "G2, phantom",
            Self::SessionOrder => "session order violation",
            Self::RealTime => "real-time violation",
            Self::TwoWriters => "corruption, two writers of one version",
            Self::WrongPresence => "corruption, a row both present and absent",
            Self::WrongMoment => "snapshot violation",
            Self::Internal => "internal inconsistency",
            Self::UnknownValue => "corruption, a value that was never written",
            Self::DuplicateElement => "duplicate element",
            Self::LostAppend => "lost append",
            Self::IncompatibleOrder => "incompatible order",
            Self::NoSerialOrder => "no serial order",
            Self::RepeatedValue => "unusable history, a value written twice",
        }
    }

    /// Returns the anomaly's meaning, in one sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::DirtyWrite => "Transactions overwrote one another in both directions.",
            Self::AbortedRead => "A version was read that no committed transaction wrote.",
            Self::IntermediateRead => {
                "A version was read that its writer replaced before it committed."
            }
            Self::CircularInformation => {
                "Each of these transactions read or overwrote a version of the next one, in a cycle."
            }
            Self::LostUpdate => {
                "A version was overwritten by a transaction that had read an earlier version."
            }
            Self::ReadSkew => {
                "A transaction read one version from before and another from after the same transaction."
            }
            Self::WriteSkew => "Two transactions each read a version that the other one replaced.",
            Self::AntiDependencyCycle => {
                "Each of these transactions read a version that the next one replaced, in a cycle."
            }
            Self::Phantom => {
                "A transaction scanned a range that another one changed, and neither can come before the other."
            }
            Self::SessionOrder => {
                "A transaction did not see an earlier transaction of its session."
            }
            Self::RealTime => {
                "A transaction did not see a transaction that had ended before it began."
            }
            Self::TwoWriters => {
                "Two transactions claim the same version, so versions do not tell writes apart."
            }
            Self::WrongPresence => {
                "A version was read as a row but written as a delete, or the reverse."
            }
            Self::WrongMoment => {
                "A transaction that read as of a moment did not see the versions of that moment."
            }
            Self::Internal => {
                "A transaction did not see its own writes, or read two values of one key."
            }
            Self::UnknownValue => {
                "A value was read that no transaction of the history wrote to that key."
            }
            Self::DuplicateElement => {
                "A list was read with an element twice that was appended once."
            }
            Self::LostAppend => "A list was read without an append that it should contain.",
            Self::IncompatibleOrder => "A list was read in two orders that contradict each other.",
            Self::NoSerialOrder => {
                "In every order of these transactions, one of them read a value that it could not have read."
            }
            Self::RepeatedValue => {
                "A value was written to a key twice, so reads do not tell which write they saw."
            }
        }
    }

    /// Returns the anomaly that a cycle of dependencies shows.
    pub fn of_cycle(cycle: &[Step]) -> Self {
        let count = |kind| cycle.iter().filter(|step| step.kind == kind).count();
        if count(Kind::RealTime) > 0 {
            Self::RealTime
        } else if count(Kind::Session) > 0 {
            Self::SessionOrder
        } else if count(Kind::Predicate) > 0 {
            Self::Phantom
        } else if count(Kind::Rw) == 1 {
            let unit = |step: &Step| {
                step.about.as_ref().map(|about| (about.table, about.key.clone(), about.group))
            };
            let one_unit = cycle.iter().all(|step| unit(step) == unit(&cycle[0]));
            let overwrites = count(Kind::Ww) == cycle.len() - 1;
            if overwrites && one_unit { Self::LostUpdate } else { Self::ReadSkew }
        } else if count(Kind::Rw) == 2 && cycle.len() == 2 {
            Self::WriteSkew
        } else if count(Kind::Rw) > 0 {
            Self::AntiDependencyCycle
        } else if count(Kind::Wr) > 0 {
            Self::CircularInformation
        } else {
            Self::DirtyWrite
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transaction, identified as in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Party {
    /// The session of the transaction.
    pub session: u64,
    /// The time before its first operation.
    pub begun: u64,
    /// The time after its last operation.
    pub ended: u64,
    /// Whether the transaction committed.
    pub committed: bool,
}

impl From<&Transaction> for Party {
    fn from(transaction: &Transaction) -> Self {
        let &Transaction { session, begun, ended, committed, .. } = transaction;
        Self { session, begun, ended, committed }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, begun, ended, committed } = self;
        write!(
            f,
            "session {session} at {begun}..{ended}{}",
            if *committed { "" } else { " (aborted)" }
        )
    }
}

/// The unit that causes a dependency, and the versions of that unit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct About {
    /// The table's number. `None` in a black-box history, in which keys have no tables and groups,
    /// and in which the written values count as versions.
    pub table: Option<u16>,
    /// The row's key.
    pub key: Key,
    /// The column group.
    pub group: u8,
    /// The version that was overwritten. For a wr dependency, the version that was read. `None` if
    /// the key had never been written, or if the history does not show the version.
    pub before: Option<u64>,
    /// The version that overwrote `before`. `None` for a wr dependency.
    pub after: Option<u64>,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: Vec<String> = self.key.iter().map(u64::to_string).collect();
        match self.table {
            Some(table) => write!(f, "table {table} key ({}) group {}", key.join(", "), self.group),
            None => write!(f, "key {}", key.join(", ")),
        }
    }
}

/// A transaction of a cycle, and the reason why it comes before the next transaction of the cycle.
/// After the last transaction, the first one is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The transaction.
    pub from: Party,
    /// The kind of the reason why `from` comes before the next transaction.
    pub kind: Kind,
    /// The unit that causes the dependency; `None` for the order of a session and for real time.
    pub about: Option<About>,
    /// The third transaction by which the dependency follows from others, in a black-box history of
    /// registers. For a ww dependency, this transaction read the later value, and `from` comes
    /// before it. For an rw dependency, it wrote the value that `from` read, and comes before the
    /// next transaction. `None` if the history alone shows the dependency.
    pub since: Option<Party>,
}

/// The evidence that a history is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// A cycle: each transaction has to come before the next one, and the last before the first.
    Cycle(Vec<Step>),
    /// A single version is wrong, whatever the other versions are.
    Version {
        /// The transactions concerned. The transaction at fault comes first.
        parties: Vec<Party>,
        /// The unit; its `before` is the wrong version.
        about: About,
    },
    /// A single read is wrong, whatever the other reads are.
    Observation {
        /// The transactions concerned. The reader comes first.
        parties: Vec<Party>,
        /// The value that was read, and why that value is impossible.
        observed: String,
    },
}

/// An anomaly and its evidence. A violation prints as a report of some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The evidence.
    pub evidence: Evidence,
}

impl Violation {
    /// Returns the violation that a cycle shows. The kinds of the cycle's dependencies determine
    /// the anomaly.
    pub fn cycle(cycle: Vec<Step>) -> Self {
        Self { anomaly: Anomaly::of_cycle(&cycle), evidence: Evidence::Cycle(cycle) }
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.anomaly.name(), self.anomaly.meaning())?;
        match &self.evidence {
            Evidence::Cycle(cycle) => {
                for (number, step) in (1..).zip(cycle) {
                    writeln!(f, "  T{number}: {}", step.from)?;
                }
                for (number, step) in (1..).zip(cycle) {
                    let next = number % cycle.len() + 1;
                    writeln!(
                        f,
                        "  T{number} comes before T{next}: {}",
                        Reason(step, number, next)
                    )?;
                }
                Ok(())
            }
            Evidence::Version { parties, about } => {
                writeln!(f, "  {about}, version {}", Version(about.before))?;
                parties.iter().try_for_each(|party| writeln!(f, "  {party}"))
            }
            Evidence::Observation { parties, observed } => {
                for (number, party) in (1..).zip(parties) {
                    writeln!(f, "  T{number}: {party}")?;
                }
                writeln!(f, "  {observed}")
            }
        }
    }
}

/// The reason why transaction number `.1` of a report comes before transaction number `.2`.
struct Reason<'s>(&'s Step, usize, usize);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(step, one, other) = self;
        let Some(about) = &step.about else {
            return match step.kind {
                Kind::Session => write!(f, "T{other} follows T{one} in its session"),
                _ => write!(f, "T{other} began after T{one} had ended"),
            };
        };
        let (before, after) = (Version(about.before), Version(about.after));
        let (version, over) =
            if about.table.is_some() { ("version", "over") } else { ("value", "after") };
        match step.kind {
            Kind::Ww => {
                write!(
                    f,
                    "T{one} wrote {version} {before} of {about} and T{other} {version} {after} {over} it (ww)"
                )?;
                match &step.since {
                    Some(reader) => {
                        write!(f, ", since T{one} comes before {reader}, which read {after}")
                    }
                    None => Ok(()),
                }
            }
            Kind::Wr => {
                write!(f, "T{other} read {version} {before} of {about}, which T{one} wrote (wr)")
            }
            Kind::Rw => {
                write!(
                    f,
                    "T{one} read {version} {before} of {about} and T{other} wrote {version} {after} {over} it (rw)"
                )?;
                match &step.since {
                    Some(writer) => {
                        write!(f, ", since {writer}, which wrote {before}, comes before T{other}")
                    }
                    None => Ok(()),
                }
            }
            _ => write!(
                f,
                "T{one} did not find {about} in a range and T{other} wrote its version {after} (predicate rw)"
            ),
        }
    }
}

/// A version to be printed; `None` prints as no version.
struct Version(Option<u64>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => write!(f, "{version}"),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(session: u64, kind: Kind, key: u64) -> Step {
        let from =
            Party { session, begun: 10 * session, ended: 10 * session + 15, committed: true };
        let about =
            About { table: Some(1), key: [key].into(), group: 0, before: Some(4), after: Some(7) };
        let about = (kind < Kind::Session).then_some(about);
        Step { from, kind, about, since: None }
    }

    fn named(steps: &[(Kind, u64)]) -> Anomaly {
        let steps: Vec<Step> =
            (1..).zip(steps).map(|(session, (kind, key))| step(session, *kind, *key)).collect();
        Anomaly::of_cycle(&steps)
    }

    #[test]
    fn anomalies_are_named_by_the_edges_of_their_cycles() {
        use Kind::*;
        assert_eq!(named(&[(Ww, 1), (Ww, 2)]), Anomaly::DirtyWrite);
        assert_eq!(named(&[(Ww, 1), (Wr, 2)]), Anomaly::CircularInformation);
        assert_eq!(named(&[(Rw, 1), (Ww, 1)]), Anomaly::LostUpdate);
        assert_eq!(named(&[(Rw, 1), (Ww, 2)]), Anomaly::ReadSkew, "two units");
        assert_eq!(named(&[(Rw, 1), (Wr, 2)]), Anomaly::ReadSkew);
        assert_eq!(named(&[(Rw, 1), (Rw, 2)]), Anomaly::WriteSkew);
        assert_eq!(named(&[(Rw, 1), (Wr, 2), (Rw, 3)]), Anomaly::AntiDependencyCycle);
        assert_eq!(named(&[(Predicate, 1), (Rw, 2)]), Anomaly::Phantom);
        assert_eq!(named(&[(Rw, 1), (Session, 0)]), Anomaly::SessionOrder);
        assert_eq!(named(&[(Predicate, 1), (RealTime, 0)]), Anomaly::RealTime);
    }

    #[test]
    fn a_report_shows_the_cycle() {
        let violation = Violation::cycle(vec![step(1, Kind::Rw, 5), step(2, Kind::RealTime, 0)]);
        let expected = "real-time violation: A transaction did not see a transaction that had ended before it began.
  T1: session 1 at 10..25
  T2: session 2 at 20..35
  T1 comes before T2: T1 read version 4 of table 1 key (5) group 0 and T2 wrote version 7 over it (rw)
  T2 comes before T1: T1 began after T2 had ended
";
        assert_eq!(violation.to_string(), expected);
    }
}
