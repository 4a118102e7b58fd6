//! The units of a history, by number. Each unit keeps the versions to which a live transaction may
//! still refer.

use super::live::{Live, NONE, NodeId};
use super::sight::Sight;
use crate::anomaly::Party;
use crate::graph::Kind;
use crate::history::Key;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The writer of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// No writer, or a transaction that has been peeled.
    Gone,
    /// The version was read, but its writer has not been processed yet.
    Unknown,
    /// The live transaction of this slot.
    Live(u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    pub(super) number: u64,
    pub(super) writer: Writer,
    pub(super) present: bool,
}

/// The least length at which a list of readers is pruned. A list is pruned whenever its length has
/// doubled.
const READERS_MIN: u32 = 16;

/// The reader of a version, and the kind of the read. A reader takes only two words, since readers
/// are most of the memory of a unit that is often read.
#[derive(Debug, Clone, Copy)]
struct Reader {
    version: u64,
    slot: u32,
    /// The node's generation, shifted by one. The lowest bit is set if the reader scanned a range
    /// and did not find the key.
    generation: u32,
}

impl Reader {
    fn new(version: u64, node: NodeId, kind: Kind) -> Self {
        let generation = node.generation << 1 | u32::from(kind == Kind::Predicate);
        Self { version, slot: node.slot, generation }
    }

    fn node(self) -> NodeId {
        NodeId { slot: self.slot, generation: self.generation >> 1 }
    }

    /// Returns the kind of the dependency between the read and a write that replaces the read
    /// version.
    fn kind(self) -> Kind {
        if self.generation & 1 == 0 { Kind::Rw } else { Kind::Predicate }
    }
}

/// The deletes of a key whose records have been removed.
#[derive(Debug, Default)]
struct Forgets {
    /// The version and the time of removal of each delete, in order if `is_sorted`.
    deletes: Vec<(u64, u64)>,
    is_sorted: bool,
    /// Whether the deletes have been forgotten in the order of their versions. The order holds in
    /// every correct history.
    is_in_time: bool,
}

impl Forgets {
    fn push(&mut self, version: u64, at: u64) {
        let last = self.deletes.last().copied();
        if last.is_none() {
            (self.is_sorted, self.is_in_time) = (true, true);
        }
        // Deletes usually come in this order. Otherwise they are sorted when they are next read.
        self.is_sorted &= last.is_none_or(|(before, then)| before < version && then <= at);
        self.deletes.push((version, at));
    }

    /// Sorts the deletes. Removes the deletes whose versions are below the floor, once they are
    /// more than half of all.
    fn settle(&mut self, floor: u64) {
        if !self.is_sorted {
            self.deletes.sort_unstable();
            self.deletes.dedup_by_key(|(version, _)| *version);
            self.is_sorted = true;
            self.is_in_time = self.deletes.is_sorted_by_key(|(_, at)| *at);
        }
        let old = self.deletes.partition_point(|(version, _)| *version < floor);
        if 2 * old > self.deletes.len() {
            self.deletes.drain(..old);
        }
    }

    /// Returns the latest version not above `as_of` that was forgotten before `time`. The list must
    /// be settled.
    fn latest(&self, time: u64, as_of: u64) -> Option<u64> {
        let seen = &self.deletes[..self.deletes.partition_point(|(version, _)| *version <= as_of)];
        let last = match self.is_in_time {
            true => seen[..seen.partition_point(|(_, at)| *at < time)].last(),
            false => seen.iter().rfind(|(_, at)| *at < time),
        };
        last.map(|(version, _)| *version)
    }

    /// Returns the delete of the latest version; `None` if that version is below `version`. The
    /// list must be settled.
    fn last_from(&self, version: u64) -> Option<(u64, u64)> {
        self.deletes.last().copied().filter(|(last, _)| *last >= version)
    }
}

/// The look-back to the latest time among those that saw a version.
#[derive(Debug, Clone, Copy)]
struct ReadView {
    as_of: u64,
    /// The transaction that looked back. `None` if the transaction may be a forgotten one, which
    /// cannot be named.
    by: Option<Party>,
}

#[derive(Debug)]
pub(super) struct Unit {
    pub(super) table: u16,
    pub(super) group: u8,
    /// Whether the unit is queued for [`Units::sweep`].
    candidate: bool,
    /// The number of the unit's items that are not processed yet, plus the number of its reads that
    /// are not judged yet.
    pub(super) pins: u32,
    key: Key,
    first_word: u64,
    words: u32,
    /// The unit of group 0 of the same key.
    pub(super) head: u32,
    /// The unit of the next group of the same key.
    next_group: u32,
    /// The stamp of the last transaction with scans that read the key.
    pub(super) stamp: u64,
    /// The versions, in order. The first of them is the *floor*: older versions have been
    /// forgotten. In the beginning the floor is version 0, in which the key has no row.
    pub(super) versions: VecDeque<Version>,
    /// The readers, in the order of the versions that they read. Some of the readers may have been
    /// peeled since.
    readers: VecDeque<Reader>,
    /// The length of `readers` at which peeled readers are removed.
    readers_max: u32,
    /// The deletes whose records have been removed. Only group 0 has them.
    forgotten: Forgets,
    /// For each version, the look-back to the latest time among those that saw the version.
    look_backs: BTreeMap<u64, ReadView>,
    /// The latest time of a look-back that read the unit in any version, except by a scan.
    looked_back: u64,
}

impl Unit {
    fn is_of(&self, key: &[u64]) -> bool {
        // Most keys are short, and comparing their first words needs no further access to memory.
        self.first_word == key.first().copied().unwrap_or(0)
            && self.words == key.len() as u32
            && (key.len() <= 1 || *self.key == *key)
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn floor(&self) -> u64 {
        self.versions[0].number
    }

    /// Returns the version that `reader` saw when it found no record.
    pub(super) fn unversioned(&mut self, reader: Sight) -> u64 {
        self.settle_forgotten();
        self.forgotten.latest(reader.ended, reader.as_of.unwrap_or(u64::MAX)).unwrap_or(0)
    }

    fn settle_forgotten(&mut self) {
        let floor = self.floor();
        self.forgotten.settle(floor);
    }

    /// Returns whether every transaction that ends at `time` or later and finds no record reads the
    /// floor, until the unit gets a new version. The forgotten deletes must be settled.
    fn is_traceless(&self, time: u64) -> bool {
        let floor = self.floor();
        let is_past = |(version, at)| version == floor && at < time;
        self.forgotten.last_from(floor).map_or(floor == 0, is_past)
    }

    /// Records that a transaction looked back and saw a version.
    pub(super) fn look_back(&mut self, version: u64, as_of: u64, by: Party, kind: Kind) {
        let by = Some(by);
        let latest = self.look_backs.entry(version).or_insert(ReadView { as_of, by });
        if latest.as_of < as_of {
            *latest = ReadView { as_of, by };
        }
        if kind != Kind::Predicate {
            self.looked_back = self.looked_back.max(as_of);
        }
    }

    /// Returns a look-back to the time of `version`, or to a later time, that saw a version from
    /// `before` up to but not including `version`. The result is the version seen, the time, and
    /// the transaction.
    pub(super) fn looked_back(
        &self,
        before: u64,
        version: u64,
    ) -> Option<(u64, u64, Option<Party>)> {
        let mut seen = self.look_backs.range(before..version);
        let (seen, ReadView { as_of, by }) =
            seen.find(|(_, look_back)| look_back.as_of >= version)?;
        Some((*seen, *as_of, *by))
    }

    /// Inserts a version at an index from [`find`](Self::find).
    pub(super) fn insert(&mut self, place: usize, version: Version) {
        if place == self.versions.len() {
            self.versions.push_back(version)
        } else {
            self.versions.insert(place, version)
        }
    }

    /// Returns the index of a version. If the version is missing, the error is the index at which
    /// to insert it.
    pub(super) fn find(&self, number: u64) -> Result<usize, usize> {
        // Histories are processed in the order of time, so most searches are for one of the last
        // versions.
        let last = self.versions.len() - 1;
        match self.versions[last].number {
            newest if newest == number => Ok(last),
            newest if newest < number => Err(last + 1),
            _ => self.versions.binary_search_by_key(&number, |version| version.number),
        }
    }
}

/// The number of dropped keys whose last versions are remembered exactly.
const DROPPED_MAX: usize = 1 << 16;

/// The last version of a unit, and its writer.
#[derive(Debug, Clone, Copy, Default)]
struct Floor {
    group: u8,
    version: u64,
    writer: Option<Party>,
}

#[derive(Debug, Default)]
struct Table {
    keys: BTreeMap<Key, u32>,
    /// The keys that are new since this list was last taken.
    new: Vec<u32>,
    /// The dropped keys that are remembered, with the versions that deleted them.
    dropped: HashMap<Key, Box<[Floor]>>,
    dropped_order: VecDeque<Key>,
    /// The greatest version of the dropped keys that are no longer remembered.
    suspect: u64,
    /// The latest time of a look-back by a forgotten transaction that may have read any new key as
    /// absent.
    looked_back: u64,
}

#[derive(Debug, Default)]
pub(super) struct Units {
    /// Whether the writers of the floors are recorded.
    strict: bool,
    units: Vec<Unit>,
    /// The writer of the floor of each unit.
    overwriters: Vec<Option<Party>>,
    free: Vec<u32>,
    /// The seed of the hashes. Each checker draws a new seed, so that no history can be constructed
    /// whose keys all collide.
    seed: u64,
    /// The slots of a hash table with open addressing: the numbers of the units of group 0, with
    /// the upper half of their hashes.
    slots: Vec<(u32, u32)>,
    taken: usize,
    tables: Vec<Table>,
    candidates: VecDeque<u32>,
}

fn hash(seed: u64, table: u16, key: &[u64]) -> u64 {
    // The multiplication gives a product of twice the width. The XOR of its halves mixes every bit
    // of a word into every other bit.
    key.iter().fold(u64::from(table) ^ seed, |hash, word| {
        let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f_u128;
        (product as u64) ^ ((product >> 64) as u64)
    })
}

impl Units {
    pub(super) fn new(strict: bool) -> Self {
        Self { strict, seed: RandomState::new().build_hasher().finish(), ..Self::default() }
    }

    fn hash_of(&self, unit: u32) -> u64 {
        let unit = self.get(unit);
        hash(self.seed, unit.table, &unit.key)
    }

    /// Returns the writer of a unit's floor. Returns `None` if the order is not strict, or if the
    /// floor has no writer.
    pub(super) fn overwriter(&self, unit: u32) -> Option<Party> {
        self.overwriters.get(unit as usize).copied().flatten()
    }

    /// Removes a pin of the unit. Returns the unit's newest version.
    pub(super) fn unpin(&mut self, unit: u32) -> u64 {
        let unit = self.get_mut(unit);
        unit.pins -= 1;
        unit.versions.back().map_or(0, |version| version.number)
    }

    pub(super) fn get(&self, unit: u32) -> &Unit {
        &self.units[unit as usize]
    }

    pub(super) fn get_mut(&mut self, unit: u32) -> &mut Unit {
        &mut self.units[unit as usize]
    }

    /// Returns the number of units that are held.
    pub(super) fn count(&self) -> usize {
        self.units.len() - self.free.len()
    }

    fn table(&mut self, table: u16) -> &mut Table {
        let table = usize::from(table);
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, Table::default);
        }
        &mut self.tables[table]
    }

    /// Returns the number of a unit. The unit is created if it is new.
    pub(super) fn intern(&mut self, table: u16, key: &Key, group: u8) -> u32 {
        let mut unit = self.head(table, key);
        while self.units[unit as usize].group != group {
            let next = self.units[unit as usize].next_group;
            if next == NONE {
                let head = self.units[unit as usize].head;
                let floor = self.restored_floor(table, key, group);
                let new = self.create(table, key.clone(), floor);
                self.units[new as usize].head = head;
                self.units[unit as usize].next_group = new;
                return new;
            }
            unit = next;
        }
        unit
    }

    /// Returns the remembered last version of a unit whose key was dropped. Returns the initial
    /// version if none is remembered.
    fn restored_floor(&self, table: u16, key: &Key, group: u8) -> Floor {
        let floors = self.tables.get(usize::from(table)).and_then(|table| table.dropped.get(key));
        let floor = floors.and_then(|floors| floors.iter().find(|floor| floor.group == group));
        floor.copied().unwrap_or(Floor { group, ..Floor::default() })
    }

    /// Returns the unit of group 0 of a key.
    pub(super) fn head(&mut self, table: u16, key: &Key) -> u32 {
        if self.taken * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(self.seed, table, key);
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        while self.slots[place].1 != NONE {
            let (upper, number) = self.slots[place];
            if upper == (hash >> 32) as u32 {
                let unit = &self.units[number as usize];
                if unit.table == table && unit.is_of(key) {
                    return number;
                }
            }
            place = (place + 1) & mask;
        }
        let floor = self.restored_floor(table, key, 0);
        let unit = self.create(table, key.clone(), floor);
        self.slots[place] = ((hash >> 32) as u32, unit);
        self.taken += 1;
        let books = self.table(table);
        books.keys.insert(key.clone(), unit);
        books.new.push(unit);
        if floor.version > 0 {
            self.units[unit as usize].forgotten.push(floor.version, 0);
        }
        unit
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, NONE); size]);
        for (upper, unit) in old.into_iter().filter(|slot| slot.1 != NONE) {
            let mut place = self.hash_of(unit) as usize & (size - 1);
            while self.slots[place].1 != NONE {
                place = (place + 1) & (size - 1);
            }
            self.slots[place] = (upper, unit);
        }
    }

    /// Removes a unit of group 0 from the slots. Moves back the units behind it that it had
    /// displaced.
    fn unlink(&mut self, unit: u32) {
        let mask = self.slots.len() - 1;
        let mut hole = self.hash_of(unit) as usize & mask;
        while self.slots[hole].1 != unit {
            hole = (hole + 1) & mask;
        }
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let (_, other) = self.slots[place];
            if other == NONE {
                break;
            }
            let home = self.hash_of(other) as usize & mask;
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[place];
                hole = place;
            }
        }
        self.slots[hole] = (0, NONE);
        self.taken -= 1;
    }

    fn create(&mut self, table: u16, key: Key, floor: Floor) -> u32 {
        let unit = self.free.pop().unwrap_or(self.units.len() as u32);
        let versions = VecDeque::from([Version {
            number: floor.version,
            writer: Writer::Gone,
            present: false,
        }]);
        let group = floor.group;
        let (next_group, forgotten) = (NONE, Forgets::default());
        let mut look_backs = BTreeMap::new();
        let looked_back = self.tables.get(usize::from(table)).map_or(0, |table| table.looked_back);
        if looked_back > floor.version {
            look_backs.insert(floor.version, ReadView { as_of: looked_back, by: None });
        }
        let new = Unit {
            table,
            group,
            candidate: false,
            pins: 0,
            first_word: key.first().copied().unwrap_or(0),
            words: key.len() as u32,
            key,
            head: unit,
            next_group,
            stamp: 0,
            versions,
            readers: VecDeque::new(),
            readers_max: READERS_MIN,
            forgotten,
            look_backs,
            looked_back: 0,
        };
        match self.units.get_mut(unit as usize) {
            Some(place) => *place = new,
            None => self.units.push(new),
        }
        if self.strict {
            self.overwriters.resize(self.units.len(), None);
            self.overwriters[unit as usize] = floor.writer;
        }
        unit
    }

    /// Returns the keys of a table that are new since the last call, in order.
    pub(super) fn take_new(&mut self, table: u16) -> Vec<u32> {
        let mut new = std::mem::take(&mut self.table(table).new);
        new.sort_by(|one, other| self.get(*one).key.cmp(&self.get(*other).key));
        new
    }

    /// Returns one more than the highest number of a table.
    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Returns the keys of a table, each with its unit of group 0.
    pub(super) fn keys(&mut self, table: u16) -> &BTreeMap<Key, u32> {
        &self.table(table).keys
    }

    /// Returns whether version `number` of a unit, which the unit does not hold, may have been
    /// dropped with the unit's key.
    pub(super) fn is_suspect(&self, unit: u32, number: u64) -> bool {
        let unit = self.get(unit);
        unit.floor() == 0 && number > 0 && number <= self.tables[usize::from(unit.table)].suspect
    }

    pub(super) fn forget(&mut self, unit: u32, version: u64, at: u64) {
        self.get_mut(unit).forgotten.push(version, at);
        self.consider(unit);
    }

    /// Records the look-back of a transaction that is being forgotten. The transaction would have
    /// read any new key of the table as absent.
    pub(super) fn forget_look_back(&mut self, table: u16, as_of: u64) {
        let books = self.table(table);
        books.looked_back = books.looked_back.max(as_of);
    }

    /// Queues a key for the next sweeps.
    pub(super) fn consider(&mut self, unit: u32) {
        if !std::mem::replace(&mut self.get_mut(unit).candidate, true) {
            self.candidates.push_back(unit);
        }
    }

    /// Adds a reader of a version.
    pub(super) fn add_reader(
        &mut self,
        unit: u32,
        version: u64,
        node: NodeId,
        kind: Kind,
        live: &Live,
    ) {
        let Unit { readers, readers_max, .. } = self.get_mut(unit);
        if readers.len() as u32 >= *readers_max {
            readers.retain(|reader| live.is_live(reader.node()));
            *readers_max = (2 * readers.len() as u32).max(READERS_MIN);
        }
        let reader = Reader::new(version, node, kind);
        // Most transactions read the latest version.
        if readers.back().is_none_or(|last| last.version <= version) {
            readers.push_back(reader);
        } else {
            let place = readers.partition_point(|other| other.version <= version);
            readers.insert(place, reader);
        }
    }

    /// Collects the live readers of a range of versions, both ends included. Each reader comes with
    /// the kind of the dependency between its read and a write that replaces the read version.
    pub(super) fn live_readers(
        &self,
        unit: u32,
        from: u64,
        to: u64,
        live: &Live,
        found: &mut Vec<(NodeId, Kind)>,
    ) {
        let readers = &self.get(unit).readers;
        found.clear();
        let latest = readers.iter().rev().skip_while(|reader| reader.version > to);
        let readers = latest.take_while(|reader| reader.version >= from);
        let readers = readers.map(|reader| (reader.node(), reader.kind()));
        found.extend(readers.filter(|(node, _)| live.is_live(*node)));
    }

    /// Returns the latest version before `before` that the live transaction of `slot` read.
    pub(super) fn last_read(&self, unit: u32, slot: u32, before: u64, live: &Live) -> Option<u64> {
        let own = |reader: &&Reader| {
            reader.slot == slot && reader.version < before && live.is_live(reader.node())
        };
        self.get(unit).readers.iter().rev().find(own).map(|reader| reader.version)
    }

    /// Forgets the versions before the first version with a live writer. `overwriter` has just been
    /// peeled.
    pub(super) fn raise_floor(&mut self, unit: u32, overwriter: Party) {
        if self.strict {
            self.overwriters[unit as usize] = Some(overwriter);
        }
        let Unit { versions, readers, look_backs, .. } = self.get_mut(unit);
        versions.pop_front();
        while versions.front().is_some_and(|version| version.writer == Writer::Unknown) {
            versions.pop_front();
        }
        let floor = versions
            .front_mut()
            .expect("the version of the peeled transaction is behind the floor");
        floor.writer = Writer::Gone;
        while readers.front().is_some_and(|reader| reader.version < floor.number) {
            readers.pop_front();
        }
        while look_backs.first_key_value().is_some_and(|(version, _)| *version < floor.number) {
            look_backs.pop_first();
        }
    }

    /// Drops each key that has no row, unless a live reader saw that the key has no row. Examines
    /// at most `count` of the queued keys. Transactions that ended before `watermark` have been
    /// processed.
    pub(super) fn sweep(&mut self, count: usize, watermark: u64, live: &Live) {
        for _ in 0..count.min(self.candidates.len()) {
            let head = self.candidates.pop_front().expect("there are that many");
            self.get_mut(head).settle_forgotten();
            let (floor, newest) = (self.get(head).floor(), self.get(head).versions.len() - 1);
            let forgotten = self.get(head).forgotten.last_from(floor.max(1)).is_some();
            let row = newest > 0 || self.get(head).versions[0].present;
            if row && !forgotten {
                // The key has a row. The key is queued again when the row has been deleted.
                self.get_mut(head).candidate = false;
            } else if self.is_droppable(head, watermark, live) {
                self.drop_key(head);
            } else {
                self.candidates.push_back(head);
            }
        }
    }

    fn last(&self, unit: u32) -> Floor {
        let (group, version) = (self.get(unit).group, self.get(unit).floor());
        Floor { group, version, writer: self.overwriter(unit) }
    }

    fn groups(&self, head: u32) -> Vec<u32> {
        let next = |unit: &u32| Some(self.get(*unit).next_group).filter(|next| *next != NONE);
        std::iter::successors(Some(head), next).collect()
    }

    fn is_droppable(&self, head: u32, watermark: u64, live: &Live) -> bool {
        let unit = self.get(head);
        unit.is_traceless(watermark)
            && self.groups(head).into_iter().all(|group| {
                let unit = self.get(group);
                let quiet = unit.versions.len() == 1 && unit.pins == 0 && !unit.versions[0].present;
                // Scans do not count: if the key is inserted again, every live scan is compared
                // with the new key anyway.
                let holds =
                    |reader: &Reader| reader.kind() == Kind::Rw && live.is_live(reader.node());
                let read = unit.readers.iter().any(holds);
                quiet && !read
            })
    }

    fn drop_key(&mut self, head: u32) {
        self.unlink(head);
        let groups = self.groups(head);
        let mut floors: Vec<Floor> = groups.iter().map(|unit| self.last(*unit)).collect();
        let table = self.get(head).table;
        let key = std::mem::take(&mut self.get_mut(head).key);
        for unit in groups {
            // The look-backs of live scans are recorded with the scans. So only the other
            // look-backs are recorded here.
            let (floor, looked_back) = (self.get(unit).floor(), self.get(unit).looked_back);
            if looked_back > floor {
                self.forget_look_back(table, looked_back);
            }
            let books = self.get_mut(unit);
            (books.versions, books.readers, books.look_backs) = Default::default();
            self.free.push(unit);
        }
        let books = self.table(table);
        books.keys.remove(&key);
        // `unmet` holds the groups that have not been accessed since the key was last dropped.
        let before = books.dropped.remove(&key).unwrap_or_default();
        let unmet =
            before.into_iter().filter(|old| floors.iter().all(|floor| floor.group != old.group));
        let unmet: Vec<Floor> = unmet.collect();
        floors.extend(unmet);
        if floors.iter().any(|floor| floor.version > 0) {
            books.dropped.insert(key.clone(), floors.into());
            books.dropped_order.push_back(key);
        }
        while books.dropped_order.len() > DROPPED_MAX {
            let key = books.dropped_order.pop_front().expect("there are some");
            let floors = books.dropped.remove(&key).unwrap_or_default();
            books.suspect = floors.iter().map(|floor| floor.version).fold(books.suspect, u64::max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_made_for_one_seed_are_spread_by_another() {
        // With the fixed seed that was used before seeds were drawn, all these keys have one hash.
        let seed = 0x9e37_79b9_7f4a_7c15;
        let keys = (0..4_000).map(|first| -> Key { [first, hash(seed, 0, &[first]) ^ 1].into() });
        let mut units = Units::new(false);
        keys.for_each(|key| {
            units.head(0, &key);
        });
        let mask = units.slots.len() - 1;
        let taken = (0..).zip(&units.slots).filter(|(_, (_, unit))| *unit != NONE);
        let far = taken
            .map(|(place, (_, unit))| {
                usize::wrapping_sub(place, units.hash_of(*unit) as usize) & mask
            })
            .max();
        assert!(far.is_some_and(|far| far < 200), "{far:?} places from where it belongs");
    }

    #[test]
    fn forgotten_versions_are_found_in_whatever_order_they_were_entered() {
        let in_time = [(2, 10), (5, 20), (9, 30)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut forgets = Forgets::default();
            order.into_iter().for_each(|number| forgets.push(in_time[number].0, in_time[number].1));
            forgets.settle(0);
            for (time, as_of, found) in [
                (10, 99, None),
                (11, 99, Some(2)),
                (31, 99, Some(9)),
                (31, 8, Some(5)),
                (15, 9, Some(2)),
                (99, 1, None),
            ] {
                assert_eq!(forgets.latest(time, as_of), found, "before {time}, as of {as_of}");
            }
            assert_eq!((forgets.last_from(9), forgets.last_from(10)), (Some((9, 30)), None));
            // Versions below the floor may be taken out.
            forgets.settle(6);
            assert_eq!(forgets.deletes, [(9, 30)]);
        }
        // A later version was forgotten before an earlier one. No correct history contains this
        // order.
        let mut forgets = Forgets::default();
        [(5, 30), (2, 40), (9, 20), (5, 35)]
            .into_iter()
            .for_each(|(version, at)| forgets.push(version, at));
        forgets.settle(0);
        assert_eq!(forgets.deletes.len(), 3);
        assert_eq!(
            [(21, 99), (31, 8), (36, 4), (41, 4)].map(|(time, as_of)| forgets.latest(time, as_of)),
            [Some(9), Some(5), None, Some(2)]
        );
    }
}
