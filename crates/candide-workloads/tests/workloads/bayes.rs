//! bayes: what is learned has no cycle and the right score, and damage has a name.

use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::Workload;
use candide_workloads::stamp::bayes::{Bayes, Learned};
use candide_workloads::stamp::{Repeated, Scale};

use crate::common::{
    UnderEach, assert_begins_anew, assert_failed, assert_holds, assert_refused, check, database,
    database_of, honest, load, run, under_each,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
/// Enough for several times the program.
const STEPS: usize = 400;

fn knobs() -> Bayes {
    let published = Bayes::published(Scale::Sim);
    Bayes { variables: 7, records: 200, parents_pct: 80, penalty: 1, ..published }
}

#[test]
fn networks_are_learned_under_every_protocol() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert_eq!(committed, all, "nothing rolls back");
    });
}

#[test]
fn learning_ends_and_begins_anew_with_any_number_of_threads() {
    assert_begins_anew(&knobs(), 3 * STEPS, |loaded| loaded.ended());
    assert_eq!(Bayes::KINDS, ["create", "take", "apply", "search", "push"]);
}

#[test]
fn a_program_without_any_task_ends_all_the_same() {
    let knobs = Bayes { parents_pct: 0, penalty: 1_000, ..knobs() };
    let db = database(true, true);
    let loaded = load(&db, &knobs, 2);
    assert_eq!(loaded.program().transactions(), 1, "the one that finds the list empty");
    run(&db, &loaded, 2, 50);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    assert!(loaded.ended() > 10, "{} times", loaded.ended());
}

/// One thread learns the sequential program's network.
struct Sequential;

impl UnderEach for Sequential {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        let db = database_of::<P>(policy.clone(), true, true);
        let loaded: Repeated<P, Learned<P>> = load(&db, &knobs(), 1);
        run(&db, &loaded, 1, loaded.program().transactions() as usize);
        assert_eq!(loaded.ended(), 0, "the list has not been seen to be empty");
        let mut session = db.session().expect("a session");
        let parents = session.run(|tx| loaded.objects.parents.to_vec(tx));
        let protocol = db.properties().name;
        assert_eq!(parents.as_deref(), Ok(loaded.program().sequential_parents()), "{protocol}");
        assert_eq!(session.run(|tx| loaded.objects.tasks.first(tx)), Ok(None), "{protocol}");
    }
}

#[test]
fn one_thread_learns_the_network_of_the_sequential_program_under_every_protocol() {
    under_each(&Sequential);
}

/// Changes objects as no transaction of the workload does.
type Damage = fn(&Learned<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Asserts that the check after the runs says `words` about `damage`.
fn assert_noticed(words: &str, damage: Damage) {
    let (db, loaded) = honest(&knobs(), 20);
    db.run(|tx| damage(&loaded.objects, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

#[test]
fn bayes_check_names_every_kind_of_damage() {
    assert_noticed("the network has a cycle", |objects, tx| {
        objects.parents.set(tx, 1, 1 << 2)?;
        objects.parents.set(tx, 2, 1 << 1)
    });
    assert_noticed("not those whose parents they are", |objects, tx| {
        objects.children.modify(tx, 3, |children| *children ^= 1)
    });
    assert_noticed("a variable has 6 parents where it may have 2", |objects, tx| {
        objects.parents.set(tx, 0, 0b111_1110)
    });
    assert_noticed("edges, counted as", |objects, tx| objects.totals.add(tx, 1, 1));
    assert_noticed("1 variables have wrong scores", |objects, tx| objects.scores.add(tx, 4, 1));
    assert_noticed("where computed anew it is", |objects, tx| objects.totals.add(tx, 0, 1));
    assert_noticed("more than without edges", |objects, tx| {
        (0..7).try_for_each(|variable| objects.parents.set(tx, variable, 0))
    });
    assert_noticed("tasks wait and", |objects, tx| {
        objects.tasks.pop_first(tx).map(|task| assert!(task.is_some()))
    });
}

#[test]
fn damage_of_a_network_is_noticed_at_its_end() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    run(&db, &loaded, 1, 8);
    db.run(|tx| loaded.objects.totals.add(tx, 0, 7)).expect("can be done");
    run(&db, &loaded, 2, STEPS);
    assert!(loaded.ended() > 0);
    assert_failed(&check(&db, &loaded), "where computed anew it is");
}

#[test]
fn knobs_of_bayes_out_of_range_are_refused() {
    assert_refused([
        (Bayes { variables: 33, ..knobs() }, "the number of variables must be from 2 to 32"),
        (Bayes { records: 0, ..knobs() }, "the number of records must be from 1"),
        (Bayes { parents_pct: 101, ..knobs() }, "from 0 to 100, not 101"),
        (Bayes { edges: 13, ..knobs() }, "the number of edges must be from 1 to 12"),
        (Bayes { penalty: 1_001, ..knobs() }, "the penalty must be from 0 to 1000, not 1001"),
    ]);
    let real = Bayes::published(Scale::Real);
    assert_eq!((real.records, real.parents, real.parents_pct, real.edges), (4_096, 10, 40, 8));
}
