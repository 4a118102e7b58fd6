//! Blocks that commits install, replace and delete.

use super::{Note, Scene, block, text};
use crate::engine::Protocol;
use crate::tests::waiting::eventually;
use crate::{Abort, Database, Session, Tx, Whole};

protocol_tests!(all: a_block_is_freed_once_when_it_is_replaced_or_deleted = churn(false));
protocol_tests!(all: a_block_of_a_split_row_is_freed_once = churn(true));
fn churn<P: Protocol>(splitting: bool) {
    let scene = Scene::<P>::new(splitting);
    let Scene { db, notes } = &scene;
    for round in 0..12u64 {
        let of = |key: u64| [text(7 * round + key), text(11 * round + 3 * key)];
        for key in 0..8 {
            let [first, second] = of(key);
            let texts = [&first[..], &second[..]];
            db.run(|tx| match (round + key) % 6 {
                0 => notes.delete_if_present(tx, key).map(drop),
                1 => scene.put(tx, key, texts),
                2 => {
                    notes.delete_if_present(tx, key)?;
                    scene.insert(tx, key, texts)
                }
                _ if notes.get(tx, key, Whole)?.is_none() => scene.insert(tx, key, texts),
                3 => scene.set_first(tx, key, texts[0]),
                4 => {
                    scene.count(tx, key)?;
                    scene.set_second(tx, key, texts[1])?;
                    scene.count(tx, key)
                }
                _ => {
                    scene.set_second(tx, key, texts[0])?;
                    scene.set_first(tx, key, texts[0])?;
                    scene.set_second(tx, key, texts[1])
                }
            })
            .unwrap();
        }
        let seen = db.run(|tx| (0..8).map(|key| scene.get(tx, key)).collect::<Result<Vec<_>, _>>());
        for (key, seen) in seen.unwrap().into_iter().enumerate() {
            let (key, [first, second]) = (key as u64, of(key as u64));
            match ((round + key) % 6, seen) {
                (0, seen) => assert_eq!(seen, None),
                (3, Some(seen)) => assert_eq!(seen.0, first, "{}", P::NAME),
                (4, Some(seen)) => assert_eq!(seen.2, second, "{}", P::NAME),
                (_, Some(seen)) => assert_eq!((seen.0, seen.2), (first, second), "{}", P::NAME),
                (_, None) => panic!("{}: row {key} is missing in round {round}", P::NAME),
            }
        }
        if round % 4 == 3 {
            scene.settle();
        }
    }
    db.run(|tx| (0..8).try_for_each(|key| notes.delete_if_present(tx, key).map(drop))).unwrap();
    assert_eq!(scene.settle(), 0);
}

protocol_tests!(all: a_block_is_freed_though_no_transaction_reads_its_row);
/// Nothing reads the row between the commit that replaces the block and the collection.
fn a_block_is_freed_though_no_transaction_reads_its_row<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let scene = Scene::<P>::over(db, true);
    let db = &scene.db;
    let mut session = db.session().unwrap();
    let collect = |session: &mut Session<P>| {
        for _ in 0..8 {
            db.inner.engine.epochs.pass();
            session.run(|_| Ok(())).unwrap();
        }
        db.inner.engine.long_memory().unwrap().in_use()
    };
    session.run(|tx| scene.insert(tx, 1, [&block(1), b""])).unwrap();
    for number in 2..5 {
        assert_eq!(collect(&mut session), 1, "{}", P::NAME);
        session.run(|tx| scene.set_first(tx, 1, &block(number))).unwrap();
    }
    assert_eq!(collect(&mut session), 1, "{}", P::NAME);
    assert_eq!(session.run(|tx| scene.get(tx, 1)).unwrap().unwrap().0, block(4), "{}", P::NAME);
}

protocol_tests!(all: an_image_keeps_the_blocks_that_it_repeats);
fn an_image_keeps_the_blocks_that_it_repeats<P: Protocol>() {
    for splitting in [false, true] {
        let scene = Scene::<P>::new(splitting);
        let Scene { db, notes } = &scene;
        let texts = [block(1), block(2), block(3)];
        db.run(|tx| scene.insert(tx, 1, [&texts[0], &texts[1]])).unwrap();
        for round in 0..10 {
            // Two operations on one word make an image of the unit.
            db.run(|tx| {
                scene.stage(tx, b"")?;
                scene.count(tx, 1)?;
                notes.update(tx, 1, Note::COUNT.set(round))
            })
            .unwrap();
            // All words of a row that was read, of which one is another.
            db.run(|tx| {
                let second = scene.stage(tx, &texts[(2 - round % 2) as usize])?;
                let read = notes.get(tx, 1, Whole)?.unwrap();
                notes.put(tx, Note { second, ..read })
            })
            .unwrap();
            // The row is deleted, and comes back with one of its blocks.
            db.run(|tx| {
                scene.stage(tx, b"")?;
                let read = notes.get(tx, 1, Whole)?.unwrap();
                notes.delete(tx, 1)?;
                notes.put(tx, Note { second: super::NOTHING, ..read })
            })
            .unwrap();
            let seen = db.run(|tx| scene.get(tx, 1)).unwrap().unwrap();
            assert_eq!(seen, (block(1), round, vec![]), "{}", P::NAME);
        }
        assert_eq!(scene.settle(), 1, "{}", P::NAME);
        assert_eq!(db.run(|tx| scene.get(tx, 1)).unwrap().unwrap().0, block(1), "{}", P::NAME);
    }
}

protocol_tests!(all: updates_of_other_words_keep_the_blocks_of_their_row);
/// One attempt writes blocks of one row and only other words of the other rows, which may wait for
/// their readers then.
fn updates_of_other_words_keep_the_blocks_of_their_row<P: Protocol>() {
    for splitting in [false, true] {
        let scene = Scene::<P>::new(splitting);
        let Scene { db, notes } = &scene;
        db.run(|tx| (0..4).try_for_each(|key| scene.insert(tx, key, [&block(key), &block(key)])))
            .unwrap();
        for round in 0..20 {
            db.run(|tx| {
                scene.set_first(tx, 0, &block(round))?;
                scene.count(tx, 1)?;
                scene.count(tx, 1)?;
                notes.update(tx, 2, Note::COUNT.max(3))?;
                scene.count(tx, 2)?;
                notes.update(tx, 3, Note::COUNT.set(round as i64))?;
                scene.count(tx, 3)
            })
            .unwrap();
        }
        let seen = db.run(|tx| (0..4).map(|key| scene.get(tx, key)).collect::<Result<Vec<_>, _>>());
        for (key, seen) in seen.unwrap().into_iter().enumerate() {
            let first = block(if key == 0 { 19 } else { key as u64 });
            let count = [0, 41, 23, 20][key];
            let wanted = (first, count, block(key as u64));
            assert_eq!(seen, Some(wanted), "{}: row {key}", P::NAME);
        }
        assert_eq!(scene.settle(), 8, "{}", P::NAME);
    }
}

protocol_tests!(overlapping: a_tombstone_names_no_block);
/// A pinned transaction keeps the records of the deleted rows where they are. So the inserts find
/// them, with the words of the blocks that the deletes have replaced.
fn a_tombstone_names_no_block<P: Protocol>() {
    let scene = Scene::<P>::new(true);
    let Scene { db, notes } = &scene;
    let mut other = db.session().unwrap();
    let texts = |key| [block(key), block(100 + key)];
    let insert = |tx: &Tx<'_, P>, key| scene.insert(tx, key, texts(key).each_ref().map(|t| &t[..]));
    let put = |tx: &Tx<'_, P>, key| scene.put(tx, key, texts(key).each_ref().map(|t| &t[..]));
    db.run(|tx| (0..9).try_for_each(|key| insert(tx, key))).unwrap();
    db.run(|_| {
        let mut write = |body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>| {
            assert_eq!(other.run(body), Ok(()));
        };
        write(&mut |tx| (0..9).try_for_each(|key| notes.delete(tx, key)));
        write(&mut |tx| (0..3).try_for_each(|key| insert(tx, key)));
        write(&mut |tx| (3..6).try_for_each(|key| put(tx, key)));
        write(&mut |tx| (0..6).try_for_each(|key| notes.delete(tx, key)));
        write(&mut |tx| (0..9).try_for_each(|key| put(tx, key)));
        Ok(())
    })
    .unwrap();
    drop(other);
    assert_eq!(scene.settle(), 18, "{}", P::NAME);
    for key in 0..9 {
        let seen = db.run(|tx| scene.get(tx, key)).unwrap().unwrap();
        assert_eq!((seen.0, seen.2), (block(key), block(100 + key)), "{}", P::NAME);
    }
}

protocol_tests!(all: room_for_what_many_writes_replace_is_reserved);
/// The list of what a commit replaces asserts that it has room.
fn room_for_what_many_writes_replace_is_reserved<P: Protocol>() {
    let scene = Scene::<P>::new(true);
    let Scene { db, notes } = &scene;
    let all = 0..300u64;
    db.run(|tx| all.clone().try_for_each(|key| scene.insert(tx, key, [&block(key), &block(key)])))
        .unwrap();
    assert_eq!(scene.settle(), 600);
    db.run(|tx| {
        all.clone().try_for_each(|key| match key % 3 {
            0 => notes.delete(tx, key),
            1 => scene.put(tx, key, [&block(7), &block(8)]),
            _ => {
                scene.set_first(tx, key, &block(7))?;
                scene.set_second(tx, key, b"short")
            }
        })
    })
    .unwrap();
    assert_eq!(scene.settle(), 300);
}

protocol_tests!(concurrent: a_dropped_table_frees_its_blocks);
fn a_dropped_table_frees_its_blocks<P: Protocol>() {
    let scene = Scene::<P>::new(true);
    let db = &scene.db;
    db.run(|tx| (0..20).try_for_each(|key| scene.insert(tx, key, [&block(key), &block(9)])))
        .unwrap();
    db.drop_table("notes").unwrap();
    eventually("the end of the blocks", || {
        db.run(|_| Ok(())).unwrap();
        db.inner.engine.long_memory().unwrap().in_use() == 0
    });
}

protocol_tests!(all: the_memory_limit_refuses_a_block);
fn the_memory_limit_refuses_a_block<P: Protocol>() {
    let db = Database::<P>::builder().memory_limit(4 << 20).build().unwrap();
    let scene = Scene::<P>::over(db, true);
    let db = &scene.db;
    db.run(|tx| scene.insert(tx, 1, [&block(1), &[7; 100_000]])).unwrap();
    let refused = db.run(|tx| scene.set_second(tx, 1, &vec![8; 8 << 20]));
    assert_eq!(refused, Err(Abort::MemoryLimit), "{}", P::NAME);
    let refused = db.run(|tx| {
        (0..).try_for_each(|number: u64| {
            scene.set_second(tx, 1, &number.to_le_bytes().repeat(9_000))
        })
    });
    assert_eq!(refused, Err(Abort::MemoryLimit), "{}", P::NAME);
    assert_eq!(scene.settle(), 2);
    let seen = db.run(|tx| scene.get(tx, 1)).unwrap().unwrap();
    assert!(seen.0 == block(1) && seen.2 == [7; 100_000], "{}", P::NAME);
    for number in 0..100 {
        db.run(|tx| scene.set_second(tx, 1, &[number; 100_000])).unwrap();
        scene.settle();
    }
}
