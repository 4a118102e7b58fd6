//! Names of states after crashes.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The name of a state after a crash, from which [`SimDisk::state`] of a disk with the same
/// operations makes the state again.
///
/// A state is written and parsed as one word, such as `37:512:all-but-5`.
///
/// [`SimDisk::state`]: super::SimDisk::state
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateId {
    /// The number of operations before the crash.
    pub position: usize,
    /// The way in which the bytes of writes are cut into pieces.
    pub grain: Grain,
    /// The pieces that survive.
    pub kept: Kept,
}

/// The way in which the bytes of a write are cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grain {
    /// The writes are one piece.
    Writes,
    /// The writes are cut at multiples of this number of bytes, which is at least 1.
    Bytes(u64),
}

/// The pieces that survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// The first piece if the lowest bit is 1, the second piece if the next bit is 1, and so on.
    Subset(u64),
    /// All but the piece with this number, from 0.
    AllBut(usize),
    /// Only the piece with this number, from 0.
    Only(usize),
    /// A random subset. By turns of four seeds, a piece survives with a probability of 1/2, 1/8,
    /// 7/8 and 1/2.
    Random(u64),
}

impl Kept {
    /// Returns whether the piece with this number survives.
    pub(super) fn contains(self, position: usize, piece: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Subset(bits) => bits.checked_shr(piece as u32).unwrap_or(0) & 1 == 1,
            Self::AllBut(lost) => piece != lost,
            Self::Only(kept) => piece == kept,
            Self::Random(seed) => {
                let eighths = [4, 1, 7, 4][(seed % 4) as usize];
                mix(mix(mix(seed) ^ position as u64) ^ piece as u64) >> 61 < eighths
            }
        }
    }
}

/// Returns a number that looks random and depends on each bit of `value`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Display for StateId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.position)?;
        match self.grain {
            Grain::Writes => write!(f, "writes:")?,
            Grain::Bytes(bytes) => write!(f, "{bytes}:")?,
        }
        match self.kept {
            Kept::Nothing => write!(f, "nothing"),
            Kept::Everything => write!(f, "everything"),
            Kept::Subset(bits) => write!(f, "subset-{bits:x}"),
            Kept::AllBut(piece) => write!(f, "all-but-{piece}"),
            Kept::Only(piece) => write!(f, "only-{piece}"),
            Kept::Random(seed) => write!(f, "random-{seed}"),
        }
    }
}

/// The error of a text that names no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateIdError {
    text: String,
}

impl Display for StateIdError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no state; a valid name is 37:512:all-but-5", self.text)
    }
}

impl Error for StateIdError {}

impl FromStr for StateId {
    type Err = StateIdError;

    fn from_str(text: &str) -> Result<Self, StateIdError> {
        parse(text).ok_or_else(|| StateIdError { text: text.to_string() })
    }
}

fn parse(text: &str) -> Option<StateId> {
    let mut parts = text.split(':');
    let (position, grain, kept) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let grain = match grain {
        "writes" => Grain::Writes,
        bytes => Grain::Bytes(bytes.parse().ok().filter(|bytes| *bytes > 0)?),
    };
    Some(StateId { position: position.parse().ok()?, grain, kept: parse_kept(kept)? })
}

fn parse_kept(text: &str) -> Option<Kept> {
    match text {
        "nothing" => return Some(Kept::Nothing),
        "everything" => return Some(Kept::Everything),
        _ => {}
    }
    let (kind, number) = text.rsplit_once('-')?;
    match kind {
        "subset" => Some(Kept::Subset(u64::from_str_radix(number, 16).ok()?)),
        "all-but" => Some(Kept::AllBut(number.parse().ok()?)),
        "only" => Some(Kept::Only(number.parse().ok()?)),
        "random" => Some(Kept::Random(number.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_parsed_as_it_is_written() {
        let kinds = [
            Kept::Nothing,
            Kept::Everything,
            Kept::Subset(0xabc),
            Kept::AllBut(5),
            Kept::Only(0),
            Kept::Random(u64::MAX),
        ];
        for kept in kinds {
            for grain in [Grain::Writes, Grain::Bytes(4096)] {
                let id = StateId { position: 37, grain, kept };
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
    }

    #[test]
    fn text_that_names_no_state_is_refused_with_an_example() {
        for text in ["", "1:2", "1:512:most", "1:0:nothing", "1:512:only-x", "1:512:nothing:"] {
            let error = text.parse::<StateId>().unwrap_err().to_string();
            let expected = "names no state; a valid name is 37:512:all-but-5";
            assert_eq!(error, format!("{text:?} {expected}"));
        }
        assert!("37:512:all-but-5".parse::<StateId>().is_ok());
    }

    #[test]
    fn the_seed_of_a_random_subset_chooses_its_density() {
        for (seed, per_thousand) in [(0, 500), (1, 125), (2, 875), (7, 500)] {
            let kept = (0..1000).filter(|piece| Kept::Random(seed).contains(3, *piece)).count();
            assert!(kept.abs_diff(per_thousand) < 60, "{kept} of 1000 with the seed {seed}");
        }
    }
}
