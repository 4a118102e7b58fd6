//! A standby: a database that follows the one whose log is in a place, and can take over.
//!
//! A thread reads the objects of the place as a [`Follower`] does, and applies them to a
//! [`Replica`], which has a log and checkpoints of its own. With each object it notes its position
//! there, in the object's last transaction; so a standby begins again where it has ended.

#![forbid(unsafe_code)]

mod applier;
mod error;
mod generations;
mod note;
mod parts;
mod reached;
mod restore;
mod sums;
mod whose;

pub use error::{StandbyError, WaitError};
pub use restore::{Restored, restore};
pub use whose::belongs_to;

use crate::access::{Access, Patience};
use crate::error::ReachError;
use crate::follower::{Follower, Progress};
use crate::leader::{Claim, Leader, Position};
use crate::name::Name;
use crate::object::FloorNumber;
use crate::place::Place;
use crate::primary::{Primary, ReplicateOptions};
use crate::random;
use crate::tools;
use applier::{Applier, Refused};
use candide::replica::Replica;
use candide::{Builder, Database, Error, LogOptions, Mvcc, OpenError};
use candide_log::disk::Disk;
use candide_log::format::Uuid;
use note::{End, Noted};
use reached::Reached;
use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The longest time that the thread waits for the next object before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(50);
/// The pause after an error that may pass.
const PAUSE: Duration = Duration::from_millis(100);
const ONCE: Patience = Patience { calls: 1, pause: Duration::ZERO, pause_max: Duration::ZERO };

/// Options of a [`Standby`]. The defaults are good choices.
#[derive(Debug, Clone)]
pub struct StandbyOptions {
    builder: Builder<Mvcc>,
    log: LogOptions,
    patience: Patience,
    replicate: ReplicateOptions,
}

impl Default for StandbyOptions {
    fn default() -> StandbyOptions {
        let (builder, log, patience) =
            (Database::<Mvcc>::builder(), LogOptions::new(), Patience::default());
        StandbyOptions { builder, log, patience, replicate: ReplicateOptions::new() }
    }
}

impl StandbyOptions {
    /// Returns the default options.
    pub fn new() -> StandbyOptions {
        StandbyOptions::default()
    }

    /// Sets the builder of the database: its memory limit, for example.
    #[must_use]
    pub fn builder(self, builder: Builder<Mvcc>) -> StandbyOptions {
        StandbyOptions { builder, ..self }
    }

    /// Sets the options of the standby's own log.
    #[must_use]
    pub fn log(self, log: LogOptions) -> StandbyOptions {
        StandbyOptions { log, ..self }
    }

    /// Sets how often calls of the place that have no answer are repeated.
    #[must_use]
    pub fn patience(self, patience: Patience) -> StandbyOptions {
        StandbyOptions { patience, ..self }
    }

    /// Sets how the database writes to the place once the standby has been promoted.
    #[must_use]
    pub fn replicate(self, replicate: ReplicateOptions) -> StandbyOptions {
        StandbyOptions { replicate, ..self }
    }
}

/// A database that follows the one whose log is in a place.
///
/// The program reads its [`database`](Standby::database) meanwhile. Each transaction of the program
/// sees the state after a whole object of the place, and never fails because of what is applied.
/// Writes are refused until [`promote`](Standby::promote).
pub struct Standby {
    db: Database<Mvcc>,
    place: Arc<dyn Place>,
    /// What writes to the place after a promotion.
    primary: Option<Arc<Primary>>,
    options: StandbyOptions,
    database: Uuid,
    reached: Arc<Reached>,
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<Ended>>,
}

/// How far a standby has come, also while it is promoted: then it applies what the place has.
#[derive(Debug, Clone)]
pub struct StandbyProgress(Arc<Reached>);

impl StandbyProgress {
    /// Returns the last object that has been applied, as [`Standby::applied`] does.
    pub fn applied(&self) -> (u64, u64) {
        self.0.applied()
    }
}

/// What the thread leaves.
struct Ended {
    applier: Applier,
    position: Position,
}

/// What a promotion has made of a standby.
#[derive(Debug)]
pub struct Promoted {
    /// The database, which the program can write to. It has all that the place has, and its log
    /// goes there from now on, so that transactions can wait for
    /// [`Level::Replicated`](candide::Level::Replicated). It is opened again with
    /// [`replicate`](crate::Replicate::replicate).
    pub database: Database<Mvcc>,
    /// The leader of the new generation, by which the database writes.
    pub leader: Arc<Leader>,
}

impl Standby {
    /// Follows the database whose log is in `place`, by a database in the directory `dir`, which is
    /// made if there is none. Returns when it has a whole state: at once, if it has followed
    /// before; otherwise when it has taken in the newest snapshot, or the first object. Then a
    /// thread goes on.
    ///
    /// # Errors
    /// [`StandbyError`], among them [`ReachError::OtherDatabase`]: the directory has followed
    /// another database than that whose log is in the place. If the place does not answer, the call
    /// may be repeated. An empty place leaves the directory as it is.
    pub fn follow(
        place: impl Place + 'static,
        dir: impl AsRef<Path>,
        options: StandbyOptions,
    ) -> Result<Standby, StandbyError> {
        let place: Arc<dyn Place> = Arc::new(place);
        let found = find(&place)?;
        let (primary, log) = with_primary(&place, &options);
        let replica = options.builder.clone().follow(dir, log)?;
        Standby::begin(place, found, replica, Some(primary), options)
    }

    /// As [`Standby::follow`], on a disk, which may be a simulated one.
    ///
    /// # Errors
    /// As [`Standby::follow`].
    #[doc(hidden)]
    pub fn follow_on(
        place: Arc<dyn Place>,
        disk: Arc<dyn Disk>,
        options: StandbyOptions,
    ) -> Result<Standby, StandbyError> {
        let found = find(&place)?;
        let (primary, log) = with_primary(&place, &options);
        let replica = options.builder.clone().follow_on(disk, log)?;
        Standby::begin(place, found, replica, Some(primary), options)
    }

    /// As [`Standby::follow`], with a replica that is open, whose database does not write to the
    /// place after a promotion.
    ///
    /// # Errors
    /// As [`Standby::follow`].
    #[doc(hidden)]
    pub fn of(
        place: Arc<dyn Place>,
        replica: Replica<Mvcc>,
        options: StandbyOptions,
    ) -> Result<Standby, StandbyError> {
        let found = find(&place)?;
        Standby::begin(place, found, replica, None, options)
    }

    fn begin(
        place: Arc<dyn Place>,
        found: Option<(Name, Uuid)>,
        replica: Replica<Mvcc>,
        primary: Option<Arc<Primary>>,
        options: StandbyOptions,
    ) -> Result<Standby, StandbyError> {
        let noted = replica.last_note().map(|note| Noted::of(&note));
        let database = match (&noted, found) {
            (Some(noted), Some((claim, found))) if found != noted.database => {
                let name = claim.to_string();
                return Err(ReachError::OtherDatabase { name, found }.into());
            }
            (Some(noted), _) => noted.database,
            (None, Some((_, found))) => found,
            (None, None) => {
                let found = tools::claimed(Arc::clone(&place), options.patience)?;
                found.ok_or(StandbyError::Nothing)?.1
            }
        };
        let what = match noted.map_or(End::None, |noted| noted.end) {
            End::None => "",
            End::Alone => "may have commits of its own",
            End::Different => "has other rows than the leader had",
        };
        if !what.is_empty() {
            let what = format!(
                "the database in the directory follows no more, and {what}; follow with a new \
                 directory"
            );
            return Err(StandbyError::Stopped(what));
        }
        let db = replica.database().clone();
        let reached = Arc::<Reached>::default();
        let from = replica.note().map_or_else(Position::default, |note| Noted::of(&note).resume);
        let mut applier = Applier::new(replica, database, noted, Arc::clone(&reached));
        let mut follower = Follower::new(Arc::clone(&place), database, from, options.patience);
        while !applier.is_whole() {
            match step(&mut follower, &mut applier, &place, &options) {
                Step::Met => {}
                Step::Nothing => {
                    let (shown, found) = applier.shown();
                    return Err(match shown {
                        (0, 0) => StandbyError::Nothing,
                        _ => StandbyError::Behind { shown, found },
                    });
                }
                Step::Trouble(error) => return Err(error.into()),
                Step::Over(error) => return Err(StandbyError::Stopped(error)),
            }
        }
        let thread = {
            let (place, options, reached) = (place.clone(), options.clone(), reached.clone());
            thread::Builder::new()
                .name("candide-standby".to_owned())
                .spawn(move || run(follower, applier, &place, &options, &reached))
                .map_err(|error| StandbyError::Stopped(error.to_string()))?
        };
        Ok(Standby { db, place, primary, options, database, reached, thread: Some(thread) })
    }

    /// Returns the database, which the program reads.
    pub fn database(&self) -> &Database<Mvcc> {
        &self.db
    }

    /// Waits until the database has the transaction at this position, and all before it, at most
    /// for `timeout`. The position is that of a transaction of the primary
    /// ([`Pending::position`](candide::Pending::position)).
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_for(
        &self,
        position: candide::Position,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        if position.database != self.database {
            return Err(WaitError::OtherDatabase);
        }
        self.reached.wait_for(position.generation, position.stamp, timeout)
    }

    /// Returns the last object that has been applied: its generation, and its place in the log of
    /// that generation.
    pub fn applied(&self) -> (u64, u64) {
        self.reached.applied()
    }

    /// Returns what tells how far the standby has come, also while it is promoted.
    pub fn progress(&self) -> StandbyProgress {
        StandbyProgress(Arc::clone(&self.reached))
    }

    /// Returns why the standby follows no more, such as a lack of memory; `None` while it follows.
    /// Its database stays at the last whole object.
    pub fn failure(&self) -> Option<String> {
        self.reached.failure()
    }

    /// Returns the error of the last attempt to read from the place, if no later one has succeeded.
    /// The standby tries again.
    pub fn trouble(&self) -> Option<String> {
        self.reached.trouble()
    }

    /// Takes over: claims the next generation, so that the present leader can acknowledge nothing
    /// more, and applies what the place has. Then the program writes, by the handles that it has. A
    /// standby that lags takes its time ([`Standby::progress`]).
    ///
    /// # Errors
    /// [`StandbyError`]. The generation may be claimed then; the present leader is superseded if it
    /// is.
    pub fn promote(mut self) -> Result<Promoted, StandbyError> {
        self.reached.stop();
        let thread = self.thread.take().expect("joined only here and at the drop");
        let Ok(Ended { mut applier, position }) = thread.join() else {
            return Err(StandbyError::Stopped("the thread of the standby has panicked".to_owned()));
        };
        if let Some(failure) = self.reached.failure() {
            return Err(StandbyError::Stopped(failure));
        }
        let number = random::number();
        if let Some(primary) = &self.primary {
            let noted = primary.note_promotion(self.database, number);
            noted.map_err(|source| OpenError::Io { file: "REMOTE".to_string(), source })?;
        }
        let claim = Claim {
            database: self.database,
            number,
            earlier: &[],
            against_others: true,
            position: Some(position),
            patience: self.options.patience,
        };
        let leader = Leader::claim(Arc::clone(&self.place), &claim, &mut applier)?;
        let Some(primary) = &self.primary else {
            let database = applier.end()?;
            return Ok(Promoted { database, leader: Arc::new(leader) });
        };
        let (cut, mut leader, mut led) = (applier.state(), Some(leader), None);
        let database = applier.promote(&mut |has_same_numbers| {
            if !has_same_numbers {
                // The place gets it, and must have no older state.
                self.db.checkpoint()?;
            }
            let leader = leader.take().expect("it is called once");
            let begun = primary.lead(self.database, leader, cut, has_same_numbers);
            led = Some(begun.map_err(|error| Error::Files { problem: error.to_string() })?);
            Ok(())
        })?;
        let leader = led.expect("the primary leads");
        Ok(Promoted { database, leader })
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.reached.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Debug for Standby {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Returns whose log a place has; `None` if it does not answer at once.
fn find(place: &Arc<dyn Place>) -> Result<Option<(Name, Uuid)>, StandbyError> {
    match tools::claimed(Arc::clone(place), ONCE) {
        Ok(None) => Err(StandbyError::Nothing),
        // A standby that has followed is opened without the place, too.
        Err(ReachError::Place(_)) => Ok(None),
        found => Ok(found?),
    }
}

/// Returns what writes to the place after a promotion, and options of the log with it.
fn with_primary(place: &Arc<dyn Place>, options: &StandbyOptions) -> (Arc<Primary>, LogOptions) {
    let primary = Arc::new(Primary::of_standby(Arc::clone(place), options.replicate));
    let log = options.log.clone().remote(Arc::<Primary>::clone(&primary));
    (primary, log)
}

/// What a step has met.
enum Step {
    /// An object or a snapshot.
    Met,
    Nothing,
    /// An error. Another step may succeed.
    Trouble(ReachError),
    /// The replica has ended.
    Over(String),
}

/// Lets the follower make a step. If the state here is not one behind which the log goes on, the
/// next step begins anew.
fn step(
    follower: &mut Follower,
    applier: &mut Applier,
    place: &Arc<dyn Place>,
    options: &StandbyOptions,
) -> Step {
    match follower.step(applier) {
        Ok(Progress::Nothing) => Step::Nothing,
        Ok(Progress::End) => Step::Met,
        Ok(Progress::Block | Progress::Snapshot) => compare(applier, place, options),
        Err(error) => match applier.take_refusal() {
            Some(Refused::Elsewhere) => {
                follower.leave_log();
                Step::Trouble(error)
            }
            Some(Refused::Over(what)) => Step::Over(what),
            None => Step::Trouble(error),
        },
    }
}

/// Compares the state with that of the leader, if a block has named a new floor. A floor that
/// cannot be read is not compared.
fn compare(applier: &mut Applier, place: &Arc<dyn Place>, options: &StandbyOptions) -> Step {
    let Some(FloorNumber { generation, number }) = applier.floor_to_compare() else {
        return Step::Met;
    };
    let (place, patience) = (Arc::clone(place), options.patience);
    let access = Access { place, database: applier.database(), patience };
    let floor = access.floor(generation, number);
    match floor.ok().and_then(|floor| applier.compare(&floor)) {
        None => Step::Met,
        Some(what) => {
            applier.note_difference();
            Step::Over(what)
        }
    }
}

/// Follows until it is to end, or the replica has ended.
fn run(
    mut follower: Follower,
    mut applier: Applier,
    place: &Arc<dyn Place>,
    options: &StandbyOptions,
    reached: &Reached,
) -> Ended {
    while !reached.is_to_stop() {
        match step(&mut follower, &mut applier, place, options) {
            Step::Met => reached.set_trouble(None),
            Step::Nothing => match follower.wait(WAIT) {
                // A later snapshot will be of use.
                Ok(_) if follower.has_left_log() => {}
                Ok(_) => reached.set_trouble(None),
                Err(error) => pause(reached, &error),
            },
            Step::Trouble(error) => pause(reached, &error),
            Step::Over(what) => {
                reached.fail(what);
                break;
            }
        }
    }
    Ended { applier, position: follower.position() }
}

fn pause(reached: &Reached, error: &ReachError) {
    reached.set_trouble(Some(error.to_string()));
    thread::sleep(PAUSE);
}
