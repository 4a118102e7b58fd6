//! What a simulated place has, and what is on its way to it.

#![forbid(unsafe_code)]

use super::faults::Faults;
use crate::place::{Created, LIST_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The number of past states of names that lists may show.
const PAST_MAX: usize = 16;

/// A request that changes something.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Create(String, Arc<[u8]>),
    Delete(String),
}

impl Request {
    pub(super) fn name(&self) -> &str {
        match self {
            Request::Create(name, _) | Request::Delete(name) => name,
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    objects: BTreeMap<String, Arc<[u8]>>,
    /// The names as they were, newest last.
    past: VecDeque<BTreeSet<String>>,
    /// The names that were created, oldest first.
    created: Vec<String>,
    pub(super) waiting: Vec<Request>,
    pub(super) faults: Faults,
    pub(super) cut_requests: BTreeSet<usize>,
    pub(super) cut_answers: BTreeSet<usize>,
    pub(super) calls: u64,
    random: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        World {
            objects: BTreeMap::new(),
            past: VecDeque::new(),
            created: Vec::new(),
            waiting: Vec::new(),
            faults: Faults::default(),
            cut_requests: BTreeSet::new(),
            cut_answers: BTreeSet::new(),
            calls: 0,
            // Seeds that are neighbours give different numbers.
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D,
        }
    }

    /// Returns a number below `below`, which is not 0 (SplitMix64).
    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % below as u64) as usize
    }

    fn occurs(&mut self, percent: u8) -> bool {
        percent > 0 && self.draw(100) < usize::from(percent)
    }

    /// Counts a call, and executes some of the requests that are on their way.
    pub(super) fn begin_call(&mut self) {
        self.calls += 1;
        while !self.waiting.is_empty() && self.occurs(20) {
            let at = self.draw(self.waiting.len());
            let request = self.waiting.swap_remove(at);
            self.apply(&request);
        }
    }

    /// Returns whether a read of this handle has no answer.
    pub(super) fn is_cut(&mut self, handle: usize) -> bool {
        let Faults { lost, unanswered, .. } = self.faults;
        self.cut_requests.contains(&handle)
            || self.cut_answers.contains(&handle)
            || self.occurs(lost.saturating_add(unanswered))
    }

    /// Lets a request fare as the faults say. Returns the answer, if there is one.
    pub(super) fn execute(&mut self, handle: usize, request: &Request) -> Option<Created> {
        self.begin_call();
        let Faults { lost, unanswered, late, twice, .. } = self.faults;
        if self.cut_requests.contains(&handle) || self.occurs(lost) {
            return None;
        }
        if self.occurs(late) {
            self.waiting.push(request.clone());
            return None;
        }
        let created = self.apply(request);
        if self.occurs(twice) {
            self.waiting.push(request.clone());
        }
        let is_answered = !self.cut_answers.contains(&handle) && !self.occurs(unanswered);
        is_answered.then_some(created)
    }

    pub(super) fn settle(&mut self) {
        for request in std::mem::take(&mut self.waiting) {
            self.apply(&request);
        }
    }

    fn apply(&mut self, request: &Request) -> Created {
        match request {
            Request::Create(name, bytes) => {
                let is_free = !self.objects.contains_key(name);
                let unconditional = self.faults.unconditional;
                if !is_free && !self.occurs(unconditional) {
                    return Created::Exists;
                }
                self.created.push(name.clone());
                self.set(name, Some(bytes.to_vec()));
            }
            Request::Delete(name) => self.set(name, None),
        }
        Created::New
    }

    /// Sets the bytes of a name, or frees it.
    pub(super) fn set(&mut self, name: &str, bytes: Option<Vec<u8>>) {
        // Only lists that may be old need what was before.
        if self.faults.old_list > 0 {
            self.past.push_back(self.objects.keys().cloned().collect());
            if self.past.len() > PAST_MAX {
                self.past.pop_front();
            }
        }
        match bytes {
            Some(bytes) => drop(self.objects.insert(name.to_string(), bytes.into())),
            None => drop(self.objects.remove(name)),
        }
    }

    pub(super) fn undo(&mut self, count: usize) {
        let kept = self.created.len().saturating_sub(count);
        for name in self.created.split_off(kept) {
            self.set(&name, None);
        }
    }

    pub(super) fn read(&mut self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = self.objects.get(name)?.to_vec();
        let Faults { missed, flipped, .. } = self.faults;
        if self.occurs(missed) {
            return None;
        }
        if !bytes.is_empty() && self.occurs(flipped) {
            let bit = self.draw(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        Some(bytes)
    }

    pub(super) fn list(&mut self, prefix: &str, after: &str) -> Vec<String> {
        let old_list = self.faults.old_list;
        let names = if !self.past.is_empty() && self.occurs(old_list) {
            let at = self.draw(self.past.len());
            self.past[at].clone()
        } else {
            self.objects.keys().cloned().collect()
        };
        let is_listed = |name: &String| name.starts_with(prefix) && name.as_str() > after;
        names.into_iter().filter(is_listed).take(LIST_MAX).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }
}
