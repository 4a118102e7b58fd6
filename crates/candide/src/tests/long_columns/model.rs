//! Random operations of one session, beside the same ones on a map.

use super::super::blocks::settled;
use super::{LENGTHS, User, text};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::{Abort, Database, Table, TableOptions, Tx, Whole};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Rows = BTreeMap<u64, User>;

/// The number of keys.
const KEYS: u64 = 4;
const KINDS: u64 = 15;
const TRANSACTIONS: u64 = 120;

/// An operation: what it does, its key, and the number that its values follow from.
#[derive(Debug, Clone, Copy)]
struct Step {
    what: u64,
    key: u64,
    seed: usize,
}

/// Steps that are a part of their transaction, and whether the part is undone.
#[derive(Debug)]
struct Part {
    steps: Vec<Step>,
    is_undone: bool,
}

/// The end of a transaction that has no effect.
struct Ending;

impl Step {
    fn draw(random: &mut Random) -> Step {
        let seed = random.below(1 << 20) as usize;
        Step { what: random.below(KINDS), key: random.below(KEYS), seed }
    }

    /// Returns another text for each place.
    fn text(&self, place: usize) -> String {
        text(LENGTHS[(self.seed >> (3 * place)) % LENGTHS.len()], self.seed + place)
    }

    fn row(&self) -> User {
        let [name, photo, nickname, hash] = [0, 1, 2, 3].map(|place| self.text(place));
        User {
            id: self.key,
            name,
            photo: photo.into_bytes(),
            nickname: (!self.seed.is_multiple_of(3)).then_some(nickname),
            hash: (!self.seed.is_multiple_of(4)).then(|| hash.into_bytes()),
            ..User::new(self.seed % 100)
        }
    }

    fn carry_out<P: Protocol>(
        self,
        tx: &Tx<'_, P>,
        users: &Table<User, P>,
        rows: &mut Rows,
    ) -> Result<(), Abort> {
        let Step { key, .. } = self;
        let new = self.row();
        let done = match self.what {
            0 => {
                assert_eq!(users.get(tx, key, Whole)?.as_ref(), rows.get(&key));
                Ok(())
            }
            1 => {
                let seen = users.get(tx, key, (User::NAME, User::HASH))?;
                assert_eq!(seen, rows.get(&key).map(|row| (row.name.clone(), row.hash.clone())));
                Ok(())
            }
            2 => {
                assert!(users.rows(tx, ..).collect_rows()?.iter().eq(rows.values()));
                Ok(())
            }
            3 => {
                let is_new = !rows.contains_key(&key);
                assert_eq!(users.insert_if_absent(tx, new.clone())?, is_new);
                if is_new {
                    rows.insert(key, new);
                }
                return Ok(());
            }
            4 => {
                users.put(tx, new.clone())?;
                rows.insert(key, new);
                return Ok(());
            }
            5 => users.update(tx, key, User::NAME.set(&new.name)),
            6 => users.update(tx, key, (User::PHOTO.set(&new.photo), User::VISITS.wrapping_add(1))),
            7 => {
                let nickname = User::NICKNAME.set(new.nickname.as_deref());
                users.update(tx, key, (nickname, User::HASH.set(new.hash.as_deref())))
            }
            8 => users.modify(tx, key, User::NAME, |name| name.push_str(&new.name)),
            9 => users.modify(tx, key, Whole, |row| row.photo.clone_from(&new.photo)),
            // An image of each unit, which repeats the words of the values.
            10 => (0..2).try_for_each(|by| {
                users.update(tx, key, (User::VISITS.set(by), User::AGE.set(by as u8)))
            }),
            11 => users.update(tx, key, User::VISITS.wrapping_add(3)),
            12 => users.delete(tx, key),
            13 => users.delete(tx, key).and_then(|()| users.insert(tx, new.clone())),
            _ => {
                let row = users.find(tx, key)?;
                let read = row.get_for_update(User::NICKNAME)?;
                assert_eq!(read, rows.get(&key).map(|row| row.nickname.clone()));
                match read {
                    // What was read is written again.
                    Some(read) => row.update(User::NICKNAME.set(read.as_deref())),
                    None => Ok(()),
                }
            }
        };
        let Some(row) = rows.get_mut(&key) else {
            assert_eq!(
                done,
                if self.what < 3 || self.what == 14 { Ok(()) } else { Err(Abort::NotFound) }
            );
            return Ok(());
        };
        done?;
        match self.what {
            5 => row.name = new.name,
            6 => (row.photo, row.visits) = (new.photo, row.visits.wrapping_add(1)),
            7 => (row.nickname, row.hash) = (new.nickname, new.hash),
            8 => row.name.push_str(&new.name),
            9 => row.photo = new.photo,
            10 => (row.visits, row.age) = (1, 1),
            11 => row.visits = row.visits.wrapping_add(3),
            12 => drop(rows.remove(&key)),
            13 => *row = new,
            _ => {}
        }
        Ok(())
    }
}

protocol_tests!(all: random_operations_on_values_equal_those_on_a_map);
fn random_operations_on_values_equal_those_on_a_map<P: Protocol>() {
    for splitting in [false, true] {
        let db = Database::<P>::builder().passing_epochs().build().unwrap();
        let options = TableOptions::default().timestamp_splitting(splitting);
        let users = db.table_with::<User>("users", options).unwrap();
        let (mut random, mut rows) = (Random::seeded(u64::from(splitting)), Rows::new());
        let mut session = db.session().unwrap();
        for _ in 0..TRANSACTIONS {
            let parts: Vec<Part> = (0..1 + random.below(4))
                .map(|_| Part {
                    steps: (0..1 + random.below(4)).map(|_| Step::draw(&mut random)).collect(),
                    is_undone: random.below(4) == 0,
                })
                .collect();
            let ending = random.below(6);
            let mut after = rows.clone();
            let mut body = |tx: &Tx<'_, P>| {
                after.clone_from(&rows);
                for Part { steps, is_undone } in &parts {
                    let before = after.clone();
                    let part = tx.attempt(|tx| {
                        steps.iter().try_for_each(|step| step.carry_out(tx, &users, &mut after))?;
                        if *is_undone { Err(Abort::Guard) } else { Ok(()) }
                    });
                    assert_eq!(part, if *is_undone { Err(Abort::Guard) } else { Ok(()) });
                    if *is_undone {
                        after = before;
                    }
                }
                match ending {
                    0 => Err(Abort::Guard),
                    1 => resume_unwind(Box::new(Ending)),
                    _ => Ok(()),
                }
            };
            let ended = catch_unwind(AssertUnwindSafe(|| session.run(&mut body)));
            match ended {
                Ok(ended) => {
                    assert_eq!(ended, if ending == 0 { Err(Abort::Guard) } else { Ok(()) });
                }
                Err(panic) if panic.is::<Ending>() => {}
                Err(panic) => resume_unwind(panic),
            }
            if ending > 1 {
                rows = after;
            }
            let all = session.run(|tx| users.rows(tx, ..).collect_rows()).unwrap();
            assert!(all.iter().eq(rows.values()), "{}: after {parts:?}", P::NAME);
        }
        drop(session);
        settled(&db, || rows.values().map(User::blocks).sum());
    }
}
