//! Rows as JSON and as comma-separated values.

use super::{filled, rows};
use crate::common::Item;

use candide::{Bytes, Codec, Database, Key, Occ, Record, StreamError, Text};

#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Closed,
}

#[derive(Key, Clone, Copy, Debug, PartialEq)]
struct Code(Text<4>);

#[derive(Key, Clone, Copy, Debug, PartialEq)]
struct Place {
    branch: i16,
    code: Option<Code>,
}

/// A row with a column of every type.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Everything {
    #[key]
    place: Place,
    #[key]
    number: u128,
    small: u8,
    signed: i128,
    wide: u64,
    truth: bool,
    character: char,
    half: f32,
    whole: f64,
    text: Text<9>,
    bytes: Bytes<3>,
    state: State,
    code: Code,
    maybe: Option<i32>,
    twice: Option<Option<bool>>,
    optional: Option<Text<3>>,
    bits: [bool; 5],
    list: [Option<State>; 2],
    codes: [Code; 2],
}

fn everything(number: u128) -> Everything {
    let is_odd = number % 2 == 1;
    let code = |text| Code(Text::new(text).unwrap());
    Everything {
        place: Place { branch: -3, code: is_odd.then(|| code(",\"é")) },
        number,
        small: 255,
        signed: i128::MIN + number as i128,
        wide: u64::MAX,
        truth: is_odd,
        character: if is_odd { '"' } else { '\u{1f600}' },
        half: 0.1,
        whole: if is_odd { f64::NEG_INFINITY } else { 1e-300 },
        text: Text::new(if is_odd { "" } else { "a,\n\"b\" " }).unwrap(),
        bytes: Bytes::new([0, 10, 255]),
        state: State::Closed,
        code: code(""),
        maybe: is_odd.then_some(-7),
        twice: [None, Some(None), Some(Some(true))][number as usize % 3],
        optional: is_odd.then(|| Text::new("").unwrap()),
        bits: [true, false, is_odd, true, false],
        list: [None, Some(State::Open)],
        codes: [code("one"), code("\\")],
    }
}

#[test]
fn rows_of_every_type_are_imported_as_they_were_exported() {
    let db = Database::new();
    let from = db.table::<Everything>("from").unwrap();
    let all: Vec<_> = (0..700).map(everything).collect();
    db.run(|tx| from.insert_many(tx, all.iter().copied())).unwrap();
    let (mut json, mut csv) = (Vec::new(), Vec::new());
    assert_eq!(from.export_json(&mut json), Ok(700));
    assert_eq!(from.export_csv(&mut csv), Ok(700));
    let copies = ["json", "csv"].map(|name| db.table::<Everything>(name).unwrap());
    assert_eq!(copies[0].import_json(&mut &json[..]), Ok(700));
    assert_eq!(copies[1].import_csv(&mut &csv[..]), Ok(700));
    for copy in copies {
        let mut found = Vec::new();
        copy.for_each_quiescent(|row| found.push(*row)).unwrap();
        found.sort_unstable_by_key(|row: &Everything| row.number);
        assert_eq!(found, all);
    }
}

#[test]
fn a_refused_row_is_named_and_rows_before_it_are_inserted() {
    let (_db, table) = filled::<Occ>(1_000);
    let mut text = Vec::new();
    table.export_json(&mut text).unwrap();
    // All rows once more, behind 600 new ones.
    let new = (1_000..1_600)
        .map(|id| format!("{{\"id\":{id},\"count\":0,\"small\":0,\"flag\":false,\"other\":0}}\n"));
    let both = [new.collect::<String>().into_bytes(), text].concat();
    let error = table.import_json(&mut &both[..]).unwrap_err();
    let StreamError::Text { fault, rows: before } = &error else { panic!("{error}") };
    assert_eq!((fault.line, *before), (601, 600));
    assert!(fault.what.contains("a row with this key exists already"), "{error}");
    assert_eq!(rows(&table).len(), 1_600);
    let Err(StreamError::Text { rows: before, .. }) =
        table.import_csv(&mut &b"id,count\n1,2\n"[..])
    else {
        panic!("refused")
    };
    assert_eq!(before, 0);
}

#[test]
fn a_row_that_a_unique_index_refuses_is_named() {
    #[derive(Record, Clone, Copy, Debug)]
    struct Person {
        #[key]
        id: u32,
        #[unique]
        email: Text<16>,
    }

    let db = Database::new();
    let people = db.table::<Person>("people").unwrap();
    let text = "email,id\na@b,1\nc@d,2\na@b,3\ne@f,4\n";
    let error = people.import_csv(&mut text.as_bytes()).unwrap_err();
    let StreamError::Text { fault, rows } = &error else { panic!("{error}") };
    assert_eq!((fault.line, *rows), (4, 2));
    assert!(
        error
            .to_string()
            .ends_with("; the 2 rows before it have been inserted, and none from it on")
    );
    assert_eq!(people.for_each_quiescent(|_| ()), Ok(2));
}

#[test]
fn an_export_to_a_closed_pipe_ends_with_its_error() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (_db, table) = filled::<Occ>(5_000);
    assert!(matches!(table.export_csv(&mut Closed), Err(StreamError::Io(_))));
    let _: Vec<Item> = rows(&table);
}

/// Numbers below 100, as bytes.
struct Percent;

impl Codec for Percent {
    type Value = f64;
    type Stored = u8;

    fn encode(share: &f64) -> u8 {
        (share * 100.0).round() as u8
    }

    fn decode(percent: u8) -> Result<f64, String> {
        if percent > 100 { Err(format!("{percent} %")) } else { Ok(f64::from(percent) / 100.0) }
    }
}

#[test]
fn columns_with_codecs_are_written_as_stored_and_checked_when_they_are_read() {
    #[derive(Record, Clone, Copy, Debug)]
    struct Share {
        #[key]
        id: u32,
        #[record(with = Percent)]
        share: f64,
    }

    let db = Database::new();
    let shares = db.table::<Share>("shares").unwrap();
    db.run(|tx| shares.insert(tx, Share { id: 1, share: 0.25 })).unwrap();
    let (mut json, mut csv) = (Vec::new(), Vec::new());
    shares.export_json(&mut json).unwrap();
    shares.export_csv(&mut csv).unwrap();
    assert_eq!(std::str::from_utf8(&json), Ok("{\"id\":1,\"share\":25}\n"));
    assert_eq!(std::str::from_utf8(&csv), Ok("id,share\n1,25\n"));
    let text = "id,share\n2,100\n3,101\n4,7\n";
    let error = shares.import_csv(&mut text.as_bytes()).unwrap_err();
    let StreamError::Text { fault, rows } = &error else { panic!("{error}") };
    assert_eq!((fault.line, *rows), (3, 1));
    assert_eq!(fault.what, "undecodable on shares.share, key id: 3: 101 %");
    assert_eq!(shares.for_each_quiescent(|_| ()), Ok(2));
}
