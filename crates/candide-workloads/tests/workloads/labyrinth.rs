//! labyrinth: paths do not meet, and damage has a name.

use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::Workload;
use candide_workloads::stamp::labyrinth::{Labyrinth, Labyrinthine};
use candide_workloads::stamp::{Repeated, Scale};

use crate::common::{
    UnderEach, assert_begins_anew, assert_failed, assert_holds, assert_refused, check, database,
    database_of, honest, load, run, under_each,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
/// Enough for several times the program.
const STEPS: usize = 200;

fn knobs() -> Labyrinth {
    Labyrinth { sides: [6, 5, 2], paths: 8, ..Labyrinth::published(Scale::Sim) }
}

#[test]
fn paths_do_not_meet_under_every_protocol() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert_eq!(committed, all, "nothing rolls back");
    });
}

#[test]
fn labyrinths_end_and_begin_anew_with_any_number_of_threads() {
    assert_begins_anew(&knobs(), 3 * STEPS, |loaded| loaded.ended());
    assert_eq!(Labyrinth::KINDS, ["take", "claim", "list"]);
}

/// One thread finds the sequential program's paths.
struct Sequential;

impl UnderEach for Sequential {
    fn run<P: Protocol>(&self, policy: &P::Policy) {
        let db = database_of::<P>(policy.clone(), true, true);
        let loaded: Repeated<P, Labyrinthine<P>> = load(&db, &knobs(), 1);
        let sequential = loaded.program().sequential_paths();
        // Each pair is taken, and routed; each path is listed.
        run(&db, &loaded, 1, 2 * 8 + sequential.len());
        let mut session = db.session().expect("a session");
        let paths = session.run(|tx| {
            loaded.objects.paths.iter(tx)?.map(|path| path.cloned()).collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(paths.as_deref(), Ok(sequential), "{}", db.properties().name);
    }
}

#[test]
fn one_thread_finds_the_paths_of_the_sequential_program_under_every_protocol() {
    under_each(&Sequential);
}

/// Changes objects as no transaction of the workload does.
type Damage = fn(&Labyrinthine<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Asserts that the check after the runs says `words` about `damage`.
fn assert_noticed(words: &str, damage: Damage) {
    let (db, loaded) = honest(&knobs(), 16);
    db.run(|tx| damage(&loaded.objects, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

/// Returns a path with the number of its pair.
fn path(
    objects: &Labyrinthine<Occ>,
    tx: &Tx<'_, Occ>,
    index: usize,
) -> Result<(u32, Vec<u32>), Abort> {
    Ok(objects.paths.get(tx, index)?.expect("so many paths").clone())
}

#[test]
fn labyrinth_check_names_every_kind_of_damage() {
    assert_noticed("cells of the grid do not hold", |objects, tx| objects.grid.set(tx, 7, 99));
    assert_noticed("paths where 4 were claimed", |objects, tx| {
        objects.paths.pop(tx).map(|path| assert!(path.is_some()))
    });
    assert_noticed("pairs wait or were taken", |objects, tx| {
        objects.pairs.pop(tx).map(|pair| assert!(pair.is_some()))
    });
    assert_noticed("has two paths", |objects, tx| objects.paths.push(tx, path(objects, tx, 0)?));
    assert_noticed("does not connect the cells", |objects, tx| {
        let (number, mut way) = path(objects, tx, 0)?;
        way.pop();
        objects.paths.set(tx, 0, (number, way))
    });
    assert_noticed("has a gap", |objects, tx| {
        let (number, mut way) = path(objects, tx, 3)?;
        assert!(way.len() > 2);
        way.remove(1);
        objects.paths.set(tx, 3, (number, way))
    });
    assert_noticed("meet", |objects, tx| {
        let (_, mut way) = path(objects, tx, 3)?;
        let (number, other) = path(objects, tx, 0)?;
        let ends = [other[0], other[other.len() - 1]];
        let last = way.len() - 1;
        (way[0], way[last]) = (ends[0], ends[1]);
        objects.paths.set(tx, 0, (number, way))
    });
}

#[test]
fn damage_of_a_labyrinth_is_noticed_at_its_end() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    run(&db, &loaded, 1, 4);
    // A wall that no path explains leaves some pairs without a way.
    let wall = |tx: &Tx<'_, Occ>| {
        let free = (0..60).filter(|&cell| loaded.objects.grid.get(tx, cell) == Ok(0));
        free.collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|cell| loaded.objects.grid.set(tx, cell, 9))
    };
    db.run(wall).expect("can be done");
    run(&db, &loaded, 2, STEPS);
    assert_failed(&check(&db, &loaded), "pairs have a way and no path");
}

#[test]
fn knobs_of_labyrinth_out_of_range_are_refused() {
    assert_refused([
        (Labyrinth { sides: [0, 2, 2], ..knobs() }, "in each direction must be from 1 to 2048"),
        (Labyrinth { sides: [1, 1, 1], ..knobs() }, "the number of cells must be from 2"),
        (Labyrinth { paths: 31, ..knobs() }, "from 1 to 30, half of the cells, not 31"),
        (Labyrinth { paths: 0, ..knobs() }, "the number of paths"),
    ]);
    let real = Labyrinth::published("real".parse().expect("a configuration"));
    assert_eq!((real.sides, real.paths), ([512, 512, 7], 512));
    assert_eq!("drp".parse::<Scale>(), Err("expected sim or real"));
}
