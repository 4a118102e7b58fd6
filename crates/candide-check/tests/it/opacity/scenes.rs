//! The scenes that were thought of, each for something that could go wrong.

use super::memory::KEY;
use super::scene::{Key, Op, Plan, Scene};

const READ_0: Op = Op::Read(&[0]);
const READ_1: Op = Op::Read(&[1]);
const READ_KEY: Op = Op::Read(&[KEY]);
const READ_2: Op = READ_KEY;
const STAGE_0: Op = Op::Stage(0);
const STAGE_1: Op = Op::Stage(1);

/// Returns all scenes; small ones first, so that mutants are found soon.
pub fn all() -> Vec<Scene> {
    let mut all =
        [readers(), keys(), with_own_writes(), with_own_inserts(), for_update(), crowds()].concat();
    all.sort_by_key(|scene| (scene.writers.len(), scene.ops.len()));
    all
}

/// Returns scenes of a reader that only reads, beside one writer or two.
fn readers() -> Vec<Scene> {
    let (both, back) = (Plan::of(&[0, 1]), Plan::of(&[1, 0]));
    let batch = Op::Read(&[1, 2]);
    vec![
        Scene::new("pair", &[READ_0, READ_1], &[both]),
        Scene::new("hot-pair", &[READ_0, READ_1], &[both]).hot(),
        Scene::new("hot-pair-back", &[READ_0, READ_1], &[back.wavering()]).hot(),
        Scene::new("twice", &[READ_0, READ_1, READ_0], &[both]),
        Scene::new("held", &[READ_0, READ_1], &[back.holding(0)]),
        Scene::new("batch", &[Op::Read(&[0, 1])], &[both]),
        Scene::new("batch-after", &[READ_0, batch], &[both, Plan::of(&[2])]),
        Scene::new(
            "rmw-and-blind",
            &[READ_0, READ_1],
            &[Plan::of(&[1]).reading(&[0]), back.wavering()],
        ),
    ]
}

/// Returns scenes about a key that may be missing.
fn keys() -> Vec<Scene> {
    let (insert, delete) = (Plan::of(&[KEY, 0]), Plan::of(&[KEY, 0]).deleting());
    let (only_0, key_and_1) = (Plan::of(&[0]), Plan::of(&[KEY, 1]));
    let missing =
        |name, ops: &[Op], writers: &[Plan]| Scene::new(name, ops, writers).with_key(Key::Missing);
    let first = [Op::Peek, READ_0, READ_1];
    let only_key = Plan::of(&[KEY]);
    vec![
        missing("insert", &[READ_KEY, READ_0], &[insert]),
        missing("blind", &[READ_0, Op::Peek], &[insert]),
        missing("batch-missed", &[Op::Read(&[KEY, 0])], &[insert]),
        missing("insert-late", &[READ_KEY, READ_0, READ_1], &[only_0, key_and_1]),
        missing("insert-twice", &[READ_KEY, READ_0], &[only_key.wavering(), insert]),
        missing("insert-delete", &[READ_0, READ_KEY], &[insert, only_key.deleting()]),
        Scene::new("blind-first", &first, &[only_0, key_and_1.deleting()]).with_key(Key::Present),
        Scene::new("peek-again", &[READ_0, Op::Peek, READ_1], &[key_and_1.deleting(), insert])
            .with_key(Key::Present)
            .with_ticks(1),
        Scene::new("bury", &[READ_0, READ_KEY], &[delete]).burying().with_ticks(3),
        Scene::new("bury-first", &[READ_KEY, READ_0, READ_1], &[only_0, key_and_1.deleting()])
            .burying(),
    ]
}

/// Returns scenes of a reader that writes rows.
fn with_own_writes() -> Vec<Scene> {
    let (both, back) = (Plan::of(&[0, 1]), Plan::of(&[1, 0]));
    let from_0_to_1 = Plan::of(&[1]).reading(&[0]);
    vec![
        Scene::new("own-write", &[READ_0, STAGE_0, READ_1], &[both]).hot(),
        Scene::new("own-write-back", &[READ_0, STAGE_0, READ_1], &[back]).hot(),
        Scene::new("own-skew", &[READ_0, STAGE_1], &[Plan::of(&[0]).reading(&[1])]),
        Scene::new("own-blind", &[READ_0, STAGE_1, STAGE_0], &[back.wavering()]),
        Scene::new("own-read-of", &[READ_0, STAGE_0], &[from_0_to_1, Plan::of(&[0])]),
        Scene::new("own-chain", &[READ_0, STAGE_0, READ_1], &[from_0_to_1, back]).with_ticks(1),
        Scene::new("own-two", &[READ_0, STAGE_0, READ_1, STAGE_1], &[back.wavering(), from_0_to_1])
            .hot(),
    ]
}

/// Returns scenes of a reader that inserts the row of `KEY`.
fn with_own_inserts() -> Vec<Scene> {
    let (insert, delete) = (Plan::of(&[KEY, 0]), Plan::of(&[KEY, 0]).deleting());
    let missing =
        |name, ops: &[Op], writer| Scene::new(name, ops, &[writer]).with_key(Key::Missing);
    let refused = [READ_0, Op::Insert, STAGE_1];
    vec![
        missing("own-insert", &[Op::Insert, READ_0], insert),
        missing("own-insert-of-missed", &[READ_KEY, Op::Insert, READ_0], insert),
        missing("own-insert-alone", &[READ_KEY, Op::Insert, READ_0], Plan::of(&[0])),
        Scene::new("own-peek", &[READ_0, Op::Peek, Op::Stage(KEY)], &[Plan::of(&[0, KEY]), delete])
            .with_key(Key::Present),
        Scene::new("own-insert-refused", &refused, &[delete]).with_key(Key::Present),
    ]
}

/// Returns scenes of a reader that reads for update.
fn for_update() -> Vec<Scene> {
    let (both, back) = (Plan::of(&[0, 1]), Plan::of(&[1, 0]));
    let (hold_0, hold_1) = (Op::Hold(0), Op::Hold(1));
    let delete = Plan::of(&[KEY, 0]).deleting();
    let crossing = Plan::of(&[1]).holding(1).reading(&[0]);
    let (from_0, to_2) = (Plan::of(&[1, 2]).reading(&[0]), Plan::of(&[2, 1]).holding(2));
    vec![
        Scene::new("for-update", &[READ_0, hold_1], &[both]),
        Scene::new("for-update-of-read", &[READ_0, hold_0], &[Plan::of(&[0])]),
        Scene::new("for-update-back", &[hold_1, READ_0], &[Plan::of(&[0]), back]).hot(),
        Scene::new(
            "for-update-written",
            &[hold_0, READ_1, STAGE_0],
            &[Plan::of(&[1]).reading(&[0])],
        ),
        Scene::new("for-update-held", &[READ_0, hold_1, STAGE_1], &[back.holding(1)]).hot(),
        Scene::new("for-update-crossing", &[hold_0, READ_1], &[crossing]),
        Scene::new("for-update-deleted", &[READ_0, Op::Hold(KEY)], &[delete])
            .with_key(Key::Present),
        Scene::new("for-update-and-read", &[hold_0, READ_1, STAGE_0, READ_2], &[from_0, to_2]),
    ]
}

/// Returns scenes of three cells or three writers.
fn crowds() -> Vec<Scene> {
    let all = [READ_0, READ_1, READ_2];
    let (both, back) = (Plan::of(&[0, 1]), Plan::of(&[1, 0]));
    let (from_0, from_1) = (Plan::of(&[1]).reading(&[0]), Plan::of(&[0, 2]).reading(&[1]));
    let to_two = Plan::of(&[1, 2]).reading(&[0]);
    let back_2 = Plan::of(&[2, 1]).wavering();
    vec![
        Scene::new("three", &all, &[Plan::of(&[1]), from_1]),
        Scene::new("two-pairs", &all, &[both, Plan::of(&[1, 2])]),
        Scene::new("two-pairs-back", &all, &[back_2, Plan::of(&[0, 2])]),
        Scene::new("hot-three", &all, &[Plan::of(&[0, 2]), to_two]).hot().with_ticks(1),
        Scene::new("chain", &[READ_0, READ_1], &[Plan::of(&[0]), from_0, back]).with_ticks(1),
    ]
}
