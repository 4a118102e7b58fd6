//! intruder: packets of a network are put together again and searched for attacks.
//!
//! A thread takes a packet from a queue. The next transaction adds it to the packets of its flow;
//! if that has all its packets, they leave the set, and the text of the flow is put into another
//! queue. A third transaction takes a text, which is searched for signatures of attacks outside of
//! transactions. Packets arrive in random order.

mod objects;
mod settle;
mod traffic;

use candide::{Database, Protocol};
use serde::Serialize;

use super::choices::Scale;
use super::kept::Kept;
use super::repeated::Repeated;
use crate::workload::require_range;
use crate::{Failure, Loading, Size, Workload};
pub use objects::Network;
pub use settle::{Found, Intrusions};
pub use traffic::{Flow, Packet, Text, Traffic, is_attack};

/// The types of transactions.
const KINDS: [&str; 3] = ["capture", "reassemble", "detect"];

/// The bytes of a packet: in the queue, in the set, and among the inputs.
const PACKET_BYTES: u64 = 200;
/// The largest number of flows.
const FLOWS_MAX: u32 = 1 << 24;
/// The longest text of a flow that is no attack.
const LENGTH_MAX: u32 = 1 << 12;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Intruder {
    /// The published configuration from which the other knobs come.
    pub mode: Scale,
    /// The percentage of flows that are attacks.
    pub attack_pct: u32,
    /// The longest text of a flow that is no attack, in bytes. A flow has from one packet to as
    /// many as its text has bytes.
    pub length: u32,
    /// The number of flows.
    pub flows: u32,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Intruder {
    /// Returns a published configuration.
    pub fn published(mode: Scale) -> Self {
        let (length, flows) = match mode {
            Scale::Sim => (4, 2_038),
            Scale::Real => (128, 262_144),
        };
        Intruder { mode, attack_pct: 10, length, flows, kept: Kept::default() }
    }
}

impl Workload for Intruder {
    type Loaded<P: Protocol> = Repeated<P, Network<P>>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[];

    fn name(&self) -> String {
        "intruder".to_string()
    }

    fn keys(&self) -> u64 {
        1
    }

    fn size(&self) -> Size {
        // The mean number of packets is about a quarter of the longest text.
        let packets = u64::from(self.length) / 4 + 2;
        Size::of(u64::from(self.flows), "flows", packets * PACKET_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "the same packets arrive again and again, and one thread fills the queue meanwhile",
            "the signatures of attacks are others than STAMP's",
        ]
    }

    fn validate(&self) -> Result<(), String> {
        require_range("the percentage of attacks", 0..=100, self.attack_pct)?;
        require_range("the longest text", 1..=LENGTH_MAX, self.length)?;
        require_range("the number of flows", 1..=FLOWS_MAX, self.flows)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure> {
        let program = Intrusions::new(self, loading.seed, loading.stopped);
        Repeated::load(db, loading, program.ok_or(Failure::Stopped)?)
    }
}
