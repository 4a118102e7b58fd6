//! The protocols by name. No other module of the command and its libraries lists the protocols.

use std::str::FromStr;

use candide::experiments::Timestamps;
use candide::{Chosen, Properties, Protocol};

/// A job that is done under a protocol chosen at run time.
pub(crate) trait Job {
    /// The result.
    type Output;

    /// Does the job, on databases with `policy`.
    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output;
}

/// A protocol that can be chosen on the command line, by its name. The name stands for the engine
/// type for which transactions are compiled, and for the policy value given to that engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice(&'static str);

macro_rules! choices {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        impl Choice {
            /// Returns all protocols, in the order in which reports show them.
            fn all() -> Vec<Choice> {
                vec![$($(Choice(<$protocol>::properties(&$policy).name)),+),+]
            }

            /// Does `job` under this protocol.
            pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
                $(for policy in [$($policy),+] {
                    if <$protocol>::properties(&policy).name == self.0 {
                        return job.run::<$protocol>(policy);
                    }
                })+
                unreachable!("{} is one of the list", self.0)
            }
        }
    };
}
candide::for_each_protocol!(choices);

impl Choice {
    /// Returns the policy for databases whose protocol is chosen at run time.
    pub(crate) fn erased(self) -> Chosen {
        self.run(Erase)
    }

    /// Returns the properties of the protocol's databases.
    pub(crate) fn properties(self) -> Properties {
        self.erased().properties()
    }

    /// Returns the protocol's own name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns the protocol with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Choice> {
        Choice::all().into_iter().find(|choice| choice.name() == name)
    }

    /// Returns whether `threads` threads can use the protocol at the same time.
    pub fn permits(self, threads: usize) -> bool {
        threads == 1 || !self.properties().one_session
    }

    /// Returns whether the protocol offers a choice of sources of timestamps.
    pub(crate) fn leaves_timestamps(self) -> bool {
        self.properties().timestamps().len() > 1
    }

    /// Returns the sources of timestamps with which the protocol is run: those in `asked`, or the
    /// protocol's default if `asked` is empty. Returns a single `None` if the protocol offers no
    /// choice.
    pub fn timestamps(self, asked: &[Timestamps]) -> Vec<Option<Timestamps>> {
        match (self.leaves_timestamps(), asked) {
            (false, _) => vec![None],
            (true, []) => vec![Some(self.properties().timestamps()[0])],
            (true, asked) => asked.iter().copied().map(Some).collect(),
        }
    }
}

/// Returns the index of the protocol named `name` in the registry, whose order is that of reports.
///
/// # Panics
/// If no protocol is named `name`.
pub(crate) fn place(name: &str) -> usize {
    Choice::all()
        .iter()
        .position(|choice| choice.name() == name)
        .expect("a protocol that was run is registered")
}

struct Erase;

impl Job for Erase {
    type Output = Chosen;

    fn run<P: Protocol>(self, policy: P::Policy) -> Chosen {
        Chosen::of::<P>(policy)
    }
}

/// Returns the elements of a list without repetitions, in the order of their first occurrence.
pub fn each_once<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let first = |&(place, item): &(usize, &T)| !list[..place].contains(item);
    list.iter().enumerate().filter(first).map(|(_, &item)| item).collect()
}

/// The protocols of one command, each once, in the order given.
#[derive(Debug, Clone)]
pub struct Choices(pub Vec<Choice>);

impl Choices {
    /// Returns the names of the protocols that offer a choice of sources of timestamps.
    pub(crate) fn with_timestamps() -> Vec<&'static str> {
        Choice::all()
            .iter()
            .filter(|choice| choice.leaves_timestamps())
            .map(|choice| choice.name())
            .collect()
    }
}

impl FromStr for Choices {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        if list == "all" {
            return Ok(Choices(Choice::all()));
        }
        let choose = |name: &str| {
            Choice::named(name).ok_or_else(|| {
                let names: Vec<_> = Choice::all().iter().map(|choice| choice.name()).collect();
                format!("there is no protocol `{name}`; use a list of {}, or all", names.join(", "))
            })
        };
        let choices: Vec<Choice> = list.split(',').map(choose).collect::<Result<_, _>>()?;
        Ok(Choices(each_once(&choices)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_twice_is_there_once() {
        let names = |list: &str| {
            list.parse::<Choices>().map(|choices| choices.0.into_iter().map(Choice::name).collect())
        };
        assert_eq!(names("mvto,occ,mvto,occ"), Ok(vec!["mvto", "occ"]));
        assert_eq!(each_once(&[1, 2, 1, 3, 3]), [1, 2, 3]);
    }
}
