//! Names of objects.
//!
//! | name | object |
//! |---|---|
//! | `claim/G` | the claim of generation G |
//! | `log/G/S` | object S of the log of generation G, from 1 |
//! | `snapshot/G/S/P` | part P, from 0, of the snapshot up to object S of generation G |
//! | `floor/G/N` | floor N of generation G, from 1 |
//! | `probe/R` | an attempt to create one name twice |
//!
//! G, S and N have twelve decimal digits and P has five, so that the order of names is that of
//! numbers.

#![forbid(unsafe_code)]

use std::fmt::{self, Display, Formatter};

/// The largest number of a generation, or of an object within one.
pub const NUMBER_MAX: u64 = 999_999_999_999;
/// The largest number of a snapshot's part.
pub const PART_MAX: u32 = 99_999;
/// The most bytes of a name.
pub const NAME_BYTES_MAX: usize = 200;

const CLAIM: &str = "claim/";
const LOG: &str = "log/";
const SNAPSHOT: &str = "snapshot/";
const FLOOR: &str = "floor/";

/// The name of an object of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// The claim of a generation.
    Claim(u64),
    /// An object of a generation's log, by its place.
    Log(u64, u64),
    /// A part of a snapshot: generation, place and part.
    Snapshot(u64, u64, u32),
    /// A floor or seal of a generation, by its number.
    Floor(u64, u64),
}

impl Name {
    /// Returns the name that is written so; `None` for any other text.
    pub fn parse(text: &str) -> Option<Name> {
        let numbers = |rest: &str| {
            let mut parts = rest.split('/').map(|part| number(part, 12));
            let (first, second) = (parts.next()??, parts.next()??);
            parts.next().is_none().then_some((first, second))
        };
        if let Some(rest) = text.strip_prefix(CLAIM) {
            number(rest, 12).map(Name::Claim)
        } else if let Some(rest) = text.strip_prefix(LOG) {
            numbers(rest).map(|(generation, place)| Name::Log(generation, place))
        } else if let Some(rest) = text.strip_prefix(FLOOR) {
            numbers(rest).map(|(generation, floor)| Name::Floor(generation, floor))
        } else {
            let (at, part) = text.strip_prefix(SNAPSHOT)?.rsplit_once('/')?;
            let (generation, place) = numbers(at)?;
            let part = u32::try_from(number(part, 5)?).ok()?;
            Some(Name::Snapshot(generation, place, part))
        }
    }

    /// Returns what the names of all claims begin with.
    pub fn claims() -> String {
        CLAIM.to_string()
    }

    /// Returns what the names of all objects of all logs begin with.
    pub fn logs() -> String {
        LOG.to_string()
    }

    /// Returns what the names of the objects of a generation's log begin with.
    pub fn log_of(generation: u64) -> String {
        format!("{LOG}{generation:012}/")
    }

    /// Returns what the names of all parts of all snapshots begin with.
    pub fn snapshots() -> String {
        SNAPSHOT.to_string()
    }

    /// Returns what the names of the floors of a generation begin with.
    pub fn floors_of(generation: u64) -> String {
        format!("{FLOOR}{generation:012}/")
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Name::Claim(generation) => write!(f, "{CLAIM}{generation:012}"),
            Name::Log(generation, place) => write!(f, "{LOG}{generation:012}/{place:012}"),
            Name::Snapshot(generation, place, part) => {
                write!(f, "{SNAPSHOT}{generation:012}/{place:012}/{part:05}")
            }
            Name::Floor(generation, floor) => write!(f, "{FLOOR}{generation:012}/{floor:012}"),
        }
    }
}

/// Returns the number that has exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Checks a name as every [`Place`](crate::Place) does: parts of lower-case letters, digits, `-`
/// and `.`, none of which begins with `.`, with `/` between them.
///
/// # Errors
/// What is wrong with any other name.
pub fn check_name(name: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{name:?} is no name of an object: {what}"));
    if name.is_empty() {
        return wrong("it is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "a name of {} bytes is too long; at most {NAME_BYTES_MAX} are allowed",
            name.len()
        ));
    }
    for part in name.split('/') {
        if part.is_empty() {
            return wrong("a part between two `/` is empty");
        }
        if part.starts_with('.') {
            return wrong("a part begins with `.`");
        }
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if let Some(other) = part.chars().find(|c| !is_allowed(*c)) {
            return wrong(&format!(
                "it contains {other:?}; a-z, 0-9, `-`, `.` and `/` are allowed"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let names = [
            Name::Claim(1),
            Name::Log(NUMBER_MAX, 7),
            Name::Snapshot(2, 3, PART_MAX),
            Name::Floor(4, NUMBER_MAX),
        ];
        for name in names {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
            assert_eq!(check_name(&name.to_string()), Ok(()));
        }
        for other in ["", "claim", "claim/1", "log/000000000001", "floor/000000000001/x", "x/1"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn names_are_ordered_as_their_numbers() {
        assert!(Name::Log(9, 10).to_string() < Name::Log(10, 9).to_string());
        assert!(Name::Log(9, 9).to_string() < Name::Log(9, 10).to_string());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused_with_what_is_wrong() {
        let cases = [
            ("", "empty"),
            ("a//b", "is empty"),
            ("/a", "is empty"),
            ("log/../claim", "begins with `.`"),
            (".tmp/a", "begins with `.`"),
            ("a\\b", "contains '\\\\'"),
            ("Log/1", "contains 'L'"),
        ];
        for (name, what) in cases {
            let error = check_name(name).unwrap_err();
            assert!(error.contains(what), "{name}: {error}");
        }
        assert!(check_name(&"a".repeat(NAME_BYTES_MAX)).is_ok());
        let error = check_name(&"a".repeat(NAME_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error, "a name of 201 bytes is too long; at most 200 are allowed");
    }
}
