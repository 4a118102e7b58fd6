//! Databases whose logs are in a place with faults, a standby that is read meanwhile, leaders that
//! are paused, cut off and replaced, and a promotion. Everything that clients were told, by
//! whichever leader or standby, must be one strictly serializable history.
//!
//! A seed decides the faults, the disturbances and the transactions, and `SimPlace` and the pauses
//! do what it says. The threads of the engine and of `candide-reach` run as the system schedules
//! them: they wait for one another in the standard library, which shuttle does not see. So a seed
//! that has failed is likely to fail again, and not sure to.
//!
//! `CANDIDE_HISTORIES` is the number of histories, and `CANDIDE_SEED` the first seed.

#![cfg(feature = "engine")]

mod lists;
mod world;

use candide::{Database, Level, LogOptions, Mvcc, OpenError};
use candide_check::black::{Options, check_lists};
use candide_log_testing::{SimDisk, play_seeds};
use candide_reach::sim::{Direction, Faults};
use candide_reach::{Patience, Place, Replicate, ReplicateOptions, Standby, StandbyOptions};
use lists::{Lists, read_standby, run_client};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use world::World;

/// The handles of the standby and of what reads at the end. Leaders have those from 10 on.
const STANDBY: usize = 1;
const AT_END: usize = 2;
const PROMOTED: usize = 3;
/// The longest time that anything takes, however busy the machine is.
const HANGS: Duration = Duration::from_secs(300);
/// The clients of each leader.
const CLIENTS: u64 = 2;

/// A leader: its database, its place, and its clients.
struct Leader {
    handle: usize,
    disk: SimDisk,
    /// Whether its clients are to end.
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Leader {
    /// Opens the database on a disk until it leads, and begins with its clients. Between attempts,
    /// the faults are drawn anew.
    fn open(world: &Arc<World>, disk: SimDisk, handle: usize) -> Result<Leader, String> {
        let place = world.place(handle);
        let begun = Instant::now();
        let under_way = 1 + world.draw(6) as usize;
        let db = loop {
            let options = ReplicateOptions::new().objects_under_way(under_way);
            let options = options.replicate_every(Duration::from_millis(1));
            let log = LogOptions::new().segment_bytes(16 << 10).acknowledge(Level::Memory);
            let log = log.replicate_with(place.clone(), options);
            match Database::<Mvcc>::builder().open_on(Arc::new(disk.clone()), log) {
                Ok(db) => break db,
                // The place does not answer.
                Err(OpenError::Remote(_)) if begun.elapsed() < HANGS => world.set_faults(),
                Err(error) => return Err(format!("the primary does not open: {error}")),
            }
        };
        let leader = Leader::of(world, &db, disk, handle);
        world.count("opened");
        leader
    }

    /// Begins with the clients of a database that leads.
    fn of(
        world: &Arc<World>,
        db: &Database<Mvcc>,
        disk: SimDisk,
        handle: usize,
    ) -> Result<Leader, String> {
        let lists = Lists::of(db).map_err(|error| error.to_string())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let client = |client| {
            let (world, db, lists) = (Arc::clone(world), db.clone(), lists.clone());
            let (is_over, session) = (Arc::clone(&is_over), handle as u64 * CLIENTS + client);
            thread::spawn(move || run_client(&world, &db, &lists, session, &is_over))
        };
        let clients = (0..CLIENTS).map(client).collect();
        Ok(Leader { handle, disk, is_over, clients })
    }

    /// Waits until the clients have done all that they do.
    fn finish(&mut self) -> Result<(), String> {
        let mut clients = self.clients.drain(..);
        clients.try_for_each(|client| client.join()).map_err(|_| "a client has panicked".to_owned())
    }

    /// Tells the clients to end, and waits for them.
    fn end(&mut self) -> Result<(), String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.finish()
    }
}

/// Follows a place by a database on a disk. Between attempts, the faults are drawn anew.
fn follow(world: &World, disk: &SimDisk, handle: usize) -> Result<Standby, String> {
    let begun = Instant::now();
    loop {
        let pause = Duration::from_micros(100);
        let patience = Patience { calls: 6, pause, pause_max: pause };
        let log = LogOptions::new().segment_bytes(16 << 10);
        let options = StandbyOptions::new().patience(patience).log(log);
        let place: Arc<dyn Place> = Arc::new(world.place(handle));
        match Standby::follow_on(place, Arc::new(disk.clone()), options) {
            Ok(standby) => return Ok(standby),
            Err(_) if begun.elapsed() < HANGS => world.set_faults(),
            Err(error) => return Err(format!("the standby does not follow: {error}")),
        }
    }
}

/// Plays a history and judges it. Returns what has happened.
fn play(seed: u64) -> Result<BTreeMap<&'static str, u64>, String> {
    let world = Arc::new(World::new(seed));
    let mut leaders = vec![Leader::open(&world, SimDisk::new(), 10)?];
    world.until("the first acknowledgement", || world.acknowledged().is_some())?;
    let standby = Arc::new(follow(&world, &SimDisk::new(), STANDBY)?);
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (world, standby) = (Arc::clone(&world), Arc::clone(&standby));
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || read_standby(&world, &standby, &is_over))
    };
    for step in 0..8 {
        thread::sleep(Duration::from_micros(world.draw(15_000)));
        let leader = leaders.last().expect("there is always one");
        let handle = leader.handle;
        match world.draw(7) {
            0 | 1 => world.set_faults(),
            2 => world.pause(handle, world.draw(2) == 0),
            3 => world.pause(STANDBY, world.draw(2) == 0),
            4 => {
                let direction = match world.draw(2) {
                    0 => Direction::Requests,
                    _ => Direction::Answers,
                };
                world.place(handle).cut(direction, world.draw(2) == 0);
            }
            // The machine of the leader loses the place, and its directory leads elsewhere. Later,
            // the leader before may reach the place again.
            _ => {
                let before = world.place(handle);
                before.cut(Direction::Requests, true);
                let disk = leader.disk.at(leader.disk.position());
                leaders.push(Leader::open(&world, disk, 11 + step)?);
                before.cut(Direction::Requests, world.draw(2) == 0);
            }
        }
    }
    world.heal();
    is_over.store(true, Ordering::SeqCst);
    reader.join().map_err(|_| "the reader has panicked")??;
    if let Some(failure) = standby.failure() {
        return Err(format!("the standby has stopped: {failure}"));
    }
    let standby = Arc::into_inner(standby).ok_or("the reader has left a handle")?;
    let has_rest = world.draw(2) == 0;
    if has_rest {
        leaders.iter_mut().try_for_each(Leader::end)?;
    }
    // Otherwise, the leader is superseded while its clients go on.
    let db = standby.database().clone();
    let promoted = standby.promote().map_err(|error| format!("no promotion: {error}"))?;
    if !has_rest {
        leaders.iter_mut().try_for_each(Leader::end)?;
    }
    world.count("promoted");
    // What the promoted standby acknowledges belongs to the history, too.
    let before = world.events().get("acknowledged").copied().unwrap_or(0);
    Leader::of(&world, &db, SimDisk::new(), PROMOTED)?.finish()?;
    if world.events().get("acknowledged").copied().unwrap_or(0) == before {
        return Err(format!("the promoted standby acknowledges nothing: {promoted:?}"));
    }
    let lists = Lists::of(&db).map_err(|error| error.to_string())?;
    let end = world.read_all(&db, &lists)?;
    let other = follow(&world, &SimDisk::new(), AT_END)?;
    world.until("another standby to have all", || {
        let db = other.database();
        // The tables come with the log.
        Lists::of(db).is_ok_and(|lists| world.peek(db, &lists).is_ok_and(|there| there == end))
    })?;
    let history = world.history();
    let options = Options { sessions: true, real_time: true };
    check_lists(&history, options).map_err(|violation| violation.to_string())?;
    Ok(world.events())
}

#[test]
fn leaders_and_a_standby_show_one_strictly_serializable_history() {
    let (count, events) = play_seeds([12, 500], play);
    println!("{count} histories: {events:?}");
    if count >= 12 {
        for event in ["acknowledged", "opened", "promoted", "read by the standby", "unknown"] {
            assert!(events.contains_key(event), "{event} has not happened: {events:?}");
        }
        assert!(events["opened"] > count, "no leader was replaced: {events:?}");
    }
}

#[test]
fn faults_are_drawn_from_the_seed() {
    let faults = |seed| -> Vec<Faults> {
        let world = World::new(seed);
        (0..20).map(|_| world.draw_faults()).collect()
    };
    assert_eq!(faults(7), faults(7));
    assert_ne!(faults(7), faults(8));
}
