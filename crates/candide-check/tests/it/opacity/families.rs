//! Scenes that were not thought of: every row of three operations beside every writer or pair of
//! writers, from short lists of both.

use super::memory::KEY;
use super::scene::{Key, Op, Plan, Scene};

const ROW_OPS: [Op; 7] = [
    Op::Read(&[0]),
    Op::Read(&[1]),
    Op::Read(&[0, 1]),
    Op::Hold(0),
    Op::Hold(1),
    Op::Stage(0),
    Op::Stage(1),
];

const ROW_WRITERS: [Plan; 8] = [
    Plan::of(&[0]),
    Plan::of(&[1]),
    Plan::of(&[0, 1]),
    Plan::of(&[1, 0]).wavering(),
    Plan::of(&[1]).reading(&[0]),
    Plan::of(&[0]).reading(&[1]),
    Plan::of(&[1, 0]).holding(0),
    Plan::of(&[1]).holding(1).reading(&[0]),
];

const KEY_OPS: [Op; 8] = [
    Op::Read(&[KEY]),
    Op::Read(&[0]),
    Op::Read(&[KEY, 0]),
    Op::Peek,
    Op::Insert,
    Op::Hold(KEY),
    Op::Stage(0),
    Op::Stage(KEY),
];

const KEY_WRITERS: [Plan; 7] = [
    Plan::of(&[0]),
    Plan::of(&[KEY]),
    Plan::of(&[KEY]).deleting(),
    Plan::of(&[KEY, 0]),
    Plan::of(&[0, KEY]).wavering(),
    Plan::of(&[KEY, 0]).deleting(),
    Plan::of(&[KEY]).reading(&[0]),
];

const MIXED_OPS: [Op; 5] = [Op::Read(&[0]), Op::Read(&[1]), Op::Read(&[KEY]), Op::Peek, Op::Insert];

const MIXED_WRITERS: [Plan; 6] = [
    Plan::of(&[0, 1]),
    Plan::of(&[1]).reading(&[0]),
    Plan::of(&[KEY, 0]),
    Plan::of(&[1, KEY]),
    Plan::of(&[KEY, 0]).deleting(),
    Plan::of(&[1, KEY]).deleting(),
];

/// Returns all scenes of the three families.
pub fn all() -> impl Iterator<Item = Scene> {
    let rows = family("rows", &ROW_OPS, &ROW_WRITERS).into_iter();
    let keys = family("keys", &KEY_OPS, &KEY_WRITERS).into_iter();
    let at_first = |scene: Scene| {
        let (missing, present) =
            (scene.clone().with_key(Key::Missing), scene.clone().with_key(Key::Present));
        [missing, present, scene.burying()]
    };
    let mixed = family("mixed", &MIXED_OPS, &MIXED_WRITERS).into_iter();
    rows.flat_map(|scene| [scene.clone(), scene.hot()]).chain(keys.chain(mixed).flat_map(at_first))
}

fn family(name: &'static str, ops: &[Op], writers: &[Plan]) -> Vec<Scene> {
    let mut casts: Vec<Vec<Plan>> = writers.iter().map(|writer| vec![*writer]).collect();
    for (number, first) in writers.iter().enumerate() {
        casts.extend(writers[number..].iter().map(|second| vec![*first, *second]));
    }
    let mut scenes = Vec::new();
    for cast in &casts {
        for first in ops {
            for second in ops {
                let scene = |third: &Op| Scene::new(name, &[*first, *second, *third], cast);
                scenes.extend(ops.iter().map(scene));
            }
        }
    }
    scenes
}
