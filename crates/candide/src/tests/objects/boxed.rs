//! Tests of objects of boxed values.

use crate::engine::Protocol;
use crate::objects::{Boxed, TArray, TBox, TMap, TOrderedMap};
use crate::sync::{AtomicU64, Ordering};
use crate::{Abort, Database, Error};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value that counts how many of its kind there are.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) number: u64,
    living: Arc<AtomicU64>,
}

impl Counted {
    pub(super) fn new(number: u64, living: &Arc<AtomicU64>) -> Counted {
        living.fetch_add(1, Ordering::Relaxed);
        Counted { number, living: living.clone() }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(self.number, &self.living)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.living.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "no value is dropped twice");
    }
}

protocol_tests!(all: a_boxed_value_is_replaced_and_never_changed_in_place);
fn a_boxed_value_is_replaced_and_never_changed_in_place<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let text = TBox::new(&db, Boxed("a".to_owned())).unwrap();
    let shown = db.run(|tx| {
        let first = text.get(tx)?;
        text.replace_with(tx, |text| format!("{text}b"))?;
        let second = text.get(tx)?;
        text.modify(tx, |text| text.push('c'))?;
        let third = text.replace(tx, "d".to_owned())?;
        Ok([first, second, third, text.get_for_update(tx)?].map(String::clone))
    });
    assert_eq!(shown, Ok(["a", "ab", "abc", "d"].map(str::to_owned)), "{}", P::NAME);
    let undone = db.run(|tx| {
        text.set(tx, "e".to_owned())?;
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!(undone, Err(Abort::Guard), "{}", P::NAME);
    assert_eq!(db.run(|tx| text.get(tx).cloned()), Ok("d".to_owned()), "{}", P::NAME);

    let texts = TArray::new(&db, 3, |index| Boxed(vec![index])).unwrap();
    let shown = db.run(|tx| {
        texts.replace_with(tx, 1, |old| [&old[..], &[7]].concat())?;
        texts.set(tx, 2, vec![])?;
        assert_eq!(texts.get(tx, 3), Err(Abort::OutOfBounds));
        assert_eq!(texts.set(tx, 3, vec![]), Err(Abort::OutOfBounds));
        let before = texts.replace(tx, 0, vec![9])?.clone();
        Ok((before, (0..3).map(|index| texts.get(tx, index).cloned()).collect::<Vec<_>>()))
    });
    let all = vec![Ok(vec![9]), Ok(vec![1, 7]), Ok(vec![])];
    assert_eq!(shown, Ok((vec![0], all)), "{}", P::NAME);
}

protocol_tests!(all: a_map_of_boxed_values_is_what_a_tree_is);
fn a_map_of_boxed_values_is_what_a_tree_is<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let hashed = TMap::<u64, Boxed<String>, P>::new(&db).unwrap();
    let sorted = TOrderedMap::<u64, Boxed<String>, P>::new(&db).unwrap();
    let mut model = BTreeMap::<u64, String>::new();
    let mut random = crate::sync::Random::seeded(7);
    for _ in 0..200 {
        let (key, operation) = (random.below(4), random.below(10));
        let value = format!("{key} {operation} {}", random.below(100));
        let shown = db.run(|tx| {
            let both = match operation {
                0 => {
                    [hashed.insert(tx, key, value.clone())?, sorted.insert(tx, key, value.clone())?]
                }
                1 => [hashed.remove(tx, key)?, sorted.remove(tx, key)?],
                2 => {
                    hashed.replace_with(tx, key, |old| format!("{old}!"))?;
                    sorted.replace_with(tx, key, |old| format!("{old}!"))?;
                    [hashed.get(tx, key)?, sorted.get(tx, key)?]
                }
                3 => {
                    let make = || value.clone();
                    let hashed = hashed.get_or_insert_with(tx, key, make)?;
                    [Some(hashed), Some(sorted.get_or_insert_with(tx, key, make)?)]
                }
                4 => {
                    hashed.insert_if_absent(tx, key, value.clone())?;
                    sorted.insert_if_absent(tx, key, value.clone())?;
                    [None; 2]
                }
                5 => {
                    let first = sorted.pop_first(tx)?;
                    let same = first.map(|(key, _)| hashed.remove(tx, key)).transpose()?;
                    [same.flatten(), first.map(|(_, value)| value)]
                }
                6 => {
                    let last = sorted.pop_last(tx)?;
                    let same = last.map(|(key, _)| hashed.remove(tx, key)).transpose()?;
                    [same.flatten(), last.map(|(_, value)| value)]
                }
                7 => {
                    let first = sorted.last(tx)?;
                    [first.map(|(_, value)| value); 2]
                }
                8 => {
                    let changed = [
                        hashed.modify(tx, key, |value| value.push('?'))?,
                        sorted.modify(tx, key, |value| value.push('?'))?,
                    ];
                    assert_eq!(changed[0], changed[1]);
                    [hashed.get(tx, key)?, sorted.get(tx, key)?]
                }
                _ => [hashed.get_for_update(tx, key)?, sorted.get_for_update(tx, key)?],
            };
            assert_eq!(both[0], both[1]);
            assert_eq!(hashed.contains_key(tx, key), sorted.contains_key(tx, key));
            Ok(both[0].cloned())
        });
        let expected = match operation {
            0 => model.insert(key, value),
            1 => model.remove(&key),
            2 => {
                model.entry(key).and_modify(|value| value.push('!'));
                model.get(&key).cloned()
            }
            3 => Some(model.entry(key).or_insert(value).clone()),
            4 => {
                model.entry(key).or_insert(value);
                None
            }
            5 => model.pop_first().map(|(_, value)| value),
            6 => model.pop_last().map(|(_, value)| value),
            7 => model.last_key_value().map(|(_, value)| value.clone()),
            8 => {
                model.entry(key).and_modify(|value| value.push('?'));
                model.get(&key).cloned()
            }
            _ => model.get(&key).cloned(),
        };
        assert_eq!(shown, Ok(expected), "{}: {operation} of {key}", P::NAME);
        let contents = db.run(|tx| {
            let hashed: BTreeMap<_, _> = hashed.iter(tx).collect::<Result<_, _>>()?;
            let hashed: Vec<_> =
                hashed.into_iter().map(|(key, value)| (key, value.clone())).collect();
            let sorted = sorted.range(tx, ..).collect::<Result<Vec<_>, _>>()?;
            assert_eq!(
                sorted.iter().map(|(key, value)| (*key, (*value).clone())).collect::<Vec<_>>(),
                hashed
            );
            Ok(hashed)
        });
        let all: Vec<_> = model.iter().map(|(key, value)| (*key, value.clone())).collect();
        assert_eq!(contents, Ok(all), "{}", P::NAME);
    }
}

protocol_tests!(all: the_values_of_objects_that_end_are_dropped_once);
fn the_values_of_objects_that_end_are_dropped_once<P: Protocol>() {
    let living = Arc::new(AtomicU64::new(0));
    {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let epochs = db.inner.engine.epochs.clone();
        for round in 0..20 {
            let one = TBox::new(&db, Boxed(Counted::new(round, &living))).unwrap();
            let map = TMap::<u64, Boxed<Counted>, P>::new(&db).unwrap();
            let filled = db.run(|tx| {
                one.modify(tx, |value| value.number += 1)?;
                (0..5).try_for_each(|key| map.put(tx, key, Counted::new(key, &living)))?;
                map.remove(tx, 3).map(|value| value.map(|value| value.number))
            });
            assert_eq!(filled, Ok(Some(3)), "{}", P::NAME);
            assert_eq!(db.run(|tx| Ok(one.get(tx)?.number)), Ok(round + 1), "{}", P::NAME);
            drop((one, map));
            (0..4).for_each(|_| {
                epochs.pass();
                db.run(|_| Ok(())).unwrap();
            });
        }
        // The objects of each round end in the next one, and their values some epochs later.
        // (Where each transaction has a session of its own, its garbage waits for the advancer.)
        let are_few = living.load(Ordering::Relaxed) < 60;
        assert!(are_few || db.properties().one_session, "{}: {living:?}", P::NAME);
    }
    assert_eq!(living.load(Ordering::Relaxed), 0, "{}", P::NAME);
}

#[test]
fn a_name_of_a_boxed_object_is_of_its_type() {
    let db = Database::new();
    let text = TBox::named(&db, "text", Boxed(1u8)).unwrap();
    let again = TBox::named(&db, "text", Boxed(2u8)).unwrap();
    assert_eq!(db.run(|tx| Ok((*text.get(tx)?, *again.get(tx)?))), Ok((1, 1)));
    let of_other_type = TBox::named(&db, "text", Boxed(1u16)).map(|_| ());
    assert!(matches!(of_other_type, Err(Error::ObjectType { .. })), "{of_other_type:?}");
    // A name is of an object that is in memory only, or of one that is not.
    let field = TBox::named(&db, "text", 1u8).map(|_| ());
    let Err(Error::ObjectType { wanted, existing, .. }) = field else { panic!("{field:?}") };
    assert_eq!([wanted, existing], ["TBox<u8>", "TBox<Boxed<u8>>"]);
    TBox::named(&db, "number", 1u8).unwrap();
    let boxed = TBox::named(&db, "number", Boxed(1u8)).map(|_| ());
    assert!(matches!(boxed, Err(Error::ObjectType { .. })), "{boxed:?}");
}
