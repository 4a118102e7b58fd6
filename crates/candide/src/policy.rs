//! Policies: when transactions lock rows, in addition to what their protocol does.

#![forbid(unsafe_code)]

use crate::unknown_name::UnknownName;
use std::fmt;
use std::str::FromStr;

/// When the transactions of [`Occ`](crate::Occ) lock the rows of a table before they commit.
///
/// A policy never changes a guarantee. Whatever a policy locks, each commit locks its write set and
/// validates its read set, as under [`Policy::Optimistic`]; a policy decides only how often
/// transactions wait and conflict. One transaction may use tables with different policies. The
/// absence of a key that was never there is not locked: a transaction may fail at its commit
/// because of a new row, under every policy.
///
/// No wait for a lock is longer than 10 ms, except under [`Policy::DeferredTwoPhase`] and
/// [`Policy::Pipelined`]; a
/// transaction that has failed to get locks too often does without them. A lock that another
/// transaction of the same thread holds is ignored.
///
/// [`Builder::policy`](crate::Builder::policy) chooses the policy of a database,
/// [`TableOptions::policy`](crate::TableOptions::policy) that of a table, and
/// [`Table::set_policy`](crate::Table::set_policy) changes it while transactions run.
///
/// Sources: Wang and Kimura, VLDB 2016, section 5.1.1 (two-phase locking and PCC); Huang et al.,
/// "The Impact of Timestamp Granularity in Optimistic Concurrency Control", 2018, section 3.2
/// (adaptive locks, SwissTM's contention manager, and all of them in one commit); Mu, Angel and
/// Shasha, EuroSys 2019, sections 4 and 5 (deferred runtime pipelining) and 6 (deferred two-phase
/// locking). In these studies, locked rows need
/// not be validated; here all reads are validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// No locks before the commit.
    #[default]
    Optimistic,
    /// Two-phase locking: reads and writes lock. A transaction that meets a lock aborts after a
    /// short wait.
    NoWait,
    /// Two-phase locking. A transaction that meets a lock aborts at once.
    BlindDie,
    /// Two-phase locking. A transaction waits if it is older than all holders of the lock, and
    /// aborts otherwise. A transaction's age is that of its first attempt that locked a row.
    WaitDie,
    /// Two-phase locking. A transaction waits unless it finds itself among those for which the
    /// holders wait, directly or not.
    Dreadlock,
    /// Each row is read without a lock or with one, as chance and the last lock's kind suggest;
    /// writes lock at the commit.
    Adaptive,
    /// Writes lock at once, reads never. Of two transactions that want to write a row, the
    /// transaction that has written little yields, or else the younger.
    Swiss,
    /// Reads take a lock if it is free, and take none otherwise. Writes take one at the commit, or
    /// abort.
    Pessimistic,
    /// Mostly-optimistic concurrency control. Rows on which reads often fail to validate are *hot*:
    /// reads lock them, and so do writes of a row that the transaction has read. After a conflict,
    /// the next attempt first locks the rows on which this one failed and those that it wrote.
    /// [`MoccOptions`] has the settings.
    Mocc,
    /// Optimistic at first. After a conflict, the next attempt first locks all that this one has
    /// read and written.
    Hybrid,
    /// Two-phase locking of transactions whose operations are deferred. Reads never lock. A commit
    /// locks what it writes in the order of addresses, and waits for each lock.
    ///
    /// If the transaction has read nothing and holds only locks of this policy that its commit has
    /// taken, it waits 100 ms at its first attempt. Then it begins anew, and from then on it waits
    /// a second at each attempt, but not beyond its
    /// [deadline](crate::RunOptions::deadline). Such waits do not make it do without locks; each
    /// counts as a conflict. While a commit waits, it holds the locks that it has, and no memory
    /// and no version that transactions still can see is freed, in all sessions. Otherwise it waits
    /// as under [`Policy::Mocc`]. So transactions of [deferred](crate::Table::defer) operations do
    /// not fail because of one another, unless one of them keeps a row for 100 ms.
    DeferredTwoPhase,
    /// Deferred runtime pipelining. Reads never lock. A commit locks what it writes in one order,
    /// and hands each lock on to the next commit before it has committed itself: the two then
    /// change the row and commit in the order in which they have locked it. A transaction that has
    /// read nothing before, whose operations are all [deferred](crate::Table::defer) or blind,
    /// never fails because of another such transaction. One that has read is validated when the
    /// transactions before it have committed, and may fail.
    ///
    /// A commit waits without a bound for transactions that have locked a row before it, and never
    /// for a closure: these transactions wait for none that comes after them. Their steps and
    /// updaters run meanwhile, so these should be short. A transaction that has read or locked a
    /// row for update, or that holds a lock by another policy, or that appends to a sequence whose
    /// number the commit draws, locks these rows as under [`Policy::Optimistic`], when no other
    /// commit has them.
    ///
    /// A read of a row that commits hand on to one another waits until the last of them is over,
    /// and keeps further ones from taking the row over. (In the source, such a read carries out the
    /// operations that are pending.)
    /// The range of a number that such a read has told
    /// ([`Table::is_within`](crate::Table::is_within)) is looked at again when the commit is about
    /// to be logged and must not wait: if the row is then being handed on again, the transaction is
    /// repeated.
    ///
    /// That an update, an insert or a delete in such a table succeeds does not yet tell whether the
    /// row exists. If the commit finds otherwise, the transaction is repeated. Operations that
    /// return whether there is a row, as
    /// [`Table::update_if_present`](crate::Table::update_if_present), read it.
    ///
    /// Two kinds of reads leave a transaction as one that has read nothing: reads of
    /// [frozen](crate::Table::freeze) columns, and results of steps that become keys of other rows
    /// ([`Table::defer_at`](crate::Table::defer_at)). A commit computes such a key, and then finds
    /// and locks the row, if
    /// * the table of the row has this policy and no index;
    /// * the [rank](crate::Table::set_rank) of that table is above those of all tables of which the
    ///   transaction writes rows with known keys, and of the tables of rows on which the key
    ///   depends;
    /// * the transaction has read nothing, and no other operation of it is on the same row.
    ///
    /// Otherwise the operation, or the next attempt, computes the key before it goes on, for which
    /// the transaction reads. If two steps of such a transaction fail, it may end in the outcome of
    /// either.
    Pipelined,
    /// Answers by chance: grants a lock that it does not take, or refuses a free lock. Only to show
    /// that locks do not matter for serializability.
    #[cfg(any(test, feature = "experiments"))]
    Random,
}

impl Policy {
    /// All policies that programs choose among, the default first.
    pub const ALL: [Policy; 12] = [
        Policy::Optimistic,
        Policy::NoWait,
        Policy::BlindDie,
        Policy::WaitDie,
        Policy::Dreadlock,
        Policy::Adaptive,
        Policy::Swiss,
        Policy::Pessimistic,
        Policy::Mocc,
        Policy::Hybrid,
        Policy::DeferredTwoPhase,
        Policy::Pipelined,
    ];

    /// Returns the policy's name, as the command line spells it. [`Policy::from_str`] parses such
    /// names.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Optimistic => "occ",
            Policy::NoWait => "2pl-no-wait",
            Policy::BlindDie => "2pl-blind-die",
            Policy::WaitDie => "2pl-wait-die",
            Policy::Dreadlock => "2pl-dreadlock",
            Policy::Adaptive => "adaptive",
            Policy::Swiss => "swiss",
            Policy::Pessimistic => "pcc",
            Policy::Mocc => "mocc",
            Policy::Hybrid => "hybrid",
            Policy::DeferredTwoPhase => "deferred-2pl",
            Policy::Pipelined => "pipelined",
            #[cfg(any(test, feature = "experiments"))]
            Policy::Random => "random",
        }
    }

    /// Returns whether the policy needs a second word in each cell.
    pub(crate) const fn locks(self) -> bool {
        !matches!(self, Policy::Optimistic)
    }

    /// Returns whether attempts learn from conflicts which rows to lock.
    #[inline]
    pub(crate) const fn learns(self) -> bool {
        matches!(self, Policy::Mocc | Policy::Hybrid)
    }

    /// Returns whether attempts sleep for locks in the order of addresses, and so lock what they
    /// write before their commits.
    #[inline]
    pub(crate) const fn waits_in_order(self) -> bool {
        self.learns() || matches!(self, Policy::DeferredTwoPhase)
    }

    /// Returns whether a commit may lock what it writes before phase 1.
    #[inline]
    pub(crate) const fn locks_before_phase_1(self) -> bool {
        self.waits_in_order() || matches!(self, Policy::Pipelined)
    }

    /// Returns the policy with this number.
    #[inline]
    pub(crate) fn numbered(number: u8) -> Policy {
        #[cfg(any(test, feature = "experiments"))]
        if number == Policy::Random as u8 {
            return Policy::Random;
        }
        Policy::ALL[usize::from(number)]
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownName;

    /// # Errors
    /// [`UnknownName`] if no policy is called `name`. The error lists the names.
    fn from_str(name: &str) -> Result<Policy, UnknownName> {
        let known = || Policy::ALL.map(Policy::name).to_vec();
        let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        policy.ok_or_else(|| UnknownName::new("policy", name, known()))
    }
}

/// The settings of [`Policy::Mocc`] and [`Policy::Hybrid`] in a database.
///
/// ```
/// use candide::policy::{MoccOptions, Policies, Policy};
/// use candide::{Database, Occ};
///
/// let options = MoccOptions::new().threshold(10).per_page(true);
/// let policies = Policies::of(Policy::Mocc).mocc(options);
/// let db = Database::<Occ>::builder().policy(policies).build()?;
/// # let _ = db;
/// # Ok::<(), candide::Error>(())
/// ```
///
/// Source: Wang and Kimura, VLDB 2016, sections 3.2, 3.4 and 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoccOptions {
    threshold: Option<u8>,
    is_per_page: bool,
    has_queue_locks: bool,
    has_paper_waiting: bool,
    #[cfg(any(test, feature = "experiments"))]
    is_unreliable: bool,
}

impl Default for MoccOptions {
    fn default() -> MoccOptions {
        MoccOptions::DEFAULT
    }
}

impl MoccOptions {
    const DEFAULT: MoccOptions = MoccOptions {
        threshold: None,
        is_per_page: false,
        has_queue_locks: false,
        has_paper_waiting: false,
        #[cfg(any(test, feature = "experiments"))]
        is_unreliable: false,
    };

    /// The threshold of temperatures of rows, and that of temperatures of pages.
    const THRESHOLDS: [u8; 2] = [5, 10];

    /// Returns the default settings.
    pub fn new() -> MoccOptions {
        MoccOptions::default()
    }

    /// Sets the temperature from which on a row is hot. A row has temperature `t` after about `2^t`
    /// failed validations of reads. With 0, all rows are hot from the start and for ever; above 31,
    /// no row ever is. The default is 5, and 10 if [per page](MoccOptions::per_page).
    #[must_use]
    pub fn threshold(self, threshold: u8) -> MoccOptions {
        MoccOptions { threshold: Some(threshold), ..self }
    }

    /// Chooses whether the rows in a page of memory (4 KiB) share a temperature, similar to the
    /// paper. A row that becomes hot then makes the rows beside it hot, too: those in the same node
    /// of the table's primary index. By default, each row has its own temperature.
    #[must_use]
    pub fn per_page(self, per_page: bool) -> MoccOptions {
        MoccOptions { is_per_page: per_page, ..self }
    }

    /// Chooses whether rows have MOCC's queue lock, which grants in the order of the requests and
    /// takes three words, or by default a lock of one word. A session has 1,023 requests (64 KiB).
    /// A request can be used again once all transactions have ended that ran when it was last used.
    /// Without one, an attempt continues without the lock. The policies of a table with queue locks
    /// can only be [`Policy::Optimistic`], [`Policy::Pessimistic`], [`Policy::Mocc`] and
    /// [`Policy::Hybrid`].
    #[must_use]
    pub fn queue_locks(self, queue_locks: bool) -> MoccOptions {
        MoccOptions { has_queue_locks: queue_locks, ..self }
    }

    /// Chooses whether attempts wait for locks as in the paper: for each lock that comes after all
    /// that they hold in the order of addresses, whatever they hold, asleep for at most 10 ms. To
    /// that end an attempt releases up to eight locks that are in the way, those for writing
    /// included. By default, an attempt whose closure runs sleeps only if it then holds no lock,
    /// which is faster where threads share cores.
    #[must_use]
    pub fn paper_waiting(self, paper_waiting: bool) -> MoccOptions {
        MoccOptions { has_paper_waiting: paper_waiting, ..self }
    }

    /// Grants half of the locks, at random, without taking them. Only to show that locks do not
    /// matter for serializability.
    #[cfg(any(test, feature = "experiments"))]
    #[must_use]
    pub fn unreliable(self) -> MoccOptions {
        MoccOptions { is_unreliable: true, ..self }
    }

    /// Returns the temperature from which on a row is hot.
    #[inline]
    pub(crate) fn threshold_of_heat(self) -> u8 {
        self.threshold.unwrap_or(MoccOptions::THRESHOLDS[usize::from(self.is_per_page)])
    }

    pub(crate) fn is_per_page(self) -> bool {
        self.is_per_page
    }

    pub(crate) fn has_queue_locks(self) -> bool {
        self.has_queue_locks
    }

    pub(crate) fn has_paper_waiting(self) -> bool {
        self.has_paper_waiting
    }

    /// Returns whether every other lock, by chance, is not taken.
    pub(crate) fn is_unreliable(self) -> bool {
        #[cfg(any(test, feature = "experiments"))]
        return self.is_unreliable;
        #[cfg(not(any(test, feature = "experiments")))]
        false
    }
}

/// The policies of a database: a default, and the policies of tables by name.
///
/// ```
/// use candide::policy::{Policies, Policy};
/// use candide::{Database, Occ};
///
/// let policies = Policies::of(Policy::Optimistic).with("warehouse", Policy::WaitDie);
/// let db = Database::<Occ>::builder().policy(policies).build()?;
/// # let _ = db;
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    name: &'static str,
    default: Policy,
    tables: Vec<(String, Policy)>,
    turns: Turns,
    mocc: MoccOptions,
}

/// The choice of tables to which different policies are given in turn, instead of the default to
/// all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// No table: all have the default.
    None,
    /// New tables.
    Tables,
    /// The rows of each table.
    #[cfg(any(test, feature = "experiments"))]
    Rows,
}

impl Default for Policies {
    fn default() -> Policies {
        #[cfg(test)]
        if let Some(policies) = in_tests::default() {
            return policies;
        }
        Policies::of(Policy::default())
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Policies {
        Policies::of(policy)
    }
}

impl Policies {
    /// The name of a database whose tables have different policies.
    const MIXED: &'static str = "mixed";

    /// Returns one policy for all tables.
    pub const fn of(policy: Policy) -> Policies {
        Policies {
            name: policy.name(),
            default: policy,
            tables: Vec::new(),
            turns: Turns::None,
            mocc: MoccOptions::DEFAULT,
        }
    }

    /// Returns all policies in turn: each new table gets the next policy. For tests and
    /// comparisons.
    pub const fn mixed() -> Policies {
        Policies {
            name: Policies::MIXED,
            default: Policy::Optimistic,
            tables: Vec::new(),
            turns: Turns::Tables,
            mocc: MoccOptions::DEFAULT,
        }
    }

    /// Returns all policies for each table: every column group of every row has one of them, by the
    /// place of the row in memory. For tests and comparisons of programs with one table.
    #[cfg(any(test, feature = "experiments"))]
    pub const fn mixed_rows() -> Policies {
        // Tables begin with room for locks, and with rows for whose locks readers and writers ask.
        Policies {
            name: Policies::MIXED,
            default: Policy::NoWait,
            tables: Vec::new(),
            turns: Turns::Rows,
            mocc: MoccOptions::DEFAULT,
        }
    }

    /// Returns whether the rows of a table have different policies.
    pub(crate) fn is_by_row(&self) -> bool {
        #[cfg(any(test, feature = "experiments"))]
        return self.turns == Turns::Rows;
        #[cfg(not(any(test, feature = "experiments")))]
        false
    }

    /// Chooses the policy of the table called `table`, which takes precedence over
    /// [`TableOptions::policy`](crate::TableOptions::policy). Other tables keep the default.
    #[must_use]
    pub fn with(mut self, table: impl Into<String>, policy: Policy) -> Policies {
        let table = table.into();
        self.tables.retain(|(name, _)| *name != table);
        self.tables.push((table, policy));
        self.name = Policies::MIXED;
        self
    }

    /// Chooses the settings of [`Policy::Mocc`] and [`Policy::Hybrid`].
    #[must_use]
    pub fn mocc(mut self, options: MoccOptions) -> Policies {
        self.mocc = options;
        self
    }

    /// Returns the settings of [`Policy::Mocc`] and [`Policy::Hybrid`].
    #[inline]
    pub(crate) fn mocc_options(&self) -> MoccOptions {
        self.mocc
    }

    /// Returns the name of databases with these policies: the policy's, or `mixed`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Calls the databases with these policies `name`, in reports.
    #[cfg(any(test, feature = "experiments"))]
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Policies {
        self.name = name;
        self
    }

    /// Returns the tables for which a policy was chosen by name.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the policy of a new table, which is the `number`th of its database. `wanted` is the
    /// policy in the table's options.
    pub(crate) fn of_table(&self, name: &str, number: usize, wanted: Option<Policy>) -> Policy {
        let by_name = self.tables.iter().find(|(table, _)| table == name);
        let in_turn = || match self.turns {
            Turns::Tables => Policy::ALL[number % Policy::ALL.len()],
            _ => self.default,
        };
        by_name.map(|&(_, policy)| policy).or(wanted).unwrap_or_else(in_turn)
    }
}

#[cfg(test)]
pub(crate) use in_tests::by_policies;

/// Support for repeating tests under other policies.
#[cfg(test)]
mod in_tests {
    use super::Policies;
    use std::cell::RefCell;

    thread_local! {
        static DEFAULT: RefCell<Option<Policies>> = const { RefCell::new(None) };
    }

    pub(super) fn default() -> Option<Policies> {
        DEFAULT.with_borrow(Clone::clone)
    }

    /// Runs `body`. Databases of [`Occ`](crate::Occ) that `body` builds on this thread have
    /// `policies`, unless `body` chooses others.
    pub(crate) fn by_policies<T>(policies: Policies, body: impl FnOnce() -> T) -> T {
        DEFAULT.set(Some(policies));
        let result = body();
        DEFAULT.set(None);
        result
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_of_policies_are_parsed_and_others_refused() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            assert_eq!(Policy::numbered(policy as u8), policy);
        }
        assert_eq!(Policy::numbered(Policy::Random as u8), Policy::Random);
        let known = Policy::ALL.map(Policy::name).to_vec();
        let unknown = UnknownName::new("policy", "2pl", known);
        assert_eq!("2pl".parse::<Policy>(), Err(unknown.clone()));
        assert_eq!(
            unknown.to_string(),
            "no policy is called \"2pl\"; there are occ, 2pl-no-wait, 2pl-blind-die, 2pl-wait-die, \
             2pl-dreadlock, adaptive, swiss, pcc, mocc, hybrid, deferred-2pl, pipelined"
        );
    }

    #[test]
    fn policy_names_take_precedence_over_options_and_options_over_the_default() {
        let policies =
            Policies::of(Policy::WaitDie).with("a", Policy::Swiss).with("a", Policy::NoWait);
        assert_eq!(policies.name(), "mixed");
        assert_eq!(policies.tables().collect::<Vec<_>>(), ["a"]);
        let of = |name, wanted| policies.of_table(name, 0, wanted);
        assert_eq!(of("a", Some(Policy::Adaptive)), Policy::NoWait);
        assert_eq!(of("b", Some(Policy::Adaptive)), Policy::Adaptive);
        assert_eq!(of("b", None), Policy::WaitDie);
        assert_eq!(Policies::of(Policy::Swiss).name(), "swiss");
        let mixed = Policies::mixed();
        let in_turn = [0, 1, 12].map(|number| mixed.of_table("b", number, None));
        assert_eq!(in_turn, [Policy::Optimistic, Policy::NoWait, Policy::Optimistic]);
    }
}
