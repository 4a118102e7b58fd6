//! Rounds of the logger, on a file that the test stops.

use super::waiting::eventually;
use crate::log::{BlockError, Blocks, Cuts, Level, Log, Outbox};
use crate::sync::{AtomicUsize, Duration, Mutex, Ordering, lock};
use candide_log::format::commit::{ChangeKind, CommitWriter, records as records_in};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread;

/// A file whose sync signals its begin, and then waits for the test.
#[derive(Debug)]
struct Stopped {
    begun: Sender<()>,
    go_on: Receiver<()>,
}

impl Blocks for Stopped {
    fn write(&mut self, _records: &[&[u64]], _cut: u64) -> Result<(), BlockError> {
        Ok(())
    }

    fn has_pending(&self) -> bool {
        false
    }

    fn sync(&mut self) -> Result<(), BlockError> {
        self.begun.send(()).unwrap();
        self.go_on.recv().unwrap();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), BlockError> {
        Ok(())
    }
}

/// A database whose cut is always this one.
#[derive(Debug)]
struct At(u64);

impl Cuts for At {
    fn cut(&self) -> Option<u64> {
        Some(self.0)
    }
}

/// The number of words of a record that [`append`] appends.
const RECORD_WORDS: usize = 5;

/// Appends a record with this stamp.
fn append(log: &Log, outbox: &Outbox, stamp: u64) {
    let mut buffer = outbox.turn().into_buffer();
    let mut writer = CommitWriter::begin(&mut buffer.records);
    writer.entry(ChangeKind::Delete, 1, 0, 0, Some(&[7]));
    assert_eq!(writer.finish(stamp, stamp), RECORD_WORDS);
    drop(buffer);
    log.note_appended(outbox, RECORD_WORDS as u64);
}

#[test]
fn an_acknowledgement_does_not_wait_for_the_next_commit_of_the_session() {
    let ((begun, has_begun), (go_on, goes_on)) = (channel(), channel());
    let writer = Box::new(Stopped { begun, go_on: goes_on });
    let log = Arc::new(Log::new(writer, Duration::ZERO, Level::Durable));
    let outbox = log.join();
    append(&log, &outbox, 5);
    let round = thread::spawn({
        let log = log.clone();
        move || {
            log.round(&At(5));
        }
    });
    has_begun.recv().unwrap();
    // A commit may keep its turn for a while, for example under a protocol that waits there.
    let mut next = outbox.turn();
    next.take();
    go_on.send(()).unwrap();
    eventually("the block is durable", || log.progress.has_reached(5, Level::Durable));
    assert_eq!(outbox.backlog(), 0);
    drop(next);
    round.join().unwrap();
}

/// A file that keeps, of each block, the number of words of its records, its cut, and whether it is
/// synced; and the largest stamp.
#[derive(Debug, Default, Clone)]
struct Kept {
    blocks: Arc<Mutex<Vec<(usize, u64, bool)>>>,
    last_stamp: u64,
}

impl Blocks for Kept {
    fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), BlockError> {
        let words = records.concat();
        let stamps = records_in(&words).map(|record| record.unwrap().stamp);
        self.last_stamp = stamps.fold(self.last_stamp, u64::max);
        lock(&self.blocks).push((words.len(), cut, false));
        Ok(())
    }

    fn has_pending(&self) -> bool {
        lock(&self.blocks).last().is_some_and(|(_, cut, _)| *cut < self.last_stamp)
    }

    fn sync(&mut self) -> Result<(), BlockError> {
        lock(&self.blocks).iter_mut().for_each(|block| block.2 = true);
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), BlockError> {
        Ok(())
    }
}

#[test]
fn a_record_above_the_cut_of_its_block_is_durable_when_a_later_block_closes_a_cut_above_it() {
    let kept = Kept::default();
    let log = Arc::new(Log::new(Box::new(kept.clone()), Duration::ZERO, Level::Durable));
    let outbox = log.join();
    // The commit has taken its stamp after the cut, and its record is in the buffer before the
    // logger empties the buffer.
    append(&log, &outbox, 6);
    log.round(&At(5));
    assert!(!log.progress.has_reached(6, Level::Written));
    log.round(&At(7));
    assert!(log.progress.has_reached(7, Level::Durable));
    log.round(&At(8));
    assert_eq!(*lock(&kept.blocks), [(RECORD_WORDS, 5, true), (0, 7, true)]);
    // At the end of the log, the record is also closed by a later cut.
    append(&log, &outbox, 9);
    log.round(&At(8));
    assert!(log.close(9).is_ok());
    assert_eq!(lock(&kept.blocks)[2..], [(RECORD_WORDS, 8, true), (0, 9, true)]);
}

/// A waker that counts how often it is woken.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_result_that_is_polled_often_wakes_its_task_once() {
    let log = Log::new(Box::new(Kept::default()), Duration::ZERO, Level::Durable);
    let counts = Arc::new(Counts::default());
    let (waker, mut known) = (Waker::from(counts.clone()), None);
    let mut poll = || log.progress.poll(5, Level::Durable, &waker, &mut known);
    for _ in 0..100 {
        assert_eq!(poll(), None);
    }
    log.round(&At(4));
    assert_eq!((poll(), counts.0.load(Ordering::Relaxed)), (None, 0));
    log.round(&At(5));
    assert_eq!((poll(), counts.0.load(Ordering::Relaxed)), (Some(Ok(())), 1));
    log.round(&At(6));
    assert_eq!(counts.0.load(Ordering::Relaxed), 1);
}
