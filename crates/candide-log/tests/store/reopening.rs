//! Databases that are opened again and again.

use crate::model::{Habits, World};

fn reopen_often(habits: Habits) {
    for seed in 0..6 {
        let mut world = World::new(seed);
        world.run(30, habits);
        world.reopen();
    }
}

#[test]
fn reopening_leaves_all_rows_as_they_were() {
    reopen_often(Habits::default());
}

#[test]
fn no_record_comes_back_after_its_generation() {
    reopen_often(Habits { reopenings: 25, ..Habits::default() });
}

#[test]
fn no_block_of_an_earlier_life_of_a_segment_is_read() {
    reopen_often(Habits { checkpoints: 25, reopenings: 15, ..Habits::default() });
}

#[test]
fn a_checkpoint_keeps_the_records_above_its_cut() {
    reopen_often(Habits { checkpoints: 25, ..Habits::default() });
}
