//! Refused values, unique keys, and indexes that come and go.

use super::bare::{self, Note};
use super::{MOST, Page, Rows, check_all, end, scene, texts};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::sync::size::share;
use crate::tests::waiting::eventually;
use crate::{Abort, Error, IndexOptions, Occ, Prefix, Table, Tx, Whole};
use std::sync::mpsc;

type Act<P> = fn(&Table<Page, P>, &Tx<'_, P>, &str) -> Result<(), Abort>;

protocol_tests!(all: a_value_that_is_too_long_changes_nothing);
fn a_value_that_is_too_long_changes_nothing<P: Protocol>() {
    let (db, pages) = scene::<P>();
    let mut session = db.session().unwrap();
    let rows: Rows = (0..4).map(|id| (id, Page::new(id, &format!("page {id}")))).collect();
    session.run(|tx| pages.insert_many(tx, rows.values().cloned())).unwrap();
    // Each has another column that is too long, and changes other columns with it.
    let acts: [(Act<P>, &str); 8] = [
        (|pages, tx, long| pages.insert(tx, Page::new(9, long)), "path, key id: 9"),
        (|pages, tx, long| pages.put(tx, Page::new(9, long)), "path, key id: 9"),
        (|pages, tx, long| pages.put(tx, Page::new(1, long)), "path, key id: 1"),
        (
            |pages, tx, long| {
                let row = Page { title: long.to_string(), ..Page::new(9, "a path") };
                pages.insert_if_absent(tx, row).map(drop)
            },
            "title, key id: 9",
        ),
        (
            |pages, tx, long| {
                pages.modify(tx, 1, (Page::PATH, Page::TITLE), |(path, title)| {
                    *path = "another path".to_string();
                    *title = long.to_string();
                })
            },
            "title, key id: 1",
        ),
        (
            |pages, tx, long| {
                pages.modify(tx, 1, Whole, |page| page.photo = long.as_bytes().to_vec())
            },
            "photo, key id: 1",
        ),
        (
            |pages, tx, long| {
                let row = pages.find(tx, 1)?;
                let long = long[..65].to_string();
                row.modify_if_present(Page::ALIAS, |alias| *alias = Some(long)).map(drop)
            },
            "alias, key id: 1",
        ),
        (
            |pages, tx, long| {
                let long = long.as_bytes().to_vec();
                pages.insert(tx, Page { hash: Some(long), ..Page::new(9, "a path") })
            },
            "hash, key id: 9",
        ),
    ];
    let long = "a".repeat(MOST + 1);
    for (act, place) in acts {
        assert_eq!(session.run(|tx| act(&pages, tx, &long)), Err(Abort::KeyTooLong));
        let outcome = session.last_outcome().unwrap().to_string();
        let column = place.split(',').next().unwrap();
        let (length, most) = if column == "alias" { (65, 64) } else { (121, 120) };
        // The photo is in two indexes.
        let index = if column == "photo" { "by_kind_photo" } else { &format!("by_{column}") };
        let problem = format!("a value of {length} bytes; index {index} keeps at most {most}");
        let one = format!("key_too_long on pages.{place}: {problem}");
        let other = one.replace("by_kind_photo", "by_photo");
        assert!([one, other].contains(&outcome), "{}: {outcome}", P::NAME);
        check_all(&mut session, &pages, &rows);
        // The closure goes on, in the transaction or in a part of it, and what it does counts.
        let visits = session.run(|tx| {
            let before = pages.read(tx, 2, Page::VISITS)?;
            pages.update(tx, 2, Page::VISITS.add(1))?;
            assert_eq!(act(&pages, tx, &long), Err(Abort::KeyTooLong));
            assert_eq!(tx.attempt(|tx| act(&pages, tx, &long)), Err(Abort::KeyTooLong));
            assert_eq!(pages.get(tx, 9, Whole)?, None);
            assert_eq!(pages.read(tx, 1, Whole)?, rows[&1]);
            pages.insert(tx, Page::new(9, "page 9"))?;
            pages.delete(tx, 9)?;
            Ok(before)
        });
        session.run(|tx| pages.update(tx, 2, Page::VISITS.set(visits?))).unwrap();
        check_all(&mut session, &pages, &rows);
    }
    drop(session);
    end(&db, &pages);
}

protocol_tests!(all: rows_exchange_texts_that_are_unique);
fn rows_exchange_texts_that_are_unique<P: Protocol>() {
    let (db, pages) = scene::<P>();
    let mut session = db.session().unwrap();
    let text = |id: u64| "x".repeat(MOST - 1) + ["a", "b", "\0", "c"][id as usize];
    let mut rows: Rows = (0..3).map(|id| (id, Page::new(id, &text(id)))).collect();
    session.run(|tx| pages.insert_many(tx, rows.values().cloned())).unwrap();
    let set = |tx: &Tx<'_, P>, id: u64, path: &str| {
        pages.modify(tx, id, Page::PATH, |old| *old = path.to_string())
    };
    session
        .run(|tx| {
            set(tx, 0, &text(1))?;
            set(tx, 1, &text(2))?;
            set(tx, 2, &text(0))
        })
        .unwrap();
    for (id, path) in [(0, 1), (1, 2), (2, 0)] {
        rows.get_mut(&id).unwrap().path = text(path);
    }
    check_all(&mut session, &pages, &rows);
    let twin = session.run(|tx| set(tx, 0, &text(0)));
    assert_eq!(twin, Err(Abort::NotUnique));
    let outcome = session.last_outcome().unwrap();
    let shown = format!("not_unique on pages.by_path, key \"{}\"..", "x".repeat(32));
    assert_eq!(outcome.to_string(), shown);
    assert_eq!(session.run(|tx| pages.insert(tx, Page::new(7, &text(2)))), Err(Abort::NotUnique));
    // Nothing but a zero byte sets one apart from the other.
    let short = Page::new(7, &text(2)[..MOST - 1]);
    session.run(|tx| pages.insert(tx, short.clone())).unwrap();
    rows.insert(7, short);
    check_all(&mut session, &pages, &rows);
}

protocol_tests!(all: an_index_is_made_and_dropped_while_the_database_is_in_use);
fn an_index_is_made_and_dropped_while_the_database_is_in_use<P: Protocol>() {
    let (db, pages) = bare::scene::<P>();
    let ordered = IndexOptions::ordered();
    let name = Note::TEXT.bytes::<80>();
    let note = Note::new;
    db.run(|tx| pages.insert_many(tx, [note(1, 80), note(2, 81), note(3, 8)])).unwrap();
    let refused = pages.create_index("by_text", name, ordered.unique()).map(drop);
    let error = Error::KeyTooLong {
        table: "notes".to_string(),
        index: "by_text".to_string(),
        length: 81,
        length_max: 80,
    };
    assert_eq!(refused, Err(error.clone()));
    let text = "a row of table \"notes\" has a value of 81 bytes, and index \"by_text\" keeps at \
                most 80; shorten the value, or give the index more `bytes`";
    assert_eq!(error.to_string(), text);
    // There is no index now, and no limit.
    db.run(|tx| pages.update(tx, 1, Note::TEXT.set("x".repeat(300)))).unwrap();
    db.run(|tx| pages.put(tx, note(1, 80))).unwrap();
    db.run(|tx| pages.put(tx, note(2, 7))).unwrap();
    let by_text = pages.create_index("by_text", name, ordered.unique()).unwrap();
    let again = pages.create_index("by_text", name, ordered.unique().if_missing()).unwrap();
    assert_eq!((again.name(), again.is_unique()), ("by_text", true));
    // The keys have as many words.
    let other = Note::TEXT.bytes::<79>();
    let other = pages.create_index("by_text", other, ordered.unique().if_missing());
    assert!(matches!(other, Err(Error::IndexExists { .. })));
    db.run(|tx| {
        let long = Note::TEXT.set("x");
        assert_eq!(pages.update(tx, 1, long), Err(Abort::Indexed));
        assert_eq!(pages.insert(tx, note(4, 81)), Err(Abort::KeyTooLong));
        assert_eq!(pages.put(tx, note(1, 81)), Err(Abort::KeyTooLong));
        assert_eq!(by_text.get(tx, note(1, 80).text, Whole)?, Some(note(1, 80)));
        assert_eq!(by_text.scan(tx, Prefix(&note(1, 8).text[..]), ()).count()?, 2);
        assert_eq!(by_text.scan(tx, Prefix(&note(1, 81).text[..]), ()).count()?, 0);
        Ok(())
    })
    .unwrap();
    pages.drop_index("by_text").unwrap();
    let looked = db.run(|tx| by_text.get(tx, "x", Whole));
    assert_eq!(looked, Err(Abort::NoIndex));
    let looked = db.run(|tx| by_text.get(tx, &*note(1, 81).text, Whole));
    assert_eq!(looked, Err(Abort::NoIndex), "a text that no key can have");
    db.run(|tx| pages.put(tx, note(1, 5_000))).unwrap();
    let both = (Note::ID, name);
    let refused = pages.create_index("by_both", both, ordered).map(drop);
    assert!(matches!(refused, Err(Error::KeyTooLong { length: 5_000, length_max: 80, .. })));
    db.run(|tx| pages.delete(tx, 1)).unwrap();
    let by_both = pages.create_index("by_both", both, ordered).unwrap();
    let found = db.run(|tx| by_both.get(tx, (3, &*note(3, 8).text), Whole)).unwrap();
    assert_eq!(found, Some(note(3, 8)));
}

protocol_tests!(overlapping: rows_from_before_an_index_may_be_too_long_for_it);
fn rows_from_before_an_index_may_be_too_long_for_it<P: Protocol>() {
    let (db, pages) = bare::scene::<P>();
    let note = Note::new;
    db.run(|tx| pages.insert_many(tx, [note(1, 81), note(2, 300), note(3, 8)])).unwrap();
    pages.create_index("by_number", Note::NUMBER, IndexOptions::ordered()).unwrap();
    let (db, pages) = (&db, &pages);
    std::thread::scope(|scope| {
        let (end_one, ends) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        scope.spawn(move || {
            let mut session = db.session().unwrap();
            let read = session.run(|tx| {
                let read = pages.read(tx, 3, Whole)?;
                let _ = begun.send(());
                let _ = ends.recv();
                Ok(read)
            });
            assert_eq!(read, Ok(note(3, 8)));
        });
        begins.recv().unwrap();
        // The index waits for the transaction that has begun.
        let made = scope.spawn(move || {
            let text = Note::TEXT.bytes::<80>();
            pages.create_index("by_text", text, IndexOptions::hashed())
        });
        let indexes = &pages.core().indexes;
        eventually("the index", || indexes.kept().any(|index| *index.name == *"by_text"));
        let changed = db.run(|tx| {
            // What is too long already can stay for now.
            pages.modify(tx, 2, Note::NUMBER, |number| *number += 1)?;
            assert_eq!(pages.put(tx, note(1, 82)), Err(Abort::KeyTooLong));
            assert_eq!(pages.insert(tx, note(4, 81)), Err(Abort::KeyTooLong));
            pages.modify(tx, 1, Note::TEXT, |text| text.truncate(80))?;
            pages.delete(tx, 2)
        });
        assert_eq!(changed, Ok(()), "{}", P::NAME);
        end_one.send(()).unwrap();
        let by_text = made.join().unwrap().unwrap();
        db.run(|tx| {
            for row in [note(1, 80), note(3, 8)] {
                assert_eq!(by_text.get(tx, &*row.text, Whole)?, Some(row));
            }
            assert_eq!(pages.scan(tx, .., ()).count()?, 2);
            Ok(())
        })
        .unwrap();
    });
}

#[test]
fn an_index_keeps_240_bytes() {
    let (db, pages) = bare::scene::<Occ>();
    let note = Note::new;
    let text = Note::TEXT.bytes::<240>();
    let by_text = pages.create_index("by_text", text, IndexOptions::ordered()).unwrap();
    db.run(|tx| {
        pages.insert(tx, note(1, 240))?;
        assert_eq!(pages.insert(tx, note(2, 241)), Err(Abort::KeyTooLong));
        assert_eq!(by_text.get(tx, note(1, 240).text, Whole)?, Some(note(1, 240)));
        Ok(())
    })
    .unwrap();
}

protocol_tests!(concurrent: readers_by_texts_find_the_rows_that_have_them);
fn readers_by_texts_find_the_rows_that_have_them<P: Protocol>() {
    let (db, pages) = scene::<P>();
    let all = texts();
    let rows = (0..8).map(|id| Page::new(id, &all[id as usize]));
    db.run(|tx| pages.insert_many(tx, rows.clone())).unwrap();
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let (db, pages, all) = (&db, &pages, &all);
            scope.spawn(move || {
                let (mut session, mut random) = (db.session().unwrap(), Random::seeded(seed));
                let by_path = pages.index(Page::BY_PATH);
                let by_title = pages.index(Page::BY_TITLE);
                for _ in 0..share(120) {
                    let id = random.below(8);
                    let text = &*all[random.below(all.len() as u64) as usize];
                    let set = |tx: &Tx<'_, P>| {
                        pages.modify(tx, id, (Page::PATH, Page::TITLE), |(path, title)| {
                            (*path, *title) = (text.to_string(), text.to_string());
                        })
                    };
                    let done = session.run(|tx| set(tx));
                    assert!(matches!(done, Ok(()) | Err(Abort::NotUnique)), "{done:?}");
                    let read = session.run(|tx| {
                        let titled = by_title.rows(tx, text, Whole);
                        let titled: Vec<_> = titled.collect::<Result<_, _>>()?;
                        Ok((by_path.get(tx, text, Whole)?, titled))
                    });
                    let (row, titled) = read.unwrap();
                    let has_both = |row: &Page| row.path == text && row.title == text;
                    assert!(row.as_ref().is_none_or(has_both), "{text:?}: {row:?}");
                    let titled: Vec<Page> = titled.into_iter().map(|(_, row)| row).collect();
                    assert_eq!(titled, Vec::from_iter(row), "{}", P::NAME);
                }
            });
        }
    });
    let mut rows = Rows::new();
    pages.for_each_quiescent(|row| _ = rows.insert(row.id, row.clone())).unwrap();
    assert_eq!(rows.len(), 8);
    check_all(&mut db.session().unwrap(), &pages, &rows);
    end(&db, &pages);
}
