//! The objects, and the transactions on them.

use std::sync::Arc;

use candide::objects::{Boxed, TQueue, TSet};
use candide::{Abort, Database, Ordered, Protocol, Session, Tx};

use super::settle::{Found, Intrusions};
use super::traffic::{Text, Traffic};
use crate::Failure;
use crate::load::run_unmeasured;
use crate::stamp::repeated::{Objects, Turn, in_batches};
use crate::workload::run_counted;

/// The queues and the set between them.
pub struct Network<P: Protocol> {
    /// The packets that have arrived.
    pub arrived: TQueue<u32, P>,
    /// The packets of flows that are not complete, by flow and packet.
    pub fragments: TSet<(u32, u32), P, Ordered>,
    /// The texts of complete flows.
    pub texts: TQueue<Boxed<Arc<Text>>, P>,
}

impl<P: Protocol> Clone for Network<P> {
    fn clone(&self) -> Self {
        let Network { arrived, fragments, texts } = self;
        Network { arrived: arrived.clone(), fragments: fragments.clone(), texts: texts.clone() }
    }
}

/// What a thread has in hand.
#[derive(Debug, Default)]
pub enum Hand {
    /// Nothing.
    #[default]
    Empty,
    /// A packet.
    Packet(u32),
    /// Nothing, but it must take a text, of which it may have added one.
    Text,
}

impl<P: Protocol> Network<P> {
    /// Adds a packet to those of its flow, which leave if they are complete.
    fn reassemble(&self, tx: &Tx<'_, P>, traffic: &Traffic, packet: u32) -> Result<(), Abort> {
        let (number, flow) = traffic.flow_of(packet);
        if flow.packets.len() > 1 {
            self.fragments.put(tx, (number, packet))?;
            let range = (number, 0)..=(number, u32::MAX);
            let mut all = Vec::with_capacity(flow.packets.len());
            for fragment in self.fragments.range(tx, range) {
                all.push(fragment?);
            }
            if all.len() < flow.packets.len() {
                return Ok(());
            }
            for &fragment in &all {
                self.fragments.remove(tx, fragment)?;
            }
            let text = traffic.join(number, all.into_iter().map(|(_, packet)| packet));
            self.texts.push(tx, Arc::new(text))
        } else {
            self.texts.push(tx, Arc::new(traffic.join(number, std::iter::once(packet))))
        }
    }
}

impl<P: Protocol> Objects<P> for Network<P> {
    type Program = Intrusions;
    type Hand = Hand;

    fn create(db: &Database<P>, _: &Intrusions) -> Result<Self, Failure> {
        let fragments = TSet::new(db)?;
        Ok(Network { arrived: TQueue::new(db)?, fragments, texts: TQueue::new(db)? })
    }

    fn fill(&self, session: &mut Session<P>, program: &Intrusions) -> Result<(), Abort> {
        let order = &program.traffic().order;
        in_batches(session, order, &mut |tx, &packet| self.arrived.push(tx, packet))
    }

    fn clear(&self, session: &mut Session<P>, _: &Intrusions, found: &Found) -> Result<(), Abort> {
        in_batches(session, &found.arrived, &mut |tx, _| self.arrived.pop(tx).map(drop))?;
        in_batches(session, &found.texts, &mut |tx, _| self.texts.pop(tx).map(drop))?;
        in_batches(session, &found.fragments, &mut |tx, &fragment| {
            self.fragments.remove(tx, fragment).map(drop)
        })
    }

    fn read(&self, session: &mut Session<P>, _: &Intrusions) -> Result<Found, Abort> {
        let mut found = Found::default();
        run_unmeasured(session, &mut |tx| {
            found.arrived = self.arrived.iter(tx)?.collect::<Result<_, _>>()?;
            found.texts =
                self.texts.iter(tx)?.map(|text| text.cloned()).collect::<Result<_, _>>()?;
            found.fragments = self.fragments.iter(tx).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        Ok(found)
    }

    fn step(
        &self,
        turn: Turn<'_, P, Intrusions>,
        hand: &mut Hand,
    ) -> Result<Option<(usize, u64)>, Abort> {
        let Turn { session, program, counts, .. } = turn;
        let (kind, retries) = match std::mem::take(hand) {
            Hand::Empty => {
                let (packet, retries) = run_counted(session, |tx| self.arrived.pop(tx));
                let Some(packet) = packet? else { return Ok(None) };
                counts[0] += 1;
                *hand = Hand::Packet(packet);
                (0, retries)
            }
            Hand::Packet(packet) => {
                let traffic = program.traffic();
                let (end, retries) =
                    run_counted(session, |tx| self.reassemble(tx, traffic, packet));
                end?;
                *hand = Hand::Text;
                (1, retries)
            }
            Hand::Text => {
                let (text, retries) =
                    run_counted(session, |tx| Ok::<_, Abort>(self.texts.pop(tx)?.cloned()));
                if let Some(text) = text? {
                    counts[1] += 1;
                    program.judge(&text);
                }
                (2, retries)
            }
        };
        Ok(Some((kind, retries)))
    }

    fn is_busy(hand: &Hand) -> bool {
        !matches!(hand, Hand::Empty)
    }
}
