//! Tests of keys as lookups take them, and of keys that no row can have.

use crate::common::{database_with, ok};
use candide::{
    Abort, Bytes, Database, Mvcc, Protocol, Record, RunOptions, Session, Table, Text, Tx, Whole,
};

#[derive(Debug, Clone, Copy, PartialEq, Record)]
struct User {
    #[key]
    name: Text<8>,
    #[unique]
    email: Text<12>,
    #[index(ordered)]
    town: Text<8>,
    visits: u64,
}

/// A name that is longer than the key's type allows.
const LONG: &str = "Bartholomew";

fn user(name: &str) -> User {
    let text = "the text fits";
    User {
        name: Text::new(name).expect(text),
        email: Text::new(&format!("{name}@x")).expect(text),
        town: Text::new("Ulm").expect(text),
        visits: 1,
    }
}

fn users<P: Protocol>() -> (Database<P>, Table<User, P>, Session<P>, Session<P>) {
    let (db, users) = database_with::<User, P>("users");
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    ok(first.run(|tx| users.insert_many(tx, ["Ann", "Bob"].map(user))));
    (db, users, first, second)
}

protocol_tests!(concurrent: a_text_that_is_too_long_is_the_key_of_no_row);
fn a_text_that_is_too_long_is_the_key_of_no_row<P: Protocol>() {
    let (_db, users, mut first, _) = users::<P>();
    let (by_email, by_town) = (users.index(User::BY_EMAIL), users.index(User::BY_TOWN));
    ok(first.run(|tx| {
        assert_eq!(users.get(tx, LONG, User::VISITS)?, None);
        assert_eq!(users.get(tx, LONG.to_string(), Whole)?, None);
        assert_eq!(users.get_for_update(tx, LONG, Whole)?, None);
        assert!(!users.contains(tx, LONG)?);
        assert!(!users.update_if_present(tx, LONG, User::VISITS.add(1))?);
        assert!(!users.delete_if_present(tx, LONG)?);
        assert_eq!(users.modify_if_present(tx, LONG, User::VISITS, |_| panic!("no row"))?, None);
        assert_eq!(users.find(tx, LONG).map(drop), Err(Abort::NotFound));
        assert_eq!(users.find_many(tx, ["Ann", LONG]).map(drop), Err(Abort::NotFound));
        assert_eq!(users.read(tx, LONG, Whole), Err(Abort::NotFound));
        assert_eq!(users.read_for_update(tx, LONG, Whole), Err(Abort::NotFound));
        assert_eq!(users.update(tx, LONG, User::VISITS.add(1)), Err(Abort::NotFound));
        assert_eq!(
            users.modify(tx, LONG, User::VISITS, |_| panic!("no row")),
            Err(Abort::NotFound)
        );
        assert_eq!(users.delete(tx, LONG), Err(Abort::NotFound));
        // The indexes, by hash and ordered.
        assert_eq!(by_email.get(tx, "Bartholomew@x", ())?, None);
        assert_eq!(by_email.rows(tx, "Bartholomew@x", ()).count()?, 0);
        assert!(by_email.find(tx, "Bartholomew@x")?.is_none());
        assert_eq!(by_email.read(tx, "Bartholomew@x", ()), Err(Abort::NotFound));
        assert!(!by_town.contains(tx, LONG)? && by_town.find(tx, LONG)?.is_none());
        assert_eq!(by_town.rows(tx, LONG, ()).next_back(), None);
        Ok(())
    }));
    assert_eq!(users.get_now(&mut first, LONG, Whole), Ok(None));
    // Those that fit find their rows.
    ok(first.run(|tx| {
        assert_eq!(users.get(tx, "Ann", User::VISITS)?, Some(1));
        assert_eq!(users.get(tx, &"Ann".to_string(), User::VISITS)?, Some(1));
        users.update(tx, "Ann", User::VISITS.add(1))?;
        let rows = users.find_many(tx, ["Ann", "Bob"])?;
        assert_eq!(rows.each_ref().map(|row| row.read(User::VISITS)), [Ok(2), Ok(1)]);
        assert_eq!(by_email.read(tx, "Bob@x", User::NAME)?, "Bob");
        assert_eq!(by_town.rows(tx, "Ulm", ()).count()?, 2);
        assert_eq!(by_town.count(tx, "U".."V")?, 2);
        assert_eq!(by_town.count(tx, "Ulm, on the Danube"..)?, 0);
        assert_eq!(by_town.count(tx, .."Ulm, on the Danube")?, 2);
        users.delete(tx, "Bob")
    }));
    assert_eq!(users.get_now(&mut first, "Bob", ()), Ok(None));
    assert_eq!(users.get_now(&mut first, "Ann", User::VISITS), Ok(Some(2)));
}

protocol_tests!(overlapping: a_key_that_no_row_can_have_is_not_observed);
fn a_key_that_no_row_can_have_is_not_observed<P: Protocol>() {
    let (_db, users, mut first, mut second) = users::<P>();
    let (by_email, by_town) = (users.index(User::BY_EMAIL), users.index(User::BY_TOWN));
    let mut attempts = 0;
    ok(first.run(|tx| {
        attempts += 1;
        assert!(!users.contains(tx, LONG)? && !users.delete_if_present(tx, LONG)?);
        assert!(!by_email.contains(tx, "Bartholomew@x")? && !by_town.contains(tx, LONG)?);
        // An insert changes the nodes in which any absent key would have been observed.
        if attempts == 1 {
            ok(second
                .run(|tx| users.insert_many(tx, ["Cy", "Dee", "Eve", "Flo", "Gus"].map(user))));
        }
        users.put(tx, User { visits: 9, ..user("Ann") })
    }));
    assert_eq!(attempts, 1, "{}", P::NAME);
}

#[test]
fn misuse_is_refused_even_with_a_key_that_no_row_can_have() {
    let (_db, users, mut first, _) = users::<Mvcc>();
    let (_other, foreign, ..) = self::users::<Mvcc>();
    ok(first.run(|tx| {
        assert_eq!(foreign.get(tx, LONG, ()), Err(Abort::ForeignTable));
        assert_eq!(foreign.find(tx, LONG).map(drop), Err(Abort::ForeignTable));
        assert_eq!(foreign.update(tx, LONG, User::VISITS.add(1)), Err(Abort::ForeignTable));
        assert_eq!(
            foreign.index(User::BY_EMAIL).get(tx, "much@too.long", ()),
            Err(Abort::ForeignTable)
        );
        Ok(())
    }));
    assert_eq!(foreign.get_now(&mut first, LONG, ()), Err(Abort::ForeignTable));
    let refused = |tx: &Tx<'_, Mvcc>| {
        assert_eq!(users.update(tx, LONG, User::VISITS.add(1)), Err(Abort::ReadOnly));
        assert_eq!(users.delete_if_present(tx, LONG), Err(Abort::ReadOnly));
        assert_eq!(users.get_for_update(tx, LONG, ()), Err(Abort::ReadOnly));
        assert_eq!(users.get(tx, LONG, ())?, None);
        Ok(())
    };
    ok(first.with(RunOptions::new().read_only()).run(refused));
}

#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
struct Block {
    #[key]
    digest: Bytes<4>,
    height: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
struct Word {
    #[key]
    word: Text<6>,
    count: u32,
}

#[test]
fn bytes_are_given_as_arrays_and_slices() {
    let db = Database::new();
    let blocks = db.table::<Block>("blocks").unwrap();
    ok(db.run(|tx| {
        blocks.insert(tx, Block { digest: Bytes::new(*b"abcd"), height: 7 })?;
        let height = Some(7);
        assert_eq!(blocks.get(tx, *b"abcd", Block::HEIGHT)?, height);
        assert_eq!(blocks.get(tx, b"abcd", Block::HEIGHT)?, height);
        assert_eq!(blocks.get(tx, &b"abcd"[..], Block::HEIGHT)?, height);
        assert_eq!(blocks.get(tx, Bytes::new(*b"abcd"), Block::HEIGHT)?, height);
        // Bytes have a fixed length, so a slice of another length is padded by nothing.
        assert!(!blocks.contains(tx, &b"abc"[..])? && !blocks.contains(tx, &b"abcde"[..])?);
        Ok(())
    }));
}

#[test]
fn ranges_of_texts_are_given_as_slices() {
    let db = Database::new();
    let words = db.table::<Word>("words").unwrap();
    let all = ["", "a", "ab", "abacus", "b", "zebra"];
    ok(db.run(|tx| {
        all.iter().try_for_each(|word| {
            words.insert(tx, Word { word: Text::new(word).expect("it fits"), count: 1 })
        })?;
        assert_eq!(words.count(tx, "a".."b")?, 3);
        assert_eq!(words.count(tx, "a"..="b")?, 4);
        assert_eq!(
            (words.count(tx, "ab"..)?, words.count(tx, .."ab")?, words.count(tx, ..="ab")?),
            (4, 2, 3)
        );
        assert_eq!((words.count(tx, "abacuses"..)?, words.count(tx, ..="abacuses")?), (2, 4));
        assert_eq!(words.count(tx, "b".."a")?, 0);
        let last = words.scan(tx, .."b", ()).last()?.expect("there are words before b");
        assert_eq!(last.0, "abacus");
        Ok(())
    }));
}

protocol_tests!(concurrent: a_column_is_set_to_a_string_that_fits);
fn a_column_is_set_to_a_string_that_fits<P: Protocol>() {
    #[derive(Debug, Clone, Copy, PartialEq, Record)]
    struct Note {
        #[key]
        id: u64,
        count: u64,
        title: Text<8>,
        tag: Bytes<2>,
    }
    let (db, notes) = database_with::<Note, P>("notes");
    let note = Note { id: 1, count: 0, title: Text::default(), tag: Bytes::default() };
    ok(db.run(|tx| notes.insert(tx, note)));
    ok(db.run(|tx| {
        notes.update(tx, 1, (Note::TITLE.set("Ann"), Note::TAG.set(*b"ab"), Note::COUNT.add(1)))
    }));
    ok(db.run(|tx| {
        // A refused update is not staged, not even the columns before the text.
        let refused = (Note::COUNT.add(7), Note::TITLE.set(LONG), Note::COUNT.add(9));
        assert_eq!(notes.update(tx, 1, refused), Err(Abort::TextTooLong));
        assert_eq!(
            notes.update_if_present(tx, 1, Note::TITLE.set(LONG.to_string())),
            Err(Abort::TextTooLong)
        );
        notes.update(tx, 1, Note::COUNT.add(1))
    }));
    let title = Text::new("Ann").expect("it fits");
    let expected = Note { count: 2, title, tag: Bytes::new(*b"ab"), ..note };
    assert_eq!(db.run(|tx| notes.read(tx, 1, Whole)), Ok(expected));
    ok(db.run(|tx| notes.update(tx, 1, Note::TITLE.set(title))));
}
