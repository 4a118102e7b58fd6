//! Indexes of texts of a database in files, which are made from its rows when it is opened.

use super::{Page, Rows, check_all, texts};
use crate::engine::Protocol;
use crate::{Abort, Database, Error, Level, LogOptions, Occ, Whole};
use candide_derive::Record;
use candide_log_testing::SimDisk;
use std::num::NonZeroUsize;
use std::sync::Arc;

fn open<P: Protocol>(disk: &SimDisk) -> Database<P> {
    let options = LogOptions::new().segment_bytes(64 << 10).acknowledge(Level::Durable);
    let options = options.recovery_threads(NonZeroUsize::new(2).unwrap());
    Database::<P>::builder().open_on(Arc::new(disk.clone()), options).unwrap()
}

protocol_tests!(all: indexes_are_made_again_from_the_files);
fn indexes_are_made_again_from_the_files<P: Protocol>() {
    let disk = SimDisk::new();
    let mut rows: Rows =
        texts().iter().zip(0..).map(|(text, id)| (id, Page::new(id, text))).collect();
    for round in 0..4 {
        let db = open::<P>(&disk);
        let pages = db.table::<Page>("pages").unwrap();
        let mut session = db.session().unwrap();
        if round == 0 {
            session.run(|tx| pages.insert_many(tx, rows.values().cloned())).unwrap();
        }
        check_all(&mut session, &pages, &rows);
        let all = texts();
        for id in 0..5 {
            let row = rows.get_mut(&(id + round)).unwrap();
            let text = all[(3 * id + 5 * round) as usize % all.len()].clone();
            session
                .run(|tx| {
                    pages.modify(tx, row.id, (Page::TITLE, Page::PHOTO), |(title, photo)| {
                        title.clone_from(&text);
                        *photo = text.clone().into_bytes();
                    })?;
                    let long = "x".repeat(121);
                    let done = pages.modify(tx, row.id, Page::PATH, |path| *path = long);
                    assert_eq!(done, Err(Abort::KeyTooLong));
                    pages.modify(tx, row.id, Page::ALIAS, |alias| *alias = Some("an alias".into()))
                })
                .unwrap();
            row.title.clone_from(&text);
            (row.photo, row.alias) = (text.into_bytes(), Some("an alias".to_string()));
        }
        session.run(|tx| pages.delete(tx, 20 + round)).unwrap();
        rows.remove(&(20 + round));
        let twin = Page::new(99, &rows[&2].path);
        assert_eq!(session.run(|tx| pages.insert(tx, twin.clone())), Err(Abort::NotUnique));
        check_all(&mut session, &pages, &rows);
        if round == 1 {
            db.checkpoint().unwrap();
        }
    }
}

/// The rows of one table, as programs declare them one after the other.
mod declared {
    use super::Record;

    macro_rules! declare {
        ($($name:ident: $(#[$attribute:meta])*;)*) => {$(
            #[derive(Debug, Clone, PartialEq, Eq, Record)]
            #[record(crate = crate)]
            pub(super) struct $name {
                #[key]
                pub(super) id: u64,
                $(#[$attribute])*
                pub(super) name: String,
            }
        )*};
    }

    declare! {
        Bare:;
        ByDefault: #[unique];
        Longer: #[unique(bytes = 100)];
    }
}

#[test]
fn another_limit_has_an_index_made_anew_or_is_refused_with_the_reason() {
    use declared::{Bare, ByDefault, Longer};
    let disk = SimDisk::new();
    let bare = |id, length| Bare { id, name: "n".repeat(length) };
    {
        let db = open::<Occ>(&disk);
        let people = db.table::<Bare>("people").unwrap();
        db.run(|tx| people.insert_many(tx, [bare(1, 3), bare(2, 100)])).unwrap();
    }
    let refused = |db: &Database<Occ>| {
        let error = Error::KeyTooLong {
            table: "people".to_string(),
            index: "by_name".to_string(),
            length: 100,
            length_max: 64,
        };
        assert_eq!(db.table::<ByDefault>("people").map(drop), Err(error));
    };
    {
        let db = open::<Occ>(&disk);
        refused(&db);
        // The same process may name another type.
        let people = db.table::<Longer>("people").unwrap();
        let by_name = people.index(Longer::BY_NAME);
        let long = bare(2, 100).name;
        assert_eq!(db.run(|tx| by_name.get(tx, &long, Longer::ID)), Ok(Some(2)));
        let row = Longer { id: 3, name: "n".repeat(101) };
        assert_eq!(db.run(|tx| people.insert(tx, row.clone())), Err(Abort::KeyTooLong));
    }
    {
        let db = open::<Occ>(&disk);
        refused(&db);
        let people = db.table::<Bare>("people").unwrap();
        db.run(|tx| people.put(tx, bare(2, 64))).unwrap();
    }
    let db = open::<Occ>(&disk);
    let people = db.table::<ByDefault>("people").unwrap();
    let name = bare(2, 64).name;
    let found = db.run(|tx| people.index(ByDefault::BY_NAME).get(tx, &name, Whole)).unwrap();
    assert_eq!(found, Some(ByDefault { id: 2, name }));
}
