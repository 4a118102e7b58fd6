//! Columns of JSON.

use crate::engine::Protocol;
use crate::schema::RowMeta;
use crate::schema::{FieldInfo, FieldType};
use crate::{Abort, Database, Json, Occ, Table, Whole};
use candide_derive::Record;
use candide_log_testing::SimDisk;
use serde::de::Deserializer;
use serde::ser::{Error, Serializer};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

type Counts = BTreeMap<String, i64>;

#[derive(Debug, Clone, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Page {
    #[key]
    id: u64,
    tags: Json<Vec<String>>,
    #[group(rest)]
    counts: Option<Json<Counts>>,
    #[group(rest)]
    views: u32,
}

fn tags(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("tag \"{number}\"")).collect()
}

fn page(id: u64) -> Page {
    let counts = (!id.is_multiple_of(3)).then(|| Json(Counts::from([(id.to_string(), -1)])));
    Page { id, tags: Json(tags(id as usize)), counts, views: 0 }
}

fn scene<P: Protocol>() -> (Database<P>, Table<Page, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let pages = db.table::<Page>("pages").unwrap();
    (db, pages)
}

protocol_tests!(all: json_is_read_as_it_was_written);
fn json_is_read_as_it_was_written<P: Protocol>() {
    let (db, pages) = scene::<P>();
    let mut session = db.session().unwrap();
    for id in [0, 1, 2, 3, 50, 5_000] {
        let row = page(id);
        session.run(|tx| pages.insert(tx, row.clone())).unwrap();
        assert_eq!(session.run(|tx| pages.read(tx, id, Whole)).as_ref(), Ok(&row));
        assert_eq!(pages.get_now(&mut session, id, Page::TAGS), Ok(Some(row.tags.clone())));
        let read = session.run(|tx| {
            pages.modify(tx, id, Page::TAGS, |tags| tags.push("more".to_owned()))?;
            pages.update(tx, id, (Page::COUNTS.set(Some(&Counts::new())), Page::VIEWS.add(1)))?;
            let texts = (Page::TAGS, Page::COUNTS);
            let ends = pages.read_with(tx, id, texts, |(tags, counts)| {
                (tags.ends_with("\"more\"]"), counts == Some("{}"))
            })?;
            assert_eq!(ends, (true, true));
            pages.update(tx, id, (Page::TAGS.set(&tags(1)), Page::COUNTS.set(None)))?;
            pages.read(tx, id, (Page::TAGS, Page::COUNTS))
        });
        assert_eq!(read, Ok((Json(tags(1)), None)));
    }
    let rows = session.run(|tx| pages.rows(tx, ..).collect_rows()).unwrap();
    assert!(rows.iter().all(|row| row.tags == Json(tags(1)) && row.views == 1));
}

/// Rows whose columns are the texts of those of [`Page`](super::Page).
mod texts {
    use super::Record;

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(crate = crate, ordered)]
    pub(super) struct Page {
        #[key]
        pub(super) id: u64,
        pub(super) tags: String,
        #[group(rest)]
        pub(super) counts: Option<String>,
        #[group(rest)]
        pub(super) views: u32,
    }
}

fn open(disk: &SimDisk) -> Database<Occ> {
    let options = crate::LogOptions::new().segment_bytes(64 << 10);
    Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options).unwrap()
}

#[test]
fn a_text_that_is_no_value_of_the_type_is_refused_where_it_is_read() {
    let disk = SimDisk::default();
    let db = open(&disk);
    let texts = db.table::<texts::Page>("pages").unwrap();
    let text = |id, tags: &str, counts: Option<&str>| texts::Page {
        id,
        tags: tags.to_owned(),
        counts: counts.map(str::to_owned),
        views: 0,
    };
    let rows = [
        text(1, "[\"a\"]", Some("{\"b\":1}")),
        text(2, "[7]", None),
        text(3, "[]", Some("{\"b\":")),
        text(4, "", None),
    ];
    db.run(|tx| texts.insert_many(tx, rows.clone())).unwrap();
    drop(texts);
    db.close().unwrap();

    // The type of a column changes without a migration.
    let db = open(&disk);
    let pages = db.table::<Page>("pages").unwrap();
    let mut session = db.session().unwrap();
    let counts = Some(Json(Counts::from([("b".to_owned(), 1)])));
    let first = Page { id: 1, tags: Json(vec!["a".to_owned()]), counts, views: 0 };
    assert_eq!(session.run(|tx| pages.read(tx, 1, Whole)), Ok(first));
    let refused = [
        (2, "tags", "invalid type: integer `7`, expected a string at line 1 column 2"),
        (3, "counts", "EOF while parsing a value at line 1 column 5"),
        (4, "tags", "invalid type: null, expected a sequence at line 1 column 4"),
    ];
    for (id, column, problem) in refused {
        let expected = format!("undecodable on pages.{column}, key id: {id}: {problem}");
        let reads = [
            session.run(|tx| pages.read(tx, id, Whole).map(drop)),
            session.run(|tx| pages.read(tx, id, (Page::TAGS, Page::COUNTS)).map(drop)),
            session.run(|tx| pages.modify(tx, id, Whole, |page| page.views = 1)),
            session.run(|tx| pages.scan(tx, id..=id, Whole).collect_rows().map(drop)),
        ];
        assert_eq!(reads, [Err(Abort::Undecodable); 4]);
        assert_eq!(session.last_outcome().unwrap().to_string(), expected);
        // The other columns can be read, and so can the text.
        assert_eq!(session.run(|tx| pages.read(tx, id, Page::VIEWS)), Ok(0));
        let text = session.run(|tx| pages.read_with(tx, id, Page::TAGS, str::to_owned));
        assert_eq!(text.as_ref(), Ok(&rows[id as usize - 1].tags));
        let counts = Counts::new();
        let mend = || (Page::TAGS.set(&Vec::new()), Page::COUNTS.set(Some(&counts)));
        session.run(|tx| pages.update(tx, id, mend())).unwrap();
        let mended = Page { id, tags: Json(Vec::new()), counts: Some(Json(counts)), views: 0 };
        assert_eq!(session.run(|tx| pages.read(tx, id, Whole)), Ok(mended));
    }
}

/// The number of bytes that stands for a panic.
const PANICS: usize = usize::MAX;

thread_local! {
    /// What [`Unruly`] does when it is serialized: the number of bytes of its text, or a failure.
    static TEXTS: Cell<[usize; 8]> = const { Cell::new([0; 8]) };
}

/// A value that is another text each time.
#[derive(Debug, Clone, PartialEq)]
struct Unruly;

impl Serialize for Unruly {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut texts = TEXTS.get();
        texts.rotate_left(1);
        TEXTS.set(texts);
        match texts[7] {
            0 => Err(S::Error::custom("it will not")),
            PANICS => resume_unwind(Box::new("the value panics")),
            length => serializer.serialize_str(&"x".repeat(length)),
        }
    }
}

impl<'de> Deserialize<'de> for Unruly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unruly, D::Error> {
        String::deserialize(deserializer).map(|_| Unruly)
    }
}

#[derive(Debug, Clone, PartialEq, Record)]
#[record(crate = crate)]
struct Wild {
    #[key]
    id: u64,
    one: Json<Unruly>,
    text: String,
    two: Option<Json<Unruly>>,
    views: u32,
}

fn wild(id: u64) -> Wild {
    let text = "a text that has a block".to_owned();
    Wild { id, one: Json(Unruly), text, two: Some(Json(Unruly)), views: 0 }
}

#[test]
fn a_value_that_cannot_be_serialized_is_refused() {
    let db = Database::new();
    let rows = db.table::<Wild>("wild").unwrap();
    let mut session = db.session().unwrap();
    let expected = "unencodable on wild.one, key id: 3: it will not";
    TEXTS.set([0; 8]);
    let inserted = [
        session.run(|tx| rows.insert(tx, wild(3))),
        session.run(|tx| rows.put(tx, wild(3))),
        session.run(|tx| rows.insert_if_absent(tx, wild(3)).map(drop)),
    ];
    assert_eq!(inserted, [Err(Abort::Unencodable); 3]);
    assert_eq!(session.last_outcome().unwrap().to_string(), expected);
    TEXTS.set([20; 8]);
    session.run(|tx| rows.insert(tx, wild(3))).unwrap();
    TEXTS.set([0; 8]);
    session
        .run(|tx| {
            let changed = [
                rows.update(tx, 3, (Wild::VIEWS.add(1), Wild::ONE.set(&Unruly))),
                rows.modify(tx, 3, (Wild::ONE, Wild::VIEWS), |(_, views)| *views = 1),
                rows.modify(tx, 3, Whole, |row| row.views = 1),
            ];
            assert_eq!(changed, [Err(Abort::Unencodable); 3]);
            // Nothing has been staged.
            assert_eq!(rows.read(tx, 3, Wild::VIEWS), Ok(0));
            Ok(())
        })
        .unwrap();
    let failed = session.run(|tx| rows.update(tx, 3, Wild::ONE.set(&Unruly)));
    assert_eq!(failed, Err(Abort::Unencodable));
    assert_eq!(session.last_outcome().unwrap().to_string(), expected);
}

protocol_tests!(all: a_value_that_is_another_text_each_time_gets_its_own_blocks);
fn a_value_that_is_another_text_each_time_gets_its_own_blocks<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Wild>("wild").unwrap();
    let mut session = db.session().unwrap();
    TEXTS.set([40; 8]);
    session.run(|tx| rows.insert(tx, wild(1))).unwrap();
    for turn in 0..40 {
        let mut texts = [40, 2, 2, 300, 40, 1, 9, 40];
        texts.rotate_left(turn % 8);
        TEXTS.set(texts);
        session
            .run(|tx| {
                rows.modify(tx, 1, Whole, |row| row.views += 1)?;
                rows.modify(tx, 1, (Wild::TWO, Wild::ONE, Wild::TEXT), |_| ())?;
                rows.update(tx, 1, (Wild::TWO.set(Some(&Unruly)), Wild::ONE.set(&Unruly)))
            })
            .unwrap();
        let row = session.run(|tx| rows.read(tx, 1, Whole)).unwrap();
        assert_eq!(row, Wild { views: turn as u32 + 1, ..wild(1) }, "{}", P::NAME);
    }
    session.run(|tx| rows.delete(tx, 1)).unwrap();
    drop(session);
    crate::tests::waiting::eventually("the end of all blocks", || {
        db.run(|_| Ok(())).unwrap();
        db.inner.engine.long_memory().unwrap().in_use() == 0
    });
}

protocol_tests!(all: a_panic_of_a_value_changes_nothing);
fn a_panic_of_a_value_changes_nothing<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let rows = db.table::<Wild>("wild").unwrap();
    TEXTS.set([40; 8]);
    db.run(|tx| rows.insert(tx, wild(1))).unwrap();
    for way in 0..4 {
        TEXTS.set([PANICS; 8]);
        let caught = db.run(|tx| {
            let write = || match way {
                0 => rows.put(tx, wild(1)),
                1 => rows.insert(tx, wild(2)),
                2 => rows.modify(tx, 1, Whole, |row| row.views = 7),
                _ => rows.update(tx, 1, (Wild::VIEWS.set(7), Wild::ONE.set(&Unruly))),
            };
            assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
            rows.read(tx, 1, Wild::VIEWS)
        });
        assert_eq!(caught, Ok(0), "{}", P::NAME);
    }
    TEXTS.set([40; 8]);
    db.run(|tx| rows.update(tx, 1, Wild::VIEWS.add(1))).unwrap();
    assert_eq!(db.run(|tx| rows.read(tx, 1, Whole)), Ok(Wild { views: 1, ..wild(1) }));
    assert_eq!(db.run(|tx| rows.get(tx, 2, ())), Ok(None));
}

#[test]
fn json_is_described_as_text() {
    let ty = |name| Page::FIELDS.iter().find(|field| field.name() == name).map(FieldInfo::ty);
    assert_eq!(ty("tags"), Some(&FieldType::LongText));
    assert_eq!(ty("counts"), Some(&FieldType::Optional(&FieldType::LongText)));
}

#[cfg(feature = "text")]
#[test]
fn imported_texts_are_json_of_the_type() {
    let (db, pages) = scene::<Occ>();
    let good = r#"{"id":1,"tags":"[\"a\"]","counts":"{\"b\":2}","views":0}"#;
    let empty = r#"{"id":2,"tags":"[]","counts":null,"views":0}"#;
    let refused = |from: &str, to: &str, wanted: &str| {
        assert!(good.contains(from));
        let lines = [empty, &good.replace(from, to), ""].join("\n");
        let error = pages.import_json(&mut lines.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}, not {wanted}");
        db.run(|tx| pages.delete(tx, 2)).unwrap();
    };
    refused(
        r#"\"a\"]"#,
        r#"\"a\""#,
        "line 2, column 16: `[\"a\"` is no value of `tags: Json`, which is JSON: at its character 5, \
         a list is cut off here",
    );
    refused(
        r#"{\"b\":2}"#,
        r#"{\n\"é\": b}"#,
        "line 2, column 35: `{\n\"é\": b}` is no value of `counts: Json`, which is JSON: at its \
         character 8, expected value",
    );
    // JSON, but none of the column's type.
    refused(r#"[\"a\"]"#, "[1]", "line 2, column 1: ");
    let lines = [good, empty, ""].join("\n");
    assert_eq!(pages.import_json(&mut lines.as_bytes()), Ok(2));
    let mut csv = Vec::new();
    assert_eq!(pages.export_csv(&mut csv), Ok(2));
    let csv = String::from_utf8(csv).unwrap();
    db.run(|tx| pages.clear(tx)).unwrap();
    let error = pages.import_csv(&mut csv.replace("2}", "2").as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("which is JSON: at its character 7, an object is cut off here"),
        "{error}"
    );
    db.run(|tx| pages.clear(tx)).unwrap();
    assert_eq!(pages.import_csv(&mut csv.as_bytes()), Ok(2));
    let row = db.run(|tx| pages.read(tx, 1, Whole)).unwrap();
    let counts = Some(Json(Counts::from([("b".to_owned(), 2)])));
    assert_eq!(row, Page { id: 1, tags: Json(vec!["a".to_owned()]), counts, views: 0 });
}
