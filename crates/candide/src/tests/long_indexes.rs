//! Tests of indexes of strings and bytes of any length.

mod bare;
mod changes;
mod files;

use crate::engine::{Protocol, Versioned};
use crate::sync::Random;
use crate::tests::waiting::eventually;
use crate::{Abort, Begins, Database, Equals, Prefix, Session, Table, Tx, Whole};
use candide_derive::Record;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
#[index(columns(kind, photo(bytes = 120)))]
pub(super) struct Page {
    #[key]
    id: u64,
    kind: u8,
    #[unique(bytes = 120)]
    path: String,
    #[index(bytes = 120)]
    title: String,
    visits: u32,
    #[group(rest)]
    #[index(hash, bytes = 120)]
    photo: Vec<u8>,
    #[group(rest)]
    #[index]
    alias: Option<String>,
    #[group(rest)]
    #[index(bytes = 120)]
    hash: Option<Vec<u8>>,
}

/// The largest length of a value in an index with `bytes = 120`, and in one with the default.
const MOST: usize = 120;
const DEFAULT: usize = 64;

impl Page {
    fn new(id: u64, path: &str) -> Page {
        let text = path.to_string();
        Page {
            id,
            kind: (id % 3) as u8,
            path: text.clone(),
            title: text.clone(),
            visits: 0,
            photo: text.into_bytes(),
            alias: None,
            hash: None,
        }
    }
}

/// Texts of all lengths that matter, among them some that others begin with or end in zeros.
fn texts() -> Vec<String> {
    let long = "abcdefgh".repeat(16);
    let lengths = [0, 1, 7, 8, 9, 63, 64, 65, 119, 120];
    let mut texts: Vec<String> = lengths.iter().map(|&length| long[..length].to_string()).collect();
    for length in [1, 7, 8, 64, 119] {
        texts.push("\0".repeat(length));
        texts.push(long[..length].to_string() + "\0");
        texts.push(long[..length].to_string() + "\u{7f}");
    }
    texts.push("ü".repeat(60));
    texts.push("\u{10ffff}".repeat(30));
    texts
}

/// Texts that are too long for any row.
fn long_texts() -> Vec<String> {
    let begins = texts().into_iter().filter(|text| text.len() >= MOST - 1);
    let longer =
        begins.flat_map(|text| ["\0", "a", "ü", "\u{7f}"].map(|end| text.clone() + "x" + end));
    longer.chain(["\0".repeat(121), "x".repeat(300)]).collect()
}

type Rows = BTreeMap<u64, Page>;

/// Returns the numbers of the rows that `is_wanted` selects, in the order of a key and the number.
fn sorted<K: Ord>(
    rows: &Rows,
    key: impl Fn(&Page) -> K,
    is_wanted: impl Fn(&Page) -> bool,
) -> Vec<u64> {
    let wanted = rows.values().filter(|row| is_wanted(row));
    let mut wanted: Vec<_> = wanted.map(|row| (key(row), row.id)).collect();
    wanted.sort();
    wanted.into_iter().map(|(_, id)| id).collect()
}

/// Returns the numbers of the rows that an index has found.
fn numbers(found: impl Iterator<Item = Result<(u64, u64), Abort>>) -> Result<Vec<u64>, Abort> {
    found.map(|row| row.map(|(_, id)| id)).collect()
}

/// Checks lookups of a text, and scans with it as a bound or a prefix, in all indexes.
fn check_text<P: Protocol>(
    pages: &Table<Page, P>,
    tx: &Tx<'_, P>,
    rows: &Rows,
    text: &str,
) -> Result<(), Abort> {
    let (id, bytes) = (Page::ID, text.as_bytes());
    let by_path = pages.index(Page::BY_PATH);
    let of_path = rows.values().find(|row| row.path == text).map(|row| row.id);
    assert_eq!(by_path.get(tx, text, id)?, of_path);
    assert_eq!(by_path.find(tx, text.to_string())?.is_some(), of_path.is_some());
    assert_eq!(by_path.read(tx, text, id), of_path.ok_or(Abort::NotFound));

    let by_title = pages.index(Page::BY_TITLE);
    let titles = |is_wanted: &dyn Fn(&str) -> bool| {
        sorted(rows, |row| row.title.clone(), |row| is_wanted(&row.title))
    };
    let found = numbers(by_title.rows(tx, text, id))?;
    assert_eq!(found, titles(&|title| title == text), "{text:?}");
    let found = numbers(by_title.scan(tx, text.., id))?;
    assert_eq!(found, titles(&|title| title >= text), "from {text:?}");
    let found = numbers(by_title.scan(tx, ..text, id))?;
    assert_eq!(found, titles(&|title| title < text), "before {text:?}");
    let found = numbers(by_title.scan(tx, ..=text, id))?;
    assert_eq!(found, titles(&|title| title <= text), "up to {text:?}");
    let found = numbers(by_title.scan(tx, Prefix(text), id))?;
    assert_eq!(found, titles(&|title| title.starts_with(text)), "beginning with {text:?}");

    // A hash index finds rows in no order.
    let mut found = numbers(pages.index(Page::BY_PHOTO).rows(tx, bytes, id))?;
    found.sort_unstable();
    assert_eq!(found, sorted(rows, |_| (), |row| row.photo == bytes), "{text:?}");
    let by_kind = pages.index(Page::BY_KIND_PHOTO);
    for kind in 0..3 {
        let photos = |is_wanted: &dyn Fn(&[u8]) -> bool| {
            let is_wanted = |row: &Page| row.kind == kind && is_wanted(&row.photo);
            sorted(rows, |row| row.photo.clone(), is_wanted)
        };
        let found = numbers(by_kind.scan(tx, Prefix((kind, Begins(bytes))), id))?;
        assert_eq!(found, photos(&|photo| photo.starts_with(bytes)), "{kind} {text:?}");
        let found = numbers(by_kind.scan(tx, Prefix((kind, Equals(bytes))), id))?;
        assert_eq!(found, photos(&|photo| photo == bytes), "{kind} {text:?}");
        let found = numbers(by_kind.rows(tx, (kind, bytes), id))?;
        assert_eq!(found, photos(&|photo| photo == bytes), "{kind} {text:?}");
    }
    let found = numbers(pages.index(Page::BY_ALIAS).rows(tx, Some(text), id))?;
    let is_wanted = |row: &Page| row.alias.as_deref() == Some(text);
    assert_eq!(found, sorted(rows, |_| (), is_wanted), "{text:?}");
    let found = numbers(pages.index(Page::BY_HASH).rows(tx, Some(bytes), id))?;
    let is_wanted = |row: &Page| row.hash.as_deref() == Some(bytes);
    assert_eq!(found, sorted(rows, |_| (), is_wanted), "{text:?}");
    Ok(())
}

/// Checks that indexes find what a search through these rows, which are all rows, finds.
fn check_all<P: Protocol>(session: &mut Session<P>, pages: &Table<Page, P>, rows: &Rows) {
    let all = session.run(|tx| pages.rows(tx, ..).collect_rows()).unwrap();
    assert!(all.iter().eq(rows.values()), "{all:?} and not {rows:?}");
    session
        .run(|tx| {
            for text in texts().iter().chain(&long_texts()) {
                check_text(pages, tx, rows, text)?;
            }
            let all = numbers(pages.index(Page::BY_ALIAS).scan_rev(tx, .., Page::ID))?;
            let mut wanted = sorted(rows, |row| row.alias.clone(), |_| true);
            wanted.reverse();
            assert_eq!(all, wanted);
            let none = pages.index(Page::BY_HASH).rows(tx, None::<&[u8]>, ()).count()?;
            assert_eq!(none, rows.values().filter(|row| row.hash.is_none()).count());
            Ok(())
        })
        .unwrap();
}

fn scene<P: Protocol>() -> (Database<P>, Table<Page, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let pages = db.table::<Page>("pages").unwrap();
    (db, pages)
}

/// Deletes all rows, and waits until no block is in use.
fn end<P: Protocol>(db: &Database<P>, pages: &Table<Page, P>) {
    db.run(|tx| pages.clear(tx)).unwrap();
    let memory = db.inner.engine.long_memory().unwrap();
    eventually("the end of all blocks", || {
        db.run(|_| Ok(())).unwrap();
        memory.in_use() == 0
    });
}

/// Changes a row at random; `texts` are the values. Returns the outcome that the change has had.
fn change<P: Protocol>(
    pages: &Table<Page, P>,
    tx: &Tx<'_, P>,
    rows: &mut Rows,
    (random, texts): (&mut Random, &[String]),
) -> Result<(), Abort> {
    let id = random.below(12);
    let text = texts[random.below(texts.len() as u64) as usize].clone();
    let bytes = text.clone().into_bytes();
    let Some(old) = rows.get(&id).cloned() else {
        let row = Page::new(id, &text);
        let done = pages.insert(tx, row.clone());
        assert_eq!(done == Err(Abort::KeyTooLong), text.len() > MOST);
        if done.is_ok() {
            rows.insert(id, row);
        }
        return done;
    };
    let mut row = old.clone();
    let done = match random.below(8) {
        0 => {
            pages.delete(tx, id)?;
            rows.remove(&id);
            return Ok(());
        }
        1 => {
            row = Page { visits: 9, ..Page::new(id, &text) };
            pages.put(tx, row.clone())
        }
        2 => {
            row.path.clone_from(&text);
            pages.modify(tx, id, Page::PATH, |path| path.clone_from(&text))
        }
        3 => {
            (row.title, row.kind) = (text.clone(), row.kind.wrapping_add(1) % 3);
            pages.modify(tx, id, (Page::TITLE, Page::KIND), |(title, kind)| {
                *title = text;
                *kind = (*kind + 1) % 3;
            })
        }
        4 => {
            (row.photo, row.visits) = (bytes.clone(), row.visits + 1);
            pages.update(tx, id, Page::VISITS.add(1))?;
            pages.find(tx, id)?.modify(Page::PHOTO, |photo| *photo = bytes)
        }
        5 => {
            row.alias = (text.len() <= DEFAULT || text.len() > MOST).then_some(text);
            pages.modify(tx, id, Page::ALIAS, |alias| alias.clone_from(&row.alias))
        }
        6 => {
            row.hash = Some(bytes);
            pages.modify(tx, id, Whole, |page| page.hash.clone_from(&row.hash))
        }
        _ => {
            row.hash = None;
            pages.modify(tx, id, Page::HASH, |hash| *hash = None)
        }
    };
    let is_long = [&row.path, &row.title].map(String::len).into_iter().any(|length| length > MOST)
        || row.alias.as_ref().is_some_and(|alias| alias.len() > DEFAULT)
        || row.photo.len() > MOST
        || row.hash.as_ref().is_some_and(|hash| hash.len() > MOST);
    assert_eq!(done == Err(Abort::KeyTooLong), is_long, "{row:?}");
    match done {
        Ok(()) => _ = rows.insert(id, row),
        // What the change has done before it was refused.
        Err(Abort::KeyTooLong) => {
            let visits = pages.read(tx, id, Page::VISITS)?;
            rows.insert(id, Page { visits, ..old });
        }
        Err(_) => {}
    }
    done
}

protocol_tests!(all: indexes_of_texts_find_what_a_search_through_all_rows_finds);
fn indexes_of_texts_find_what_a_search_through_all_rows_finds<P: Protocol>() {
    let (db, pages) = scene::<P>();
    let mut session = db.session().unwrap();
    let mut rows = Rows::new();
    let mut texts = texts();
    texts.extend(long_texts().into_iter().take(4));
    let (mut refused, mut too_long) = (0, 0);
    for round in 0..60 {
        let (before, mut after) = (rows.clone(), Rows::new());
        let ended = session.run(|tx| {
            after = before.clone();
            let random = &mut Random::seeded(round + 1);
            for _ in 0..random.below(8) {
                match random.below(3) {
                    0 => {
                        let mut inner = after.clone();
                        let is_undone = random.below(2) == 0;
                        let part = tx.attempt(|tx| {
                            let done = change(&pages, tx, &mut inner, (random, &texts));
                            if is_undone { Err(Abort::Guard) } else { done }
                        });
                        match part {
                            Ok(()) => after = inner,
                            Err(abort) => too_long += u32::from(abort == Abort::KeyTooLong),
                        }
                    }
                    _ => match change(&pages, tx, &mut after, (random, &texts)) {
                        Err(Abort::KeyTooLong) => too_long += 1,
                        done => done?,
                    },
                }
            }
            if round % 9 == 0 { Err(Abort::Guard) } else { Ok(()) }
        });
        let mut paths: Vec<&str> = after.values().map(|row| &*row.path).collect();
        paths.sort_unstable();
        let is_unique = paths.windows(2).all(|two| two[0] != two[1]);
        match ended {
            Ok(()) => {
                assert!(is_unique, "{}: {paths:?}", P::NAME);
                rows = after;
            }
            Err(Abort::NotUnique) => {
                assert!(!is_unique, "{}: {paths:?}", P::NAME);
                refused += 1;
            }
            Err(abort) => assert_eq!((abort, round % 9), (Abort::Guard, 0), "{}", P::NAME),
        }
        if round % 6 == 5 {
            check_all(&mut session, &pages, &rows);
        }
    }
    assert!(refused > 3 && too_long > 3 && rows.len() > 4, "{refused} {too_long} {}", rows.len());
    drop(session);
    end(&db, &pages);
}

protocol_tests!(versioned: snapshots_find_the_texts_of_their_time);
fn snapshots_find_the_texts_of_their_time<P: Versioned>() {
    let (db, pages) = scene::<P>();
    let rows: Rows = texts().iter().zip(0..).map(|(text, id)| (id, Page::new(id, text))).collect();
    db.run(|tx| pages.insert_many(tx, rows.values().cloned())).unwrap();
    let snapshot = db.snapshot();
    for step in 0..20 {
        db.run(|tx| {
            for &id in rows.keys() {
                let text = format!("{id} {step}");
                pages.modify(tx, id, Whole, |page| *page = Page::new(id, &text))?;
            }
            pages.delete(tx, step)
        })
        .unwrap();
        db.run(|tx| pages.insert(tx, Page::new(step, "another row"))).unwrap();
        db.run(|tx| pages.modify(tx, step, Page::PATH, |path| *path = format!("{step}"))).unwrap();
    }
    db.run(|tx| pages.clear(tx)).unwrap();
    snapshot
        .run(|tx| {
            let all = texts();
            all.iter().chain(&long_texts()).try_for_each(|text| check_text(&pages, tx, &rows, text))
        })
        .unwrap();
    drop(snapshot);
    end(&db, &pages);
}
