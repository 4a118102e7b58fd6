//! Tests of the index against a map, under many threads, and of each guarantee of its versions.

use crate::index::node::{Advance, Retire};
use crate::index::ordered::*;
use crate::memory::{Memory, SlabId};
use crate::record::Layout;
use crate::schema::{Group, WordRange};
use crate::sync::{Ordering, Random};
use node::KEYS;
use std::collections::{BTreeMap, BTreeSet};

mod concurrent;
mod dying_leaves;
mod inheritance;
mod model;
mod phantoms;
mod restructuring;

/// Leaves with the versions at which they were observed.
type Observed = Vec<(NodeAt, u64)>;

/// The treatment of the keys that begin with the words of a range's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Included,
    Excluded,
    Unbounded,
}

/// An end of a range: the keys that begin with some words.
#[derive(Debug, Clone, Copy)]
struct Edge {
    words: [u64; 4],
    len: usize,
    bound: Bound,
}

/// The keys between two ends, of whatever length.
#[derive(Debug, Clone, Copy)]
struct KeyRange {
    lower: Edge,
    upper: Edge,
}

impl Edge {
    fn new(words: &[u64], bound: Bound) -> Edge {
        let mut all = [0; 4];
        all[..words.len()].copy_from_slice(words);
        Edge { words: all, len: words.len(), bound }
    }

    fn unbounded() -> Edge {
        Edge::new(&[], Bound::Unbounded)
    }

    /// Returns the end of keys of `key_words` words; `rest` makes the included ones.
    fn of_whole_keys(&self, key_words: usize, rest: u64) -> crate::schema::Edge {
        let included = self.bound != Bound::Excluded;
        let rest = if included { rest } else { !rest };
        let len = if self.bound == Bound::Unbounded { 0 } else { self.len };
        crate::schema::Edge::at(&self.words[..len], key_words, rest, included)
    }
}

impl KeyRange {
    fn all() -> KeyRange {
        KeyRange { lower: Edge::unbounded(), upper: Edge::unbounded() }
    }

    fn of_whole_keys(&self, key_words: usize) -> WordRange {
        let lower = self.lower.of_whole_keys(key_words, 0);
        WordRange { lower, upper: self.upper.of_whole_keys(key_words, u64::MAX) }
    }
}

/// An index, and the memory for its records. Nothing that is unlinked is used again, as under a pin
/// that never ends.
struct Rows {
    index: OrderedIndex,
    layout: Layout,
    records: Arc<Slab>,
    key_words: usize,
}

/// The parts that belong to one session.
#[derive(Default)]
struct Own {
    caches: Vec<Option<Cache>>,
    retired: Vec<Retire>,
    changes: Vec<NodeChange>,
    place: Place,
}

impl Rows {
    fn new(key_words: usize, node_words: usize) -> Rows {
        Rows::with_limit(key_words, node_words, usize::MAX)
    }

    fn with_limit(key_words: usize, node_words: usize, bytes_max: usize) -> Rows {
        let layout = Layout::new(0, key_words, None, &[Group::new("a", 1)], true, 0).unwrap();
        let free = Arc::new(Memory::new(usize::MAX));
        let records = Slab::new(SlabId(0), layout.total_words(), &free);
        let nodes =
            Slab::new(SlabId(1), OrderedIndex::NODE_WORDS, &Arc::new(Memory::new(bytes_max)));
        let index = OrderedIndex::new(nodes, key_words, node_words).unwrap();
        Rows { index, layout, records, key_words }
    }

    /// Links a new record for a key, fresh or next to the last one.
    fn try_link(
        &self,
        own: &mut Own,
        key: &[u64],
        mut inherit_from_node: impl FnMut(NodeAt),
    ) -> Result<(RecordAt, Linked), OutOfMemory> {
        let record = RecordAt::allocate(&self.layout, key, &self.records, &mut own.caches).unwrap();
        own.changes.clear();
        let start = match own.place.link_near(record, key, &mut inherit_from_node) {
            Ok(linked) => return Ok((record, linked)),
            Err(start) => start,
        };
        let place = (&mut own.place, start);
        let linked = self.index.link(
            record,
            key,
            place,
            &mut own.caches,
            &mut own.changes,
            inherit_from_node,
        )?;
        Ok((record, linked))
    }

    /// Links a key; returns the record, unless it had one.
    fn link(&self, own: &mut Own, key: &[u64]) -> Option<RecordAt> {
        own.place = Place::default();
        match self.try_link(own, key, |_| ()).unwrap() {
            (record, Linked::New { .. }) => Some(record),
            (_, Linked::Existing(_)) => None,
        }
    }

    fn unlink(&self, own: &mut Own, record: RecordAt) {
        let key = record.key_words(self.key_words);
        self.index.unlink(record, key.as_slice(), &mut own.retired, |_| ());
    }

    fn find(&self, key: &[u64]) -> Option<RecordAt> {
        match self.index.find(key) {
            Found::Record(record) => Some(record),
            Found::Nothing { version, .. } => {
                assert!(NodeAt::is_stable(version));
                None
            }
        }
    }

    /// Returns the keys of a whole scan, and its observations; `None` if the scan was doomed.
    fn try_scan(&self, cursor: &mut Cursor) -> Option<(Vec<Vec<u64>>, Observed)> {
        let (mut keys, mut observed) = (Vec::new(), Vec::new());
        loop {
            match self.index.advance(cursor, &mut |node, version| observed.push((node, version))) {
                Advance::Next(record) => keys.push(self.key(record)),
                Advance::End => return Some((keys, observed)),
                Advance::Doomed => return None,
            }
        }
    }

    /// Scans a range while nothing changes.
    fn scan(&self, range: &KeyRange, direction: Direction) -> (Vec<Vec<u64>>, Observed) {
        let mut cursor = self.index.cursor(range.of_whole_keys(self.key_words), direction);
        self.try_scan(&mut cursor).expect("no layer ends")
    }

    fn key(&self, record: RecordAt) -> Vec<u64> {
        record.key_words(self.key_words).as_slice().to_vec()
    }

    /// Checks the whole tree, while nothing changes it; returns the number of its nodes.
    fn check(&self) -> usize {
        self.check_layer(self.index.root(), 0)
    }

    fn check_layer(&self, root: Node, depth: usize) -> usize {
        self.check_node(root, depth, 0, u64::MAX, depth == 0)
    }

    fn check_node(
        &self,
        node: Node,
        depth: usize,
        low: u64,
        high: u64,
        may_be_empty: bool,
    ) -> usize {
        let version = node.handle().version();
        assert!(NodeAt::is_stable(version), "a reachable node is neither locked nor dead");
        let mut nodes = 1;
        if version & INNER != 0 {
            let children = node.children();
            assert!(children >= 2);
            assert!((children..=KEYS).all(|index| node.child(index) == 0));
            assert!((children - 1..KEYS).all(|index| node.key(index) == u64::MAX));
            let mut low = low;
            for index in 0..children {
                let last = if index + 1 < children { node.key(index) } else { high };
                assert!(low <= last && last <= high);
                nodes += self.check_node(Node::at(node.child(index)), depth, low, last, false);
                low = last.wrapping_add(1);
            }
            return nodes;
        }
        let permutation = node.permutation();
        let live: Vec<usize> = permutation.live().collect();
        assert!(may_be_empty || !live.is_empty(), "an empty leaf is taken out");
        let slots: BTreeSet<usize> = (0..WIDTH).map(|rank| permutation.slot(rank)).collect();
        assert_eq!(slots.len(), WIDTH);
        assert!((0..WIDTH).all(|slot| live.contains(&slot) == (node.value(slot) != 0)), "T2");
        assert!(live.windows(2).all(|pair| node.slice(pair[0]) < node.slice(pair[1])));
        for slot in live {
            assert!((low..=high).contains(&node.slice(slot)));
            match Value::of(node.value(slot)) {
                Value::Record(record) => assert_eq!(record.key_word(depth), node.slice(slot)),
                Value::Layer(root) => {
                    assert!(depth + 1 < self.key_words);
                    nodes += self.check_layer(root, depth + 1);
                }
                Value::Nothing => unreachable!(),
            }
        }
        nodes
    }
}

/// The values from which the words of keys are drawn.
#[derive(Debug, Clone, Copy)]
enum Domain {
    Tiny,
    Small,
    Huge,
}

impl Domain {
    fn word(self, random: &mut Random) -> u64 {
        match self {
            Domain::Tiny => [0, 1, 2, u64::MAX - 1, u64::MAX][below(random, 5)],
            Domain::Small => below(random, 60) as u64,
            Domain::Huge => [random.next(), random.next() & 0xffff, u64::MAX, 0]
                [below(random, 4) * below(random, 2)],
        }
    }

    fn key(self, key_words: usize, random: &mut Random) -> Vec<u64> {
        (0..key_words).map(|_| self.word(random)).collect()
    }

    fn edge(self, key_words: usize, random: &mut Random) -> Edge {
        let bound = [Bound::Included, Bound::Excluded, Bound::Unbounded][below(random, 5) % 3];
        let words = self.key(below(random, key_words + 1), random);
        Edge::new(&words, bound)
    }

    /// Draws any range, or a range whose ends have words in common.
    fn range(self, key_words: usize, random: &mut Random) -> KeyRange {
        let mut range =
            KeyRange { lower: self.edge(key_words, random), upper: self.edge(key_words, random) };
        if below(random, 2) == 0 {
            let common = below(random, range.lower.len.min(range.upper.len) + 1);
            range.upper.words[..common].copy_from_slice(&range.lower.words[..common]);
        }
        range
    }
}

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

fn direction(random: &mut Random) -> Direction {
    [Direction::Forward, Direction::Reverse][below(random, 2)]
}

/// Returns whether a range contains a key.
fn contains(range: &KeyRange, key: &[u64]) -> bool {
    let order = |edge: &Edge| key[..edge.len].cmp(&edge.words[..edge.len]);
    let above = match range.lower.bound {
        Bound::Unbounded => true,
        Bound::Included => order(&range.lower).is_ge(),
        Bound::Excluded => order(&range.lower).is_gt(),
    };
    let below = match range.upper.bound {
        Bound::Unbounded => true,
        Bound::Included => order(&range.upper).is_le(),
        Bound::Excluded => order(&range.upper).is_lt(),
    };
    above && below
}
