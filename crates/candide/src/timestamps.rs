//! Sources of timestamps.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// The source from which a protocol draws timestamps, if the protocol leaves a choice. The
/// guarantees are the same for every source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Timestamps {
    /// A counter, to which every writing commit adds one. The counter is cheap if few threads
    /// commit at a time. If many threads commit at a time, the counter's cache line is contended.
    #[default]
    Counter,
    /// The system's monotonic clock in ticks of 64 ns, which no thread writes. A transaction reads
    /// the clock once, and twice more if the transaction writes. The begin takes a full fence, and
    /// so does the commit. A commit ends only after the tick in which the commit began. After nine
    /// years a database is used up, and its transactions panic. The protocol relies on the clock
    /// never going back on any thread, as [`Instant`](std::time::Instant) guarantees.
    Clock,
}

impl Timestamps {
    /// The list of all sources.
    pub const ALL: [Timestamps; 2] = [Timestamps::Counter, Timestamps::Clock];

    /// Returns the source's name, as the command line spells it. [`Timestamps::from_str`] parses
    /// such names.
    pub const fn name(self) -> &'static str {
        match self {
            Timestamps::Counter => "counter",
            Timestamps::Clock => "clock",
        }
    }
}

impl fmt::Display for Timestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Timestamps {
    type Err = String;

    /// # Errors
    /// If no source is called `name`. The error's text lists the names.
    fn from_str(name: &str) -> Result<Timestamps, String> {
        Timestamps::ALL.into_iter().find(|timestamps| timestamps.name() == name).ok_or_else(|| {
            let names = Timestamps::ALL.map(Timestamps::name).join(", ");
            format!("timestamps come from nothing called {name:?}; there are {names}")
        })
    }
}

/// Returns the default source of a database: the first of `known`, the sources that its protocol
/// can use.
pub(crate) fn first_of(known: &[Timestamps]) -> Timestamps {
    #[cfg(test)]
    if in_tests::are_by_the_clock() && known.contains(&Timestamps::Clock) {
        return Timestamps::Clock;
    }
    known.first().copied().unwrap_or_default()
}

#[cfg(test)]
pub(crate) use in_tests::by_the_clock;

/// Lets tests that are about something else run once more with timestamps from the clock.
#[cfg(test)]
mod in_tests {
    use std::cell::Cell;

    thread_local! {
        static BY_THE_CLOCK: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn are_by_the_clock() -> bool {
        BY_THE_CLOCK.get()
    }

    /// Runs `body`. Databases that `body` builds on this thread take their timestamps from the
    /// clock, if their protocols can do so.
    pub(crate) fn by_the_clock<T>(body: impl FnOnce() -> T) -> T {
        BY_THE_CLOCK.set(true);
        let result = body();
        BY_THE_CLOCK.set(false);
        result
    }
}
