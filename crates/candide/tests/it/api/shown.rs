//! Tests of what public types show of themselves.

use crate::common::{Item, Parcel, database_with};
use candide::any::{AnyDatabase, Chosen};
use candide::policy::{Policies, Policy};
use candide::{
    Database, IndexOptions, LoadOptions, LogOptions, Mvcc, Occ, Protocol, RunOptions, TableOptions,
    Whole,
};
use std::fmt::Debug;

/// Returns what `value` shows, after a check that this is short and that no part is internal.
fn shown(value: &dyn Debug) -> String {
    let text = format!("{value:?}");
    assert!(text.len() <= 300, "{} characters: {text}", text.len());
    for internal in ["Mutex", "RwLock", "Atomic", "CachePadded", "Inner", "Engine", "0x", "Slot"] {
        assert!(!text.contains(internal), "{internal} is internal: {text}");
    }
    text
}

protocol_tests!(all: debug_output_of_handles_shows_names_and_no_internals);
fn debug_output_of_handles_shows_names_and_no_internals<P: Protocol>() {
    let (db, parcels) = database_with::<Parcel, P>("parcels");
    let index = parcels.create_index("by_note", Parcel::NOTE, IndexOptions::ordered()).unwrap();
    let name = db.properties().name;
    let text = shown(&db);
    assert!(text.starts_with(&format!("Database {{ protocol: {name:?}, tables: 1, ")), "{text}");
    assert!(shown(&parcels).contains("parcels"));
    assert!(shown(&index).contains("by_note"));
    assert!(shown(&db.with(RunOptions::new().named("pay"))).contains("pay"));
    let mut session = db.session().unwrap();
    shown(&session.with(RunOptions::new()));
    let ended = session.run(|tx| {
        shown(tx);
        shown(&parcels.iter(tx, Whole));
        shown(&index.scan(tx, .., Whole));
        shown(&parcels.find(tx, &(1, 1))?);
        Ok(())
    });
    assert_eq!(ended, Ok(()));
    shown(&session);
    shown(&db.run_logged(|_| Ok(())));
    shown(&db.properties());
    shown(&db.health());
    shown(&db.memory());
    shown(&db.named_stats());
    shown(&P::Policy::default());
    shown(&Database::<P>::builder());
}

#[test]
fn debug_output_of_options_and_values_shows_their_contents() {
    let db = Database::<Mvcc>::default();
    shown(&db.snapshot());
    shown(&AnyDatabase::choose("mvto").unwrap());
    assert_eq!(shown(&"tictoc".parse::<Chosen>().unwrap()), "Chosen(\"tictoc\")");
    shown(&LoadOptions::new());
    shown(&LogOptions::new());
    shown(&TableOptions::default());
    shown(&IndexOptions::ordered().unique());
    shown(&Policies::of(Policy::Mocc).with("items", Policy::Swiss));
    let builder = shown(&Database::<Occ>::builder().policy(Policy::Swiss).memory_limit(1 << 30));
    assert!(builder.contains("swiss") && builder.contains("1073741824"), "{builder}");
    shown(&Item::COUNT);
    shown(&Item::COUNT.add(1).at_most(9));
    shown(&RunOptions::new().named("pay").read_only());
}
