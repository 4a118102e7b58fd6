//! Standbys of tables with strings and bytes of any length.

use crate::primary::{LONG, Note, Primary, fall_back, follow, notes, sim};
use candide_log_testing::SimDisk;
use candide_reach::Promoted;
use std::sync::Arc;

#[test]
fn a_standby_has_the_values_of_the_primary_restarts_and_takes_over() {
    let place = sim(11);
    let mut primary = Primary::new(Arc::clone(&place));
    let disk = SimDisk::new();
    for seed in 0..6 {
        let mut position = primary.change(seed);
        let standby = follow(&place, &disk).unwrap();
        standby.wait_for(position, LONG).unwrap();
        let table = standby.database().table::<Note>("notes").unwrap();
        assert_eq!(notes(standby.database(), &table), primary.notes());
        if seed % 2 == 0 {
            // The sum of the snapshot is compared, and one that begins with it has the rows.
            primary.snapshot();
            position = primary.change(seed + 20);
            let fresh = follow(&place, &SimDisk::new()).unwrap();
            for standby in [&standby, &fresh] {
                standby.wait_for(position, LONG).unwrap();
                let table = standby.database().table::<Note>("notes").unwrap();
                assert_eq!(notes(standby.database(), &table), primary.notes());
                assert_eq!(standby.failure(), None);
            }
        }
        if seed == 3 {
            standby.database().checkpoint().unwrap();
        }
    }
    let standby = follow(&place, &disk).unwrap();
    let table = standby.database().table::<Note>("notes").unwrap();
    primary.change(7);
    let mut expected = primary.notes();
    let Promoted { database, .. } = standby.promote().unwrap();
    assert_eq!(notes(&database, &table), expected);
    for id in 0..60 {
        let note = Note::new(id, 5);
        database.run(|tx| table.put(tx, note.clone())).unwrap();
        expected.insert(id, note);
    }
    assert_eq!(notes(&database, &table), expected);
    assert!(expected.values().any(|note| note.title.len() > 1_000));
}

#[test]
fn a_standby_that_falls_back_changes_the_values_that_differ() {
    fall_back(&sim(12), |standby, primary| {
        let table = standby.database().table::<Note>("notes").unwrap();
        assert_eq!(notes(standby.database(), &table), primary.notes());
    });
}
