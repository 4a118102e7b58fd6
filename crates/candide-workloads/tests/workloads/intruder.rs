//! intruder: all attacks are found, and damage has a name.

use std::sync::Arc;

use candide::{Abort, Occ, Tx};
use candide_workloads::Workload;
use candide_workloads::stamp::Scale;
use candide_workloads::stamp::intruder::{Intruder, Network};

use crate::common::{
    assert_begins_anew, assert_failed, assert_holds, assert_refused, check, database, honest, load,
    run,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
/// Enough for several times the program.
const STEPS: usize = 1_000;

fn knobs() -> Intruder {
    Intruder { attack_pct: 30, length: 12, flows: 40, ..Intruder::published(Scale::Sim) }
}

#[test]
fn attacks_are_found_under_every_protocol() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert_eq!(committed, all, "nothing rolls back");
    });
}

#[test]
fn traffic_ends_and_begins_anew_with_any_number_of_threads() {
    assert_begins_anew(&knobs(), 2 * STEPS, |loaded| loaded.ended());
    assert_eq!(Intruder::KINDS, ["capture", "reassemble", "detect"]);
}

/// Changes objects as no transaction of the workload does.
type Damage = fn(&Network<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Asserts that the check after the runs says `words` about `damage`.
fn assert_noticed(words: &str, damage: Damage) {
    let (db, loaded) = honest(&knobs(), 60);
    db.run(|tx| damage(&loaded.objects, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

#[test]
fn intruder_check_names_every_kind_of_damage() {
    assert_noticed("packets wait or were taken", |objects, tx| {
        objects.arrived.pop(tx).map(|packet| assert!(packet.is_some()))
    });
    assert_noticed("not in exactly one place", |objects, tx| {
        let fragment = objects.fragments.first(tx)?.expect("some flow is not complete");
        objects.fragments.remove(tx, fragment).map(drop)
    });
    assert_noticed("not in exactly one place", |objects, tx| {
        let (_, packet) = objects.fragments.first(tx)?.expect("some flow is not complete");
        objects.arrived.push(tx, packet)
    });
    assert_noticed("among those of another flow", |objects, tx| {
        let (flow, packet) = objects.fragments.first(tx)?.expect("some flow is not complete");
        objects.fragments.remove(tx, (flow, packet))?;
        objects.fragments.put(tx, (flow + 1, packet))
    });
    assert_noticed("texts are wrong", |objects, tx| {
        objects.texts.push(tx, Arc::new((3, b"neither".to_vec())))
    });
}

/// Asserts that the check at the end of the program says `words` about `damage` before.
fn assert_noticed_at_the_end(words: &str, damage: Damage) {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    run(&db, &loaded, 1, 60);
    db.run(|tx| damage(&loaded.objects, tx)).expect("can be done");
    run(&db, &loaded, 2, STEPS);
    assert_failed(&check(&db, &loaded), words);
}

#[test]
fn damage_of_traffic_is_noticed_at_its_end() {
    assert_noticed_at_the_end("flows have not been searched", |objects, tx| {
        objects.arrived.pop(tx).map(|packet| assert!(packet.is_some()))
    });
    assert_noticed_at_the_end("attacks were missed or invented", |objects, tx| {
        let attack = b"RM -rf --no".to_vec();
        (0..40).try_for_each(|flow| objects.texts.push(tx, Arc::new((flow, attack.clone()))))
    });
    assert_noticed_at_the_end("texts are wrong, or came twice", |objects, tx| {
        objects.texts.push(tx, Arc::new((3, b"neither".to_vec())))
    });
}

#[test]
fn knobs_of_intruder_out_of_range_are_refused() {
    assert_refused([
        (Intruder { attack_pct: 101, ..knobs() }, "from 0 to 100, not 101"),
        (Intruder { length: 0, ..knobs() }, "the longest text must be from 1 to 4096"),
        (Intruder { flows: 0, ..knobs() }, "the number of flows must be from 1"),
    ]);
    let real = Intruder::published(Scale::Real);
    assert_eq!((real.attack_pct, real.length, real.flows), (10, 128, 262_144));
}
