//! The program but for its objects, and the check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use super::Intruder;
use super::traffic::{Text, Traffic, is_attack};
use crate::Consistency;
use crate::replay::Stopped;
use crate::stamp::repeated::Program;
use crate::stamp::timed;

/// The traffic, and how long the sequential program takes.
struct Prepared {
    traffic: Traffic,
    took: Duration,
}

/// What the detector has said of a flow: nothing, or one of the others, or both.
const NOT_SEEN: u8 = 0;
const HARMLESS: u8 = 1;
const ATTACK: u8 = 2;

/// The program but for its objects.
pub struct Intrusions {
    prepared: Arc<Prepared>,
    /// What the detector has said of each flow.
    verdicts: Vec<AtomicU8>,
    /// The number of texts that are not those of their flows, or came twice.
    wrong: AtomicU64,
}

/// The contents of the objects.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The packets that no thread has taken.
    pub arrived: Vec<u32>,
    /// The packets of flows that are not complete.
    pub fragments: Vec<(u32, u32)>,
    /// The texts of complete flows.
    pub texts: Vec<Arc<Text>>,
}

impl Intrusions {
    /// Draws the traffic and runs the sequential program. Returns `None` if `stopped` returns
    /// `true` meanwhile.
    pub(super) fn new(knobs: &Intruder, seed: u64, stopped: Stopped<'_>) -> Option<Intrusions> {
        let prepare = || {
            let traffic = Traffic::draw(knobs, seed);
            let (attacks, took) = timed(|| traffic.sequential(stopped)).ok_or(())?;
            let drawn = traffic.flows.iter().filter(|flow| flow.is_attack).count();
            assert_eq!(attacks.len(), drawn, "the detector finds the attacks that were drawn");
            Ok::<_, ()>(Prepared { traffic, took })
        };
        let inputs = (seed, knobs.attack_pct, knobs.length, knobs.flows);
        let prepared = knobs.kept.get_or(&inputs, prepare).ok()?;
        let verdicts = (0..knobs.flows).map(|_| AtomicU8::new(NOT_SEEN)).collect();
        Some(Intrusions { prepared, verdicts, wrong: AtomicU64::new(0) })
    }

    /// Returns the flows and packets.
    pub fn traffic(&self) -> &Traffic {
        &self.prepared.traffic
    }

    /// Searches a text that has been taken.
    pub(super) fn judge(&self, text: &Text) {
        let (flow, text) = text;
        let verdict = if is_attack(text) { ATTACK } else { HARMLESS };
        let before = self.verdicts[*flow as usize].fetch_or(verdict, Ordering::Relaxed);
        if before != NOT_SEEN || *text != self.traffic().flows[*flow as usize].text {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of packets that are not in exactly one place: in a queue, in the set, or
    /// in a text.
    fn misplaced(&self, found: &Found) -> usize {
        let traffic = self.traffic();
        let mut places = vec![0u32; traffic.packets.len()];
        let single = found.arrived.iter().chain(found.fragments.iter().map(|(_, packet)| packet));
        single.for_each(|&packet| places[packet as usize] += 1);
        let judged = (0..).zip(&self.verdicts);
        let judged = judged.filter(|(_, of)| of.load(Ordering::Relaxed) != NOT_SEEN);
        let waiting = found.texts.iter().map(|text| text.0);
        for flow in judged.map(|(flow, _)| flow).chain(waiting) {
            let packets = traffic.flows[flow as usize].packets.clone();
            packets.for_each(|packet| places[packet as usize] += 1);
        }
        places.iter().filter(|&&places| places != 1).count()
    }

    /// Returns how many flows the detector has seen, and those of which it has said what is wrong.
    fn verdicts(&self) -> (u64, Vec<usize>) {
        let verdicts = self.verdicts.iter().map(|of| of.load(Ordering::Relaxed));
        let seen = verdicts.zip(&self.traffic().flows).enumerate();
        let seen: Vec<_> = seen.filter(|(_, (verdict, _))| *verdict != NOT_SEEN).collect();
        let wrong = |(_, (verdict, flow)): &&(usize, (u8, &super::Flow))| {
            (*verdict & ATTACK != 0) != flow.is_attack
        };
        (seen.len() as u64, seen.iter().filter(wrong).map(|(flow, _)| *flow).collect())
    }
}

impl Program for Intrusions {
    type Found = Found;

    fn stages(&self) -> usize {
        1
    }

    fn sequential_tps(&self) -> f64 {
        let transactions = 3 * self.traffic().packets.len();
        transactions as f64 / self.prepared.took.as_secs_f64().max(1e-9)
    }

    fn settle(&self, found: &Found, _: usize, counts: &[u64; 4], has_ended: bool) -> Consistency {
        let mut consistency = Consistency::default();
        let ([captured, taken, ..], traffic) = (*counts, self.traffic());
        let all = captured + found.arrived.len() as u64;
        consistency.expect(all == traffic.packets.len() as u64, || {
            format!("{all} packets wait or were taken where there are {}", traffic.packets.len())
        });
        let of_other = |&&(flow, packet): &&(u32, u32)| traffic.flow_of(packet).0 != flow;
        let of_others = found.fragments.iter().filter(of_other).count();
        consistency.expect(of_others == 0, || {
            format!("{of_others} packets are among those of another flow")
        });
        let misplaced = self.misplaced(found);
        consistency
            .expect(misplaced == 0, || format!("{misplaced} packets are not in exactly one place"));
        let is_garbled = |text: &&Arc<Text>| traffic.flows[text.0 as usize].text != text.1;
        let wrong = found.texts.iter().filter(is_garbled).count() as u64;
        let wrong = wrong + self.wrong.load(Ordering::Relaxed);
        consistency.expect(wrong == 0, || format!("{wrong} texts are wrong, or came twice"));
        let (seen, mistaken) = self.verdicts();
        consistency.expect(seen == taken, || {
            format!("{taken} texts were taken where {seen} flows have been searched")
        });
        consistency.expect(mistaken.is_empty(), || {
            format!("attacks were missed or invented in flows {mistaken:?}")
        });
        if has_ended {
            let left = traffic.flows.len() as u64 - seen;
            consistency.expect(left == 0, || format!("{left} flows have not been searched"));
        } else {
            let groups: Vec<_> = found.fragments.chunk_by(|one, other| one.0 == other.0).collect();
            let is_whole =
                |group: &&&[(u32, u32)]| traffic.flow_of(group[0].1).1.packets.len() == group.len();
            let whole = groups.iter().filter(is_whole).count();
            consistency.expect(whole == 0, || format!("{whole} complete flows are in the set"));
        }
        consistency
    }

    fn begin(&self, _: usize) {
        self.verdicts.iter().for_each(|of| of.store(NOT_SEEN, Ordering::Relaxed));
        self.wrong.store(0, Ordering::Relaxed);
    }
}
