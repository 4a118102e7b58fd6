//! Loading and running a small workload, whatever the protocol.

use std::thread;

use candide::any::{Chosen, Erased};
use candide::policy::{Policies, Policy};
use candide::protocols::Exclusion;
use candide::{Database, Occ, Protocol, Record, Serial, Table};
use candide_workloads::{Consistency, Loaded, Loading, Worker, Workload};

/// A database of `Occ` with the two switches set.
pub(crate) fn database(commit_time_updates: bool, timestamp_splitting: bool) -> Database<Occ> {
    database_of(Default::default(), commit_time_updates, timestamp_splitting)
}

/// A database with the two switches set.
pub(crate) fn database_of<P: Protocol>(
    policy: P::Policy,
    commit_time_updates: bool,
    timestamp_splitting: bool,
) -> Database<P> {
    let builder = Database::<P>::builder().policy(policy);
    builder
        .commit_time_updates(commit_time_updates)
        .timestamp_splitting(timestamp_splitting)
        .build()
        .expect("valid settings")
}

/// Loads `workload` by as many threads as will run it, and demands that it names its tables.
pub(crate) fn load<P: Protocol, W: Workload>(
    db: &Database<P>,
    workload: &W,
    threads: usize,
) -> W::Loaded<P> {
    assert_eq!(workload.validate(), Ok(()));
    let loaded = workload
        .load(db, &Loading { threads, seed: 5, progress: &|_| {}, stopped: &|| false })
        .expect("loads");
    // Entries of indexes are in tables with a dot in their names.
    let tables = db.tables().into_iter().map(|table| table.name);
    let tables: Vec<_> = tables.filter(|name| !name.contains('.')).collect();
    assert_eq!(tables, W::TABLES, "{}", workload.name());
    loaded
}

/// Runs a program of which one run has `steps` steps, some times in a row, with different numbers
/// of threads. Each time it ends at least once, and its checks hold. `ended` returns how often it
/// has.
pub(crate) fn assert_begins_anew<W: Workload>(
    workload: &W,
    steps: usize,
    ended: impl Fn(&W::Loaded<Occ>) -> u64,
) {
    let db = database(true, true);
    let loaded = load(&db, workload, 2);
    let mut before = 0;
    for threads in [1, 3, 2] {
        run(&db, &loaded, threads, steps / threads);
        assert!(ended(&loaded) > before, "{threads} threads");
        before = ended(&loaded);
        assert_eq!(check(&db, &loaded).failed, Vec::<String>::new(), "{threads} threads");
    }
    assert!(loaded.sequential_tps(0, &|| false).is_some_and(|tps| tps > 0.0));
}

/// Runs `steps` transactions on each thread and enters them into the account. Gives how many
/// committed.
pub(crate) fn run<P: Protocol, L: Loaded<P>>(
    db: &Database<P>,
    loaded: &L,
    threads: usize,
    steps: usize,
) -> usize {
    loaded.expect_workers(threads);
    let sessions: Vec<_> = (0..threads).map(|_| db.session().expect("a session")).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(thread, session)| {
                scope.spawn(move || {
                    let mut worker = loaded.worker(session, thread);
                    let committed = (0..steps)
                        .filter(|_| worker.step().expect("no surprises").committed)
                        .count();
                    loaded.absorb(worker);
                    committed
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

/// Something that is to be so under every protocol.
pub(crate) trait UnderEach {
    fn run<P: Protocol>(&self, policy: &P::Policy);
}

macro_rules! every_choice {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        vec![$($(Chosen::of::<$protocol>($policy)),+),+]
    };
}

/// Sees to it under every protocol. A workload's code is compiled for the default by itself and
/// once for all the others, as whose transactions it is the same. Unless `CANDIDE_FULL` is set, a
/// test is run under one of the eight locking policies, chosen by the test's type.
pub(crate) fn under_each<T: UnderEach>(test: &T) {
    test.run::<Occ>(&Default::default());
    let sum: usize = std::any::type_name::<T>().bytes().map(usize::from).sum();
    let mut policies = 0;
    for chosen in candide::for_each_protocol!(every_choice) {
        let name = chosen.properties().name;
        policies += usize::from(locks(name));
        let is_left_out = is_short() && locks(name) && !(policies + sum).is_multiple_of(8);
        if name != Occ::NAME && !is_left_out {
            test.run::<Erased>(&chosen);
        }
    }
}

/// Returns whether the policy called `name` locks rows.
fn locks(name: &str) -> bool {
    let is_policy = name.parse::<Policy>().is_ok() || name == Policies::mixed().name();
    is_policy && name != Policy::default().name()
}

/// Returns whether less is to be tried: unless `CANDIDE_FULL` is set.
fn is_short() -> bool {
    std::env::var_os("CANDIDE_FULL").is_none()
}

/// As many threads as the protocol takes.
pub(crate) fn threads_of<P: Protocol>(policy: &P::Policy, threads: usize) -> usize {
    if P::properties(policy).one_session { 1 } else { threads }
}

/// Commit-time updates and timestamp splitting, on and off: in each combination. Unless
/// `CANDIDE_FULL` is set, a protocol has one combination, and the default protocol
/// has two that differ in both. Which ones depends on `test` and on the protocol, so that the tests
/// together run each protocol in each combination.
pub(crate) fn switches<P: Protocol>(test: &str, policy: &P::Policy) -> Vec<(bool, bool)> {
    let all = [(true, true), (true, false), (false, true), (false, false)];
    if !is_short() {
        return all.to_vec();
    }
    let protocol = P::properties(policy).name;
    let sum: usize = test.bytes().chain(protocol.bytes()).map(usize::from).sum();
    let (updates, splitting) = all[sum % all.len()];
    let opposite = (protocol == Occ::NAME).then_some((!updates, !splitting));
    [(updates, splitting)].into_iter().chain(opposite).collect()
}

/// Returns `steps`, or a third of them unless `CANDIDE_FULL` is set.
pub(crate) fn share(steps: usize) -> usize {
    if is_short() { steps / 3 } else { steps }
}

/// Runs a workload twice in a row, under every protocol and with the switches in each position, and
/// demands that its check finds nothing wrong. `plausible` is told how many transactions have
/// committed each time, and of how many. Unless `CANDIDE_FULL` is set, a third of the steps is
/// made.
pub(crate) fn assert_holds<W: Workload>(
    workload: &W,
    threads: usize,
    steps: usize,
    plausible: impl Fn(usize, usize),
) {
    assert_holds_in_all(workload, threads, share(steps), plausible);
}

/// Demands the same after all steps, for what happens late.
pub(crate) fn assert_holds_in_all<W: Workload>(
    workload: &W,
    threads: usize,
    steps: usize,
    plausible: impl Fn(usize, usize),
) {
    under_each(&Holds { workload, threads, steps, plausible });
}

struct Holds<'a, W, F> {
    workload: &'a W,
    threads: usize,
    steps: usize,
    plausible: F,
}

/// Demands the same under one protocol, after all steps or a third of them.
pub(crate) fn assert_holds_under<P: Protocol>(
    workload: &impl Workload,
    threads: usize,
    steps: usize,
) {
    let holds = Holds { workload, threads, steps: share(steps), plausible: |_, _| {} };
    holds.run::<P>(&P::Policy::default());
}

impl<W: Workload, F: Fn(usize, usize)> UnderEach for Holds<'_, W, F> {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        let threads = threads_of::<P>(policy, self.threads);
        let test = format!("{:?}", (self.workload.name(), self.threads, self.steps));
        for (updates, splitting) in switches::<P>(&test, policy) {
            let db = database_of::<P>(policy.clone(), updates, splitting);
            let loaded = load(&db, self.workload, threads);
            for round in 0..2 {
                (self.plausible)(run(&db, &loaded, threads, self.steps), threads * self.steps);
                let consistency = check(&db, &loaded);
                let name = self.workload.name();
                let protocol = db.properties().name;
                let title = format!(
                    "{name} under {protocol}, updates {updates}, splitting {splitting}, round {round}"
                );
                assert_eq!(consistency.failed, Vec::<String>::new(), "{title}");
                assert!(consistency.checked > 0, "{title}");
            }
        }
    }
}

/// Gives each of the `N` types all the weight in turn: every transaction that is reported then is
/// of that type.
pub(crate) fn assert_types_are_told_apart<const N: usize, W: Workload>(
    of_weights: impl Fn([u32; N]) -> W,
) {
    assert_eq!(W::KINDS.len(), N);
    for kind in 0..N {
        let db = database(true, true);
        let mut weights = [0; N];
        weights[kind] = 3;
        let tables = load(&db, &of_weights(weights), 1);
        let mut worker = tables.worker(db.session().expect("a session"), 0);
        for _ in 0..100 {
            assert_eq!(worker.step().expect("no surprises").kind, kind);
        }
    }
}

/// A small database after an honest run, in which nothing is wrong.
pub(crate) fn honest<W: Workload>(workload: &W, steps: usize) -> (Database<Occ>, W::Loaded<Occ>) {
    let db = database(true, true);
    let loaded = load(&db, workload, 1);
    run(&db, &loaded, 1, steps);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    (db, loaded)
}

/// Rows that tell what a workload has done, in the order of their keys.
pub(crate) trait Remains<W: Workload>: PartialEq + Sized {
    fn of<P: Protocol>(loaded: &W::Loaded<P>) -> Self;
}

/// Demands that one thread leaves the same behind under every protocol and with the switches in
/// each position.
pub(crate) fn assert_same_remains<W: Workload, R: Remains<W>>(workload: &W, steps: usize) {
    let serial = Chosen::of::<Serial>(Exclusion::OneSession);
    let expected = remains::<Erased, W, R>(&serial, workload, steps, true, true);
    under_each(&Same::<W, R> { workload, steps, expected });
}

struct Same<'a, W, R> {
    workload: &'a W,
    steps: usize,
    expected: R,
}

impl<W: Workload, R: Remains<W>> UnderEach for Same<'_, W, R> {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        for (updates, splitting) in switches::<P>(&self.workload.name(), policy) {
            let found = remains::<P, W, R>(policy, self.workload, self.steps, updates, splitting);
            let protocol = P::properties(policy).name;
            assert!(found == self.expected, "{protocol}, updates {updates}, splitting {splitting}");
        }
    }
}

fn remains<P: Protocol, W: Workload, R: Remains<W>>(
    policy: &P::Policy,
    workload: &W,
    steps: usize,
    updates: bool,
    splitting: bool,
) -> R {
    let db = database_of::<P>(policy.clone(), updates, splitting);
    let loaded = load(&db, workload, 1);
    run(&db, &loaded, 1, steps);
    R::of(&loaded)
}

/// All rows of a table, sorted.
pub(crate) fn sorted<R: Record, K: Ord, P: Protocol>(
    table: &Table<R, P>,
    key: impl Fn(&R) -> K,
) -> Vec<R> {
    let mut rows = Vec::new();
    table.for_each_quiescent(|row| rows.push(row.clone())).expect("nothing runs");
    rows.sort_unstable_by_key(key);
    rows
}

/// Runs `steps` transactions on one thread and keeps them from the account.
pub(crate) fn run_unaccounted<P: Protocol, L: Loaded<P>>(
    db: &Database<P>,
    loaded: &L,
    steps: usize,
) {
    let mut worker = loaded.worker(db.session().expect("a session"), 0);
    for _ in 0..steps {
        worker.step().expect("no surprises");
    }
}

/// Returns what the workload's own check finds.
pub(crate) fn check<P: Protocol, L: Loaded<P>>(db: &Database<P>, loaded: &L) -> Consistency {
    loaded.check(db.session().expect("a session")).expect("readable")
}

/// Asserts that knobs are refused with errors that say certain words.
pub(crate) fn assert_refused<W: Workload>(refused: impl IntoIterator<Item = (W, &'static str)>) {
    for (knobs, words) in refused {
        let message = knobs.validate().expect_err(words);
        assert!(message.contains(words), "{message}");
    }
}

/// Asserts that the check examined something and found a failure that says `words`.
pub(crate) fn assert_failed(consistency: &Consistency, words: &str) {
    assert!(
        consistency.failed.iter().any(|failure| failure.contains(words)),
        "nothing of {words:?} among {:?}",
        consistency.failed
    );
}
