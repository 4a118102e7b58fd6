//! The primary: a remote that writes the log of its database into a place.
//!
//! One thread reads the durable part of the local log, and writes it as objects. An object goes out
//! at once if a thread waits for it, and otherwise after [`ReplicateOptions::replicate_every`].
//! Without anything new, one without contents goes out each [`HEARTBEAT`], so that followers see a
//! leader that lives.
//!
//! # Invariants
//! * **PR1** A cut is published only when the place has every commit with a stamp up to it: when
//!   the last object that it has contains the end of what was durable when the cut was.
//! * **PR2** An append begins, and gets its number, before its object is made. So a transaction
//!   that had ended when an append began rests on nothing that a later leader can have replaced,
//!   once the append has succeeded. It may rest on what was recovered, so appends count only once
//!   the place has that.
//! * **PR3** A segment of the local log is released only when the place has it, and the directory
//!   remembers that.

#![forbid(unsafe_code)]

use super::compare::{Compare, Different};
use super::note::{Known, Note};
use super::options::ReplicateOptions;
use crate::access::{Access, Patience};
use crate::error::ReachError;
use crate::follower::{Follower, Progress};
use crate::leader::{Block, Claim, Leader, Position, led};
use crate::name::Name;
use crate::object::CONTENT_BYTES_MAX;
use crate::place::{Place, PlaceError};
use crate::random;
use crate::receiver::{Receiver, Refusal};
use candide_log::OpenError;
use candide_log::format::Uuid;
use candide_log::format::bytes::word_bytes;
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::store::{Feed, Remote, Replies, Run, Unopened};
use std::fmt::Debug;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The bytes of records from which on an object is written at once.
const OBJECT_BYTES: u64 = 8 << 20;
/// The time without an object after which one without contents is written.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// How long a close tries to write what the place lacks.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);
/// How often one object is tried before what has happened meanwhile is looked at.
const PATIENCE: Patience =
    Patience { calls: 5, pause: Duration::from_millis(5), pause_max: Duration::from_millis(100) };
/// The pause before an object is tried again that the place has refused.
const PAUSE: Duration = Duration::from_millis(100);

/// A remote that writes the log into a place.
#[derive(Debug)]
pub(super) struct Primary {
    place: Arc<dyn Place>,
    options: ReplicateOptions,
    shared: Arc<Shared>,
    opening: Mutex<Opening>,
}

/// What the calls at the opening and the close hand on.
#[derive(Debug, Default)]
struct Opening {
    /// The lead that has begun before the contents were loaded.
    led: Option<Led>,
    thread: Option<JoinHandle<()>>,
}

/// A lead that has begun.
#[derive(Debug)]
struct Led {
    leader: Leader,
    known: Known,
    /// The bytes of records that the place lacks.
    bytes: u64,
}

/// The state that the thread and the engine's calls share.
#[derive(Debug, Default)]
struct Shared {
    generation: AtomicU64,
    /// The number of appends that have begun.
    appends: AtomicU64,
    state: Mutex<State>,
    /// Wakes the thread.
    called: Condvar,
    /// Wakes the calls that wait for the thread.
    worked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    replies: Option<Arc<dyn Replies>>,
    /// The cut up to which commits are durable here, and the bytes of records.
    durable: (u64, u64),
    /// The cut that the place has, the bytes of records, and the last append that has succeeded.
    there: (u64, u64, u64),
    /// The largest cut and append for which a thread waits.
    wanted: (u64, u64),
    /// The last segment that is wanted back, and the last one that is released.
    release: (u64, u64),
    /// When the close ends, if it has begun.
    closing: Option<Instant>,
    /// Whether the thread writes nothing more.
    is_over: bool,
}

impl State {
    /// Returns the bytes of records that the place lacks. What is durable is noted here only after
    /// it can be read.
    fn unsent(&self) -> u64 {
        self.durable.1.saturating_sub(self.there.1)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Primary {
    pub(super) fn new(place: Arc<dyn Place>, options: ReplicateOptions) -> Primary {
        let (shared, opening) = Default::default();
        Primary { place, options, shared, opening }
    }

    fn opening(&self) -> MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access(&self, database: Uuid) -> Access {
        Access { place: Arc::clone(&self.place), database, patience: Patience::default() }
    }

    /// Claims for a database that is new. The place is empty.
    fn claim_new(&self, feed: &Feed) -> Result<Led, OpenError> {
        let access = self.access(feed.uuid());
        if let Some(claim) = access.newest_claim().map_err(refused)? {
            return Err(refused(led(&access, &claim).unwrap_or_else(|error| error)));
        }
        let remember = |bytes: &[u8]| feed.remember(bytes);
        let leader = self.claim(&access, Note::default(), &remember, None, &mut Empty)?;
        let position = leader.position();
        let known = Known { position, local: feed.place(), words: 0, cut: (0, 0) };
        Ok(Led { leader, known, bytes: 0 })
    }

    /// Claims for a database that has files.
    fn claim_again(&self, unopened: &Unopened<'_>, database: Uuid) -> Result<Led, OpenError> {
        let note = unopened.remembered()?.map(|bytes| Note::decode(&bytes)).transpose();
        let note = note.map_err(|error| {
            OpenError::Remote(format!("REMOTE in the directory is damaged: {error}").into())
        })?;
        let note = note.unwrap_or_default();
        let access = self.access(database);
        let newest = access.newest_claim().map_err(refused)?;
        let begin = note.known.map_or(unopened.first(), |known| known.local);
        let compare = || Compare::new(unopened.blocks(begin)?, begin, note.known);
        // Behind an end is the generation of the process that has created it.
        let claimed =
            note.known.map_or(0, |Known { position: Position { last, is_end }, .. }| {
                last.generation + u64::from(is_end)
            });
        match &newest {
            None if note.known.is_some() => {
                let what = "the place is empty, and the log of this directory was there";
                return Err(OpenError::Remote(what.into()));
            }
            Some(claim) if claim.header.generation < claimed => {
                let what = format!("{} cannot be read yet", Name::Claim(claimed));
                return Err(refused(PlaceError::Unknown(what).into()));
            }
            Some(claim) if !note.numbers.contains(&claim.header.number) => {
                self.check_all_there(&access, note.known, compare()?)?;
                if !self.options.takes_over {
                    return Err(refused(led(&access, claim).unwrap_or_else(|error| error)));
                }
            }
            _ => {}
        }
        let is_gone = unopened.checkpoint().is_some() && note.known.is_none();
        if is_gone || begin < unopened.first() {
            let what = "the directory has given back a part of its log that the place lacks, and \
                        this version sends no snapshots; use a database that is new";
            return Err(OpenError::Remote(what.into()));
        }
        let position = note.known.map(|known| known.position);
        let mut compare = compare()?;
        let remember = |bytes: &[u8]| unopened.remember(bytes);
        let leader = self.claim(&access, note, &remember, position, &mut compare)?;
        let known = compare.known(leader.position());
        let (bytes, _) = compare.rest()?;
        Ok(Led { leader, known, bytes })
    }

    /// Checks that the place has everything of the local log, of which another process has led a
    /// later generation.
    fn check_all_there(
        &self,
        access: &Access,
        known: Option<Known>,
        mut compare: Compare<'_>,
    ) -> Result<(), OpenError> {
        let position = known.map(|known| known.position).unwrap_or_default();
        let Access { place, database, patience } = access.clone();
        let mut follower = Follower::new(place, database, position, patience);
        loop {
            match follower.step(&mut compare) {
                Ok(Progress::Nothing) => break,
                Ok(_) => {}
                // A claim would end the lead of the other process, and not begin one.
                Err(error @ ReachError::Receiver(_)) if self.options.takes_over => {
                    return Err(refused(error));
                }
                // What goes on behind the end of the local log is the other process's.
                Err(ReachError::Receiver(_)) => break,
                Err(error) => return Err(refused(error)),
            }
        }
        match compare.rest()?.1 {
            0 => Ok(()),
            count => {
                let last = follower.position().last;
                let what = format!(
                    "{count} transactions are only here; both agree up to block {} of generation \
                     {} of the place",
                    last.place, last.generation
                );
                Err(OpenError::Diverged { what })
            }
        }
    }

    fn claim(
        &self,
        access: &Access,
        mut note: Note,
        remember: &dyn Fn(&[u8]) -> io::Result<()>,
        position: Option<Position>,
        receiver: &mut dyn Receiver,
    ) -> Result<Leader, OpenError> {
        let number = random::number();
        note.add(number);
        let noted = remember(&note.encode());
        noted.map_err(|source| OpenError::Io { file: "REMOTE".to_string(), source })?;
        let claim = Claim {
            database: access.database,
            number,
            earlier: &note.numbers,
            against_others: self.options.takes_over,
            position,
            patience: access.patience,
        };
        let leader = Leader::claim(Arc::clone(&self.place), &claim, receiver).map_err(refused)?;
        Ok(leader.with_patience(PATIENCE))
    }
}

/// A receiver for a place that is empty.
struct Empty;

impl Receiver for Empty {
    fn begin(&mut self, _: &crate::object::Object) -> Result<(), Refusal> {
        self.refuse()
    }

    fn part(&mut self, _: &crate::object::Object) -> Result<(), Refusal> {
        self.refuse()
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        self.refuse()
    }

    fn block(&mut self, _: &crate::object::Object) -> Result<(), Refusal> {
        self.refuse()
    }
}

impl Empty {
    fn refuse(&self) -> Result<(), Refusal> {
        Err(Box::new(Different("the place has commits, and this directory is new".to_string())))
    }
}

impl Remote for Primary {
    fn open(&self, unopened: &Unopened<'_>) -> Result<(), OpenError> {
        if self.opening().thread.is_some() {
            let what = "another open database uses these options; make others for each database";
            return Err(OpenError::Remote(what.into()));
        }
        let led = match unopened.uuid() {
            Some(uuid) => Some(self.claim_again(unopened, uuid)?),
            None => {
                let known = crate::tools::status(Arc::clone(&self.place), 1, Patience::default());
                if let Some(status) = known.map_err(refused)? {
                    let id = u128::from_be_bytes(status.database);
                    let what = format!(
                        "the place has the log of database {id:032x}, and this directory is new; \
                         follow the place instead"
                    );
                    return Err(OpenError::Remote(what.into()));
                }
                None
            }
        };
        self.opening().led = led;
        Ok(())
    }

    fn begin(&self, mut feed: Feed, replies: Arc<dyn Replies>) -> Result<(), OpenError> {
        let mut opening = self.opening();
        let led = match opening.led.take() {
            Some(led) => led,
            None => self.claim_new(&feed)?,
        };
        feed.go_to(led.known.local);
        self.shared.generation.store(led.leader.generation(), Ordering::SeqCst);
        *self.shared.state() = State {
            replies: Some(Arc::clone(&replies)),
            durable: (0, led.bytes),
            ..State::default()
        };
        let sender = Sender {
            shared: Arc::clone(&self.shared),
            options: self.options,
            own: feed.generation(),
            feed,
            replies,
            last: led.known.cut,
            known: led.known,
            leader: led.leader,
            is_current: false,
        };
        sender.note().map_err(|source| OpenError::Io { file: "REMOTE".to_string(), source })?;
        let thread = Builder::new().name("candide-reach".to_string()).spawn(move || sender.run());
        opening.thread = Some(thread.map_err(|error| OpenError::Remote(error.into()))?);
        Ok(())
    }

    fn durable(&self, cut: u64, bytes: u64) {
        let mut state = self.shared.state();
        let (before, _) = state.durable;
        state.durable = (before.max(cut), state.durable.1 + bytes);
        let is_wanted = state.wanted.0 > state.there.0 && cut > before;
        let unsent = state.unsent();
        // The thread sleeps longer if there is nothing to write.
        let is_first = bytes > 0 && unsent <= bytes;
        if is_wanted || is_first || unsent >= OBJECT_BYTES {
            self.shared.called.notify_one();
        }
        let behind = (unsent > self.options.backlog).then(|| state.replies.clone()).flatten();
        drop(state);
        if let Some(replies) = behind {
            replies.set_behind(true);
        }
    }

    fn want(&self, cut: u64, append: u64) {
        let mut state = self.shared.state();
        state.wanted = (state.wanted.0.max(cut), state.wanted.1.max(append));
        self.shared.called.notify_one();
    }

    fn appends(&self) -> u64 {
        self.shared.appends.load(Ordering::SeqCst)
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::SeqCst)
    }

    fn release(&self, last: u64) -> u64 {
        let mut state = self.shared.state();
        state.release.0 = state.release.0.max(last);
        self.shared.called.notify_one();
        while state.release.1 < last && !state.is_over && state.closing.is_none() {
            state = self.shared.worked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.release.1
    }

    fn close(&self) {
        let Opening { led, thread } = std::mem::take(&mut *self.opening());
        drop(led);
        self.shared.state().closing = Some(Instant::now() + CLOSE_PATIENCE);
        self.shared.called.notify_one();
        self.shared.worked.notify_all();
        // A waker that drops the last handle may run on the thread, which then ends later.
        if let Some(thread) = thread.filter(|handle| handle.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
        self.shared.state().replies = None;
    }
}

/// The thread that writes.
#[derive(Debug)]
struct Sender {
    shared: Arc<Shared>,
    options: ReplicateOptions,
    leader: Leader,
    feed: Feed,
    replies: Arc<dyn Replies>,
    /// The generation of the local log that is being written.
    own: u64,
    /// The stamp generation and the cut of the last object.
    last: (u64, u64),
    known: Known,
    /// Whether the place has had all that was durable, once: what the directory has recovered, too.
    is_current: bool,
}

/// What an append is to do.
struct Append {
    number: u64,
    /// The cut up to which commits were durable before the append began.
    cut: u64,
}

impl Sender {
    fn run(mut self) {
        let (behind, own) = (self.last, self.own);
        // Another directory has led, whose stamps mean nothing here.
        let is_anew = behind.0 >= own;
        if is_anew {
            self.last = (own, 0);
        }
        let kind = CatalogKind::Whole { own, behind, is_anew };
        let tables = self.feed.tables();
        let mut catalog = Some(Catalog { kind, tables });
        let mut before = Instant::now();
        while let ControlFlow::Continue(append) = self.await_work(before, catalog.is_some()) {
            before = Instant::now();
            let written = match catalog.take() {
                // Nothing else is in it, so that records of earlier generations come behind it.
                Some(catalog) => self.write(&append, Some(&catalog), &Run::default(), false),
                None => self.append(&append),
            };
            if let Err(failure) = written {
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

    /// Waits until there is something to write, and begins an append. Breaks at the end.
    fn await_work(&self, before: Instant, is_first: bool) -> ControlFlow<(), Append> {
        let mut state = self.shared.state();
        loop {
            let State { durable, there, wanted, release, closing, .. } = *state;
            let unsent = state.unsent();
            let is_closed = closing.is_some_and(|_| unsent == 0 && !is_first);
            if is_closed || closing.is_some_and(|until| Instant::now() >= until) {
                return ControlFlow::Break(());
            }
            let is_wanted = wanted.1 > there.2 || (wanted.0 > there.0 && durable.0 > there.0);
            let is_urgent =
                is_first || is_wanted || release.0 > release.1 || unsent >= OBJECT_BYTES;
            let pause = if unsent > 0 { self.options.every } else { HEARTBEAT };
            let left = pause.saturating_sub(before.elapsed());
            let is_due = left.is_zero() && (unsent > 0 || self.replies.can_write());
            if is_urgent || is_due || closing.is_some() {
                let number = self.shared.appends.fetch_add(1, Ordering::SeqCst) + 1;
                return ControlFlow::Continue(Append { number, cut: durable.0 });
            }
            let left = if left.is_zero() { HEARTBEAT } else { left };
            let woken = self.shared.called.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes the next run of the log as an object.
    fn append(&mut self, append: &Append) -> io::Result<()> {
        // Not before the cut: what is durable with it is before this end (PR1).
        let end = self.feed.end();
        let mut run = self.feed.read(OBJECT_BYTES as usize).map_err(io::Error::other)?;
        if self.known.words > 0 && run.last.is_some() {
            run.records.drain(..self.known.words as usize);
            self.known.words = 0;
        }
        // The end of a log behind which another directory has led has nothing but its last cut.
        run.last = run.last.filter(|last| last.0 >= self.last.0);
        let is_whole = self.feed.place() >= end;
        let tables = std::mem::take(&mut run.tables);
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
        if is_whole && next.0 == self.own {
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
                    if state.closing.is_some_and(|until| Instant::now() >= until) {
                        return Ok(ControlFlow::Break(()));
                    }
                    let slept = self.shared.called.wait_timeout(state, PAUSE);
                    drop(slept.unwrap_or_else(PoisonError::into_inner));
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
        if wants_back && is_noted {
            state.release.1 = self.known.local.segment - 1;
        }
        drop(state);
        self.shared.worked.notify_all();
        self.replies.reach(cut, number);
        if unsent <= self.options.backlog {
            self.replies.set_behind(false);
        }
    }

    /// Notes in the directory up to where the place has the log.
    fn note(&self) -> io::Result<()> {
        let note = Note { numbers: vec![self.leader.number()], known: Some(self.known) };
        self.feed.remember(&note.encode())
    }
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

/// Returns the reason why a place cannot be used, as an error of opening.
fn refused(error: ReachError) -> OpenError {
    match error {
        ReachError::Led { generation, since, last } => {
            OpenError::Led { generation, since, last_block: last }
        }
        ReachError::Receiver(refusal) => match refusal.downcast::<Different>() {
            Ok(different) => OpenError::Diverged { what: different.0 },
            Err(refusal) => OpenError::Remote(refusal),
        },
        other => OpenError::Remote(Box::new(other)),
    }
}
