//! Guards of columns of strings and bytes, which the commit evaluates on the row as it is then.

use super::{LENGTHS, User, scene, settle, text};
use crate::engine::Protocol;
use crate::{Abort, Occ, Whole};

/// Returns texts that differ from `text`, some of them only in their ends.
fn others(text: &str) -> Vec<String> {
    let mut others = vec![format!("{text}s")];
    if let Some((last, _)) = text.char_indices().next_back() {
        others.extend([String::new(), text[..last].to_owned(), format!("{}Z", &text[..last])]);
        others.push(format!("Z{}", &text[1..]));
    }
    others
}

protocol_tests!(all: a_guard_compares_the_whole_value);
fn a_guard_compares_the_whole_value<P: Protocol>() {
    let (db, users) = scene::<P>();
    let mut session = db.session().unwrap();
    for length in LENGTHS {
        let value = text(length, 3);
        let bytes = value.clone().into_bytes();
        let row = User {
            name: value.clone(),
            photo: bytes.clone(),
            nickname: Some(value.clone()),
            hash: Some(bytes.clone()),
            visits: 0,
            ..User::new(1)
        };
        session.run(|tx| users.put(tx, row.clone())).unwrap();
        let held = session.run(|tx| {
            users.update(tx, 1, (User::NAME.equals(&value), User::VISITS.add(1)))?;
            users.update(tx, 1, (User::PHOTO.equals(&bytes), User::HASH.equals(Some(&bytes))))?;
            users.update(tx, 1, User::NICKNAME.equals(Some(&value)))
        });
        assert_eq!(held, Ok(()), "{length} bytes");
        let empty = session.run(|tx| users.update(tx, 1, User::NAME.is_empty()));
        assert_eq!(empty.is_ok(), length == 0);
        let empty = session.run(|tx| users.update(tx, 1, User::PHOTO.is_empty()));
        assert_eq!(empty.is_ok(), length == 0);
        for other in others(&value) {
            let other_bytes = other.as_bytes();
            let failed = [
                session.run(|tx| {
                    users.update(tx, 1, (User::NAME.equals(&other), User::VISITS.add(1)))
                }),
                session.run(|tx| users.update(tx, 1, User::PHOTO.equals(other_bytes))),
                session.run(|tx| {
                    users.update(tx, 1, (User::AGE.set(9), User::HASH.equals(Some(other_bytes))))
                }),
                session.run(|tx| users.update(tx, 1, User::NICKNAME.equals(Some(&other)))),
            ];
            assert_eq!(failed, [Err(Abort::Guard); 4], "{length} bytes");
        }
        let none = session.run(|tx| users.update(tx, 1, User::NICKNAME.equals(None)));
        assert_eq!(none, Err(Abort::Guard), "{length} bytes");
        let expected = User { visits: 1, ..row };
        assert_eq!(session.run(|tx| users.read(tx, 1, Whole)).as_ref(), Ok(&expected));
        session.run(|tx| users.update(tx, 1, User::NICKNAME.set(None))).unwrap();
        let none = session.run(|tx| users.update(tx, 1, User::NICKNAME.equals(None)));
        assert_eq!(none, Ok(()));
        let some = session.run(|tx| users.update(tx, 1, User::NICKNAME.equals(Some(&value))));
        assert_eq!(some, Err(Abort::Guard));
    }
    session.run(|tx| users.clear(tx)).unwrap();
    drop(session);
    settle(&db, &[]);
}

protocol_tests!(all: a_guard_sees_the_updates_before_it);
fn a_guard_sees_the_updates_before_it<P: Protocol>() {
    let (db, users) = scene::<P>();
    let mut session = db.session().unwrap();
    let [old, new] = [8, 300].map(|length| text(length, length));
    let row = User { name: old.clone(), ..User::new(4) };
    session
        .run(|tx| {
            users.insert(tx, row.clone())?;
            users.update(tx, 4, User::NAME.equals(&old))
        })
        .unwrap();
    let change = || (User::NAME.equals(&old), User::NAME.set(&new), User::NAME.equals(&new));
    assert_eq!(session.run(|tx| users.update(tx, 4, change())), Ok(()));
    assert_eq!(session.run(|tx| users.update(tx, 4, change())), Err(Abort::Guard));
    let outcome = session.last_outcome().unwrap().to_string();
    assert_eq!(outcome, "guard on users.name, key id: 4");
    let changed = session.run(|tx| {
        users.put(tx, row.clone())?;
        users.update(tx, 4, User::NAME.equals(&old))?;
        users.delete(tx, 4)?;
        users.insert(tx, User { name: new.clone(), ..row.clone() })?;
        users.update(tx, 4, User::NAME.equals(&new))?;
        let undone = tx.attempt(|tx| {
            users.update(tx, 4, User::NAME.set(&old))?;
            users.update(tx, 4, User::NAME.equals(&new))?;
            // The failure shows where the row is read.
            assert_eq!(users.read(tx, 4, User::VISITS), Err(Abort::Guard));
            Ok(())
        });
        assert_eq!(undone, Err(Abort::Guard));
        // And the part is undone, with the guard.
        users.update(tx, 4, (User::NAME.equals(&new), User::VISITS.set(3)))?;
        assert_eq!(users.read(tx, 4, (User::NAME, User::VISITS))?, (new.clone(), 3));
        Ok(())
    });
    assert_eq!(changed, Ok(()));
    let missing = session.run(|tx| users.update(tx, 5, User::NAME.is_empty()));
    assert_eq!(missing, Err(Abort::NotFound));
    drop(session);
    let row = User { name: new, visits: 3, ..row };
    assert_eq!(db.run(|tx| users.read(tx, 4, Whole)).as_ref(), Ok(&row));
    settle(&db, &[row]);
}

protocol_tests!(overlapping: a_guard_is_evaluated_at_the_commit);
fn a_guard_is_evaluated_at_the_commit<P: Protocol>() {
    let (db, users) = scene::<P>();
    let (mut one, mut other) = (db.session().unwrap(), db.session().unwrap());
    for length in LENGTHS {
        let [old, new] = [1, 2].map(|seed| text(length + 1, seed));
        for (expected, outcome) in [(&new, Ok(())), (&old, Err(Abort::Guard))] {
            one.run(|tx| users.put(tx, User { name: old.clone(), ..User::new(9) })).unwrap();
            let mut has_changed = false;
            let ended = one.run(|tx| {
                users.update(tx, 9, (User::NAME.equals(expected), User::VISITS.set(77)))?;
                if !std::mem::replace(&mut has_changed, true) {
                    other.run(|tx| users.update(tx, 9, User::NAME.set(&new))).unwrap();
                }
                Ok(())
            });
            assert_eq!(ended, outcome, "{length} bytes");
            let (name, visits) =
                one.run(|tx| users.read(tx, 9, (User::NAME, User::VISITS))).unwrap();
            assert_eq!((name, visits == 77), (new.clone(), outcome.is_ok()));
        }
    }
    drop((one, other));
    let rows: Vec<User> = db.run(|tx| users.rows(tx, ..).collect_rows()).unwrap();
    settle(&db, &rows);
}

#[test]
fn a_guard_of_too_many_bytes_is_refused() {
    let (db, users) = scene::<Occ>();
    db.run(|tx| users.insert(tx, User::new(1))).unwrap();
    let most = vec![0; 16 << 20];
    let long = db.run(|tx| users.update(tx, 1, User::PHOTO.equals(&most)));
    assert_eq!(long, Err(Abort::Guard));
    let longer = vec![0; (16 << 20) + 1];
    let longer = db.run(|tx| users.update(tx, 1, User::PHOTO.equals(&longer)));
    assert_eq!(longer, Err(Abort::TextTooLong));
    settle(&db, &[User::new(1)]);
}
