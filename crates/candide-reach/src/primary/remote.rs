//! The primary: a remote that writes the log of its database into a place.
//!
//! A few threads read the durable part of the local log, and write it as objects: one of them at a
//! time makes the next object, and writes it while another one makes the one behind. An object goes
//! out at once if a thread waits for it, and otherwise after [`ReplicateOptions::replicate_every`].
//! Without anything new, one without contents goes out regularly, so that followers see a leader
//! that lives. The thread that makes a checkpoint sends it as a snapshot, and deletes what that
//! covers.
//!
//! The place may lack a part of the log that is here only in a checkpoint: when it begins to get
//! the log of a database that had one, when the database was opened without it, and when it lags
//! so much that checkpoints do not wait for it. Then the checkpoint goes out as a restart.
//!
//! # Invariants
//! * **PR1** A cut is published only when the place has every commit with a stamp up to it: when
//!   the last object that it has contains the end of what was durable when the cut was. What an
//!   object brings is published once all objects before it are there, too, and in that order.
//! * **PR2** An append begins, and gets its number, before its object is made. So a transaction
//!   that had ended when an append began rests on nothing that a later leader can have replaced,
//!   once the append has succeeded. It may rest on what was recovered, so appends count only once
//!   the place has that.
//! * **PR3** A segment of the local log is released only when the place has it, and the directory
//!   remembers that; or the place gets a restart before anything else. So the directory remembers
//!   a position that is not before any floor which it has made, and what a floor covers may go.
//! * **PR4** A segment that the place lacks is released only while no thread reads the log, and
//!   none reads any more before the restart.

#![forbid(unsafe_code)]

use super::checkpoints::send_snapshot;
use super::note::{Known, Note};
use super::opening::{Led, Opener, refused};
use super::options::{ReplicateOptions, UNDER_WAY_MAX};
use super::sender::{OBJECT_BYTES, Sender};
use super::shared::{Shared, State};
use crate::access::Patience;
use crate::error::ReachError;
use crate::leader::Leader;
use crate::place::Place;
use candide_log::OpenError;
use candide_log::format::Uuid;
use candide_log::store::{CheckpointParts, Feed, LogPlace, Remote, Replies, Unopened};
use std::fmt::Debug;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a close tries to write what the place lacks.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// A remote that writes the log into a place.
#[derive(Debug)]
pub(crate) struct Primary {
    opener: Opener,
    /// Whether this is the remote of a standby, which writes once the standby is promoted.
    is_of_standby: bool,
    shared: Arc<Shared>,
    opening: Mutex<Opening>,
}

/// What the calls at the opening and the close hand on.
#[derive(Debug, Default)]
struct Opening {
    /// The lead that has begun before the contents were loaded.
    led: Option<Led>,
    /// What a standby needs to begin to lead.
    following: Option<(Feed, Arc<dyn Replies>)>,
    thread: Option<JoinHandle<()>>,
}

impl Primary {
    pub(super) fn new(place: Arc<dyn Place>, options: ReplicateOptions) -> Primary {
        let (shared, opening) = Default::default();
        Primary { opener: Opener { place, options }, is_of_standby: false, shared, opening }
    }

    /// Returns the remote of a standby.
    pub(crate) fn of_standby(place: Arc<dyn Place>, options: ReplicateOptions) -> Primary {
        Primary { is_of_standby: true, ..Primary::new(place, options) }
    }

    /// Notes in the directory of a standby, before it claims, the number of its claim.
    pub(crate) fn note_promotion(&self, database: Uuid, number: u64) -> io::Result<()> {
        let note = Note { database, numbers: vec![number], known: None, is_following: true };
        match &self.opening().following {
            Some((feed, _)) => feed.remember(&note.encode()),
            None => Err(io::Error::other("the standby is closed")),
        }
    }

    /// Begins to write the log of a standby, which has claimed. The place has everything that is
    /// durable here, up to a cut of a stamp generation, and nothing else has been written. Unless
    /// each table `has_same_number` in the log of the place, that gets a checkpoint first, which
    /// has been made and contains all that is here.
    pub(crate) fn lead(
        &self,
        database: Uuid,
        leader: Leader,
        cut: (u64, u64),
        has_same_numbers: bool,
    ) -> Result<Arc<Leader>, OpenError> {
        let mut opening = self.opening();
        let (feed, replies) = opening.following.take().expect("a standby leads once");
        if !has_same_numbers {
            let (end, mut is_there) = (feed.end(), false);
            feed.with_checkpoint(&mut |parts| is_there = parts.first() >= end);
            if !is_there {
                let what = "the checkpoint for the place lacks a part of the log here";
                return Err(OpenError::Remote(what.into()));
            }
        }
        // From now on, no segment is given back that is not closed yet.
        self.shared.has_led.store(true, Ordering::SeqCst);
        let local = if has_same_numbers { feed.end() } else { LogPlace::default() };
        let known = Known { position: leader.position(), local, words: 0, cut };
        let led = Led { database, leader, known, bytes: 0, lacks_log: !has_same_numbers };
        self.start(&mut opening, led, feed, replies)
    }

    fn opening(&self) -> MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a database that is opened without its place: what the place lacks is
    /// kept.
    fn alone(&self, unopened: &Unopened<'_>) -> Result<State, OpenError> {
        let Some(Note { known: Some(known), .. }) = Note::of(unopened)? else {
            return Ok(State::default());
        };
        if known.local < unopened.first() {
            return Ok(State::default());
        }
        let bytes = known.lacking(unopened)?;
        let kept = Some(known.local.segment);
        Ok(State { kept, durable: (0, bytes), ..State::default() })
    }

    /// Starts the threads that write.
    fn start(
        &self,
        opening: &mut Opening,
        led: Led,
        mut feed: Feed,
        replies: Arc<dyn Replies>,
    ) -> Result<Arc<Leader>, OpenError> {
        let Led { database, leader, known, bytes, lacks_log } = led;
        if !lacks_log {
            feed.go_to(known.local);
        }
        let leader = Arc::new(leader);
        self.shared.generation.store(leader.generation(), Ordering::SeqCst);
        {
            let mut state = self.shared.state();
            *state = State {
                database: Some(database),
                replies: Some(Arc::clone(&replies)),
                leader: Some(Arc::clone(&leader)),
                durable: (state.durable.0, bytes),
                wanted: state.wanted,
                release: (state.release.0, 0),
                known,
                lacks_log,
                ..State::default()
            };
        }
        let led = Arc::clone(&leader);
        let shared = Arc::clone(&self.shared);
        let sender =
            Sender::new(shared, self.opener.options, (database, leader), known, feed, replies);
        sender.note().map_err(|source| OpenError::Io { file: "REMOTE".to_string(), source })?;
        let thread = Builder::new().name("candide-reach".to_string()).spawn(move || sender.run());
        opening.thread = Some(thread.map_err(|error| OpenError::Remote(error.into()))?);
        Ok(led)
    }
}

impl Remote for Primary {
    fn open(&self, unopened: &Unopened<'_>) -> Result<(), OpenError> {
        if self.opening().thread.is_some() {
            let what = "another open database uses these options; make others for each database";
            return Err(OpenError::Remote(what.into()));
        }
        let under_way = self.opener.options.under_way;
        if !(1..=UNDER_WAY_MAX).contains(&under_way) {
            let what = format!(
                "objects_under_way is {under_way}; from 1 to {UNDER_WAY_MAX} objects may be"
            );
            return Err(OpenError::Remote(what.into()));
        }
        *self.shared.state() = State::default();
        self.opener.check_apart(unopened)?;
        if self.is_of_standby {
            let has_led = Note::of(unopened)?.is_some_and(|note| !note.is_following);
            if has_led {
                let what = "this directory has led; set it aside, and follow by a new one";
                return Err(refused(ReachError::Misuse(what.to_string())));
            }
            return Ok(());
        }
        if self.opener.options.is_alone {
            *self.shared.state() = self.alone(unopened)?;
            return Ok(());
        }
        let led = match unopened.uuid() {
            Some(uuid) => Some(self.opener.claim_again(unopened, uuid)?),
            None => {
                let known =
                    crate::tools::status(Arc::clone(&self.opener.place), 1, Patience::default());
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

    fn begin(&self, feed: Feed, replies: Arc<dyn Replies>) -> Result<(), OpenError> {
        if self.opener.options.is_alone {
            return Ok(());
        }
        let mut opening = self.opening();
        if self.is_of_standby {
            opening.following = Some((feed, replies));
            return Ok(());
        }
        let led = match opening.led.take() {
            Some(led) => led,
            None => self.opener.claim_new(&feed)?,
        };
        self.start(&mut opening, led, feed, replies).map(drop)
    }

    fn copies(&self) -> bool {
        match self.is_of_standby {
            true => self.shared.has_led.load(Ordering::SeqCst),
            false => !self.opener.options.is_alone,
        }
    }

    fn durable(&self, cut: u64, bytes: u64) {
        let mut state = self.shared.state();
        let (before, _) = state.durable;
        state.durable = (before.max(cut), state.durable.1 + bytes);
        let is_wanted = state.is_wanted() && cut > before;
        let untaken = state.untaken();
        // The thread sleeps longer if there is nothing to write.
        let is_first = bytes > 0 && untaken <= bytes;
        if is_wanted || is_first || untaken >= OBJECT_BYTES {
            self.shared.called.notify_one();
        }
        let is_behind = state.unsent() > self.opener.options.backlog;
        let replies = state.replies.clone().filter(|_| is_behind);
        drop(state);
        if let Some(replies) = replies {
            replies.set_behind(true);
            // A checkpoint waits no more.
            self.shared.worked.notify_all();
        }
    }

    fn want(&self, cut: u64, append: u64) {
        let mut state = self.shared.state();
        state.wanted = (state.wanted.0.max(cut), state.wanted.1.max(append));
        // What is not durable yet wakes the thread when it is.
        if state.is_wanted() {
            self.shared.called.notify_one();
        }
    }

    fn appends(&self) -> u64 {
        self.shared.appends.load(Ordering::SeqCst)
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::SeqCst)
    }

    fn database(&self, own: Uuid) -> Uuid {
        self.shared.state().database.unwrap_or(own)
    }

    fn release(&self, last: u64) -> u64 {
        let mut state = self.shared.state();
        let lags = |state: &State| state.unsent() > self.opener.options.backlog;
        if !self.copies() {
            let kept = state.kept.filter(|_| !lags(&state));
            return kept.map_or(last, |kept| last.min(kept - 1));
        }
        state.release.0 = state.release.0.max(last);
        self.shared.called.notify_one();
        while state.release.1 < last && !state.is_over && state.closing.is_none() {
            // PR4
            if lags(&state) && !state.is_reading && !state.lacks_log {
                (state.lacks_log, state.durable_then) = (true, state.durable.1);
                self.shared.called.notify_one();
            }
            if state.lacks_log {
                return last;
            }
            state = self.shared.worked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.release.1
    }

    fn checkpointed(&self, parts: &CheckpointParts<'_>) {
        let last = parts.first().segment - 1;
        let (leader, end) = {
            let mut state = self.shared.state();
            let end = state.ends.remove(&last);
            state.ends = state.ends.split_off(&last);
            let is_wanted = !state.lacks_log && !state.is_over && state.closing.is_none();
            let leader = state.leader.clone().filter(|_| is_wanted);
            let (Some(leader), Some(end)) = (leader, end) else { return };
            (leader, end)
        };
        // Cuts that are closed without a block have no records.
        let (generation, cut) = parts.state();
        let is_its_end = end.state.0 == generation && end.state.1 >= cut;
        // A table that was dropped since is not there, although the object has its rows.
        let is_dropped = |table: u32| end.tables[&table].is_in_use() && parts.lacks(table);
        if !is_its_end || end.tables.keys().any(|table| is_dropped(*table)) {
            return;
        }
        let is_given_up = || {
            let state = self.shared.state();
            state.is_over || state.closing.is_some() || state.unsent() > self.opener.options.backlog
        };
        // The next checkpoint is sent if this one is not, and what is left is deleted then.
        let sent = send_snapshot(&self.shared, &is_given_up, &leader, &end, parts);
        let cleaned = sent.and_then(|()| Ok(leader.clean(self.opener.options.keep)?));
        let failure = cleaned.err().map(|failure| failure.to_string());
        self.shared.state().checkpoint_failure = failure;
    }

    fn checkpoint_failure(&self) -> Option<String> {
        self.shared.state().checkpoint_failure.clone()
    }

    fn close(&self) {
        let Opening { led, following, thread } = std::mem::take(&mut *self.opening());
        drop((led, following));
        let is_own = {
            let mut state = self.shared.state();
            state.closing = Some(Instant::now() + CLOSE_PATIENCE);
            state.threads.contains(&thread::current().id())
        };
        self.shared.wake_all();
        // A waker that drops the last handle may run on one of the threads, which then end later.
        if let Some(thread) = thread.filter(|_| !is_own) {
            let _ = thread.join();
        }
        let mut state = self.shared.state();
        (state.replies, state.leader) = (None, None);
    }
}
