//! The thread that writes the log into the place.

#![forbid(unsafe_code)]

use super::checkpoints::{PAUSE, Unsent, send_restart};
use super::note::{Known, Note};
use super::options::ReplicateOptions;
use super::shared::{SegmentEnd, Shared, State, Tables};
use crate::error::ReachError;
use crate::leader::{Block, Leader};
use crate::object::CONTENT_BYTES_MAX;
use crate::place::PlaceError;
use candide::replica::is_own_table;
use candide_log::format::Uuid;
use candide_log::format::bytes::word_bytes;
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::format::segment::SEGMENT_HEADER_BYTES;
use candide_log::schema::TableSchema;
use candide_log::store::{Feed, LogPlace, Replies, Run};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The bytes of records from which on an object is written at once.
pub(super) const OBJECT_BYTES: u64 = 8 << 20;
/// The time without an object after which one without contents is written.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// The place in a segment of its first block.
const FIRST_BLOCK: u64 = SEGMENT_HEADER_BYTES as u64;

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    options: ReplicateOptions,
    /// The database whose log the place has.
    database: Uuid,
    leader: Arc<Leader>,
    feed: Feed,
    replies: Arc<dyn Replies>,
    /// The generation of the local log that is being written.
    own: u64,
    /// The stamp generation and the cut of the last object.
    last: (u64, u64),
    known: Known,
    /// The number of the segment of the last block that the place has.
    segment: u64,
    /// The tables as readers of the last object know them.
    tables: Arc<Tables>,
    /// Whether the place has had all that was durable, once: what the directory has recovered, too.
    is_current: bool,
}

/// What an append is to do.
struct Append {
    number: u64,
    /// The cut up to which commits were durable before the append began.
    cut: u64,
}

/// What the thread is to do.
enum Work {
    Append(Append),
    /// To send the checkpoint, since the place lacks a part of the log.
    Restart,
}

impl Sender {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: ReplicateOptions,
        (database, leader): (Uuid, Arc<Leader>),
        known: Known,
        feed: Feed,
        replies: Arc<dyn Replies>,
    ) -> Sender {
        let LogPlace { segment, offset } = known.local;
        // Behind a part of a block, no segment ends.
        let segment = match offset {
            _ if known.words > 0 => 0,
            FIRST_BLOCK => segment - 1,
            _ => segment,
        };
        let (own, last, is_current) = (feed.generation(), known.cut, false);
        let tables = Arc::default();
        Sender {
            shared,
            options,
            database,
            leader,
            feed,
            replies,
            own,
            last,
            known,
            segment,
            tables,
            is_current,
        }
    }

    pub(super) fn run(mut self) {
        let (behind, own) = (self.last, self.own);
        // Another directory has led, whose stamps mean nothing here.
        let is_anew = behind.0 >= own;
        if is_anew {
            self.last = (own, 0);
        }
        let mut catalog = Some(self.whole(behind, is_anew));
        let mut before = Instant::now();
        while let ControlFlow::Continue(work) = self.await_work(before, catalog.is_some()) {
            before = Instant::now();
            let done = match (work, catalog.take()) {
                // Nothing else is in it, so that records of earlier generations come behind it.
                (Work::Append(append), Some(catalog)) => {
                    self.write(&append, Some(&catalog), &Run::default(), false)
                }
                (Work::Append(append), None) => self.append(&append),
                // The snapshot has the catalog.
                (Work::Restart, whole) => self.restart().map(|is_sent| {
                    if !is_sent {
                        // The changes of tables that came before are not told any more.
                        catalog = Some(match whole.map(|whole| whole.kind) {
                            Some(CatalogKind::Whole { behind, is_anew, .. }) => {
                                self.whole(behind, is_anew)
                            }
                            _ => self.whole(self.last, false),
                        });
                    }
                }),
            };
            if let Err(failure) = done {
                self.replies.fail(failure);
                break;
            }
        }
        // Without the note, the next opening compares more.
        let _ = self.note();
        let mut state = self.shared.state();
        state.is_over = true;
        self.shared.worked.notify_all();
    }

    /// Returns the catalog with all tables.
    fn whole(&mut self, behind: (u64, u64), is_anew: bool) -> Catalog {
        let tables: Vec<_> = self.feed.tables().into_iter().map(for_readers).collect();
        self.tables = Arc::new(tables.iter().map(|table| (table.number, table.clone())).collect());
        Catalog { kind: CatalogKind::Whole { own: self.own, behind, is_anew }, tables }
    }

    /// Waits until there is something to write, and begins an append. Breaks at the end.
    fn await_work(&self, before: Instant, is_first: bool) -> ControlFlow<(), Work> {
        let mut state = self.shared.state();
        loop {
            let State { durable, there, wanted, release, closing, .. } = *state;
            let unsent = state.unsent();
            let is_closed = closing.is_some_and(|_| unsent == 0 && !is_first && !state.lacks_log);
            if is_closed || closing.is_some_and(|until| Instant::now() >= until) {
                return ControlFlow::Break(());
            }
            if state.lacks_log {
                return ControlFlow::Continue(Work::Restart);
            }
            let is_wanted = wanted.1 > there.2 || (wanted.0 > there.0 && durable.0 > there.0);
            let is_urgent =
                is_first || is_wanted || release.0 > release.1 || unsent >= OBJECT_BYTES;
            let pause = if unsent > 0 { self.options.every } else { HEARTBEAT };
            let left = pause.saturating_sub(before.elapsed());
            let is_due = left.is_zero() && (unsent > 0 || self.replies.can_write());
            if is_urgent || is_due || closing.is_some() {
                let number = self.shared.appends.fetch_add(1, Ordering::SeqCst) + 1;
                state.is_reading = !is_first;
                return ControlFlow::Continue(Work::Append(Append { number, cut: durable.0 }));
            }
            let left = if left.is_zero() { HEARTBEAT } else { left };
            let woken = self.shared.called.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends the checkpoint as a restart. Returns whether it has: it may turn out that the place
    /// needs none, or the place may not answer.
    fn restart(&mut self) -> io::Result<bool> {
        // Checkpoints wait for the restart, so it begins when the place answers.
        match self.leader.ask() {
            Err(ReachError::Place(_)) => {
                self.shared.pause(self.shared.state(), PAUSE);
                return Ok(false);
            }
            asked => asked.map_err(io::Error::other)?,
        }
        let (local, leader, shared) = (self.known.local, &self.leader, &self.shared);
        let is_given_up = || shared.state().has_ended();
        let (mut state, mut first, mut tables) = (self.last, local, Vec::new());
        let mut sent: Option<Result<(), Unsent>> = None;
        self.feed.with_checkpoint(&mut |parts| {
            if parts.first() <= local {
                return;
            }
            (state, first) = (parts.state(), parts.first());
            // Not earlier: a checkpoint that was made meanwhile would have rows of tables that are
            // not listed. Not later: until another checkpoint is made, tables that are dropped are
            // listed as such, so their rows are left out.
            tables = self.feed.tables().into_iter().map(for_readers).collect();
            let kind = CatalogKind::Whole { own: self.own, behind: state, is_anew: false };
            let catalog = Catalog { kind, tables: tables.clone() };
            sent = Some(send_restart(shared, &is_given_up, leader, &catalog, parts));
        });
        match sent {
            None if local == LogPlace::default() => {
                // The first checkpoint is being made.
                self.shared.pause(self.shared.state(), PAUSE);
                return Ok(false);
            }
            None => {
                // The checkpoint has failed.
                self.shared.state().lacks_log = false;
                return Ok(false);
            }
            Some(Err(Unsent::GivenUp)) => return Ok(false),
            Some(Err(Unsent::Reach(error))) => return Err(io::Error::other(error)),
            Some(Err(Unsent::Files(error))) => return Err(io::Error::other(error)),
            Some(Ok(())) => {}
        }
        self.feed.go_to(first);
        self.tables = Arc::new(tables.into_iter().map(|table| (table.number, table)).collect());
        self.last = state;
        self.known = Known { position: self.leader.position(), local: first, words: 0, cut: state };
        self.segment = first.segment - 1;
        // Without the note, the next opening restarts again.
        let _ = self.note();
        let mut state = self.shared.state();
        (state.lacks_log, state.checkpoint_failure) = (false, None);
        state.there.1 = state.there.1.max(state.durable_then);
        state.ends.clear();
        let is_behind = state.unsent() > self.options.backlog;
        drop(state);
        self.shared.worked.notify_all();
        self.replies.set_behind(is_behind);
        Ok(true)
    }

    /// Writes the next run of the log as an object.
    fn append(&mut self, append: &Append) -> io::Result<()> {
        // Not before the cut: what is durable with it is before this end (PR1).
        let end = self.feed.end();
        let read = self.feed.read(OBJECT_BYTES as usize);
        self.shared.state().is_reading = false;
        self.shared.worked.notify_all();
        let mut run = read.map_err(io::Error::other)?;
        if run.last.is_some() {
            self.segment = run.segment;
        }
        if self.known.words > 0 && run.last.is_some() {
            run.records.drain(..self.known.words as usize);
            self.known.words = 0;
        }
        // The end of a log behind which another directory has led has nothing but its last cut.
        run.last = run.last.filter(|last| last.0 >= self.last.0);
        let is_whole = self.feed.place() >= end;
        let tables = std::mem::take(&mut run.tables).into_iter();
        let tables: Vec<_> = tables.map(for_readers).collect();
        if !tables.is_empty() {
            let known = Arc::make_mut(&mut self.tables);
            known.extend(tables.iter().map(|table| (table.number, table.clone())));
        }
        let kind = CatalogKind::Changes;
        let catalog = (!tables.is_empty()).then_some(Catalog { kind, tables });
        self.write(append, catalog.as_ref(), &run, is_whole)
    }

    /// Writes an object, or several if it is too large. `is_whole` says that it contains the end of
    /// what is durable.
    fn write(
        &mut self,
        append: &Append,
        catalog: Option<&Catalog>,
        run: &Run,
        is_whole: bool,
    ) -> io::Result<()> {
        let catalog = catalog.map(Catalog::encode).transpose().map_err(io::Error::other)?;
        let mut catalog = catalog.unwrap_or_default();
        let last = self.last;
        let mut next = match run.last {
            Some(last) => last,
            None if is_whole => (self.own, 0),
            None => (last.0.max(1), last.1),
        };
        // Behind records of an earlier generation, readers know no cut before the next object.
        let is_whole = is_whole && next.0 == self.own;
        if is_whole {
            next.1 = next.1.max(append.cut);
        }
        if next.0 == last.0 {
            next.1 = next.1.max(last.1);
        }
        let pieces = pieces(&run.records, (CONTENT_BYTES_MAX / 2).saturating_sub(catalog.len()));
        let count = pieces.len();
        for (number, words) in (1..).zip(pieces) {
            // Records above the cut wait for the last piece.
            let earlier = if next.0 == last.0 { last.1 } else { 0 };
            let cut = if number == count { next.1 } else { earlier };
            let payload = &*word_bytes(words);
            let block = Block { cut, stamp_generation: next.0, catalog: &catalog, payload };
            if let ControlFlow::Break(()) = self.send(&block)? {
                return Ok(());
            }
            catalog.clear();
        }
        self.last = next;
        self.known = Known {
            position: self.leader.position(),
            local: self.feed.place(),
            words: self.known.words,
            cut: next,
        };
        self.is_current |= is_whole;
        self.publish(append, size_of_val(&run.records[..]) as u64, is_whole);
        Ok(())
    }

    /// Writes an object until the place has it. Breaks if the close has ended before.
    fn send(&self, block: &Block<'_>) -> io::Result<ControlFlow<()>> {
        let offer = self.leader.offer(block).map_err(io::Error::other)?;
        loop {
            match self.leader.send(&offer) {
                Ok(_) => return Ok(ControlFlow::Continue(())),
                Err(ReachError::Place(PlaceError::Unknown(_) | PlaceError::Refused(_))) => {
                    let state = self.shared.state();
                    if state.has_ended() {
                        return Ok(ControlFlow::Break(()));
                    }
                    self.shared.pause(state, PAUSE);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Publishes that the place has an object with this many bytes of records.
    fn publish(&self, append: &Append, bytes: u64, is_whole: bool) {
        let wants_back = {
            let state = self.shared.state();
            state.release.0 > state.release.1
        };
        // PR3
        let is_noted = !wants_back || self.note().is_ok();
        let mut state = self.shared.state();
        state.there.1 += bytes;
        if self.is_current {
            state.there.2 = append.number;
        }
        if is_whole {
            state.there.0 = state.there.0.max(append.cut);
        } else if self.last.0 == self.own {
            state.there.0 = state.there.0.max(self.last.1);
        }
        let (cut, number, unsent) = (state.there.0, state.there.2, state.unsent());
        let is_released = self.segment <= state.release.1;
        if wants_back && is_noted {
            state.release.1 = self.known.local.segment - 1;
        }
        // PR3: later objects without a block are behind what the directory remembers.
        if !is_released {
            let end = SegmentEnd {
                place: self.known.position.last.place,
                state: self.last,
                own: self.own,
                tables: Arc::clone(&self.tables),
            };
            state.ends.insert(self.segment, end);
        }
        drop(state);
        self.shared.worked.notify_all();
        self.replies.reach(cut, number);
        if unsent <= self.options.backlog {
            self.replies.set_behind(false);
        }
    }

    /// Notes in the directory up to where the place has the log.
    pub(super) fn note(&self) -> io::Result<()> {
        let (numbers, known) = (vec![self.leader.number()], Some(self.known));
        let note = Note { database: self.database, numbers, known, is_following: false };
        self.feed.remember(&note.encode())
    }
}

/// Returns a table as readers know it: what a standby has had for itself is dropped.
fn for_readers(table: TableSchema) -> TableSchema {
    if table.is_in_use() && is_own_table(&table.name) { table.dropped() } else { table }
}

/// Divides records into pieces of at most `bytes` bytes, or one record. At least one piece.
fn pieces(words: &[u64], bytes: usize) -> Vec<&[u64]> {
    let most = bytes / size_of::<u64>();
    if words.len() <= most {
        return vec![words];
    }
    let (mut pieces, mut begin, mut end) = (Vec::new(), 0, 0);
    while end < words.len() {
        // A record begins with its length.
        let next = end + (words[end] as u32 as usize).max(1);
        if next - begin > most && end > begin {
            pieces.push(&words[begin..end]);
            begin = end;
        }
        end = next.min(words.len());
    }
    pieces.push(&words[begin..]);
    pieces
}
