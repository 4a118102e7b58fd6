//! kmeans: every iteration ends as the sequential program's, and damage has a name.

use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::stamp::kmeans::{
    CHANGED, Centre, Clusters, Counter, DIMENSIONS_MAX, Kmeans, KmeansTables, NEXT,
};
use candide_workloads::stamp::{Form, Mode};
use candide_workloads::{Loaded, Worker, Workload};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_refused, assert_same_remains, check, database,
    honest, load, run, run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
/// Enough for several iterations.
const STEPS: usize = 1_000;

fn knobs(form: Form) -> Kmeans {
    Kmeans {
        points: 200,
        dimensions: 3,
        sources: 5,
        clusters: 4,
        threshold: 0.0,
        ..Kmeans::published(Mode::HighSim, form)
    }
}

#[test]
fn iterations_end_as_those_of_the_sequential_program_under_every_protocol() {
    for form in [Form::Eager, Form::Deferred] {
        assert_holds(&knobs(form), THREADS, STEPS, |committed, all| {
            assert_eq!(committed, all, "nothing rolls back")
        });
    }
}

#[test]
fn clusterings_end_and_begin_anew_with_any_number_of_threads() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(Form::Deferred), 2);
    let mut before = 0;
    for threads in [1, 3, 2] {
        run(&db, &loaded, threads, 6 * STEPS / threads);
        assert!(loaded.clusterings() > before, "{threads} threads");
        before = loaded.clusterings();
        let consistency = check(&db, &loaded);
        assert_eq!(consistency.failed, Vec::<String>::new(), "{threads} threads");
    }
    assert!(loaded.sequential_tps(0, &|| false).is_some_and(|tps| tps > 0.0));
}

#[test]
fn points_that_no_thread_needs_end_the_iteration() {
    let knobs = Kmeans { points: 2, clusters: 1, ..knobs(Form::Deferred) };
    let db = database(true, true);
    let loaded = load(&db, &knobs, 1);
    run(&db, &loaded, THREADS, 100);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    assert!(loaded.clusterings() > 0);
}

#[test]
fn a_worker_of_kmeans_returns_type_and_outcome_of_each_step() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(Form::Deferred), 1);
    let mut worker = loaded.worker(db.session().expect("a session"), 0);
    let kinds: Vec<usize> = (0..5).map(|_| worker.step().expect("no surprises").kind).collect();
    assert_eq!(kinds, [1, 0, 0, 0, 1]);
    assert_eq!(Kmeans::KINDS, ["point", "claim", "end"]);
}

/// Changes tables as no transaction of the workload does.
type Damage = fn(&Clusters<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Asserts that the check after the runs says `words` about `damage`.
fn assert_noticed(words: &str, damage: Damage) {
    let (db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    db.run(|tx| damage(&loaded.tables, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

#[test]
fn kmeans_check_names_every_kind_of_damage() {
    assert_noticed("1 centres do not hold the points", |tables, tx| {
        tables.centres.update(tx, 1, Centre::SUMS.at(2).add(1))
    });
    assert_noticed("points where", |tables, tx| tables.centres.update(tx, 3, Centre::COUNT.add(1)));
    assert_noticed("the next point is", |tables, tx| {
        tables.counters.update(tx, NEXT, Counter::VALUE.add(3))
    });
    assert_noticed("changes of clusters are counted", |tables, tx| {
        tables.counters.update(tx, CHANGED, Counter::VALUE.add(1))
    });
    assert_noticed("there are 3 centres where 4", |tables, tx| tables.centres.delete(tx, 2));
    assert_noticed("read different contents", |tables, tx| {
        let centre = Centre { id: 1_000, count: 0, sums: [0; DIMENSIONS_MAX] };
        tables.centres.insert(tx, centre)
    });
}

/// Asserts that the check of an iteration says `words` about `damage` done within the iteration.
fn assert_noticed_at_the_end(words: &str, damage: Damage) {
    let db = database(true, true);
    let loaded = load(&db, &knobs(Form::Eager), 1);
    run(&db, &loaded, 1, 10);
    db.run(|tx| damage(&loaded.tables, tx)).expect("can be done");
    run(&db, &loaded, 2, 300);
    assert_failed(&check(&db, &loaded), words);
}

#[test]
fn damage_is_noticed_at_the_end_of_its_iteration() {
    assert_noticed_at_the_end("iteration 0 has added 201 points", |tables, tx| {
        tables.centres.update(tx, 1, Centre::COUNT.add(1))
    });
    assert_noticed_at_the_end("iteration 0 has added coordinates up to", |tables, tx| {
        tables.centres.update(tx, 1, Centre::SUMS.at(0).add(1))
    });
    assert_noticed_at_the_end("iteration 0 has other centres", |tables, tx| {
        tables.centres.update(tx, 0, Centre::SUMS.at(0).add(1 << 20))?;
        tables.centres.update(tx, 1, Centre::SUMS.at(0).sub(1 << 20))
    });
    assert_noticed_at_the_end("iteration 0 has counted", |tables, tx| {
        tables.counters.update(tx, CHANGED, Counter::VALUE.add(1))
    });
    assert_noticed_at_the_end("iteration 0 has added 197 points", |tables, tx| {
        tables.counters.update(tx, NEXT, Counter::VALUE.add(3))
    });
    assert_noticed_at_the_end("iteration 0 ended with point", |tables, tx| {
        tables.counters.update(tx, NEXT, Counter::VALUE.add(3))
    });
}

#[test]
fn unaccounted_transactions_are_noticed() {
    let (db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    run_unaccounted(&db, &loaded, 5);
    assert_failed(&check(&db, &loaded), "the next point is");
}

impl Remains<Kmeans> for Vec<Centre> {
    fn of<P: Protocol>(loaded: &KmeansTables<P>) -> Self {
        sorted(&loaded.tables.centres, |row| row.id)
    }
}

#[test]
fn one_thread_leaves_kmeans_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<Centre>>(&knobs(Form::Deferred), STEPS);
}

#[test]
fn knobs_of_kmeans_out_of_range_are_refused() {
    let knobs = || knobs(Form::Eager);
    assert_refused([
        (Kmeans { points: 0, ..knobs() }, "the number of points must be from 1"),
        (Kmeans { dimensions: 33, ..knobs() }, "from 1 to 32, not 33"),
        (Kmeans { sources: 0, ..knobs() }, "the number of sources"),
        (Kmeans { clusters: 0, ..knobs() }, "the number of clusters"),
        (Kmeans { threshold: -0.5, ..knobs() }, "at least 0, not -0.5"),
    ]);
}

#[test]
fn configurations_of_kmeans_are_the_published_ones() {
    for (mode, expected) in [
        ("low", (65_536, 32, 40, 0.00001)),
        ("high", (65_536, 32, 15, 0.00001)),
        ("low-sim", (2_048, 16, 40, 0.05)),
        ("high-sim", (2_048, 16, 15, 0.05)),
        ("drp", (262_144, 32, 160, 0.001)),
        ("drp-hi", (262_144, 32, 40, 0.00001)),
    ] {
        let knobs = Kmeans::published(mode.parse().expect("a mode"), Form::Deferred);
        let found = (knobs.points, knobs.dimensions, knobs.clusters, knobs.threshold);
        assert_eq!(found, expected, "{mode}");
    }
    assert!("middle".parse::<Mode>().is_err_and(|words| words.contains("low, high, low-sim")));
    assert!("lazy".parse::<Form>().is_err_and(|words| words.contains("eager or deferred")));
}
