//! Names of the states of a script.

use crate::disk::StateId;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A state that a script could leave. A place is written and parsed as one word, such as
/// `37:512:all-but-5` or `killed-37`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Power was lost.
    Crash(StateId),
    /// The process was ended after this number of operations.
    Killed(usize),
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Place::Crash(id) => Display::fmt(id, f),
            Place::Killed(position) => write!(f, "killed-{position}"),
        }
    }
}

/// The error of a text that names no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceError {
    text: String,
}

impl Display for PlaceError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        write!(f, "{text:?} names no state; valid names are 37:512:all-but-5 and killed-37")
    }
}

impl Error for PlaceError {}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Place, PlaceError> {
        let killed = text.strip_prefix("killed-").and_then(|number| number.parse().ok());
        killed
            .map(Place::Killed)
            .or_else(|| text.parse().ok().map(Place::Crash))
            .ok_or_else(|| PlaceError { text: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_parsed_as_it_is_written() {
        for text in ["37:512:all-but-5", "4:writes:nothing", "killed-0", "killed-37"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for text in ["", "killed", "killed-x", "37", "37:512"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.to_string().contains("valid names are 37:512:all-but-5"), "{error}");
        }
    }
}
