//! A replica of tables with strings and bytes of any length.

use super::source::{Source, follow};
use candide::replica::Replica;
use candide::{Database, Mvcc, Record, Table, Whole};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeMap;

#[derive(Record, Clone, Debug, PartialEq, Eq)]
struct Text {
    #[key]
    id: u64,
    #[unique]
    number: u64,
    title: String,
    times: u32,
    #[group(body)]
    body: Vec<u8>,
    #[group(body)]
    note: Option<String>,
}

fn text(id: u64, seed: u64) -> Text {
    let length = |place: u64| [0, 1, 7, 8, 100, 20_000][((id / 2 + seed + place) % 6) as usize];
    let of = |place| "abcdefg".chars().cycle().skip(seed as usize % 7).take(length(place));
    Text {
        id,
        number: (id * 7 + seed) % 1_000,
        title: of(0).collect(),
        times: 0,
        body: of(1).map(|one| one as u8).collect(),
        note: (!seed.is_multiple_of(3)).then(|| of(2).collect()),
    }
}

type Texts = BTreeMap<u64, Text>;

/// Changes rows in each way.
fn change(source: &Source, seed: u64) {
    source.with(|db| {
        let texts = db.table::<Text>("texts").unwrap();
        for step in 0..80 {
            let id = (seed * 31 + step * 11) % 50;
            let Text { title, body, note, .. } = text(id, seed + step);
            db.run(|tx| match step % 9 {
                // Rows that get the numbers of others meanwhile are left out.
                0..=2 => {
                    texts.delete_if_present(tx, id)?;
                    let new = text(id, seed + step);
                    let other = texts.index(Text::BY_NUMBER).get(tx, new.number, ())?;
                    if other.is_none() { texts.insert(tx, new) } else { Ok(()) }
                }
                8 => texts.delete_if_present(tx, id).map(drop),
                3 | 6 => texts.update_if_present(tx, id, Text::TITLE.set(&title)).map(drop),
                4 | 7 => {
                    let both = (Text::BODY.set(&body), Text::TIMES.add(1));
                    texts.update_if_present(tx, id, both).map(drop)
                }
                _ => {
                    let note = Text::NOTE.set(note.as_deref());
                    texts.update_if_present(tx, id, note).map(drop)
                }
            })
            .unwrap();
        }
    });
}

fn of_source(source: &Source) -> Texts {
    let mut found = Texts::new();
    source.with(|db| {
        let texts = db.table::<Text>("texts").unwrap();
        for id in 0..60 {
            found.extend(db.run(|tx| texts.get(tx, id, Whole)).unwrap().map(|row| (id, row)));
        }
    });
    found
}

fn of_replica(db: &Database<Mvcc>, texts: &Table<Text, Mvcc>) -> Texts {
    db.read_view(|tx| {
        let mut found = Texts::new();
        for id in 0..60 {
            if let Some(row) = texts.get(tx, id, Whole)? {
                let by_number = texts.index(Text::BY_NUMBER).get(tx, row.number, Whole)?;
                assert_eq!(by_number.as_ref(), Some(&row));
                found.insert(id, row);
            }
        }
        Ok(found)
    })
    .unwrap()
}

fn check(replica: &Replica<Mvcc>, source: &mut Source) {
    let db = replica.database();
    let texts = db.table::<Text>("texts").unwrap();
    assert_eq!(of_replica(db, &texts), of_source(source));
    assert_eq!(replica.sum(), source.whole().sum());
}

#[test]
fn a_replica_has_the_values_and_the_sum_of_the_other_database() {
    let (mut source, disk) = (Source::new(), SimDisk::new());
    let mut replica = follow(&disk);
    for seed in 0..8 {
        change(&source, seed);
        source.objects().iter().for_each(|object| object.apply(&mut replica));
        check(&replica, &mut source);
        source.objects().iter().for_each(|object| object.apply(&mut replica));
        if seed % 3 == 1 {
            replica.database().checkpoint().unwrap();
        }
        if seed % 2 == 1 {
            drop(replica);
            replica = follow(&disk);
            check(&replica, &mut source);
            source.objects().iter().for_each(|object| object.apply(&mut replica));
        }
    }
    // A snapshot changes what differs, with the rows of unique indexes at its end.
    for seed in 8..11 {
        change(&source, seed);
        source.objects();
        source.whole().apply(&mut replica);
        check(&replica, &mut source);
    }
    let mut fresh = follow(&SimDisk::new());
    source.whole().apply(&mut fresh);
    check(&fresh, &mut source);
    let expected = of_source(&source);
    let db = fresh.promote().unwrap();
    let texts = db.table::<Text>("texts").unwrap();
    assert_eq!(of_replica(&db, &texts), expected);
    assert!(expected.values().any(|row| row.title.len() > 10_000));
    assert!(expected.values().any(|row| row.note.as_deref() == Some("")));
}

#[test]
fn after_each_crash_the_values_are_those_of_the_note() {
    let (mut source, disk) = (Source::new(), SimDisk::new());
    let mut replica = follow(&disk);
    let mut states = BTreeMap::new();
    for seed in 0..3 {
        change(&source, seed);
        for object in source.objects() {
            object.apply(&mut replica);
            let db = replica.database();
            let texts = db.table::<Text>("texts").unwrap();
            states.insert(object.note[0], (of_replica(db, &texts), replica.sum()));
        }
        replica.database().sync().unwrap();
    }
    drop(replica);
    let last = disk.position();
    let options = CrashOptions { first: 0, last, exhaustive: 0, pieces: 1, samples: 1, seed: 7 };
    let mut found = BTreeMap::new();
    for state in disk.crash_states(&options).step_by(3) {
        let replica = follow(&state.disk());
        let Some(note) = replica.note() else { continue };
        let (expected, sum) = &states[&note[0]];
        let texts = replica.database().table::<Text>("texts").unwrap();
        assert_eq!(of_replica(replica.database(), &texts), *expected, "{}", state.describe());
        assert_eq!(replica.sum(), *sum, "{}", state.describe());
        *found.entry(note[0]).or_insert(0) += 1;
    }
    assert!(found.len() > 1, "{found:?}");
}
