//! A model of the lock. The tests explore all interleavings of the requests of four threads, in a
//! memory that has one order; a step is one access of a shared word. Loom's scenes have weaker
//! memory, but only three threads and few forced switches.
//!
//! The tests find more than wrong grants. From every state, all requests can end; and if the
//! holders stop, all other threads can reach the point at which they wait for the holders. So
//! nothing but `wait` waits for holders.

use crate::sync::queue_lock::Mode::{self, Read, Write};
use crate::sync::size::is_short;
use Place::*;
use std::collections::HashMap;

/// A thread and its request, which has the same number.
type Id = u8;

const MOST: usize = 4;

/// The steps of a thread: it requests the lock in this mode, waits, and releases the lock. If
/// `cancels`, it may cancel the request at any time before.
#[derive(Debug, Clone, Copy)]
struct Act {
    mode: Mode,
    cancels: bool,
}

const READS: Act = Act { mode: Read, cancels: false };
const WRITES: Act = Act { mode: Write, cancels: false };
const LEAVES: [Act; 2] = [Act { cancels: true, ..READS }, Act { cancels: true, ..WRITES }];

/// A part of the algorithm that the model can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A request waits until a successor of its predecessor has left.
    AwaitsLeaver,
    /// A thread that makes two readers neighbours grants the second one the lock if the first one
    /// has it (QL4).
    GrantsNeighbour,
    /// A holder says that it passes the lock on.
    IsBusy,
    /// The last reader looks at the number of readers again.
    CountsAgain,
    /// A node that leaves waits until its successor has left.
    HoldsSuccessor,
    /// A node claims the link to itself as it leaves.
    MarksLeaving,
    /// A node does not leave while its predecessor leaves.
    RespectsLeaving,
    /// A reader does not leave when its predecessor, a reader, has been granted the lock.
    RespectsGrant,
    /// A node that is granted the lock is no longer leaving, also if it writes.
    SetsGranted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Front {
    Waits(Option<Id>),
    Granted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Successor {
    None,
    Leaving,
    Nothing,
    Node(Id),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Back {
    successor: Successor,
    granted: bool,
    leaving: bool,
    busy: bool,
}

const NEW: Back = Back { successor: Successor::None, granted: false, leaving: false, busy: false };

/// The fate of a request, as its claims decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Outside,
    Waits,
    Granted,
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    front: Front,
    back: Back,
    fate: Fate,
    /// The requests that came before, wait, and exclude this one; a bit for each.
    before: u8,
}

/// The steps after a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Then {
    /// The thread holds the lock.
    Holds,
    /// The node before gets NO_SUCCESSOR; then the thread holds the lock, or is done.
    Frees(Id, bool),
    Ends,
}

/// The next step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    // `request`
    Begins,
    AwaitsLeaver(Id),
    // `attach`: the node, and the one before it
    StoresFront(Id, Id),
    LooksBefore(Id, Id),
    Links(Id, Id, Back),
    Frees(Id, bool),
    // `grant`
    Counts(Id, Then),
    SetsGranted(Id, Then),
    Grants(Id, Option<Id>, Then),
    // `make_next_writer`
    StoresNext(Id),
    LooksForReaders(Id),
    TakesNext(Id),
    // The thread has requested the lock, and polls.
    Polls,
    Holds,
    // `release`
    LeavesBehind,
    Claims(Back),
    LeavesTail,
    PutsAtHead(Id),
    HandsOn(Id),
    CountsOut,
    LooksForNext,
    CountsAgain(Id),
    TakesOut(Id),
    // `cancel`
    SetsLeaving,
    HoldsSuccessor,
    LooksAtFront,
    LeavesHead,
    LooksWhetherLeaving(Id),
    MarksLeaving(Id, Back),
    LooksForSuccessor(Option<Id>),
    MovesTail(Option<Id>),
    ClearsLink(Id),
    PutsNextAtHead(Id),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    tail: Option<Id>,
    readers: i8,
    next_writer: Option<Id>,
    nodes: [Node; MOST],
    places: [Place; MOST],
}

type Fault = &'static str;

const TWICE: Fault = "it is granted the lock twice";
const GONE: Fault = "a node that has left is granted the lock or moved";
const OVERTAKEN: Fault = "it overtakes an earlier request";
const TWO_NEXT: Fault = "there are two next writers";
const CLAIMED: Fault = "the successor of a node that leaves has a claim";
const SHARED: Fault = "a writer does not hold the lock alone";
const LEFT_OVER: Fault = "the words are not zero at the end";
const WAITS: Fault = "a request waits for ever";
const BLOCKS: Fault = "a step that is no wait waits for a holder";

/// Returns the place of a thread's node in the list of nodes.
fn node(id: Id) -> usize {
    usize::from(id)
}

/// Replaces `from` in a word by `to`. Returns whether the word was `from`.
fn exchange(word: &mut Option<Id>, from: Option<Id>, to: Option<Id>) -> bool {
    let is_it = *word == from;
    if is_it {
        *word = to;
    }
    is_it
}

struct Model<'a> {
    acts: &'a [Act],
    /// The number of threads that have made their requests before, one after another.
    queued: Id,
    without: Option<Part>,
}

impl Model<'_> {
    fn has(&self, part: Part) -> bool {
        self.without != Some(part)
    }

    fn reads(&self, id: Id) -> bool {
        self.acts[usize::from(id)].mode == Read
    }

    fn first(&self) -> State {
        let front = Front::Waits(None);
        let node = Node { front, back: NEW, fate: Fate::Outside, before: 0 };
        let places = std::array::from_fn(|id| if id < self.acts.len() { Begins } else { Done });
        let tail = None;
        let mut state = State { tail, readers: 0, next_writer: None, nodes: [node; MOST], places };
        for id in 0..self.queued {
            while !matches!(state.places[usize::from(id)], Polls | Holds) {
                self.step(&mut state, id, false).expect("one thread makes no fault");
            }
        }
        state
    }

    /// Returns the first step of a grant.
    fn granting(&self, id: Id, then: Then) -> Place {
        if self.reads(id) { Counts(id, then) } else { SetsGranted(id, then) }
    }

    /// Returns the step after a look at the node before.
    fn linking(&self, id: Id, before: Id, back: Back, me: Id) -> Place {
        let is_new = back.successor == Successor::None;
        let both_read = self.reads(id) && self.reads(before);
        if both_read && back.granted && (is_new || self.has(Part::GrantsNeighbour)) {
            return self.granting(id, Then::Frees(before, id == me));
        }
        Links(id, before, back)
    }

    /// Does the next step of a thread. `cancels` is whether a thread that may cancel its request
    /// does so.
    fn step(&self, state: &mut State, me: Id, cancels: bool) -> Result<(), Fault> {
        let place = state.places[node(me)];
        state.places[node(me)] = match place {
            Begins | AwaitsLeaver(_) | StoresFront(..) | LooksBefore(..) | Links(..)
            | Frees(..) => self.request(state, me, place)?,
            Counts(..) | SetsGranted(..) | Grants(..) | StoresNext(_) | LooksForReaders(_)
            | TakesNext(_) => self.grant(state, me, place)?,
            Polls if cancels => SetsLeaving,
            Polls if state.nodes[node(me)].front == Front::Granted => Holds,
            Polls => Polls,
            Holds => LeavesBehind,
            LeavesBehind | Claims(_) | LeavesTail | PutsAtHead(_) | HandsOn(_) | CountsOut
            | LooksForNext | CountsAgain(_) | TakesOut(_) => self.release(state, me, place)?,
            SetsLeaving
            | HoldsSuccessor
            | LooksAtFront
            | LeavesHead
            | LooksWhetherLeaving(_)
            | MarksLeaving(..)
            | LooksForSuccessor(_)
            | MovesTail(_)
            | ClearsLink(_)
            | PutsNextAtHead(_) => self.cancel(state, me, place)?,
            Done => Done,
        };
        Ok(())
    }

    /// Does a step of a request, until its node is linked behind another one.
    fn request(&self, state: &mut State, me: Id, place: Place) -> Result<Place, Fault> {
        let own = node(me);
        let State { tail, nodes, .. } = state;
        Ok(match place {
            Begins => {
                let waits = |&id: &Id| nodes[node(id)].fate == Fate::Waits;
                let excludes = |&id: &Id| !(self.reads(id) && self.reads(me));
                let before = (0..MOST as Id).filter(waits).filter(excludes);
                nodes[own].before = before.fold(0, |before, id| before | 1 << id);
                nodes[own].fate = Fate::Waits;
                match tail.replace(me) {
                    Some(before) => AwaitsLeaver(before),
                    None if self.reads(me) => self.granting(me, Then::Holds),
                    None => StoresNext(me),
                }
            }
            AwaitsLeaver(before) => match nodes[node(before)].back.successor {
                Successor::None => StoresFront(me, before),
                _ if !self.has(Part::AwaitsLeaver) => StoresFront(me, before),
                _ => AwaitsLeaver(before),
            },

            StoresFront(id, _) if nodes[node(id)].fate != Fate::Waits => return Err(GONE),
            StoresFront(id, before) => {
                nodes[node(id)].front = Front::Waits(Some(before));
                LooksBefore(id, before)
            }
            LooksBefore(id, before) => self.linking(id, before, nodes[node(before)].back, me),
            Links(id, before, back) if nodes[node(before)].back != back => {
                self.linking(id, before, nodes[node(before)].back, me)
            }
            Links(id, before, back) => {
                nodes[node(before)].back = Back { successor: Successor::Node(id), ..back };
                if id == me { Polls } else { Done }
            }
            Frees(before, is_own) => {
                nodes[node(before)].back.successor = Successor::Nothing;
                if is_own { Holds } else { Done }
            }
            _ => unreachable!("{place:?} is no step of this part"),
        })
    }

    /// Does a step of a grant, or of a request that is about to become the next writer.
    fn grant(&self, state: &mut State, me: Id, place: Place) -> Result<Place, Fault> {
        let State { readers, next_writer, nodes, .. } = state;
        Ok(match place {
            Counts(id, then) => {
                *readers += 1;
                SetsGranted(id, then)
            }
            SetsGranted(id, then) => {
                let waits = |other: Id| nodes[node(other)].fate == Fate::Waits;
                if nodes[node(id)].fate != Fate::Waits {
                    let is_left = nodes[node(id)].fate == Fate::Left;
                    return Err(if is_left { GONE } else { TWICE });
                }
                let before = nodes[node(id)].before;
                if (0..MOST as Id).any(|other| before & 1 << other != 0 && waits(other)) {
                    return Err(OVERTAKEN);
                }
                nodes[node(id)].fate = Fate::Granted;
                nodes[node(id)].back.granted = self.reads(id) || self.has(Part::SetsGranted);
                let next = match nodes[node(id)].back.successor {
                    Successor::Node(next) if self.reads(id) && self.reads(next) => Some(next),
                    _ => None,
                };
                Grants(id, next, then)
            }
            Grants(id, next, then) => {
                nodes[node(id)].front = Front::Granted;
                match (next, then) {
                    (Some(next), _) => self.granting(next, then),
                    (None, Then::Holds) => Holds,
                    (None, Then::Frees(before, is_own)) => Frees(before, is_own),
                    (None, Then::Ends) => Done,
                }
            }

            StoresNext(_) if next_writer.is_some() => return Err(TWO_NEXT),
            StoresNext(id) => {
                *next_writer = Some(id);
                LooksForReaders(id)
            }
            LooksForReaders(id) if *readers == 0 => TakesNext(id),
            TakesNext(id) if exchange(next_writer, Some(id), None) => {
                self.granting(id, if id == me { Then::Holds } else { Then::Ends })
            }
            LooksForReaders(id) | TakesNext(id) if id == me => Polls,
            LooksForReaders(_) | TakesNext(_) => Done,
            _ => unreachable!("{place:?} is no step of this part"),
        })
    }

    /// Does a step of a release.
    fn release(&self, state: &mut State, me: Id, place: Place) -> Result<Place, Fault> {
        let own = node(me);
        let State { tail, readers, next_writer, nodes, .. } = state;
        Ok(match place {
            LeavesBehind => match nodes[own].back.successor {
                Successor::Node(next) if self.reads(me) && self.reads(next) => CountsOut,
                Successor::Node(_) => Claims(nodes[own].back),
                Successor::Nothing => CountsOut,
                Successor::None => LeavesTail,
                Successor::Leaving => LeavesBehind,
            },
            Claims(back) if nodes[own].back != back => LeavesBehind,
            Claims(back) => {
                nodes[own].back.busy = self.has(Part::IsBusy);
                match back.successor {
                    Successor::Node(next) if self.reads(me) => PutsAtHead(next),
                    Successor::Node(next) => self.granting(next, Then::Ends),
                    _ => unreachable!("a node was seen"),
                }
            }
            LeavesTail if exchange(tail, Some(me), None) => {
                if self.reads(me) {
                    CountsOut
                } else {
                    Done
                }
            }
            LeavesTail => LeavesBehind,
            PutsAtHead(next) if nodes[node(next)].fate != Fate::Waits => {
                return Err(GONE);
            }
            PutsAtHead(next) => {
                nodes[node(next)].front = Front::Waits(None);
                HandsOn(next)
            }
            HandsOn(_) if next_writer.is_some() => return Err(TWO_NEXT),
            HandsOn(next) => {
                *next_writer = Some(next);
                CountsOut
            }
            CountsOut => {
                *readers -= 1;
                if *readers == 0 { LooksForNext } else { Done }
            }
            LooksForNext => match *next_writer {
                Some(next) if self.has(Part::CountsAgain) => CountsAgain(next),
                Some(next) => TakesOut(next),
                None => Done,
            },
            CountsAgain(next) if *readers == 0 => TakesOut(next),
            TakesOut(next) if exchange(next_writer, Some(next), None) => {
                self.granting(next, Then::Ends)
            }
            CountsAgain(_) | TakesOut(_) => Done,
            _ => unreachable!("{place:?} is no step of this part"),
        })
    }

    /// Does a step of a thread that cancels its request.
    fn cancel(&self, state: &mut State, me: Id, place: Place) -> Result<Place, Fault> {
        let own = node(me);
        let State { tail, next_writer, nodes, .. } = state;
        Ok(match place {
            SetsLeaving => {
                nodes[own].back.leaving = true;
                if self.has(Part::HoldsSuccessor) { HoldsSuccessor } else { LooksAtFront }
            }
            HoldsSuccessor if nodes[own].back.successor == Successor::Leaving => HoldsSuccessor,
            HoldsSuccessor => LooksAtFront,
            LooksAtFront => match nodes[own].front {
                Front::Granted => Holds,
                Front::Waits(None) => LeavesHead,
                Front::Waits(Some(before)) => LooksWhetherLeaving(before),
            },
            LeavesHead if exchange(next_writer, Some(me), None) => {
                nodes[own].fate = Fate::Left;
                LooksForSuccessor(None)
            }
            LeavesHead => LooksAtFront,
            LooksWhetherLeaving(before) => {
                let back = nodes[node(before)].back;
                let both_read = self.reads(me) && self.reads(before);
                let is_granting = back.granted && both_read && self.has(Part::RespectsGrant);
                let is_leaving = back.leaving && !back.granted && self.has(Part::RespectsLeaving);
                let is_refused = is_granting || is_leaving || back.busy;
                if back.successor != Successor::Node(me) || is_refused {
                    LooksAtFront
                } else if self.has(Part::MarksLeaving) {
                    MarksLeaving(before, back)
                } else {
                    nodes[own].fate = Fate::Left;
                    LooksForSuccessor(Some(before))
                }
            }
            MarksLeaving(before, back) if nodes[node(before)].back != back => LooksAtFront,
            MarksLeaving(before, _) => {
                nodes[node(before)].back.successor = Successor::Leaving;
                nodes[own].fate = Fate::Left;
                LooksForSuccessor(Some(before))
            }
            LooksForSuccessor(before) => match (nodes[own].back.successor, before) {
                (Successor::None, _) => MovesTail(before),
                (Successor::Leaving | Successor::Nothing, _) => return Err(CLAIMED),
                (Successor::Node(next), Some(before)) => StoresFront(next, before),
                (Successor::Node(next), None) if self.reads(next) => {
                    self.granting(next, Then::Ends)
                }
                (Successor::Node(next), None) => PutsNextAtHead(next),
            },
            MovesTail(before) if exchange(tail, Some(me), before) => {
                before.map_or(Done, ClearsLink)
            }
            MovesTail(before) => LooksForSuccessor(before),
            ClearsLink(before) => {
                nodes[node(before)].back.successor = Successor::None;
                Done
            }
            PutsNextAtHead(next) if nodes[node(next)].fate != Fate::Waits => {
                return Err(GONE);
            }
            PutsNextAtHead(next) => {
                nodes[node(next)].front = Front::Waits(None);
                StoresNext(next)
            }
            _ => unreachable!("{place:?} is no step of this part"),
        })
    }

    /// Returns the rule that a state breaks.
    fn fault(&self, state: &State) -> Option<Fault> {
        let holds = |&id: &Id| state.places[usize::from(id)] == Holds;
        let holders = || (0..self.acts.len() as Id).filter(holds);
        let is_over = state.places.iter().all(|place| *place == Done);
        let is_zero = (state.tail, state.readers, state.next_writer) == (None, 0, None);
        if holders().count() > 1 && !holders().all(|id| self.reads(id)) {
            return Some(SHARED);
        }
        (is_over && !is_zero).then_some(LEFT_OVER)
    }

    /// Explores all interleavings. Returns the number of states, and the first fault found.
    fn explore(&self) -> (usize, Option<Fault>) {
        let first = self.first();
        let (mut numbers, mut states) = (HashMap::from([(first, 0)]), vec![first]);
        // The steps between states. The second list has no steps of holders and of threads that
        // wait for them.
        let mut steps = [Vec::new(), Vec::new()];
        let mut from = 0;
        while from < states.len() {
            for (me, act) in (0..).zip(self.acts) {
                let place = states[from].places[usize::from(me)];
                for cancels in [false, true] {
                    if place == Done || cancels && !(act.cancels && place == Polls) {
                        continue;
                    }
                    let mut state = states[from];
                    if let Err(fault) = self.step(&mut state, me, cancels) {
                        return (states.len(), Some(fault));
                    }
                    let to = *numbers.entry(state).or_insert(states.len());
                    if to == states.len() {
                        states.push(state);
                        if let Some(fault) = self.fault(&state) {
                            return (states.len(), Some(fault));
                        }
                    }
                    steps[0].push((to, from));
                    if !matches!(place, Holds | Polls) {
                        steps[1].push((to, from));
                    }
                }
            }
            from += 1;
        }
        let rests: [fn(&Place) -> bool; 2] =
            [|place| *place == Done, |place| matches!(place, Holds | Polls | Done)];
        for ((steps, rests), fault) in steps.iter_mut().zip(rests).zip([WAITS, BLOCKS]) {
            if !all_reach(&states, steps, rests) {
                return (states.len(), Some(fault));
            }
        }
        (states.len(), None)
    }
}

/// Returns whether each state can come to one in which all threads rest. Sorts the steps.
fn all_reach(
    states: &[State],
    steps: &mut [(usize, usize)],
    rests: impl Fn(&Place) -> bool,
) -> bool {
    steps.sort_unstable();
    let is_end = |state: &State| state.places.iter().all(&rests);
    let mut reaches: Vec<bool> = states.iter().map(is_end).collect();
    let mut fresh: Vec<usize> = (0..states.len()).filter(|&state| reaches[state]).collect();
    while let Some(to) = fresh.pop() {
        let begin = steps.partition_point(|&step| step < (to, 0));
        for &(_, from) in steps[begin..].iter().take_while(|step| step.0 == to) {
            if !std::mem::replace(&mut reaches[from], true) {
                fresh.push(from);
            }
        }
    }
    reaches.into_iter().all(|reaches| reaches)
}

/// Returns requests, and how many of them are queued: behind a holder, all that may be cancelled.
/// If not `is_short`, also with the last one as a newcomer, and all requests of three threads; else
/// every other of the queues, which differ from one another in two requests.
fn scenes(is_short: bool) -> Vec<(Vec<Act>, Id)> {
    let kinds = [READS, WRITES, LEAVES[0], LEAVES[1]];
    let mut scenes = vec![(vec![READS, READS, READS, WRITES], 1)];
    for queue in (0..16usize).filter(|queue| !is_short || queue.count_ones() % 2 == 0) {
        let leaver = |place: usize| LEAVES[queue >> place & 1];
        let requests = vec![kinds[queue & 1], leaver(1), leaver(2), leaver(3)];
        scenes.push((requests.clone(), 4));
        if !is_short {
            scenes.push((requests, 3));
        }
    }
    for [first, second, third] in (0..64).map(|mix| [mix & 3, mix >> 2 & 3, mix >> 4]) {
        if !is_short && first <= second && second <= third {
            scenes.push((vec![kinds[first], kinds[second], kinds[third]], 0));
        }
    }
    scenes
}

#[test]
fn requests_of_four_threads_exclude_one_another_and_end_in_every_interleaving() {
    let mut sum = 0;
    for (acts, queued) in scenes(is_short()) {
        let (states, fault) = Model { acts: &acts, queued, without: None }.explore();
        assert_eq!(fault, None, "{acts:?}, {queued} queued, after {states} states");
        sum += states;
    }
    println!("{sum} states");
    assert!(sum > if is_short() { 50_000 } else { 100_000 }, "{sum} states");
}

#[test]
fn leaving_out_any_part_of_the_queue_lock_fails_the_model() {
    let [reads, writes] = LEAVES;
    let mixed = [WRITES, reads, writes, reads];
    for (part, acts, queued, fault) in [
        (Part::AwaitsLeaver, [WRITES, reads, writes, READS], 3, WAITS),
        (Part::GrantsNeighbour, mixed, 4, WAITS),
        (Part::IsBusy, mixed, 4, GONE),
        (Part::CountsAgain, [READS, READS, READS, WRITES], 1, SHARED),
        (Part::HoldsSuccessor, mixed, 4, CLAIMED),
        (Part::MarksLeaving, mixed, 4, GONE),
        (Part::RespectsLeaving, mixed, 4, CLAIMED),
        (Part::RespectsGrant, mixed, 4, GONE),
        (Part::SetsGranted, mixed, 4, BLOCKS),
    ] {
        let (states, found) = Model { acts: &acts, queued, without: Some(part) }.explore();
        println!("without {part:?}: {states} states, {found:?}");
        assert_eq!(found, Some(fault), "without {part:?}");
    }
}
