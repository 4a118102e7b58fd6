//! Transactional objects of databases in files.

use super::open;
use crate::common::{is_in_share, ok, share};
use candide::objects::{
    Boxed, TArray, TBox, TCounter, TList, TMap, TOrderedMap, TPriorityQueue, TQueue, TSet, TVec,
};
use candide::{Abort, Database, Error, Protocol};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::{BTreeMap, BTreeSet};

protocol_tests!(all: named_objects_are_found_again_and_others_are_gone);

fn named_objects_are_found_again_and_others_are_gone<P: Protocol>() {
    let disk = SimDisk::new();
    for opening in 0..3u64 {
        let db = open::<P>(&disk).unwrap();
        let count = TCounter::named(&db, "count").unwrap();
        let last = TBox::named(&db, "last", [7u64; 3]).unwrap();
        let slots = TArray::named(&db, "slots", 4, |index| index as u32).unwrap();
        let map = TMap::<u64, i64, P>::named(&db, "map").unwrap();
        let sorted = TOrderedMap::<(u8, u64), bool, P>::named(&db, "sorted").unwrap();
        let set = TSet::<u64, P>::named(&db, "set").unwrap();
        let unnamed = TCounter::new(&db).unwrap();
        let boxed = TBox::named(&db, "boxed", Boxed(opening.to_string())).unwrap();
        assert_eq!(ok(db.run(|tx| unnamed.get(tx))), 0, "{}: in memory only", P::NAME);
        assert_eq!(ok(db.run(|tx| boxed.get(tx).cloned())), opening.to_string(), "{}", P::NAME);
        let before = ok(db.run(|tx| {
            let is_in_set = set.contains(tx, opening.saturating_sub(1))?;
            let sorted = sorted.iter(tx).count()?;
            Ok((
                count.get(tx)?,
                last.get(tx)?,
                slots.get(tx, 3)?,
                map.get(tx, 1)?,
                sorted,
                is_in_set,
            ))
        }));
        let seen = match opening {
            0 => (0, [7; 3], 3, None, 0, false),
            _ => (
                opening as i64,
                [opening; 3],
                3 + opening as u32,
                Some(opening as i64),
                opening as usize,
                true,
            ),
        };
        assert_eq!(before, seen, "{}: opening {opening}", P::NAME);
        ok(db.run(|tx| {
            unnamed.add(tx, 5)?;
            boxed.set(tx, "another".to_owned())?;
            count.add(tx, 1)?;
            last.set(tx, [opening + 1; 3])?;
            slots.add(tx, 3, 1)?;
            map.add(tx, 1, 1)?;
            sorted.put(tx, (1, opening), true)?;
            set.put(tx, opening)
        }));
        if opening == 1 {
            db.checkpoint().unwrap();
        }
    }
}

protocol_tests!(all: named_queues_and_lists_are_found_again);

fn named_queues_and_lists_are_found_again<P: Protocol>() {
    let disk = SimDisk::new();
    for opening in 0..3u64 {
        let db = open::<P>(&disk).unwrap();
        let queue = TQueue::<u64, P>::named(&db, "queue").unwrap();
        let vec = TVec::<[u8; 3], P>::named(&db, "vec").unwrap();
        let sorted = TPriorityQueue::<u8, u64, P>::named(&db, "sorted").unwrap();
        let list = TList::<u64, P>::named(&db, "list").unwrap();
        let texts = TQueue::<Boxed<String>, P>::named(&db, "texts").unwrap();
        let seen = ok(db.run(|tx| {
            assert!(texts.is_empty(tx)?, "{}: in memory only", P::NAME);
            texts.push(tx, "a".to_owned())?;
            queue.push(tx, opening)?;
            queue.push(tx, opening + 100)?;
            vec.push(tx, [opening as u8; 3])?;
            for number in 0..20 {
                sorted.push(tx, 7, number)?;
            }
            list.insert(tx, 9)?;
            let popped = if opening > 0 { queue.pop(tx)? } else { None };
            Ok((popped, vec.to_vec(tx)?, sorted.iter(tx).count() as u64, list.count(tx, 9)?))
        }));
        let popped = [None, Some(0), Some(100)][opening as usize];
        let elements = (0..=opening).map(|opening| [opening as u8; 3]).collect();
        let count = opening + 1;
        assert_eq!(seen, (popped, elements, 20 * count, count), "{}: {opening}", P::NAME);
        if opening == 1 {
            db.checkpoint().unwrap();
        }
    }
}

protocol_tests!(all: a_later_opening_refuses_another_type);

fn a_later_opening_refuses_another_type<P: Protocol>() {
    let disk = SimDisk::new();
    {
        let db = open::<P>(&disk).unwrap();
        TBox::named(&db, "box", 0i64).unwrap();
        TMap::<u64, i64, P>::named(&db, "map").unwrap();
    }
    let db = open::<P>(&disk).unwrap();
    let counter = TCounter::named(&db, "box").map(|_| ());
    let Err(Error::ObjectType { wanted, existing, .. }) = counter else { panic!("{counter:?}") };
    assert_eq!([wanted, existing], ["TCounter", "TBox<i64>"], "{}", P::NAME);
    let map = TMap::<u32, i64, P>::named(&db, "map").map(|_| ());
    let Err(Error::ObjectType { wanted, existing, .. }) = map else { panic!("{map:?}") };
    assert_eq!([wanted, existing], ["TMap<u32, i64>", "TMap<u64, i64>"], "{}", P::NAME);
    assert!(
        TBox::named(&db, "box", 1i64).is_ok() && TMap::<u64, i64, P>::named(&db, "map").is_ok()
    );
}

/// One object of each kind, by name.
struct Objects<P: Protocol> {
    count: TCounter<P>,
    last: TBox<[i64; 2], P>,
    slots: TArray<i64, P>,
    map: TMap<u64, i64, P>,
    sorted: TOrderedMap<u64, i64, P>,
    set: TSet<u64, P>,
    queue: TQueue<u64, P>,
    vec: TVec<i64, P>,
}

/// What objects have: numbers, and the entries of a map, of an ordered map, of a set and of a
/// queue.
type Contents = (Vec<i64>, BTreeMap<u64, i64>, Vec<(u64, i64)>, BTreeSet<u64>, Vec<u64>);

impl<P: Protocol> Objects<P> {
    fn of(db: &Database<P>) -> Objects<P> {
        Objects {
            count: TCounter::named(db, "count").unwrap(),
            last: TBox::named(db, "last", [0; 2]).unwrap(),
            slots: TArray::named(db, "slots", 2, |_| 0).unwrap(),
            map: TMap::named(db, "map").unwrap(),
            sorted: TOrderedMap::named(db, "sorted").unwrap(),
            set: TSet::named(db, "set").unwrap(),
            queue: TQueue::named(db, "queue").unwrap(),
            vec: TVec::named(db, "vec").unwrap(),
        }
    }

    /// Changes all objects in one transaction, by updates, by steps and by what it reads.
    fn change(&self, db: &Database<P>, step: u64) {
        let Objects { count, last, slots, map, sorted, set, queue, vec } = self;
        ok(db.run_deferred(|tx| {
            queue.push(tx, step)?;
            vec.push(tx, step as i64)?;
            if step % 3 == 2 {
                queue.pop(tx)?;
                vec.pop(tx)?;
                vec.set(tx, 0, 7)?;
            }
            let before = count.fetch_add(tx, 1)?;
            slots.defer(tx, (step % 2) as usize, &before, |slot, before| *slot += before)?;
            last.modify(tx, |[first, second]| (*first, *second) = (*second + 1, *first))?;
            map.add(tx, step % 3, 1)?;
            match step % 4 {
                3 => map.delete(tx, step % 3).map(drop)?,
                2 => sorted.pop_first(tx).map(drop)?,
                _ => sorted.put(tx, step, -(step as i64))?,
            }
            if set.insert(tx, step % 5)? { Ok(()) } else { set.remove(tx, step % 5).map(drop) }
        }));
    }

    fn contents(&self, db: &Database<P>) -> Contents {
        let Objects { count, last, slots, map, sorted, set, queue, vec } = self;
        ok(db.run(|tx| {
            let (first, pair, slots) = (count.get(tx)?, last.get(tx)?, slots.to_vec(tx)?);
            let numbers = [vec![first], pair.to_vec(), slots, vec.to_vec(tx)?].concat();
            let map = map.iter(tx).collect::<Result<_, Abort>>()?;
            let sorted = sorted.iter(tx).collect::<Result<_, Abort>>()?;
            let queue = queue.iter(tx)?.collect::<Result<_, Abort>>()?;
            Ok((numbers, map, sorted, set.iter(tx).collect::<Result<_, Abort>>()?, queue))
        }))
    }
}

protocol_tests!(all: a_crash_leaves_objects_as_some_transaction_left_them);

/// Runs transactions on objects, and notes after each of them the contents and the position of the
/// disk. Each state that a crash can leave has contents that were noted, no earlier than the last
/// before the crash.
fn a_crash_leaves_objects_as_some_transaction_left_them<P: Protocol>() {
    let disk = SimDisk::new();
    let made = (vec![0; 5], BTreeMap::new(), Vec::new(), BTreeSet::new(), Vec::new());
    let mut noted: Vec<(usize, Contents)> = vec![(0, made)];
    for opening in 0..2 {
        let db = open::<P>(&disk).unwrap();
        let objects = Objects::of(&db);
        for step in 0..8 {
            objects.change(&db, opening + step);
            noted.push((disk.position(), objects.contents(&db)));
        }
    }
    let options = CrashOptions { exhaustive: 4, pieces: 6, samples: 2, ..CrashOptions::default() };
    let mut states = 0;
    for (place, state) in disk.crash_states(&options).enumerate() {
        if !is_in_share::<P>(place) {
            continue;
        }
        let position = state.id().position;
        let acknowledged = noted.iter().rposition(|(at, _)| *at <= position).unwrap();
        let db = open::<P>(&state.disk()).unwrap();
        let found = Objects::of(&db).contents(&db);
        let is_known = noted[acknowledged..].iter().any(|(_, contents)| *contents == found);
        assert!(is_known, "{}: {found:?}\n{}", P::NAME, state.describe());
        states += 1;
    }
    assert!(states > share(30), "{states} states");
}
