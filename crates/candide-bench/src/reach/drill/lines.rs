//! The lines by which the processes of the drill and their parent speak. A line ends with a full
//! stop, unless it was cut off.

use super::faults::{FAULTS, Fault};
use super::tables::Lasts;

/// What a process says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It leads a generation, with the last transaction of each worker.
    Opened(u64, Lasts),
    /// A transaction of a worker is acknowledged, with the number that it has drawn.
    Done(u64, u64, u64),
    /// A read has found these transactions.
    Saw(usize, Lasts),
    /// A read was not acknowledged.
    Refused(usize),
    /// It follows.
    Follows,
    /// It follows, and does not take over any more.
    Stays,
    /// It begins to take over.
    Promoting,
    /// It has taken over, and opens the database to lead.
    Promoted,
    /// Another process leads.
    Led,
    /// Another process has taken over from it.
    Fenced,
    /// It has stopped, as it was told to.
    Stopped,
    /// A standby is at this object of this generation, with this hash of its rows.
    At(u64, u64, u64, Lasts),
}

/// What the parent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The place has this fault from now on, or none.
    Place(Option<Fault>),
    /// Read, and say what is there when that is acknowledged.
    Look(usize),
    /// Say where the standby is.
    Where,
    /// Do not take over any more.
    Stay,
    /// Stop.
    Stop,
}

fn show(lasts: &Lasts) -> String {
    let shown: Vec<String> =
        lasts.iter().map(|(worker, last)| format!("{worker}:{last}")).collect();
    shown.join(",")
}

fn lasts(text: &str) -> Option<Lasts> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (worker, last) = pair.split_once(':')?;
        Some((worker.parse().ok()?, last.parse().ok()?))
    };
    pairs.map(pair).collect()
}

impl Said {
    /// Returns the line.
    pub(super) fn line(&self) -> String {
        let text = match self {
            Said::Opened(generation, found) => format!("opened {generation} {}", show(found)),
            Said::Done(worker, number, drawn) => format!("done {worker} {number} {drawn}"),
            Said::Saw(read, found) => format!("saw {read} {}", show(found)),
            Said::Refused(read) => format!("refused {read}"),
            Said::Follows => "follows".to_string(),
            Said::Stays => "stays".to_string(),
            Said::Promoting => "promoting".to_string(),
            Said::Promoted => "promoted".to_string(),
            Said::Led => "led".to_string(),
            Said::Fenced => "fenced".to_string(),
            Said::Stopped => "stopped".to_string(),
            Said::At(generation, at, hash, found) => {
                format!("at {generation} {at} {hash} {}", show(found))
            }
        };
        format!("{text}.\n")
    }

    /// Reads a line; `None` if it was cut off.
    pub(super) fn parse(line: &str) -> Option<Said> {
        let mut words = line.strip_suffix('.')?.split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse().ok();
        Some(match word {
            "opened" => Said::Opened(number()?, lasts(words.next()?)?),
            "done" => Said::Done(number()?, number()?, number()?),
            "saw" => Said::Saw(number()? as usize, lasts(words.next()?)?),
            "refused" => Said::Refused(number()? as usize),
            "follows" => Said::Follows,
            "stays" => Said::Stays,
            "promoting" => Said::Promoting,
            "promoted" => Said::Promoted,
            "led" => Said::Led,
            "fenced" => Said::Fenced,
            "stopped" => Said::Stopped,
            "at" => Said::At(number()?, number()?, number()?, lasts(words.next()?)?),
            _ => return None,
        })
    }
}

impl Told {
    /// Returns the line.
    pub(super) fn line(self) -> String {
        match self {
            Told::Place(fault) => format!("place {}\n", Fault::word(fault)),
            Told::Look(read) => format!("look {read}\n"),
            Told::Where => "where\n".to_string(),
            Told::Stay => "stay\n".to_string(),
            Told::Stop => "stop\n".to_string(),
        }
    }

    /// Reads a line.
    pub(super) fn parse(line: &str) -> Option<Told> {
        match line {
            "where" => Some(Told::Where),
            "stay" => Some(Told::Stay),
            "stop" => Some(Told::Stop),
            other => match other.strip_prefix("place ") {
                None => other.strip_prefix("look ")?.parse().ok().map(Told::Look),
                Some(word) => {
                    let mut known = [None].into_iter().chain(FAULTS.map(Some));
                    known.find(|fault| Fault::word(*fault) == word).map(Told::Place)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written_and_parts_of_lines_are_not() {
        let found = Lasts::from([(1, 20), (2, 3)]);
        let said = [
            Said::Opened(7, found.clone()),
            Said::Opened(7, Lasts::new()),
            Said::Done(1, 21, 300),
            Said::Saw(4, found.clone()),
            Said::Refused(5),
            Said::Follows,
            Said::Stays,
            Said::At(1, 2, u64::MAX, found),
        ];
        for said in said {
            let line = said.line();
            let line = line.trim_end();
            assert_eq!(Said::parse(line), Some(said));
            for end in 0..line.len() {
                assert_eq!(Said::parse(&line[..end]), None, "{line}");
            }
        }
        let places = [None].into_iter().chain(FAULTS.map(Some)).map(Told::Place);
        for told in places.chain([Told::Look(3), Told::Where, Told::Stay, Told::Stop]) {
            assert_eq!(Told::parse(told.line().trim_end()), Some(told));
        }
    }
}
