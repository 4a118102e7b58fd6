//! Databases that are opened repeatedly.

use crate::model::{Habits, World};

fn reopen_often(habits: Habits) {
    for seed in 0..6 {
        let mut world = World::new(seed);
        world.run(30, habits);
        world.reopen();
    }
}

#[test]
fn rows_are_unchanged_by_reopening() {
    reopen_often(Habits::default());
}

#[test]
fn records_cut_off_in_a_generation_do_not_return_in_a_later_one() {
    reopen_often(Habits { reopenings: 25, ..Habits::default() });
}

#[test]
fn blocks_of_an_earlier_use_of_a_segment_are_not_read() {
    reopen_often(Habits { checkpoints: 25, reopenings: 15, ..Habits::default() });
}

#[test]
fn a_checkpoint_keeps_the_records_above_its_cut() {
    reopen_often(Habits { checkpoints: 25, ..Habits::default() });
}
