//! The threads that write the log into the place.

#![forbid(unsafe_code)]

use super::checkpoints::{PAUSE, Unsent, send_restart};
use super::note::{Known, Note};
use super::options::ReplicateOptions;
use super::shared::{Reached, SegmentEnd, Shared, State, Tables, UnderWay};
use crate::error::ReachError;
use crate::leader::{Block, Leader, Offer};
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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// The bytes of records from which on an object is written at once.
pub(super) const OBJECT_BYTES: u64 = 8 << 20;
/// The time without an object after which one without contents is written.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// The place in a segment of its first block.
const FIRST_BLOCK: u64 = SEGMENT_HEADER_BYTES as u64;

/// What the threads that write share.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    options: ReplicateOptions,
    /// The database whose log the place has.
    database: Uuid,
    leader: Arc<Leader>,
    feed: Mutex<Feed>,
    replies: Arc<dyn Replies>,
    /// The generation of the local log that is being written.
    own: u64,
    /// Held by the thread that makes the next object, or waits until there is one to make.
    next: Mutex<Next>,
}

/// What the next object comes behind.
#[derive(Debug)]
struct Next {
    /// The stamp generation and the cut of the last object.
    last: (u64, u64),
    /// The number of words of records behind the place of the feed that the place has, too.
    words: u64,
    /// The number of the segment of the last block up to the last object.
    segment: u64,
    /// The tables as readers of the last object know them.
    tables: Arc<Tables>,
    /// All tables, until they are in an object.
    catalog: Option<Catalog>,
    /// Whether the objects have had all that was durable, once: what the directory has recovered,
    /// too.
    is_current: bool,
    /// When the last object was begun.
    before: Instant,
    /// Whether a thread has failed, or panicked, while it made an object: what it has read may be
    /// in none.
    is_torn: bool,
}

/// What an append is to do.
struct Append {
    number: u64,
    /// The cut up to which commits were durable before the append began.
    cut: u64,
}

/// What the thread that holds `next` is to do.
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
        let own = feed.generation();
        let next = Next {
            last: known.cut,
            words: known.words,
            segment,
            tables: Arc::default(),
            catalog: None,
            is_current: false,
            before: Instant::now(),
            is_torn: false,
        };
        let (feed, next) = (Mutex::new(feed), Mutex::new(next));
        Sender { shared, options, database, leader, feed, replies, own, next }
    }

    /// Writes until the end, by this thread and others.
    pub(super) fn run(self) {
        {
            let mut next = self.next();
            let behind = next.last;
            // Another directory has led, whose stamps mean nothing here.
            let is_anew = behind.0 >= self.own;
            if is_anew {
                next.last = (self.own, 0);
            }
            next.catalog = Some(whole(&self.feed(), &mut next.tables, behind, is_anew));
        }
        thread::scope(|scope| {
            for _ in 1..self.options.under_way {
                let builder = Builder::new().name("candide-reach".to_string());
                // With fewer threads, fewer objects are under way.
                if builder.spawn_scoped(scope, || self.write_to_end()).is_err() {
                    break;
                }
            }
            self.write_to_end();
        });
        // Without the note, the next opening compares more.
        let _ = self.note();
        self.shared.state().is_over = true;
        self.shared.wake_all();
    }

    /// Writes one object after another, until the close or a failure. A place is the program's
    /// code, which may panic.
    fn write_to_end(&self) {
        self.shared.state().threads.push(thread::current().id());
        let panicked = |_| Err(io::Error::other("a thread that writes to the place has panicked"));
        let written = catch_unwind(AssertUnwindSafe(|| self.write_all()));
        if let Err(failure) = written.unwrap_or_else(panicked) {
            self.replies.fail(failure);
            self.shared.state().is_over = true;
            self.shared.wake_all();
        }
    }

    fn write_all(&self) -> io::Result<()> {
        while let Some((offer, reached)) = self.begin()? {
            if !self.send(&offer)? {
                break;
            }
            self.arrived(offer.place(), reached);
        }
        Ok(())
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next object, once there is something to write. `None` at the end, and if another
    /// thread has failed meanwhile.
    fn begin(&self) -> io::Result<Option<(Offer, Reached)>> {
        let mut next = self.next();
        // PR1: nothing comes behind what was read and is in no object.
        if std::mem::replace(&mut next.is_torn, true) {
            return Ok(None);
        }
        let begun = self.work(&mut next);
        next.is_torn = begun.is_err();
        begun
    }

    /// Makes the next object, once there is something to write. `None` at the end.
    fn work(&self, next: &mut Next) -> io::Result<Option<(Offer, Reached)>> {
        loop {
            let ControlFlow::Continue(work) = self.await_work(next) else { return Ok(None) };
            next.before = Instant::now();
            match work {
                Work::Append(append) => return self.append(next, &append),
                Work::Restart => self.restart(next)?,
            }
        }
    }

    /// Waits until there is something to write, and begins an append. Breaks at the end.
    fn await_work(&self, next: &Next) -> ControlFlow<(), Work> {
        let is_first = next.catalog.is_some();
        let mut state = self.shared.state();
        loop {
            let State { durable, release, closing, .. } = *state;
            let (untaken, under_way) = (state.untaken(), state.under_way.len());
            let is_closed = closing.is_some_and(|_| untaken == 0 && !is_first && !state.lacks_log);
            if is_closed || state.has_ended() {
                return ControlFlow::Break(());
            }
            if state.lacks_log && under_way == 0 {
                return ControlFlow::Continue(Work::Restart);
            }
            let can_begin = !state.lacks_log && under_way < self.options.under_way;
            // An object under way may be the one that it takes.
            let is_wanted_back = release.0 > release.1 && under_way == 0;
            let is_urgent =
                is_first || state.is_wanted() || is_wanted_back || untaken >= OBJECT_BYTES;
            let pause = if untaken > 0 { self.options.every } else { HEARTBEAT };
            let left = pause.saturating_sub(next.before.elapsed());
            let is_idle = || under_way == 0 && self.replies.can_write();
            let is_due = left.is_zero() && (untaken > 0 || is_idle());
            if can_begin && (is_urgent || is_due || closing.is_some()) {
                let number = self.shared.appends.fetch_add(1, Ordering::SeqCst) + 1;
                state.is_reading = !is_first;
                return ControlFlow::Continue(Work::Append(Append { number, cut: durable.0 }));
            }
            let left = if left.is_zero() { PAUSE } else { left };
            let woken = self.shared.called.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends the checkpoint as a restart, unless it turns out that the place needs none, or the
    /// place does not answer. No object is under way.
    fn restart(&self, next: &mut Next) -> io::Result<()> {
        let is_sent = self.send_checkpoint(next)?;
        next.catalog = match next.catalog.take() {
            // The snapshot has the catalog.
            _ if is_sent => None,
            // The changes of tables that came before are not told any more.
            Some(Catalog { kind: CatalogKind::Whole { behind, is_anew, .. }, .. }) => {
                Some(whole(&self.feed(), &mut next.tables, behind, is_anew))
            }
            _ => Some(whole(&self.feed(), &mut next.tables, next.last, false)),
        };
        Ok(())
    }

    /// Sends the checkpoint as a restart. Returns whether it has.
    fn send_checkpoint(&self, next: &mut Next) -> io::Result<bool> {
        // Checkpoints wait for the restart, so it begins when the place answers.
        match self.leader.ask() {
            Err(ReachError::Place(_)) => {
                self.shared.pause(self.shared.state(), PAUSE);
                return Ok(false);
            }
            asked => asked.map_err(io::Error::other)?,
        }
        let mut feed = self.feed();
        let (leader, shared) = (&self.leader, &self.shared);
        let local = shared.state().known.local;
        let is_given_up = || shared.state().has_ended();
        let (mut state, mut first, mut tables) = (next.last, local, Vec::new());
        let mut sent: Option<Result<(), Unsent>> = None;
        feed.with_checkpoint(&mut |parts| {
            if parts.first() <= local {
                return;
            }
            (state, first) = (parts.state(), parts.first());
            // Not earlier: a checkpoint that was made meanwhile would have rows of tables that are
            // not listed. Not later: until another checkpoint is made, tables that are dropped are
            // listed as such, so their rows are left out.
            tables = feed.tables().into_iter().map(for_readers).collect();
            let kind = CatalogKind::Whole { own: self.own, behind: state, is_anew: false };
            let catalog = Catalog { kind, tables: tables.clone() };
            sent = Some(send_restart(shared, &is_given_up, leader, &catalog, parts));
        });
        match sent {
            None if local == LogPlace::default() => {
                // The first checkpoint is being made.
                shared.pause(shared.state(), PAUSE);
                return Ok(false);
            }
            None => {
                // The checkpoint has failed.
                shared.state().lacks_log = false;
                return Ok(false);
            }
            Some(Err(Unsent::GivenUp)) => return Ok(false),
            Some(Err(Unsent::Reach(error))) => return Err(io::Error::other(error)),
            Some(Err(Unsent::Files(error))) => return Err(io::Error::other(error)),
            Some(Ok(())) => {}
        }
        feed.go_to(first);
        drop(feed);
        next.tables = Arc::new(tables.into_iter().map(|table| (table.number, table)).collect());
        (next.last, next.words, next.segment) = (state, 0, first.segment - 1);
        let known = Known { position: leader.position(), local: first, words: 0, cut: state };
        shared.state().known = known;
        // Without the note, the next opening restarts again.
        let _ = self.note();
        let mut state = shared.state();
        (state.lacks_log, state.checkpoint_failure) = (false, None);
        state.there.1 = state.there.1.max(state.durable_then);
        state.taken = state.there;
        state.ends.clear();
        let is_behind = state.unsent() > self.options.backlog;
        drop(state);
        shared.worked.notify_all();
        self.replies.set_behind(is_behind);
        Ok(true)
    }

    /// Makes an object of the next run of the log.
    fn append(&self, next: &mut Next, append: &Append) -> io::Result<Option<(Offer, Reached)>> {
        if let Some(catalog) = next.catalog.take() {
            // Nothing else is in it, so that records of earlier generations come behind it.
            return self.write(next, append, Some(&catalog), &Run::default(), false);
        }
        let mut feed = self.feed();
        // Not before the cut: what is durable with it is before this end (PR1).
        let end = feed.end();
        let read = feed.read(OBJECT_BYTES as usize);
        let is_whole = feed.place() >= end;
        drop(feed);
        self.shared.state().is_reading = false;
        self.shared.worked.notify_all();
        let mut run = read.map_err(io::Error::other)?;
        if run.last.is_some() {
            next.segment = run.segment;
        }
        if next.words > 0 && run.last.is_some() {
            run.records.drain(..next.words as usize);
            next.words = 0;
        }
        // The end of a log behind which another directory has led has nothing but its last cut.
        run.last = run.last.filter(|last| last.0 >= next.last.0);
        let tables = std::mem::take(&mut run.tables).into_iter();
        let tables: Vec<_> = tables.map(for_readers).collect();
        if !tables.is_empty() {
            let known = Arc::make_mut(&mut next.tables);
            known.extend(tables.iter().map(|table| (table.number, table.clone())));
        }
        let kind = CatalogKind::Changes;
        let catalog = (!tables.is_empty()).then_some(Catalog { kind, tables });
        self.write(next, append, catalog.as_ref(), &run, is_whole)
    }

    /// Makes an object, and says what it brings. If it would be too large, it makes several, and
    /// writes those before the last. `is_whole` says that it contains the end of what is durable.
    /// `None` if the close has ended before.
    fn write(
        &self,
        next: &mut Next,
        append: &Append,
        catalog: Option<&Catalog>,
        run: &Run,
        is_whole: bool,
    ) -> io::Result<Option<(Offer, Reached)>> {
        let catalog = catalog.map(Catalog::encode).transpose().map_err(io::Error::other)?;
        let mut catalog = catalog.unwrap_or_default();
        let last = next.last;
        let mut state = match run.last {
            Some(last) => last,
            None if is_whole => (self.own, 0),
            None => (last.0.max(1), last.1),
        };
        // Behind records of an earlier generation, readers know no cut before the next object.
        let is_whole = is_whole && state.0 == self.own;
        if is_whole {
            state.1 = state.1.max(append.cut);
        }
        if state.0 == last.0 {
            state.1 = state.1.max(last.1);
        }
        let offer = |cut, catalog: &[u8], words| {
            let payload = &*word_bytes(words);
            let block = Block { cut, stamp_generation: state.0, catalog, payload };
            self.leader.offer(&block).map_err(io::Error::other)
        };
        let most = (CONTENT_BYTES_MAX / 2).saturating_sub(catalog.len());
        let mut pieces = pieces(&run.records, most);
        let words = pieces.pop().unwrap_or_default();
        for words in pieces {
            // Records above the cut wait for the last piece.
            let earlier = if state.0 == last.0 { last.1 } else { 0 };
            if !self.send(&offer(earlier, &catalog, words)?)? {
                return Ok(None);
            }
            catalog.clear();
        }
        let offer = offer(state.1, &catalog, words)?;
        next.last = state;
        next.is_current |= is_whole;
        let local = self.feed().place();
        let known = Known { position: offer.position(), local, words: next.words, cut: state };
        let bytes = size_of_val(&run.records[..]) as u64;
        let there = self.take(next, append, &offer, (bytes, is_whole));
        let tables = Arc::clone(&next.tables);
        let end = SegmentEnd { place: offer.place(), state, own: self.own, tables };
        Ok(Some((offer, Reached { known, there, segment: next.segment, end })))
    }

    /// Notes that an object is under way. Returns what the place has with it.
    fn take(
        &self,
        next: &Next,
        append: &Append,
        offer: &Offer,
        (bytes, is_whole): (u64, bool),
    ) -> (u64, u64, u64) {
        let mut state = self.shared.state();
        let taken = &mut state.taken;
        taken.1 += bytes;
        if next.is_current {
            taken.2 = append.number;
        }
        if is_whole {
            taken.0 = taken.0.max(append.cut);
        } else if next.last.0 == self.own {
            taken.0 = taken.0.max(next.last.1);
        }
        let taken = *taken;
        state.under_way.push_back(UnderWay { place: offer.place(), reached: None });
        taken
    }

    /// Writes an object until the place has it. Returns `false` if the end has come before.
    fn send(&self, offer: &Offer) -> io::Result<bool> {
        loop {
            match self.leader.send(offer) {
                Ok(_) => return Ok(true),
                Err(ReachError::Place(PlaceError::Unknown(_) | PlaceError::Refused(_))) => {
                    let state = self.shared.state();
                    if state.has_ended() {
                        return Ok(false);
                    }
                    self.shared.pause(state, PAUSE);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Notes that the place has an object, and publishes what the objects bring before which none
    /// is missing, one after another.
    fn arrived(&self, place: u64, reached: Reached) {
        let mut state = self.shared.state();
        if let Some(own) = state.under_way.iter_mut().find(|object| object.place == place) {
            own.reached = Some(reached);
        }
        // While one thread publishes, the first one has nothing to publish for others.
        while let Some(reached) = state.under_way.front_mut().and_then(|o| o.reached.take()) {
            drop(state);
            self.publish(reached);
            state = self.shared.state();
            let was_full = state.under_way.len() >= self.options.under_way;
            state.under_way.pop_front();
            if was_full || state.lacks_log || state.release.0 > state.release.1 {
                self.shared.called.notify_one();
            }
        }
    }

    /// Publishes that the place has an object and all before it.
    fn publish(&self, reached: Reached) {
        let Reached { known, there, segment, end } = reached;
        let wants_back = {
            let mut state = self.shared.state();
            state.known = known;
            state.release.0 > state.release.1
        };
        // PR3
        let is_noted = !wants_back || self.note().is_ok();
        let mut state = self.shared.state();
        state.there = there;
        let unsent = state.unsent();
        let is_released = segment <= state.release.1;
        if wants_back && is_noted {
            state.release.1 = known.local.segment - 1;
        }
        // PR3: later objects without a block are behind what the directory remembers.
        if !is_released {
            state.ends.insert(segment, end);
        }
        drop(state);
        self.shared.worked.notify_all();
        self.replies.reach(there.0, there.2);
        if unsent <= self.options.backlog {
            self.replies.set_behind(false);
        }
    }

    /// Notes in the directory up to where the place has the log.
    pub(super) fn note(&self) -> io::Result<()> {
        let known = Some(self.shared.state().known);
        let numbers = vec![self.leader.number()];
        let note = Note { database: self.database, numbers, known, is_following: false };
        self.feed().remember(&note.encode())
    }
}

/// Returns the catalog with all tables, and notes them as those that readers know.
fn whole(feed: &Feed, known: &mut Arc<Tables>, behind: (u64, u64), is_anew: bool) -> Catalog {
    let tables: Vec<_> = feed.tables().into_iter().map(for_readers).collect();
    *known = Arc::new(tables.iter().map(|table| (table.number, table.clone())).collect());
    Catalog { kind: CatalogKind::Whole { own: feed.generation(), behind, is_anew }, tables }
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
