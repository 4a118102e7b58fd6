//! Tests of databases whose protocol is chosen by name.

use crate::common::Item;
use candide::any::{AnyDatabase, AnySession, AnyTable, Chosen};
use candide::policy::Policy;
use candide::{Abort, Error};

#[test]
fn each_protocol_name_opens_that_protocol() {
    for name in Chosen::names() {
        let db = AnyDatabase::choose(name).unwrap();
        assert_eq!(db.properties().name, name);
        let items: AnyTable<Item> = db.table("items").unwrap();
        assert_eq!(db.run(|tx| items.insert(tx, Item::new(1, 5))), Ok(()), "{name}");
        assert_eq!(db.read_view(|tx| items.read(tx, 1, Item::COUNT)), Ok(5), "{name}");
        let mut session: AnySession = db.session().unwrap();
        assert_eq!(session.run(|tx| items.delete(tx, 1)), Ok(()), "{name}");
    }
}

#[test]
fn protocol_names_are_distinct_and_include_policies() {
    let names = Chosen::names();
    assert!(Policy::ALL.iter().all(|policy| names.contains(&policy.name())));
    assert!(
        ["tictoc", "mvcc", "mvto", "serial", "global-lock"].iter().all(|name| names.contains(name))
    );
    let apart: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(apart.len(), names.len());
}

#[test]
fn an_unknown_protocol_name_is_refused_with_a_list_of_names() {
    for name in ["", "OCC", "mvcc ", "silo"] {
        let Err(Error::UnknownName(unknown)) = AnyDatabase::choose(name).map(drop) else {
            panic!("{name:?} is no protocol");
        };
        assert_eq!(unknown.name, name);
        assert_eq!(unknown.known, Chosen::names());
        let text = unknown.to_string();
        assert!(text.starts_with(&format!("no protocol is called {name:?}; there are occ, ")));
        assert!(unknown.known.iter().all(|known| text.contains(known)), "{text}");
    }
}

#[test]
fn a_read_view_is_a_snapshot_exactly_if_the_chosen_protocol_keeps_versions() {
    for name in Chosen::names() {
        let db = AnyDatabase::choose(name).unwrap();
        if db.properties().one_session || name == "global-lock" {
            continue;
        }
        let items: AnyTable<Item> = db.table("items").unwrap();
        db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
        let mut other = db.session().unwrap();
        let seen = db.read_view(|tx| {
            if tx.attempt_number() == 1 {
                other.run(|tx| items.update(tx, 1, Item::COUNT.set(7)))?;
            }
            items.read(tx, 1, Item::COUNT)
        });
        let expected = if db.properties().keeps_versions() { 0 } else { 7 };
        assert_eq!(seen, Ok(expected), "{name}");
        let refused = db.read_view(|tx| items.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!(refused, Err(Abort::ReadOnly), "{name}");
    }
}
