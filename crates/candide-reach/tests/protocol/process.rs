//! A primary and standbys as threads, over a simulated place.

use crate::history::{Record, Times, Writes};
use crate::turns::{Killed, Turn, Turns};
use candide_reach::sim::SimPlace;
use candide_reach::{
    Block, Claim, Follower, Leader, Offer, Patience, Position, Progress, ReachError, random_number,
};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub const DATABASE: [u8; 16] = *b"reach protocol..";
pub const PATIENCE: Patience =
    Patience { calls: 25, pause: Duration::ZERO, pause_max: Duration::ZERO };

thread_local! {
    static TURN: RefCell<Option<Arc<Turn>>> = const { RefCell::new(None) };
}

/// Gives up the turn of this thread, if it has turns.
pub fn give_turn() {
    let turn = TURN.with(|turn| turn.borrow().clone());
    if let Some(turn) = turn {
        turn.give();
    }
}

/// What a crash of a process leaves.
#[derive(Debug, Default)]
pub struct Directory {
    /// The numbers of claims since it has last led.
    numbers: Vec<u64>,
    /// Its log.
    local: Writes,
}

/// What all threads of a history share.
pub struct Shared {
    pub turns: Turns,
    pub place: SimPlace,
    pub record: Mutex<Record>,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
    /// The writes that one leader makes at most.
    pub writes: u64,
    /// One of how many steps of a standby is its promotion.
    promotion: u64,
    next_write: Mutex<u64>,
    random: Mutex<fastrand::Rng>,
}

impl Shared {
    pub fn new(seed: u64, writes: u64) -> Arc<Shared> {
        let place = SimPlace::new(seed).with_hook(|_| give_turn());
        let mut random = fastrand::Rng::with_seed(!seed);
        Arc::new(Shared {
            turns: Turns::new(seed),
            place,
            record: Mutex::default(),
            threads: Mutex::default(),
            writes,
            promotion: [40, 200, 3000][random.usize(0..3)],
            next_write: Mutex::new(0),
            random: Mutex::new(random),
        })
    }

    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    pub fn draw(&self, below: u64) -> u64 {
        self.random.lock().unwrap().u64(0..below)
    }

    /// Starts a thread of a process.
    pub fn spawn(
        self: &Arc<Shared>,
        process: usize,
        run: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) {
        let turn = self.turns.add(process);
        let shared = Arc::clone(self);
        let thread = thread::spawn(move || {
            let run = AssertUnwindSafe(|| {
                let turn = Arc::new(turn);
                turn.start();
                TURN.set(Some(turn));
                run(&shared);
            });
            let ended = catch_unwind(run);
            // The turn ends with the thread's last reference.
            TURN.set(None);
            match ended {
                Err(panic) if !panic.is::<Killed>() => resume_unwind(panic),
                _ => {}
            }
        });
        self.threads.lock().unwrap().push(thread);
    }
}

/// Opens a directory as the leader that it was, if no other process has claimed.
pub fn open(shared: &Arc<Shared>, process: usize, directory: &Mutex<Directory>) {
    for _ in 0..3 {
        let mut state = Writes::default();
        match claim(shared, process, directory, false, Position::default(), &mut state) {
            Ok(leader) => return lead(shared, process, directory, leader, state),
            Err(ReachError::Led { .. }) => return shared.record().count("led"),
            Err(ReachError::Superseded { .. }) => shared.record().count("superseded"),
            Err(_) => shared.record().count("not opened"),
        }
    }
}

/// Follows, and is promoted at some time.
pub fn follow(shared: &Arc<Shared>, process: usize, directory: &Mutex<Directory>) {
    let place = Arc::new(shared.place.handle(process));
    let mut state = Writes::default();
    let mut follower = Follower::new(place.clone(), DATABASE, Position::default(), PATIENCE);
    loop {
        match follower.step(&mut state) {
            Ok(Progress::Nothing | Progress::End) => {}
            Ok(progress) => {
                let mut record = shared.record();
                record.shown.push(("a standby", state.clone()));
                record.count(if progress == Progress::Block { "followed" } else { "fallen back" });
            }
            Err(ReachError::Receiver(why)) => panic!("a follower cannot go on: {why}"),
            Err(_) => shared.record().count("follower's error"),
        }
        if shared.draw(shared.promotion) == 0 {
            let position = follower.position();
            match claim(shared, process, directory, true, position, &mut state) {
                Ok(leader) => return lead(shared, process, directory, leader, state),
                Err(ReachError::Receiver(why)) => panic!("a claimant cannot go on: {why}"),
                Err(_) => shared.record().count("not promoted"),
            }
            // The claim has read on.
            state = Writes::default();
            follower = Follower::new(place.clone(), DATABASE, Position::default(), PATIENCE);
        }
    }
}

fn claim(
    shared: &Arc<Shared>,
    process: usize,
    directory: &Mutex<Directory>,
    against_others: bool,
    position: Position,
    state: &mut Writes,
) -> Result<Leader, ReachError> {
    let number = random_number();
    let earlier = {
        let mut directory = directory.lock().unwrap();
        directory.numbers.push(number);
        directory.numbers.clone()
    };
    let position = (position != Position::default()).then_some(position);
    let (database, patience) = (DATABASE, PATIENCE);
    let claim = Claim { database, number, earlier: &earlier, against_others, position, patience };
    let leader = Leader::claim(Arc::new(shared.place.handle(process)), &claim, state)?;
    let mut directory = directory.lock().unwrap();
    directory.numbers = vec![number];
    if against_others {
        directory.local = state.clone();
    } else if !directory.local.0.starts_with(&state.0) {
        panic!("{:?} does not begin with {:?}, and no other has led", directory.local, state);
    }
    let mut record = shared.record();
    record.shown.push(("a leader", state.clone()));
    record.count(if against_others { "promoted" } else { "opened" });
    Ok(leader)
}

/// What the threads of a leader share.
struct Lead {
    leader: Leader,
    /// The writes up to each place, behind those that the leader found.
    placed: Mutex<Vec<u64>>,
    /// The number of blocks that are being sent, and whether one could not be.
    sending: Mutex<(usize, bool)>,
}

/// Writes blocks, several at a time, and makes snapshots.
fn lead(
    shared: &Arc<Shared>,
    process: usize,
    directory: &Mutex<Directory>,
    leader: Leader,
    found: Writes,
) {
    let lead = Arc::new(Lead { leader, placed: Mutex::default(), sending: Mutex::default() });
    let window = 1 + shared.draw(3) as usize;
    let mut state = found.clone();
    for _ in 0..shared.writes {
        while lead.sending.lock().unwrap().0 >= window {
            give_turn();
        }
        if lead.sending.lock().unwrap().1 {
            break;
        }
        let Some(offer) = write(shared, directory, &lead, &mut state) else { break };
        lead.sending.lock().unwrap().0 += 1;
        let sender = Arc::clone(&lead);
        shared.spawn(process, move |shared| {
            let is_sent = send(shared, &sender, &offer);
            let mut sending = sender.sending.lock().unwrap();
            *sending = (sending.0 - 1, sending.1 || !is_sent);
        });
        if shared.draw(6) == 0 {
            snapshot(shared, &lead, &found);
        }
        if shared.draw(10) == 0 {
            while lead.sending.lock().unwrap().0 > 0 {
                give_turn();
            }
            let is_dead = lead.sending.lock().unwrap().1;
            if is_dead || !restart(shared, directory, &lead, &mut state, &found) {
                break;
            }
        }
    }
    while lead.sending.lock().unwrap().0 > 0 {
        give_turn();
    }
}

/// Returns the next write: one of the directory's that was not sent, or a new one.
fn next_write(shared: &Shared, directory: &mut Directory, state: &Writes) -> u64 {
    match directory.local.0.get(state.0.len()) {
        Some(tail) => {
            shared.record().count("sent again");
            *tail
        }
        None => {
            let mut next = shared.next_write.lock().unwrap();
            *next += 1;
            directory.local.0.push(*next);
            let times = Times { offered: shared.turns.turns(), acknowledged: None };
            shared.record().writes.insert(*next, times);
            *next
        }
    }
}

/// Gives the next write a place.
fn write(
    shared: &Shared,
    directory: &Mutex<Directory>,
    lead: &Lead,
    state: &mut Writes,
) -> Option<Offer> {
    let behind = state.last();
    let mut directory = directory.lock().unwrap();
    let write = next_write(shared, &mut directory, state);
    let payload = Writes::payload(behind, write);
    let block = Block { cut: write, stamp_generation: 1, catalog: b"", payload: &payload };
    let offer = lead.leader.offer(&block).ok()?;
    state.0.push(write);
    lead.placed.lock().unwrap().push(write);
    Some(offer)
}

/// Sends a block until its fate is known. Returns whether the leader can go on.
fn send(shared: &Shared, lead: &Lead, offer: &Offer) -> bool {
    for _ in 0..8 {
        match lead.leader.send(offer) {
            Ok(acknowledged) => {
                acknowledge(shared, lead, acknowledged);
                return true;
            }
            Err(ReachError::Superseded { .. }) => {
                shared.record().count("fenced");
                return false;
            }
            Err(_) => shared.record().count("not sent"),
        }
    }
    false
}

/// Notes that the writes up to a place are acknowledged.
fn acknowledge(shared: &Shared, lead: &Lead, acknowledged: u64) {
    let now = shared.turns.turns();
    let placed = lead.placed.lock().unwrap();
    let mut record = shared.record();
    for write in &placed[..acknowledged as usize] {
        let times = record.writes.get_mut(write).unwrap();
        times.acknowledged.get_or_insert(now);
    }
    record.count("acknowledged");
}

/// Makes a restart that has the next write, which no block has. Returns whether the leader can go
/// on.
fn restart(
    shared: &Shared,
    directory: &Mutex<Directory>,
    lead: &Lead,
    state: &mut Writes,
    found: &Writes,
) -> bool {
    let write = next_write(shared, &mut directory.lock().unwrap(), state);
    let Ok(mut restart) = lead.leader.restart(1, write) else { return false };
    let mut writes = found.0.clone();
    writes.extend(&*lead.placed.lock().unwrap());
    writes.push(write);
    let bytes: Vec<u8> = writes.iter().flat_map(|write| write.to_le_bytes()).collect();
    let (first, second) = bytes.split_at(writes.len() / 2 * 8);
    for part in [first, second] {
        let mut sent = (0..4).map(|_| restart.part(b"", part));
        if !sent.any(|sent| sent.is_ok()) {
            // Its place may have parts of other bytes, which only a later restart would meet.
            return false;
        }
    }
    state.0.push(write);
    lead.placed.lock().unwrap().push(write);
    for _ in 0..8 {
        match restart.create() {
            Ok(acknowledged) => {
                acknowledge(shared, lead, acknowledged);
                shared.record().count("restarted");
                if restart.finish().is_ok() && shared.draw(2) == 0 {
                    let _ = lead.leader.clean(Duration::ZERO);
                }
                return true;
            }
            Err(ReachError::Superseded { .. }) => return false,
            Err(_) => {}
        }
    }
    false
}

/// Makes a snapshot of what is acknowledged, and deletes what it covers.
fn snapshot(shared: &Shared, lead: &Lead, found: &Writes) {
    let place = lead.leader.acknowledged();
    let Ok(mut snapshot) = lead.leader.snapshot(place) else { return };
    let mut writes = found.0.clone();
    writes.extend(&lead.placed.lock().unwrap()[..place as usize]);
    let bytes: Vec<u8> = writes.iter().flat_map(|write| write.to_le_bytes()).collect();
    let (first, second) = bytes.split_at(writes.len() / 2 * 8);
    let made = snapshot.part(b"", first).and_then(|()| snapshot.part(b"", second));
    if made.and_then(|()| snapshot.finish(b"")).is_ok() {
        shared.record().count("floors");
        if lead.leader.clean(Duration::ZERO).is_ok_and(|deleted| deleted > 0) {
            shared.record().count("cleaned");
        }
    }
}
