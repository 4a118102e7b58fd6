//! Tests of the errors that a program passes on.

use candide::any::AnyDatabase;
use candide::policy::Policy;
use candide::schema::TextTooLong;
use candide::{
    Abort, Database, Error, LoadOptions, LogOptions, Occ, OpenError, Record, StreamError, Text,
};
use std::error::Error as _;
use std::io;

#[derive(Record, Debug, Clone, Copy, PartialEq)]
struct Person {
    #[key]
    id: u32,
    name: Text<4>,
}

fn named(id: u32, name: &str) -> Result<Person, TextTooLong> {
    Ok(Person { id, name: Text::new(name)? })
}

/// Does what programs do, and passes every error on.
fn program(name: &str, protocol: &str, bytes: &[u8]) -> Result<u64, Error> {
    let db = AnyDatabase::choose(protocol)?;
    let _policy: Policy = "swiss".parse()?;
    let people = db.table::<Person>("people")?;
    let row = named(1, name)?;
    db.run(|tx| people.insert(tx, row))?;
    db.run(|tx| people.insert(tx, named(2, name)?))?;
    people.load([named(3, name)?], LoadOptions::new())?;
    let mut stream = Vec::new();
    db.read_view(|tx| people.read(tx, 1, Person::NAME))?;
    people.export(&mut stream)?;
    Ok(people.import(&mut &*bytes)?)
}

#[test]
fn the_question_mark_converts_every_error() {
    let ended = |name, protocol, bytes| program(name, protocol, bytes).unwrap_err();
    assert!(matches!(ended("ann", "silo", b""), Error::UnknownName(_)));
    let long = ended("annabel", "mvcc", b"");
    assert_eq!(long, Error::TextTooLong { length: 7, length_max: 4 });
    assert_eq!(long.to_string(), "a text of 7 bytes does not fit into Text<4>");
    let Error::Stream(stream) = ended("ann", "occ", b"") else { panic!("there is no stream") };
    assert!(matches!(*stream, StreamError::Format(_)));
    assert_eq!(Error::Stream(stream.clone()).to_string(), stream.to_string());
}

#[test]
fn a_text_that_is_too_long_ends_a_transaction_without_effect() {
    let db = Database::new();
    let people = db.table::<Person>("people").unwrap();
    let ended = db.run(|tx| {
        people.insert(tx, named(1, "ann")?)?;
        people.insert(tx, named(2, "annabel")?)
    });
    assert_eq!(ended, Err(Abort::TextTooLong));
    assert!(!Abort::TextTooLong.is_conflict());
    assert_eq!(db.run(|tx| people.get(tx, 1, ())), Ok(None));
    assert_eq!(db.stats().user_errors, 1);
}

#[test]
fn an_error_names_its_cause_where_it_has_one() {
    let cause = |error: &Error| error.source().map(ToString::to_string);
    let guard = Some(Abort::Guard.to_string());
    assert_eq!(cause(&Error::from(Abort::Guard)), guard);
    assert_eq!(cause(&Error::Load { rows: 3, cause: Abort::Guard }), guard);
    assert_eq!(cause(&Error::EmptyTableName), None);
    let failed = || io::Error::other("the cable is out");
    let stream = Error::from(StreamError::Io(failed()));
    assert_eq!(cause(&stream).as_deref(), Some("the cable is out"));
    let open = Error::from(OpenError::Io { file: "log".into(), source: failed() });
    assert_eq!(cause(&open).as_deref(), Some("the cable is out"));
    assert_eq!(open.clone(), open);
    assert_ne!(open, stream);
}

#[test]
fn an_error_within_another_one_is_recovered_by_downcasting() {
    let busy = || Error::NotQuiescent;
    assert_eq!(Error::from(StreamError::Refused(busy())), busy());
    assert_eq!(Error::from(OpenError::Target(Box::new(busy()))), busy());
    let foreign = Error::from(OpenError::Target("another kind of target".into()));
    assert!(matches!(foreign, Error::Open(_)), "{foreign:?}");
    // As it is when the builder refuses, on the way of a database in files.
    let directory = std::env::temp_dir().join(format!("candide-refused-{}", std::process::id()));
    let builder = Database::<Occ>::builder().memory_limit(1 << 20).reserve(2 << 20);
    let opened = builder.open(&directory, LogOptions::new()).map(drop).map_err(Error::from);
    let _ = std::fs::remove_dir_all(&directory);
    assert_eq!(opened, Err(Error::ReserveAboveLimit { bytes: 2 << 20, limit_bytes: 1 << 20 }));
}
