//! Tests of the second word of a cell.

use super::super::desks::class_of;
use super::super::word::Lock;
use crate::sync::AtomicU64;

#[test]
fn the_class_of_a_lock_stays_until_its_last_reader_leaves() {
    let word = AtomicU64::new(0);
    let lock = Lock(&word);
    for (desk, readers) in [(3, 1), (35, 2), (4, 3)] {
        assert_eq!(lock.take_to_read(desk), Ok(()));
        assert_eq!((lock.word().readers(), lock.word().is_written()), (readers, false));
    }
    let classes = class_of(3) | class_of(4);
    assert_eq!(lock.word().classes(), classes);
    assert!(lock.take_to_write(5).is_err() && !lock.upgrade(3));
    for readers in [2, 1] {
        assert!(!lock.release_reader());
        assert_eq!((lock.word().readers(), lock.word().classes()), (readers, classes));
    }
    assert!(!lock.release_reader());
    assert_eq!(lock.take_to_write(5), Ok(()), "nothing is left of the readers");
    lock.pass_on(None);
    assert_eq!(word.into_inner(), 0);
}

#[test]
fn a_writer_excludes_all_others_and_hands_its_lock_over() {
    let word = AtomicU64::new(0);
    let lock = Lock(&word);
    assert_eq!(lock.take_to_write(u16::MAX), Ok(()));
    assert!(lock.word().is_written_by(u16::MAX) && !lock.word().is_written_by(1));
    assert_eq!(lock.word().classes(), class_of(u16::MAX));
    for met in [lock.take_to_read(1), lock.take_to_write(1), lock.take_to_write(u16::MAX)] {
        assert_eq!(met.map_err(|word| word.owner()), Err(u16::MAX));
    }
    assert!(!lock.upgrade(u16::MAX));
    lock.want();
    assert!(!lock.word().is_wanted(), "a writer that waits for a writer keeps out no reader");
    lock.pass_on(Some(7));
    assert!(lock.word().is_written_by(7));
    lock.pass_on(None);
    assert_eq!(word.into_inner(), 0);
}

#[test]
fn the_only_reader_may_become_the_writer() {
    let word = AtomicU64::new(0);
    let lock = Lock(&word);
    assert!(!lock.upgrade(1), "there is no reader");
    lock.take_to_read(1).unwrap();
    lock.want();
    assert!(lock.upgrade(1));
    assert!(lock.word().is_written_by(1) && lock.word().readers() == 0);
    lock.pass_on(None);
    assert_eq!(word.into_inner(), 0);
}

#[test]
fn a_writer_that_waits_keeps_out_new_readers() {
    let word = AtomicU64::new(0);
    let lock = Lock(&word);
    lock.want();
    assert!(!lock.word().is_wanted(), "a free lock can be taken at once");
    lock.take_to_read(1).unwrap();
    lock.take_to_read(2).unwrap();
    lock.want();
    assert!(lock.take_to_read(3).is_err_and(|word| word.is_wanted() && word.readers() == 2));
    lock.unwant();
    assert_eq!(lock.take_to_read(3), Ok(()));
    lock.want();
    assert_eq!([(); 3].map(|()| lock.release_reader()), [false, false, true]);
    assert!(lock.word().is_wanted() && lock.word().classes() == 0);
    assert_eq!(lock.take_to_write(4), Ok(()));
    lock.pass_on(None);
    assert_eq!(word.into_inner(), 0);
}

#[test]
fn a_lock_refuses_readers_above_its_maximum() {
    const MAX: u64 = (1 << 14) - 1;
    let word = AtomicU64::new(0);
    let lock = Lock(&word);
    (0..MAX).for_each(|desk| lock.take_to_read(desk as u16).unwrap());
    let full = lock.word();
    assert_eq!((full.readers(), full.classes()), (MAX, u64::from(u32::MAX)));
    assert_eq!(lock.take_to_read(1), Err(full));
    assert!(!full.is_written() && !full.is_wanted());
    (0..MAX).for_each(|_| assert!(!lock.release_reader()));
    assert_eq!(word.into_inner(), 0);
}
