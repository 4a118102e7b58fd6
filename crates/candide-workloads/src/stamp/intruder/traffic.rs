//! Flows and their packets, the detector, and the sequential program.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use fastrand::Rng;

use super::Intruder;
use crate::replay::Stopped;
use crate::rng;

/// The random stream from which flows are drawn.
const STREAM: u64 = 1 << 32;

/// The number of packets between two questions whether to stop.
const ASK_EVERY: usize = 1 << 12;

/// What attacks contain, in lower case.
const SIGNATURES: [&str; 16] = [
    "/bin/sh -c",
    "../../etc/shadow",
    "drop table users",
    "union select null",
    "<script>alert(",
    "cmd.exe /k",
    "xp_dirtree",
    "wget http://10.",
    "chmod 4755",
    "nc -lvp 4444",
    "base64 -d | sh",
    "powershell -enc",
    "${jndi:ldap",
    "phpinfo();",
    "rm -rf --no",
    "' or 1=1 --",
];

/// A flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// The text that its packets carry.
    pub text: Vec<u8>,
    /// Whether it is an attack.
    pub is_attack: bool,
    /// Its packets, in order.
    pub packets: Range<u32>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// The number of its flow.
    pub flow: u32,
    /// The part of the flow's text that it carries.
    pub part: Range<usize>,
}

/// The text of a flow that has been put together again, and the number of the flow.
pub type Text = (u32, Vec<u8>);

/// All flows and packets.
#[derive(Debug, PartialEq)]
pub struct Traffic {
    /// The flows.
    pub flows: Vec<Flow>,
    /// The packets, flow by flow.
    pub packets: Vec<Packet>,
    /// The numbers of the packets in the order in which they arrive.
    pub(super) order: Vec<u32>,
}

/// Returns whether `text` contains the signature of an attack, in letters of any case.
pub fn is_attack(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let contains =
        |signature: &str| text.windows(signature.len()).any(|part| part == signature.as_bytes());
    SIGNATURES.iter().any(|signature| contains(signature))
}

impl Traffic {
    /// Draws the flows, divides them into packets, and shuffles these.
    pub(super) fn draw(knobs: &Intruder, seed: u64) -> Traffic {
        let mut rng = rng::stream(seed, STREAM);
        let mut traffic = Traffic { flows: Vec::new(), packets: Vec::new(), order: Vec::new() };
        for number in 0..knobs.flows {
            let is_attack = rng.u32(..100) < knobs.attack_pct;
            let text = if is_attack { attack(&mut rng) } else { harmless(&mut rng, knobs.length) };
            let (count, first) = (rng.usize(1..=text.len()), traffic.packets.len() as u32);
            let bytes = text.len() / count;
            for part in 0..count {
                let end = if part + 1 < count { (part + 1) * bytes } else { text.len() };
                traffic.packets.push(Packet { flow: number, part: part * bytes..end });
            }
            traffic.flows.push(Flow { text, is_attack, packets: first..first + count as u32 });
        }
        traffic.order = (0..).take(traffic.packets.len()).collect();
        rng.shuffle(&mut traffic.order);
        traffic
    }

    /// Returns the flow of a packet.
    pub(super) fn flow_of(&self, packet: u32) -> (u32, &Flow) {
        let number = self.packets[packet as usize].flow;
        (number, &self.flows[number as usize])
    }

    /// Joins what packets of a flow carry.
    pub(super) fn join(&self, flow: u32, packets: impl Iterator<Item = u32>) -> Text {
        let text = &self.flows[flow as usize].text;
        let parts = packets.map(|packet| self.packets[packet as usize].part.clone());
        (flow, parts.flat_map(|part| &text[part]).copied().collect())
    }

    /// Puts all packets together and searches them, on one thread, without transactions. Returns
    /// the numbers of the flows that are attacks; `None` if it was told to stop.
    pub(super) fn sequential(&self, stopped: Stopped<'_>) -> Option<Vec<u32>> {
        let mut waiting: VecDeque<u32> = self.order.iter().copied().collect();
        let mut fragments: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let (mut texts, mut attacks) = (VecDeque::new(), Vec::new());
        while let Some(packet) = waiting.pop_front() {
            let (number, flow) = self.flow_of(packet);
            if flow.packets.len() > 1 {
                let of_flow = fragments.entry(number).or_default();
                let place = of_flow.partition_point(|&other| other < packet);
                of_flow.insert(place, packet);
                if of_flow.len() == flow.packets.len() {
                    let all = fragments.remove(&number).expect("has just been there");
                    texts.push_back(self.join(number, all.into_iter()));
                }
            } else {
                texts.push_back(self.join(number, std::iter::once(packet)));
            }
            if let Some((flow, text)) = texts.pop_front()
                && is_attack(&text)
            {
                attacks.push(flow);
            }
            if waiting.len().is_multiple_of(ASK_EVERY) && stopped() {
                return None;
            }
        }
        attacks.sort_unstable();
        Some(attacks)
    }
}

/// Draws the text of an attack: a signature, some of whose letters are capital ones.
fn attack(rng: &mut Rng) -> Vec<u8> {
    let signature = SIGNATURES[rng.usize(..SIGNATURES.len())].bytes();
    signature.map(|byte| if rng.bool() { byte.to_ascii_uppercase() } else { byte }).collect()
}

/// Draws a text that is no attack.
fn harmless(rng: &mut Rng, length: u32) -> Vec<u8> {
    loop {
        let text: Vec<u8> = (0..rng.u32(1..=length)).map(|_| rng.u8(b' '..=b'~')).collect();
        if !is_attack(&text) {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::Scale;

    #[test]
    fn traffic_follows_from_the_seed_and_has_as_many_attacks_as_are_found() {
        let knobs = Intruder { attack_pct: 30, ..Intruder::published(Scale::Sim) };
        let [traffic, same, other] = [5, 5, 6].map(|seed| Traffic::draw(&knobs, seed));
        assert!(traffic == same && traffic != other);
        let flows = (0..).zip(&traffic.flows);
        let attacks: Vec<u32> = flows.filter(|(_, flow)| flow.is_attack).map(|(n, _)| n).collect();
        assert!((500..720).contains(&attacks.len()), "{}", attacks.len());
        assert_eq!(traffic.sequential(&|| false), Some(attacks));
        assert_eq!(traffic.sequential(&|| true), None);
        for (number, flow) in (0..).zip(&traffic.flows) {
            assert_eq!(traffic.join(number, flow.packets.clone()), (number, flow.text.clone()));
        }
    }

    #[test]
    fn attacks_are_found_in_letters_of_any_case() {
        assert!(is_attack(b"GET x?q=' Or 1=1 -- HTTP"));
        assert!(!is_attack(b"' or 1=2 --") && !is_attack(b""));
    }
}
