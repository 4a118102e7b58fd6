//! Whole transactions under many schedules (`--cfg shuttle`). The history of each execution is
//! judged.
//!
//! A [scene](stage::Scene) is a small program of a few threads. Every overlapping protocol plays
//! all scenes. A schedule that fails is printed as one line, with which the schedule can be
//! replayed. The variables of the environment are:
//!
//! * `CANDIDE_REPLAY=scene:protocol:seed:steps` plays only that schedule.
//! * `CANDIDE_SCENE` and `CANDIDE_PROTOCOL` select a scene and a protocol by name.
//! * `CANDIDE_SCHEDULES` is the number of schedules of each scene and protocol, and `CANDIDE_SEED`
//!   is the seed that determines them.
//! * `CANDIDE_SECONDS` is the time for all schedules. If the variable is set, there is no other
//!   limit.
//! * `CANDIDE_TRACE` makes the tests print the number of each distinct schedule before it runs.
//!
//! `cargo xtask verify` sets these variables.

mod explore;
mod life;
mod logged;
mod policies;
mod scenes;
mod stage;
mod values;
mod versions;
mod waits;

use crate::engine::{Protocol, Versioned};
use crate::policy::Policies;
use crate::sync::{Duration, Instant};
use explore::{Budget, Choices, Explored, explore, replay};
use stage::{Scene, Seen};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::env;

/// A task for every protocol whose transactions overlap.
trait ForProtocol {
    fn run<P: Protocol>(&self);
}

/// A task for every protocol that keeps versions.
trait ForVersioned {
    fn run<P: Versioned>(&self);
}

macro_rules! run {
    ($wanted:ident, $task:ident;
     $($protocol:ty: $kind:ident $_name:ident = $_policy:expr
        $(, $_kind:ident $_other:ident = $_next:expr)*;)+) => {
        $(run!($wanted $kind $task $protocol);)+
    };
    (overlapping overlapping $task:ident $protocol:ty) => { $task.run::<$protocol>() };
    ($_wanted:ident versioned $task:ident $protocol:ty) => { $task.run::<$protocol>() };
    ($_wanted:ident $_kind:ident $_task:ident $_protocol:ty) => {};
}

/// Runs a task under every protocol whose transactions overlap. The seed of each schedule
/// determines the source of timestamps.
fn for_each_overlapping(task: &impl ForProtocol) {
    crate::for_each_protocol!(run, overlapping, task;);
}

/// Runs a task under every protocol that keeps versions.
fn for_each_versioned(task: &impl ForVersioned) {
    crate::for_each_protocol!(run, versioned, task;);
}

/// The number of schedules of each scene under each protocol, unless a variable sets another
/// number. `docs/verification.md` gives the reason for this number.
const SCHEDULES: u64 = 5_000;
/// The number of schedules in which all events that a scene has to show should have happened.
const MANY: u64 = 500;

/// Returns the scenes of all protocols, and those of policies if the protocol has any. Among scenes
/// about the same property, the smallest comes first, since a defect shows there soonest.
fn all<P: Protocol>() -> Vec<Scene<P>> {
    let mut scenes = vec![
        scenes::random_mix(),
        scenes::moves(),
        scenes::write_skew(),
        scenes::lost_update(),
        scenes::guards(),
        scenes::counters(),
        scenes::swept(),
        scenes::put_off(),
        scenes::held_skew(),
        scenes::holders(),
        scenes::phantom(),
        scenes::missed_keys(),
        scenes::absent_keys(),
        scenes::own_split(),
        scenes::delete_in_scan(),
        scenes::twins(),
        scenes::indexes(),
        waits::waits(),
        life::stale_handle(),
        life::reuse(),
        life::reinsert(),
        life::take_over(),
        life::growth(),
        life::inheritance(),
        life::bequest(),
        life::held_meanwhile(),
        life::requeue(),
        life::session_drop(),
        logged::prefixes(),
        logged::cut_skew(),
    ];
    if (&P::Policy::default() as &dyn Any).is::<Policies>() {
        scenes.extend([
            policies::lock_kinds(),
            policies::upgraders(),
            policies::three_cycle(),
            policies::killed_late(),
            policies::hot_skew(),
            policies::hot_transfer(),
            policies::list_gone(),
            policies::canonical(),
            policies::chains(),
        ]);
    }
    scenes
}

/// Returns the further scenes of protocols that keep versions.
fn versioned<P: Versioned>() -> Vec<Scene<P>> {
    vec![
        versions::snapshots(),
        versions::parked(),
        versions::pruned(),
        versions::stowed(),
        versions::hot(),
        versions::reports(),
        versions::overtaken(),
        values::values(),
    ]
}

/// Returns the value of an environment variable; `None` if it is not set or empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).map_or(otherwise, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value}"))
    })
}

/// The selected scenes and protocols, and their number.
struct Chosen {
    scene: Option<String>,
    protocol: Option<String>,
    count: Cell<u32>,
}

impl Chosen {
    /// Returns the selected scenes among `scenes`.
    fn of<P: Protocol>(&self, mut scenes: Vec<Scene<P>>) -> Vec<Scene<P>> {
        let is =
            |wanted: &Option<String>, name| wanted.as_ref().is_none_or(|wanted| wanted == name);
        scenes.retain(|scene| is(&self.protocol, P::NAME) && is(&self.scene, scene.name));
        scenes
    }
}

impl ForProtocol for Chosen {
    fn run<P: Protocol>(&self) {
        self.count.set(self.count.get() + self.of(all::<P>()).len() as u32);
    }
}

impl ForVersioned for Chosen {
    fn run<P: Versioned>(&self) {
        self.count.set(self.count.get() + self.of(versioned::<P>()).len() as u32);
    }
}

/// The task that plays scenes, each under many schedules.
struct Schedules {
    chosen: Chosen,
    schedules: u64,
    /// The time for each scene under each protocol; `None` if the number of schedules is the limit.
    time: Option<Duration>,
    seed: u64,
    failures: RefCell<Vec<String>>,
}

impl Schedules {
    fn play<P: Protocol>(&self, scene: Scene<P>) {
        let (name, shows, seen) = (scene.name, scene.shows.clone(), Seen::default());
        let noted = seen.clone();
        let until = self.time.map(|time| Instant::now() + time);
        let traced = variable("CANDIDE_TRACE").is_some();
        let budget =
            Budget { schedules: self.schedules, until, traced, options: stage::options::<P>() };
        let Explored { run, distinct, failure } =
            explore(budget, self.seed, move |seed| scene.play(seed, &noted));
        let seen = seen.lock().unwrap();
        let failed = u64::from(failure.is_some());
        println!(
            "schedules: {name} {} run={run} distinct={distinct} failed={failed} {seen:?}",
            P::NAME
        );
        if let Some((choices, text)) = failure {
            let text = text.lines().next().unwrap_or_default();
            println!("replay: CANDIDE_REPLAY={name}:{}:{choices}", P::NAME);
            self.failures
                .borrow_mut()
                .push(format!("{name} under {}, after {distinct} schedules: {text}", P::NAME));
        } else if run >= MANY && variable("CANDIDE_MUTANT").is_none() {
            let missing: Vec<_> = shows.iter().filter(|what| !seen.contains_key(*what)).collect();
            assert!(missing.is_empty(), "{name} under {} never showed {missing:?}", P::NAME);
        }
    }
}

impl ForProtocol for Schedules {
    fn run<P: Protocol>(&self) {
        self.chosen.of(all::<P>()).into_iter().for_each(|scene| self.play(scene));
    }
}

impl ForVersioned for Schedules {
    fn run<P: Versioned>(&self) {
        self.chosen.of(versioned::<P>()).into_iter().for_each(|scene| self.play(scene));
    }
}

/// The task that replays one schedule.
struct Again {
    scene: String,
    protocol: String,
    choices: Choices,
    end: RefCell<Option<Explored>>,
}

impl Again {
    fn play<P: Protocol>(&self, scenes: Vec<Scene<P>>) {
        let mut scenes =
            scenes.into_iter().filter(|scene| P::NAME == self.protocol && scene.name == self.scene);
        if let Some(scene) = scenes.next() {
            let end = replay(self.choices.clone(), move |seed| scene.play(seed, &Seen::default()));
            *self.end.borrow_mut() = Some(end);
        }
    }
}

impl ForProtocol for Again {
    fn run<P: Protocol>(&self) {
        self.play(all::<P>());
    }
}

impl ForVersioned for Again {
    fn run<P: Versioned>(&self) {
        self.play(versioned::<P>());
    }
}

#[test]
fn shuttle_scenes_satisfy_the_guarantees_of_protocols() {
    if let Some(text) = variable("CANDIDE_REPLAY") {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().expect("CANDIDE_REPLAY is scene:protocol:seed:steps");
        let (scene, protocol) = (part().to_string(), part().to_string());
        let choices = Choices::parse(part()).expect("a seed, and steps as they were printed");
        let again = Again { scene, protocol, choices, end: RefCell::default() };
        for_each_overlapping(&again);
        for_each_versioned(&again);
        let end =
            again.end.into_inner().expect("a scene of this name under a protocol of this name");
        if let Some((_, text)) = end.failure {
            panic!("replayed: {text}");
        }
        return;
    }
    let chosen = Chosen {
        scene: variable("CANDIDE_SCENE"),
        protocol: variable("CANDIDE_PROTOCOL"),
        count: Cell::new(0),
    };
    for_each_overlapping(&chosen);
    for_each_versioned(&chosen);
    assert!(chosen.count.get() > 0, "no scene or protocol is called so");
    let time = variable("CANDIDE_SECONDS")
        .map(|_| Duration::from_secs(number("CANDIDE_SECONDS", 0)) / chosen.count.get());
    let schedules = Schedules {
        chosen,
        schedules: number("CANDIDE_SCHEDULES", if time.is_some() { u64::MAX } else { SCHEDULES }),
        time,
        seed: number("CANDIDE_SEED", 1),
        failures: RefCell::default(),
    };
    for_each_overlapping(&schedules);
    for_each_versioned(&schedules);
    let failures = schedules.failures.into_inner();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
