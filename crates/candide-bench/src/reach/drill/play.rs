//! What happens in the drill.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use candide_harness::{interrupt, output};
use candide_reach::tools::{self, Generation};
use candide_reach::{Patience, Place};

use super::faults::{FAULTS, Fault};
use super::ledger::Ledger;
use super::lines::{Said, Told};
use super::process::{Event, Process, Setting};
use super::tables::Lasts;

/// The processes that are to run at a time.
const PROCESSES: usize = 3;
/// How often leaders are asked to read.
const ASK: Duration = Duration::from_millis(40);
/// The time after which something that does not happen is wrong. It is far longer than anything
/// takes, however busy the machine is.
const HANGS: Duration = Duration::from_secs(300);
/// The longest time between two disturbances.
const QUIET: f64 = 0.8;
/// The time after which a leader knows that its log has ended.
const QUIET_END: Duration = Duration::from_millis(600);

/// What has happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) kills: u64,
    pub(super) pauses: u64,
    pub(super) faults: u64,
    pub(super) promotions: u64,
    pub(super) generations: u64,
}

/// A process that runs, and the number of its directory.
#[derive(Debug)]
struct Member {
    process: Process,
    dir: u64,
}

/// A drill under way.
#[derive(Debug)]
pub(super) struct Play {
    setting: Setting,
    dir: PathBuf,
    place: Arc<dyn Place>,
    draws: fastrand::Rng,
    begun: Instant,
    sender: Sender<Event>,
    events: Receiver<Event>,
    members: Vec<Member>,
    /// The generations of processes that have ended, by their numbers, for what they said last.
    led: Vec<(u64, u64)>,
    /// The numbers of processes and directories so far.
    made: (u64, u64),
    asked: Instant,
    /// The fault of the place, until when it has it, and whether all processes see it.
    fault: Option<(Fault, Instant, bool)>,
    /// Whether the process that begins to take over is killed.
    kills_promoting: bool,
    /// Whether standbys are told not to take over.
    is_ending: bool,
    /// Where standbys are: the numbers of their processes, and what they said.
    places: Vec<(u64, (u64, u64, u64, Lasts))>,
    pub(super) ledger: Ledger,
    pub(super) counts: Counts,
}

impl Play {
    pub(super) fn new(setting: Setting, dir: PathBuf, place: Arc<dyn Place>, seed: u64) -> Play {
        let (sender, events) = mpsc::channel();
        Play {
            setting,
            dir,
            place,
            draws: fastrand::Rng::with_seed(seed),
            begun: Instant::now(),
            sender,
            events,
            members: Vec::new(),
            led: Vec::new(),
            made: (0, 0),
            asked: Instant::now(),
            fault: None,
            kills_promoting: false,
            is_ending: false,
            places: Vec::new(),
            ledger: Ledger::default(),
            counts: Counts::default(),
        }
    }

    /// Plays for a time. Returns the last transactions that both standbys have at the end.
    ///
    /// # Errors
    /// What must not happen.
    pub(super) fn run(&mut self, time: Duration, pause: Duration) -> Result<Lasts, String> {
        // Without standbys that take over in time, no leader is taken away for good.
        let kinds = if self.setting.promote_after < HANGS / 4 { 6 } else { 4 };
        for member in 0..PROCESSES {
            let (process, dir) = self.start(None, member == 0)?;
            self.members.push(Member { process, dir });
            if member == 0 {
                self.until("the first process to lead", |play| play.leader().is_some())?;
            }
        }
        self.progress("the first transactions")?;
        let begun = Instant::now();
        while begun.elapsed() < time && !interrupt::is_pressed() {
            self.disturb(kinds, pause)?;
            self.progress("a transaction after a disturbance")?;
            let quiet = Duration::from_secs_f64(QUIET * self.draws.f64());
            self.pass(quiet)?;
        }
        self.end()
    }

    /// Says what happens.
    fn tell(&self, what: impl Display) {
        let at = self.begun.elapsed().as_secs_f64();
        // A reader that has gone is no reason to end.
        let _ = output::print(|out| writeln!(out, "{at:7.2} s  {what}"));
    }

    /// Starts a process in a directory, or in a new one.
    fn start(&mut self, dir: Option<u64>, leads: bool) -> Result<(Process, u64), String> {
        let dir = dir.unwrap_or_else(|| {
            self.made.1 += 1;
            self.made.1
        });
        self.made.0 += 1;
        let path = self.dir.join(dir.to_string());
        let mut process = Process::start(&self.setting, &path, leads, self.made.0, &self.sender)?;
        if let Some((fault, _, true)) = self.fault {
            process.tell(Told::Place(Some(fault)));
        }
        let begins = if leads { "begins, to lead" } else { "begins, to follow" };
        self.tell(format_args!("process {} {begins}, in directory {dir}", process.number));
        Ok((process, dir))
    }

    /// Starts the process of a member again.
    fn start_again(&mut self, member: usize, leads: bool) -> Result<(), String> {
        let Member { process, dir } = &self.members[member];
        let same = (!process.is_outrun).then_some(*dir);
        if let Some(generation) = process.leads {
            self.led.push((process.number, generation));
        }
        let (process, dir) = self.start(same, leads && same.is_some())?;
        self.members[member] = Member { process, dir };
        Ok(())
    }

    /// Returns the member that leads the newest generation, and was not killed.
    fn leader(&self) -> Option<usize> {
        let leads = |member: &Member| member.process.leads.filter(|_| member.process.is_up());
        (0..self.members.len())
            .filter(|member| leads(&self.members[*member]).is_some())
            .max_by_key(|member| leads(&self.members[*member]))
    }

    /// Returns a member that follows, by chance.
    fn follower(&mut self) -> Option<usize> {
        let follows = |member: &usize| {
            let process = &self.members[*member].process;
            process.follows && process.is_up()
        };
        let followers: Vec<usize> = (0..self.members.len()).filter(follows).collect();
        self.draws.choice(followers)
    }

    fn kill(&mut self, member: usize) -> Result<(), String> {
        self.counts.kills += 1;
        self.tell(format_args!("process {} is killed", self.members[member].process.number));
        self.members[member].process.kill()
    }

    fn pause(&mut self, member: usize, time: Duration) -> Result<(), String> {
        self.counts.pauses += 1;
        let number = self.members[member].process.number;
        self.tell(format_args!("process {number} is paused for {:.2} s", time.as_secs_f64()));
        self.members[member].process.pause(Some(Instant::now() + time))
    }

    /// Lets the place be full or read-only for a time, or slow or away for all processes or one.
    fn fail(&mut self, time: Duration) {
        let fault = FAULTS[self.draws.usize(0..FAULTS.len())];
        let one = match fault {
            Fault::Slow | Fault::Away if self.draws.bool() => self.leader(),
            _ => None,
        };
        self.heal();
        self.counts.faults += 1;
        self.fault = Some((fault, Instant::now() + time, one.is_none()));
        let of = one.map_or("all processes".to_string(), |one| {
            format!("process {}", self.members[one].process.number)
        });
        let (word, seconds) = (Fault::word(Some(fault)), time.as_secs_f64());
        self.tell(format_args!("the place of {of} is {word} for {seconds:.2} s"));
        for (index, member) in self.members.iter_mut().enumerate() {
            if one.is_none_or(|one| one == index) {
                member.process.tell(Told::Place(Some(fault)));
            }
        }
    }

    /// Ends the fault of the place.
    fn heal(&mut self) {
        if self.fault.take().is_some() {
            self.members.iter_mut().for_each(|member| member.process.tell(Told::Place(None)));
            self.tell("the place is well again");
        }
    }

    /// Disturbs the processes once.
    fn disturb(&mut self, kinds: u32, pause: Duration) -> Result<(), String> {
        let Some(leader) = self.leader() else { return Ok(()) };
        let time = pause.mul_f64(0.1 + 0.9 * self.draws.f64());
        let soon = time.mul_f64(0.2);
        match self.draws.u32(0..kinds + 2) {
            kind if kind >= kinds => self.fail(time),
            0 => {
                self.kill(leader)?;
                self.pass(soon)?;
                self.start_again(leader, true)?;
            }
            1 => self.pause(leader, time)?,
            2 | 3 => {
                let Some(follower) = self.follower() else { return Ok(()) };
                if self.draws.bool() {
                    self.pause(follower, time)?;
                } else {
                    self.kill(follower)?;
                    self.pass(soon)?;
                    self.start_again(follower, false)?;
                }
            }
            kind => {
                // The standby that takes over first is killed, too.
                self.kills_promoting = kind == 5;
                let generation = self.members[leader].process.leads;
                self.kill(leader)?;
                self.until("another process to lead", |play| {
                    play.leader().is_some_and(|now| play.members[now].process.leads > generation)
                })?;
                self.kills_promoting = false;
                self.start_again(leader, true)?;
            }
        }
        Ok(())
    }

    /// Waits until a transaction is acknowledged that was not yet.
    fn progress(&mut self, what: &str) -> Result<(), String> {
        let before = self.ledger.acknowledged;
        self.until(what, |play| play.ledger.acknowledged > before)
    }

    /// Lets a time pass.
    fn pass(&mut self, time: Duration) -> Result<(), String> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step()?;
        }
        Ok(())
    }

    /// Waits until something is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Play) -> bool) -> Result<(), String> {
        let end = Instant::now() + HANGS;
        while !is_so(self) {
            if Instant::now() >= end {
                return Err(format!("waited for {what} for {} s", HANGS.as_secs()));
            }
            self.step()?;
        }
        Ok(())
    }

    /// Hears what processes say, for a moment, and asks leaders to read.
    fn step(&mut self) -> Result<(), String> {
        if let Ok(event) = self.events.recv_timeout(Duration::from_millis(5)) {
            self.hear(event)?;
            while let Ok(event) = self.events.try_recv() {
                self.hear(event)?;
            }
        }
        let now = Instant::now();
        for member in 0..self.members.len() {
            let process = &mut self.members[member].process;
            if process.paused.is_some_and(|until| now >= until) {
                process.pause(None)?;
                let number = process.number;
                self.tell(format_args!("process {number} goes on"));
            }
        }
        if self.fault.is_some_and(|(_, until, _)| now >= until) {
            self.heal();
        }
        if now - self.asked >= ASK {
            self.asked = now;
            for member in &mut self.members {
                if member.process.leads.is_some() && member.process.is_up() {
                    let read = self.ledger.ask();
                    member.process.tell(Told::Look(read));
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: Event) -> Result<(), String> {
        let Event { process: number, at, said } = event;
        let member = self.members.iter().position(|member| member.process.number == number);
        let generation = match member {
            Some(member) => self.members[member].process.leads,
            None => self.led.iter().find(|led| led.0 == number).map(|led| led.1),
        };
        let Some(said) = said else { return self.hear_end(member) };
        match said {
            Said::Done(worker, transaction, drawn) => {
                let generation =
                    generation.ok_or("a transaction of a process that does not lead")?;
                return self.ledger.acknowledge(generation, (worker, transaction), drawn, at);
            }
            Said::Opened(generation, found) => {
                self.counts.generations = self.counts.generations.max(generation);
                self.ledger.open(generation, found)?;
                self.tell(format_args!("process {number} leads generation {generation}"));
                match member {
                    Some(member) => self.members[member].process.leads = Some(generation),
                    None => self.led.push((number, generation)),
                }
                if self.is_ending {
                    self.let_all_stay();
                }
                return Ok(());
            }
            Said::Saw(read, found) => return self.ledger.see(read, &found),
            Said::Refused(_) => return Ok(()),
            _ => {}
        }
        let Some(member) = member else { return Ok(()) };
        // A leader may find at its next floor only that a promotion that has failed has sealed it.
        let stays = self.is_ending && self.leader().is_some();
        let process = &mut self.members[member].process;
        match said {
            Said::Follows => {
                process.follows = true;
                if stays {
                    process.tell(Told::Stay);
                }
            }
            Said::Stays => process.stays = true,
            Said::Promoting => {
                process.follows = false;
                self.tell(format_args!("process {number} takes over"));
                if std::mem::take(&mut self.kills_promoting) {
                    let soon = Duration::from_secs_f64(0.05 * self.draws.f64());
                    std::thread::sleep(soon);
                    self.kill(member)?;
                    self.start_again(member, false)?;
                }
            }
            Said::Promoted => self.counts.promotions += 1,
            Said::Led | Said::Fenced => {
                process.is_outrun = true;
                self.tell(format_args!("process {number} finds that another one leads"));
            }
            Said::Stopped => process.has_stopped = true,
            Said::At(generation, at, hash, found) => {
                self.places.retain(|(other, _)| *other != number);
                self.places.push((number, (generation, at, hash, found)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes that a process has ended. One that another has outrun follows from then on.
    fn hear_end(&mut self, member: Option<usize>) -> Result<(), String> {
        let Some(member) = member else { return Ok(()) };
        let process = &mut self.members[member].process;
        process.ended()?;
        if process.is_outrun && !process.is_killed {
            self.start_again(member, false)?;
        }
        Ok(())
    }

    /// Lets no process that follows take over any more.
    fn let_all_stay(&mut self) {
        self.members.iter_mut().for_each(|member| member.process.tell(Told::Stay));
    }

    /// Ends the drill: the leader stops, and the standbys come to the same state.
    fn end(&mut self) -> Result<Lasts, String> {
        self.heal();
        // A standby whose promotion has failed with the place may have ended the leader's log. Then
        // one takes over now.
        self.pass(QUIET_END)?;
        self.progress("a transaction at the end")?;
        self.is_ending = true;
        for member in self.members.iter_mut().filter(|member| member.process.paused.is_some()) {
            member.process.pause(None)?;
        }
        self.let_all_stay();
        let is_calm = |play: &Play| {
            let up = |member: &&Member| member.process.is_up();
            let leads = play.members.iter().filter(up).filter(|one| one.process.leads.is_some());
            // One that has not heard may take over.
            let stays = play.members.iter().filter(up).filter(|one| one.process.stays);
            leads.count() == 1 && stays.count() == PROCESSES - 1
        };
        self.until("one leader and two standbys", is_calm)?;
        let leader = self.leader().ok_or("no process leads")?;
        self.members[leader].process.tell(Told::Stop);
        self.until("the leader to stop", |play| play.members[leader].process.has_stopped)?;
        let status = tools::status(Arc::clone(&self.place), 9, Patience::default());
        let status = status.map_err(|error| error.to_string())?.ok_or("the place is empty")?;
        // Claims may be those of promotions that have failed with the place.
        let logged = |&Generation { number, last, .. }: &Generation| Some((number, last?.0));
        let newest = status.generations.iter().find_map(logged);
        let (number, last) = newest.ok_or("the last leaders have written nothing")?;
        self.tell(format_args!("the log ends with object {last} of generation {number}"));
        let end = Instant::now() + HANGS;
        loop {
            let there = |of: &&(u64, (u64, u64, u64, Lasts))| (of.1.0, of.1.1) == (number, last);
            let states: Vec<_> = self.places.iter().filter(there).map(|of| &of.1).collect();
            if let [one, other] = states[..] {
                if one != other {
                    return Err(format!("the standbys differ: {one:?} and {other:?}"));
                }
                return Ok(one.3.clone());
            }
            if Instant::now() >= end {
                return Err(format!("the standbys do not reach the end: {:?}", self.places));
            }
            for member in self.members.iter_mut().filter(|member| member.process.follows) {
                member.process.tell(Told::Where);
            }
            self.pass(Duration::from_millis(50))?;
        }
    }
}
