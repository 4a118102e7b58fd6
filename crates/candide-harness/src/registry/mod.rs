//! The protocols by name. No other module of the command and its libraries lists the protocols.

mod mixtures;

use std::any::Any;
use std::str::FromStr;

use candide::Protocol;
use candide::any::Chosen;
use candide::experiments::Timestamps;
use candide::policy::{Policies, Policy};
use candide::protocols::Properties;

use crate::failure::Failure;

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
pub struct Choice {
    /// The name of an entry of the engine's list of protocols.
    listed: &'static str,
    /// The policies with their settings, which replace those of the list's entry; `None` if the
    /// entry is taken as it is.
    given: Option<&'static Policies>,
}

macro_rules! choices {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        impl Choice {
            /// Returns all protocols of the list, in the order in which reports show them.
            fn all() -> Vec<Choice> {
                vec![$($(Choice::listed(<$protocol>::properties(&$policy).name)),+),+]
            }

            /// Does `job` under this protocol.
            pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
                $(for mut policy in [$($policy),+] {
                    if <$protocol>::properties(&policy).name == self.listed {
                        self.given.into_iter().for_each(|given| replace(&mut policy, given));
                        return job.run::<$protocol>(policy);
                    }
                })+
                unreachable!("{} is one of the list", self.listed)
            }
        }
    };
}
candide::for_each_protocol!(choices);

/// Replaces the policies of tables in the policy of a protocol, if the protocol has such policies.
fn replace(policy: &mut dyn Any, given: &Policies) {
    if let Some(policies) = policy.downcast_mut::<Policies>() {
        policies.clone_from(given);
    }
}

impl Choice {
    /// Returns the policy for databases whose protocol is chosen at run time.
    pub(crate) fn erased(self) -> Chosen {
        self.run(Erase)
    }

    /// Returns the properties of the protocol's databases.
    pub(crate) fn properties(self) -> Properties {
        self.erased().properties()
    }

    /// Returns the entry of the list that is called `name`, as it is.
    fn listed(name: &'static str) -> Choice {
        Choice { listed: name, given: None }
    }

    /// Returns the protocol's own name; for policies with settings, their whole text.
    pub fn name(self) -> &'static str {
        self.given.map_or(self.listed, Policies::name)
    }

    /// Returns the protocol of the list with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Choice> {
        Choice::all().into_iter().find(|choice| choice.name() == name)
    }

    /// Returns the protocol that an element of a list names.
    pub(crate) fn parse(element: &str) -> Result<Choice, String> {
        let name = element.split_once(':').map_or(element, |(name, _)| name);
        if let (Some(choice), Some(given)) = (Choice::named(name), mixtures::parse(element)) {
            return Ok(Choice { given: Some(given?), ..choice });
        }
        Choice::named(element).ok_or_else(|| {
            let names: Vec<_> = Choice::all().into_iter().map(Choice::name).collect();
            let names = names.join(", ");
            format!("there is no protocol `{element}`; use a list of {names}, or all, or usual")
        })
    }

    /// Returns whether the protocol puts updates off, as deltas, in databases without a log.
    pub(crate) fn has_deltas(self) -> bool {
        self.properties().has_deltas()
    }

    /// Returns the protocol for a workload with these tables. `mixed` gives the tables all policies
    /// in turn, or the rows if there is only one table.
    pub(crate) fn for_tables(self, tables: &[&str]) -> Choice {
        static ROWS: Policies = Policies::mixed_rows();
        match (tables, self.given) {
            ([_], None) if self.listed == ROWS.name() => Choice { given: Some(&ROWS), ..self },
            _ => self,
        }
    }

    /// Returns whether tables have policies that may lock rows.
    pub(crate) fn locks(self) -> bool {
        self.run(Lock)
    }

    /// Returns whether the protocol is a usual one: one without locking policies, one of these
    /// policies in the place of all, or the policies in turn.
    fn is_usual(self) -> bool {
        let policy = self.name().parse();
        policy.is_err() || matches!(policy, Ok(Policy::Optimistic | Policy::WaitDie))
    }

    /// Returns whether `threads` threads can use the protocol at the same time.
    pub fn permits(self, threads: usize) -> bool {
        threads == 1 || !self.properties().one_session
    }

    /// Returns whether the protocol offers a choice of sources of timestamps.
    pub(crate) fn leaves_timestamps(self) -> bool {
        self.properties().timestamps().len() > 1
    }

    /// Returns whether databases under the protocol can be opaque or not.
    pub fn leaves_opacity(self) -> bool {
        self.run(LeavesOpacity)
    }

    /// Returns the values of opacity with which the protocol is run: those in `asked`, or on if
    /// `asked` is empty. Returns a single `None` if the protocol leaves no choice.
    pub fn opacities(self, asked: &[bool]) -> Vec<Option<bool>> {
        match (self.leaves_opacity(), asked) {
            (false, _) => vec![None],
            (true, []) => vec![Some(true)],
            (true, asked) => asked.iter().copied().map(Some).collect(),
        }
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

/// Returns the index of the protocol named `name` in the order of reports: first the protocols of
/// the list, then the policies with settings.
///
/// # Panics
/// If no protocol is named `name`.
pub(crate) fn place(name: &str) -> usize {
    let all = Choice::all();
    let listed = all.iter().position(|choice| choice.name() == name);
    let place = listed.or_else(|| Some(all.len() + mixtures::place(name)?));
    place.expect("a protocol that was run is registered")
}

/// Returns the number of protocols in the list.
pub(crate) fn listed() -> usize {
    Choice::all().len()
}

/// Returns a protocol's policies of tables; `None` if the protocol has none.
fn policies_of<P: Protocol>(policy: &P::Policy) -> Option<&Policies> {
    (policy as &dyn Any).downcast_ref()
}

struct Lock;

impl Job for Lock {
    type Output = bool;

    fn run<P: Protocol>(self, policy: P::Policy) -> bool {
        let optimistic = Policy::default().name();
        policies_of::<P>(&policy).is_some_and(|policies| policies.name() != optimistic)
    }
}

struct LeavesOpacity;

impl Job for LeavesOpacity {
    type Output = bool;

    fn run<P: Protocol>(self, _policy: P::Policy) -> bool {
        P::OPAQUE_BY_LOOKS
    }
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
    /// Returns the names of the protocols of the list for which `is_it` holds.
    pub(crate) fn names_of(is_it: fn(Choice) -> bool) -> Vec<&'static str> {
        Choice::all().into_iter().filter(|choice| is_it(*choice)).map(Choice::name).collect()
    }

    /// Checks that the workload called `workload`, whose tables are `tables`, has every table to
    /// which one of the protocols gives a policy by name.
    pub fn expect_tables(&self, workload: &str, tables: &[&str]) -> Result<(), Failure> {
        let mixtures = self.0.iter().filter_map(|choice| choice.given);
        let named =
            mixtures.flat_map(|policies| policies.tables().map(move |name| (policies, name)));
        match named.into_iter().find(|(_, name)| !tables.contains(name)) {
            None => Ok(()),
            Some((policies, name)) => Err(Failure::Usage(format!(
                "{workload} has no table `{name}`, which `{}` names; its tables are {}",
                policies.name(),
                tables.join(", ")
            ))),
        }
    }
}

impl FromStr for Choices {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        match list {
            "all" => return Ok(Choices(Choice::all())),
            "usual" => {
                let usual = Choice::all().into_iter().filter(|choice| choice.is_usual());
                return Ok(Choices(usual.collect()));
            }
            _ => {}
        }
        let elements = mixtures::elements(list)?;
        let choices: Vec<Choice> =
            elements.iter().map(|element| Choice::parse(element)).collect::<Result<_, _>>()?;
        Ok(Choices(each_once(&choices)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_that_is_named_twice_is_chosen_once() {
        let names = |list: &str| {
            list.parse::<Choices>().map(|choices| choices.0.into_iter().map(Choice::name).collect())
        };
        assert_eq!(names("mvto,occ,mvto,occ"), Ok(vec!["mvto", "occ"]));
        assert_eq!(
            names("mixed:a=swiss,b=pcc,occ,mixed:a=swiss,b=pcc,mixed"),
            Ok(vec!["mixed:a=swiss,b=pcc", "occ", "mixed"])
        );
        assert_eq!(each_once(&[1, 2, 1, 3, 3]), [1, 2, 3]);
    }

    #[test]
    fn choice_usual_is_all_protocols_without_most_policies() {
        let names = |list: &str| {
            let Choices(choices) = list.parse().expect("a word for a list");
            choices.into_iter().map(Choice::name).collect::<Vec<_>>()
        };
        let named = |name: &str| Choice::named(name).expect("it is listed");
        let usual =
            ["occ", "2pl-wait-die", "mixed", "tictoc", "mvcc", "mvto", "serial", "global-lock"];
        assert_eq!(names("usual"), usual);
        let locks: Vec<_> = usual.into_iter().filter(|name| named(name).locks()).collect();
        assert_eq!(locks, ["2pl-wait-die", "mixed"]);
        let all = names("all");
        assert!(usual.iter().all(|name| all.contains(name)));
        assert!(Policy::ALL.iter().all(|policy| all.contains(&policy.name())));
    }

    #[test]
    fn databases_of_policies_with_settings_have_the_given_name() {
        let Choices(choices) = "mixed:one=swiss,two=pcc,occ".parse().expect("a list");
        let [mixture, plain] = choices[..] else { panic!("{choices:?}") };
        assert_eq!(mixture.properties().name, "mixed:one=swiss,two=pcc");
        assert_eq!(
            place(mixture.name()),
            Choice::all().len() + mixtures::place(mixture.name()).expect("parsed")
        );
        struct Given;
        impl Job for Given {
            type Output = Option<Policies>;
            fn run<P: Protocol>(self, policy: P::Policy) -> Option<Policies> {
                policies_of::<P>(&policy).cloned()
            }
        }
        assert_eq!(mixture.run(Given).as_ref(), mixture.given);
        let Choices(choices) = "mocc:h=3,hybrid:lock=queue".parse().expect("a list");
        for (choice, name) in choices.into_iter().zip(["mocc:h=3", "hybrid:lock=queue"]) {
            assert_eq!(choice.properties().name, name);
            assert_eq!(choice.run(Given).as_ref(), choice.given);
            assert!(choice.locks(), "{name}");
        }
        assert_eq!(plain.run(Given), Some(Policies::of(Policy::Optimistic)));
    }

    #[test]
    fn choice_mixed_assigns_policies_by_row_in_workloads_of_one_table() {
        let mixed = Choice::named("mixed").expect("it is listed");
        let by_row = mixed.for_tables(&["only"]);
        assert_eq!((by_row.given, by_row.name()), (Some(&Policies::mixed_rows()), "mixed"));
        assert!(by_row.locks() && by_row.properties().name == "mixed");
        assert_eq!(mixed.for_tables(&["one", "two"]), mixed);
        for name in ["occ", "pcc", "mvto", "mixed:only=pcc"] {
            let other = Choice::parse(name).expect("a protocol");
            assert_eq!(other.for_tables(&["only"]), other, "{name}");
        }
    }

    #[test]
    fn unknown_tables_of_a_mixture_are_refused_with_a_list_of_the_tables() {
        let choices: Choices = "occ,mixed:a=swiss,b=pcc,mixed:c=occ".parse().expect("a list");
        assert!(choices.expect_tables("bank", &["c", "a", "b"]).is_ok());
        let refused =
            choices.expect_tables("bank", &["a", "c"]).map_err(|failure| failure.to_string());
        let words = "bank has no table `b`, which `mixed:a=swiss,b=pcc` names; its tables are a, c";
        assert_eq!(refused, Err(words.to_string()));
    }
}
