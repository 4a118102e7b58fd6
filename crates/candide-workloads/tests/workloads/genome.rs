//! genome: the gene is found, and damage has a name.

use candide::{Abort, Occ, Tx};
use candide_workloads::Workload;
use candide_workloads::stamp::Scale;
use candide_workloads::stamp::genome::{Entry, Genome, NONE, Sequencing};

use crate::common::{
    assert_begins_anew, assert_failed, assert_holds, assert_refused, check, database, honest, load,
    run,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
/// Enough for several times the program.
const STEPS: usize = 900;

fn knobs() -> Genome {
    Genome { gene: 40, segment: 9, segments: 60, ..Genome::published(Scale::Sim) }
}

#[test]
fn the_gene_is_found_under_every_protocol() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert_eq!(committed, all, "nothing rolls back");
    });
}

#[test]
fn genes_end_and_begin_anew_with_any_number_of_threads() {
    assert_begins_anew(&knobs(), 2 * STEPS, |loaded| loaded.ended());
    assert_eq!(Genome::KINDS, ["insert", "prepare", "match"]);
}

#[test]
fn every_stage_ends_within_a_run_and_is_checked() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    for step in 0..400 {
        run(&db, &loaded, 1 + step % 2, 1);
        assert_eq!(check(&db, &loaded).failed, Vec::<String>::new(), "after step {step}");
    }
}

/// Changes objects as no transaction of the workload does.
type Damage = fn(&Sequencing<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Asserts that the check after `steps` transactions says `words` about `damage`.
fn assert_noticed(words: &str, steps: usize, damage: Damage) {
    let (db, loaded) = honest(&knobs(), steps);
    db.run(|tx| damage(&loaded.objects, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

/// Changes the first entry for which `is_so` holds.
fn change(
    objects: &Sequencing<Occ>,
    tx: &Tx<'_, Occ>,
    is_so: fn(&Entry) -> bool,
    change: fn(&mut Entry),
) -> Result<(), Abort> {
    let mut number = 0;
    loop {
        let mut entry = objects.entries.read(tx, number, candide::Whole)?;
        if is_so(&entry) {
            change(&mut entry);
            return objects.entries.put(tx, entry);
        }
        number += 1;
    }
}

/// The transactions after which some segments are linked, and not all.
fn some_links() -> usize {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    let count = |session: &mut candide::Session<Occ>| {
        session.run(|tx| Ok(loaded.objects.segments.iter(tx).count())).expect("can be read")
    };
    run(&db, &loaded, 1, 5);
    let different = count(&mut db.session().expect("a session"));
    5 + 9 * different + different / 2
}

#[test]
fn genome_check_names_every_kind_of_damage() {
    assert_noticed("different segments, others", 3, |objects, tx| {
        objects.segments.insert(tx, (7, 7)).map(|is_new| assert!(is_new))
    });
    let links = some_links();
    assert_noticed("beginnings, others", links, |objects, tx| {
        objects.beginnings.pop_first(tx).map(|first| assert!(first.is_some()))
    });
    assert_noticed("entries where", 20, |objects, tx| objects.entries.delete(tx, 1));
    assert_noticed("links where", links, |objects, tx| {
        change(objects, tx, |entry| entry.next != NONE, |entry| entry.next = NONE)
    });
    assert_noticed("does not end as segment", links, |objects, tx| {
        change(objects, tx, |entry| entry.next != NONE, |entry| entry.overlap -= 1)
    });
    assert_noticed("follows 1 others", links, |objects, tx| {
        change(objects, tx, |entry| !entry.is_first, |entry| entry.is_first = true)
    });
    assert_noticed("has other ends", links, |objects, tx| {
        change(objects, tx, |entry| entry.is_first, |entry| entry.length += 1)
    });
}

#[test]
fn damage_of_a_gene_is_noticed_at_its_end() {
    let db = database(true, true);
    let loaded = load(&db, &knobs(), 1);
    run(&db, &loaded, 1, some_links());
    // A segment that is not free is linked with no other.
    let first = |entry: &Entry| entry.is_first && entry.number > 0;
    db.run(|tx| change(&loaded.objects, tx, first, |entry| entry.is_first = false)).expect("done");
    run(&db, &loaded, 2, STEPS);
    assert_failed(&check(&db, &loaded), "at the end are not the gene");
}

#[test]
fn knobs_of_genome_out_of_range_are_refused() {
    assert_refused([
        (Genome { gene: 0, ..knobs() }, "the length of the gene must be from 1"),
        (Genome { segment: 6, ..knobs() }, "a segment must be from 7 to 64, not 6"),
        (Genome { segment: 41, ..knobs() }, "not be longer than the gene"),
        (Genome { segments: 11, ..knobs() }, "the number of segments must be from 12"),
    ]);
    let real = Genome::published(Scale::Real);
    assert_eq!((real.gene, real.segment, real.segments), (16_384, 64, 16_777_216));
}
