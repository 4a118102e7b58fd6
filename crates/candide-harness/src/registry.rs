//! The protocols by name. Nothing else in the command and its libraries names one.

use std::str::FromStr;

use candide::{GlobalLock, Mvcc, Mvto, Occ, Protocol, Serial, TicToc, Timestamps};

/// Something to do under a protocol that is chosen at run time.
pub(crate) trait Job {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<P: Protocol>(self) -> Self::Output;
}

macro_rules! registry {
    ($($protocol:ident,)*) => {
        /// A protocol chosen on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Choice {
            $(
                #[doc = concat!("[`", stringify!($protocol), "`]")]
                $protocol,
            )*
        }

        impl Choice {
            const ALL: &'static [Choice] = &[$(Choice::$protocol),*];

            /// Does `job` under the protocol.
            pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
                match self {
                    $(Choice::$protocol => job.run::<$protocol>(),)*
                }
            }
        }
    };
}

// One line per protocol, and that is all it takes.
registry! {
    Occ,
    TicToc,
    Mvcc,
    Mvto,
    Serial,
    GlobalLock,
}

impl Choice {
    /// Returns the protocol's own name.
    pub fn name(self) -> &'static str {
        self.run(Name)
    }

    /// Returns the one that is called so.
    pub fn named(name: &str) -> Option<Choice> {
        Choice::ALL.iter().copied().find(|choice| choice.name() == name)
    }

    /// Returns whether `threads` threads can use the protocol at a time.
    pub fn permits(self, threads: usize) -> bool {
        threads == 1 || !self.run(OneSession)
    }

    /// Returns whether its serial order agrees with real time.
    pub(crate) fn is_strict(self) -> bool {
        self.run(Strict)
    }

    /// Returns whether aborted attempts have seen a state of the serial order.
    pub(crate) fn is_opaque(self) -> bool {
        self.run(Opaque)
    }

    /// Whether one can choose where its timestamps come from.
    pub(crate) fn leaves_timestamps(self) -> bool {
        self.run(Sources).len() > 1
    }

    /// Returns where its timestamps come from, one setting after another: as was asked for, or as it likes best; nothing if it
    /// leaves no choice.
    pub fn timestamps(self, asked: &[Timestamps]) -> Vec<Option<Timestamps>> {
        match (self.leaves_timestamps(), asked) {
            (false, _) => vec![None],
            (true, []) => vec![Some(self.run(Sources)[0])],
            (true, asked) => asked.iter().copied().map(Some).collect(),
        }
    }
}

/// Where the protocol called so is in the registry, which is the order in which reports show them.
///
/// # Panics
/// If there is none.
pub(crate) fn place(name: &str) -> usize {
    Choice::ALL.iter().position(|choice| choice.name() == name).expect("a protocol that was run is registered")
}

struct Name;

impl Job for Name {
    type Output = &'static str;

    fn run<P: Protocol>(self) -> &'static str {
        P::NAME
    }
}

struct Sources;

impl Job for Sources {
    type Output = &'static [Timestamps];

    fn run<P: Protocol>(self) -> &'static [Timestamps] {
        P::TIMESTAMPS
    }
}

struct OneSession;

impl Job for OneSession {
    type Output = bool;

    fn run<P: Protocol>(self) -> bool {
        P::ONE_SESSION
    }
}

struct Strict;

impl Job for Strict {
    type Output = bool;

    fn run<P: Protocol>(self) -> bool {
        P::STRICT
    }
}

struct Opaque;

impl Job for Opaque {
    type Output = bool;

    fn run<P: Protocol>(self) -> bool {
        P::OPAQUE
    }
}

/// The protocols of one invocation, in the order they were given.
#[derive(Debug, Clone)]
pub struct Choices(pub Vec<Choice>);

impl Choices {
    /// The names of those that leave a choice where their timestamps come from.
    pub(crate) fn with_timestamps() -> Vec<&'static str> {
        Choice::ALL.iter().filter(|choice| choice.leaves_timestamps()).map(|choice| choice.name()).collect()
    }
}

impl FromStr for Choices {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        if list == "all" {
            return Ok(Choices(Choice::ALL.to_vec()));
        }
        let choose = |name: &str| {
            Choice::named(name).ok_or_else(|| {
                let names: Vec<_> = Choice::ALL.iter().map(|choice| choice.name()).collect();
                format!("there is no protocol `{name}`; use a list of {}, or all", names.join(", "))
            })
        };
        list.split(',').map(choose).collect::<Result<_, _>>().map(Choices)
    }
}
