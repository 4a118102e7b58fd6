//! Blocks that many threads read, replace and delete.

use super::{Scene, text};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::tests::threads::spawn;
use crate::{Abort, Tx, Whole};

protocol_tests!(concurrent: bytes_are_read_whole_whatever_threads_do);
/// A row has two texts with one number, beside which it has this number.
fn bytes_are_read_whole_whatever_threads_do<P: Protocol>() {
    const ROUNDS: u64 = if cfg!(sanitized) { 300 } else { 1_000 };
    let scene = Scene::<P>::new(false);
    let check = |tx: &Tx<'_, P>, key: u64| -> Result<bool, Abort> {
        let Some(note) = scene.notes.get(tx, key, Whole)? else { return Ok(false) };
        let (first, number, second) = scene.texts(tx, note);
        assert!(first == text(number as u64), "{}: {number}", P::NAME);
        assert!(second == text(number as u64 + 1), "{}: {number}", P::NAME);
        Ok(true)
    };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (scene, check) = (&scene, &check);
            spawn(scope, move || {
                let mut random = Random::seeded(thread);
                for round in 0..ROUNDS {
                    let number = round * 4 + thread;
                    let (key, other, what) = (random.below(5), random.below(5), random.below(6));
                    let ended = scene.db.run(|tx| {
                        let note = || {
                            let note = scene.note(tx, key, [&text(number), &text(number + 1)])?;
                            Ok::<_, Abort>(super::Note { count: number as i64, ..note })
                        };
                        check(tx, other)?;
                        match what {
                            0 => scene.notes.delete_if_present(tx, key).map(drop)?,
                            1 => drop(scene.notes.insert_if_absent(tx, note()?)?),
                            2 => {
                                let _ = tx.attempt(|_| {
                                    scene.notes.put(tx, note()?)?;
                                    Err::<(), _>(Abort::Guard)
                                });
                            }
                            3 => {
                                scene.notes.delete_if_present(tx, key)?;
                                scene.notes.put(tx, note()?)?;
                            }
                            4 if scene.notes.get(tx, key, Whole)?.is_some() => {
                                let word = scene.stage(tx, &text(number))?;
                                let second = scene.stage(tx, &text(number + 1))?;
                                let count = super::Note::COUNT.set(number as i64);
                                let words =
                                    (super::Note::FIRST.set(word), super::Note::SECOND.set(second));
                                scene.notes.update(tx, key, (count, words.0, words.1))?;
                            }
                            _ => scene.notes.put(tx, note()?)?,
                        }
                        check(tx, key)?;
                        check(tx, other).map(drop)
                    });
                    assert_eq!(ended, Ok(()), "{}", P::NAME);
                }
            });
        }
    });
    scene.settle();
}
