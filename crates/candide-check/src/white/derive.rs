//! The derivation of dependencies from accesses, and of violations from dependencies.

use super::live::NodeId;
use super::sight::Sight;
use super::units::{Version, Writer};
use super::{Checker, Fed, Item, LiveScan, Pending};
use crate::anomaly::{About, Anomaly, Evidence, Party, Step, Violation};
use crate::graph::{Edge, Graph, Kind};
use crate::history::{Key, Scan};
use std::hint::black_box;
use std::ops::Bound;

impl Checker {
    pub(super) fn process(&mut self, fed: &Fed) {
        self.processed += 1;
        let node = self.live.add(fed.party, false);
        if self.options.strict {
            self.follow_real_time(node, fed.party.begun);
        }
        let writes = fed.first + fed.reads as usize;
        let end = writes + fed.writes as usize;
        // These loads do not wait for one another. So they fetch all the units at once, before the
        // loop below reads the units one by one.
        let newest = self.items[fed.first..end].iter().map(|item| self.units.unpin(item.unit));
        black_box(newest.fold(0, |all, newest| all ^ newest));
        for number in fed.first..writes {
            let item = self.items[number];
            self.read_item(node, item, Kind::Rw, fed.sight);
            if !fed.scans.is_empty() {
                let head = self.units.get(item.unit).head;
                self.units.get_mut(head).stamp = self.processed;
            }
        }
        for scan in &fed.scans {
            self.scan(node, scan, fed.sight);
        }
        for number in writes..end {
            let item = self.items[number];
            self.write(node, item);
        }
        self.items_live -= (fed.reads + fed.writes) as usize;
        self.closing.push_back((fed.party.ended, node.slot));
        if self.options.strict {
            self.end_in_real_time(node, fed.party);
        }
    }

    /// Adds the edge to a transaction from the last moment before its begin.
    fn follow_real_time(&mut self, node: NodeId, begun: u64) {
        let after = self.moments.partition_point(|(time, _)| *time < begun);
        if let Some((_, moment)) = after.checked_sub(1).and_then(|last| self.moments.get(last))
            && self.live.is_live(*moment)
        {
            self.live.edge(moment.slot, node.slot, u32::MAX, Kind::RealTime);
        }
    }

    /// Adds the moment of a transaction's end, after the transaction and after all earlier moments.
    fn end_in_real_time(&mut self, node: NodeId, party: Party) {
        let moment = self.live.add(party, true);
        self.live.edge(node.slot, moment.slot, u32::MAX, Kind::RealTime);
        if let Some((_, last)) = self.moments.back()
            && self.live.is_live(*last)
        {
            self.live.edge(last.slot, moment.slot, u32::MAX, Kind::RealTime);
        }
        self.live.close(moment.slot);
        self.moments.push_back((party.ended, moment));
    }

    fn read_item(&mut self, node: NodeId, item: Item, kind: Kind, sight: Sight) {
        let version = match item.version {
            0 => self.units.get_mut(item.unit).unversioned(sight),
            version => version,
        };
        let Item { unit, present, .. } = item;
        if let Some(as_of) = sight.as_of
            && !self.look_back(node, unit, version, kind, as_of)
        {
            return;
        }
        let floor = self.units.get(unit).floor();
        if version < floor {
            return self.overtaken(node, unit, version, kind);
        }
        let place = match self.units.get(unit).find(version) {
            Ok(place) => {
                let known = self.units.get(unit).versions[place];
                if known.present != present {
                    let writer =
                        if let Writer::Live(slot) = known.writer { Some(slot) } else { None };
                    return self.wrong_presence(unit, version, node.slot, writer);
                }
                match known.writer {
                    Writer::Live(slot) => self.live.edge(slot, node.slot, unit, Kind::Wr),
                    Writer::Unknown => self.live.hold(node.slot),
                    Writer::Gone => {}
                }
                place
            }
            Err(_) if self.units.is_suspect(unit, version) => return self.doubt(unit, version),
            Err(place) => {
                let (deadline, reader) = (self.ended_max, self.live.party(node.slot));
                let new = Version { number: version, writer: Writer::Unknown, present };
                self.units.get_mut(unit).insert(place, new);
                self.pending.push_back(Pending { deadline, unit, version, reader });
                self.units.get_mut(unit).pins += 1;
                self.live.hold(node.slot);
                place
            }
        };
        self.units.add_reader(unit, version, node, kind, &self.live);
        let later = self.units.get(unit).versions.range(place + 1..);
        let next = later.map(|version| version.writer).find(|writer| *writer != Writer::Unknown);
        if let Some(Writer::Live(slot)) = next {
            self.live.edge(node.slot, slot, unit, kind);
        }
    }

    /// Records that transaction `node` looked back to time `as_of` and read `version` of a unit.
    /// Returns `false` if the unit had another version at that time.
    fn look_back(&mut self, node: NodeId, unit: u32, version: u64, kind: Kind, as_of: u64) -> bool {
        let by = self.live.party(node.slot);
        if version > as_of {
            self.wrong_moment(unit, version, (as_of, by), "which is later".to_string(), None);
            return false;
        }
        let books = self.units.get(unit);
        let after = books.find(version).map_or_else(|place| place, |place| place + 1);
        let mut later = books.versions.range(after..);
        let next = later.find(|later| later.writer != Writer::Unknown);
        if let Some(&Version { number, writer, .. }) = next.filter(|next| next.number <= as_of) {
            let writer =
                if let Writer::Live(slot) = writer { Some(self.live.party(slot)) } else { None };
            self.wrong_moment(
                unit,
                version,
                (as_of, by),
                format!("at the time of version {number}"),
                writer,
            );
            return false;
        }
        self.units.get_mut(unit).look_back(version, as_of, by, kind);
        true
    }

    /// Reports a transaction that looked back to the time of the new version `version`, or to a
    /// later time, and read an earlier version of the unit. The report is a violation.
    fn meet_look_backs(&mut self, node: NodeId, unit: u32, before: u64, version: u64) {
        let Some((seen, as_of, by)) = self.units.get(unit).looked_back(before, version) else {
            return;
        };
        let Some(by) = by else { return self.doubt_look_back(unit, version) };
        let writer = self.live.party(node.slot);
        self.wrong_moment(
            unit,
            seen,
            (as_of, by),
            format!("at the time of version {version}"),
            Some(writer),
        );
    }

    fn write(&mut self, node: NodeId, item: Item) {
        let Item { unit, version, present } = item;
        if version < self.units.get(unit).floor() {
            return self.overtaken(node, unit, version, Kind::Ww);
        }
        let place = match self.units.get(unit).find(version) {
            Ok(place) => {
                let known = self.units.get(unit).versions[place];
                if known.writer != Writer::Unknown {
                    return self.two_writers(unit, version, node.slot, known.writer);
                }
                if !self.meet_readers(node, unit, place, present) {
                    return;
                }
                place
            }
            Err(_) if self.units.is_suspect(unit, version) => return self.doubt(unit, version),
            Err(place) => {
                let new = Version { number: version, writer: Writer::Live(node.slot), present };
                self.units.get_mut(unit).insert(place, new);
                place
            }
        };
        self.live.wrote(node.slot, unit);
        let Self { units, live, readers, .. } = self;
        let versions = &units.get(unit).versions;
        let next = versions.range(place + 1..).find(|version| version.writer != Writer::Unknown);
        if let Some(Version { writer: Writer::Live(slot), .. }) = next {
            live.edge(node.slot, *slot, unit, Kind::Ww);
        }
        let mut earlier = versions.range(..place).rev();
        let before = earlier
            .find(|version| version.writer != Writer::Unknown)
            .expect("the floor has no unknown writer");
        if let Writer::Live(slot) = before.writer {
            live.edge(slot, node.slot, unit, Kind::Ww);
        }
        let before = before.number;
        // The versions between the two may turn out not to exist. So the new version counts as
        // overwriting the versions that their readers read, too.
        units.live_readers(unit, before, version - 1, live, readers);
        for (reader, kind) in readers {
            live.edge(reader.slot, node.slot, unit, *kind);
        }
        self.meet_look_backs(node, unit, before, version);
    }

    /// Handles the arrival of a version that was read before its writer was processed. Adds edges
    /// by which the writer comes before the readers. Returns `false` if the readers saw another
    /// presence of the row.
    fn meet_readers(&mut self, node: NodeId, unit: u32, place: usize, present: bool) -> bool {
        let Self { units, live, readers, .. } = self;
        let version = &mut units.get_mut(unit).versions[place];
        version.writer = Writer::Live(node.slot);
        let (number, agrees) = (version.number, version.present == present);
        units.live_readers(unit, number, number, live, readers);
        let foresight = readers.iter().any(|(reader, _)| *reader == node);
        let last = readers.last().map_or(node.slot, |(reader, _)| reader.slot);
        for (reader, _) in readers {
            live.edge(node.slot, reader.slot, unit, Kind::Wr);
            live.release(reader.slot);
        }
        if !agrees {
            self.wrong_presence(unit, number, last, Some(node.slot));
        }
        if foresight {
            // A transaction's recorded reads do not include reads of its own writes. So this
            // transaction would come before itself.
            let (from, about) =
                (self.live.party(node.slot), Some(self.about(unit, Some(number), None)));
            self.violated(Violation::cycle(vec![Step {
                from,
                kind: Kind::Wr,
                about,
                since: None,
            }]));
        }
        agrees && !foresight
    }

    fn scan(&mut self, node: NodeId, scan: &Scan, sight: Sight) {
        if is_empty(scan) {
            return;
        }
        let keys =
            self.units.keys(scan.table).range::<[u64], _>((words(&scan.from), words(&scan.to)));
        let heads: Vec<u32> = keys.map(|(_, head)| *head).collect();
        for head in heads {
            if self.units.get(head).stamp != self.processed {
                self.miss(node, head, sight);
            }
        }
        self.scans.push(LiveScan { node, sight, scan: scan.clone() });
    }

    /// Records that a scan did not find a key.
    fn miss(&mut self, node: NodeId, head: u32, sight: Sight) {
        self.read_item(
            node,
            Item { version: 0, unit: head, present: false },
            Kind::Predicate,
            sight,
        );
    }

    /// Records, for each new key, the scans that did not find the key because they were processed
    /// before it came.
    pub(super) fn meet_new_keys(&mut self) {
        let mut missed = Vec::new();
        for table in (0..=u16::MAX).take(self.units.tables()) {
            let new = self.units.take_new(table);
            for LiveScan { node, sight, scan } in
                self.scans.iter().filter(|live| live.scan.table == table)
            {
                let key = |unit: &u32| -> &[u64] { self.units.get(*unit).key() };
                let from = new.partition_point(|unit| match words(&scan.from) {
                    Bound::Included(from) => key(unit) < from,
                    Bound::Excluded(from) => key(unit) <= from,
                    Bound::Unbounded => false,
                });
                let to = new.partition_point(|unit| match words(&scan.to) {
                    Bound::Included(to) => key(unit) <= to,
                    Bound::Excluded(to) => key(unit) < to,
                    Bound::Unbounded => true,
                });
                missed.extend(new[from..to].iter().map(|unit| (*node, *unit, *sight)));
            }
        }
        missed.into_iter().for_each(|(node, unit, sight)| self.miss(node, unit, sight));
    }

    /// Judges each pending read whose version's writer would have been processed by now, if that
    /// writer existed.
    pub(super) fn judge_pending(&mut self, watermark: u64) {
        while let Some(Pending { deadline, unit, version, reader }) = self.pending.front().copied()
        {
            if deadline >= watermark || self.violation.is_some() {
                break;
            }
            self.pending.pop_front();
            let books = self.units.get_mut(unit);
            books.pins -= 1;
            let unknown = books
                .find(version)
                .is_ok_and(|place| books.versions[place].writer == Writer::Unknown);
            if unknown {
                let about = self.about(unit, Some(version), None);
                self.violated(Violation {
                    anomaly: Anomaly::AbortedRead,
                    evidence: Evidence::Version { parties: vec![reader], about },
                });
            }
        }
    }

    pub(super) fn look_for_cycles(&mut self) {
        let knot = self.live.knot();
        if knot.is_empty() {
            return;
        }
        let (transactions, edges) = self.live.edges_among(&knot);
        let graph = Graph::new(transactions, edges);
        let cycle = graph.worst_cycle().expect("what cannot be taken apart holds a cycle");
        let steps = cycle.into_iter().map(|edge| self.step(&knot, edge)).collect();
        self.violated(Violation::cycle(steps));
    }

    fn step(&self, knot: &[u32], edge: Edge) -> Step {
        let Edge { from, to, about: unit, kind } = edge;
        let (from, to) = (knot[from as usize], knot[to as usize]);
        let about = (kind != Kind::RealTime).then(|| {
            let written_by = |slot| {
                let mut versions = self.units.get(unit).versions.iter();
                versions
                    .find(|version| version.writer == Writer::Live(slot))
                    .map(|version| version.number)
            };
            let (before, after) = match kind {
                Kind::Ww => (written_by(from), written_by(to)),
                Kind::Wr => (written_by(from), None),
                _ => {
                    let after = written_by(to);
                    (self.units.last_read(unit, from, after.unwrap_or(u64::MAX), &self.live), after)
                }
            };
            self.about(unit, before, after)
        });
        Step { from: self.live.party(from), kind, about, since: None }
    }

    fn about(&self, unit: u32, before: Option<u64>, after: Option<u64>) -> About {
        let books = self.units.get(unit);
        let key = self.units.get(books.head).key().clone();
        let written = |version: Option<u64>| version.filter(|version| *version > 0);
        About {
            table: Some(books.table),
            key,
            group: books.group,
            before: written(before),
            after: written(after),
        }
    }

    fn violated(&mut self, violation: Violation) {
        self.violation.get_or_insert(Box::new(violation));
    }

    fn wrong_presence(&mut self, unit: u32, version: u64, reader: u32, writer: Option<u32>) {
        let parties =
            std::iter::once(reader).chain(writer).map(|slot| self.live.party(slot)).collect();
        let about = self.about(unit, Some(version), None);
        self.violated(Violation {
            anomaly: Anomaly::WrongPresence,
            evidence: Evidence::Version { parties, about },
        });
    }

    fn wrong_moment(
        &mut self,
        unit: u32,
        seen: u64,
        (as_of, by): (u64, Party),
        but: String,
        writer: Option<Party>,
    ) {
        let about = self.about(unit, None, None);
        let version = if seen > 0 { format!("version {seen}") } else { "no version".to_string() };
        let written = if writer.is_some() { "; T2 wrote that" } else { "" };
        let observed =
            format!("T1 looked back to {as_of} and saw {version} of {about}, {but}{written}");
        let parties = std::iter::once(by).chain(writer).collect();
        self.violated(Violation {
            anomaly: Anomaly::WrongMoment,
            evidence: Evidence::Observation { parties, observed },
        });
    }

    fn two_writers(&mut self, unit: u32, version: u64, one: u32, other: Writer) {
        let other = match other {
            Writer::Live(slot) => Some(self.live.party(slot)),
            _ => self.units.overwriter(unit),
        };
        let parties = std::iter::once(self.live.party(one)).chain(other).collect();
        let about = self.about(unit, Some(version), None);
        self.violated(Violation {
            anomaly: Anomaly::TwoWriters,
            evidence: Evidence::Version { parties, about },
        });
    }

    /// Reports that transaction `node` has to precede the writer of the unit's floor. That writer
    /// has been peeled, so it was closed before the transaction began.
    fn overtaken(&mut self, node: NodeId, unit: u32, version: u64, kind: Kind) {
        let floor = self.units.get(unit).floor();
        match self.units.overwriter(unit) {
            Some(overwriter) => {
                let about = Some(self.about(unit, Some(version), Some(floor)));
                let from = self.live.party(node.slot);
                let back =
                    Step { from: overwriter, kind: Kind::RealTime, about: None, since: None };
                self.violated(Violation::cycle(vec![
                    Step { from, kind, about, since: None },
                    back,
                ]));
            }
            None => self.doubt(unit, version),
        }
    }

    fn doubt(&mut self, unit: u32, version: u64) {
        self.doubt_that(&format!(
            "version {version} of {} had been forgotten",
            self.about(unit, None, None)
        ));
    }

    fn doubt_look_back(&mut self, unit: u32, version: u64) {
        let about = self.about(unit, None, None);
        self.doubt_that(&format!(
            "the readers that had looked back to version {version} of {about}, or later, and may have missed it, had been forgotten"
        ));
    }

    fn doubt_that(&mut self, what: &str) {
        let horizon = self.options.horizon;
        self.doubt.get_or_insert_with(|| {
            format!("{what}; check again with a horizon greater than {horizon}")
        });
    }
}

fn words(bound: &Bound<Key>) -> Bound<&[u64]> {
    bound.as_ref().map(|key| &**key)
}

/// Returns whether the range can contain no key. Maps panic on some of these ranges.
fn is_empty(scan: &Scan) -> bool {
    match (&scan.from, &scan.to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Excluded(to) | Bound::Included(to),
        ) => from >= to,
        _ => false,
    }
}
