//! Small scenes under every interleaving and every reordering that the memory model allows (`--cfg
//! loom`), with three slots to a leaf. Each scene states its bound of forced switches.

use crate::index::DeletedIndex;
use crate::index::node::{Advance, Retire};
use crate::index::ordered::*;
use crate::memory::{Memory, SlabId};
use crate::record::Layout;
use crate::schema::{Group, WordRange};
use crate::sync::{AtomicU64, Ordering, full_fence, process, thread};

/// Explores `scene` with at most `preemptions` forced switches.
fn explore(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions.min(crate::sync::preemptions_max()));
    builder.max_branches = 100_000;
    // Counted outside the model, to report the executions of a passing test.
    let executions = Arc::new(process::Mutex::new(0));
    let counted = executions.clone();
    builder.check(move || {
        *counted.lock().unwrap() += 1;
        scene();
    });
    println!("{} executions", executions.lock().unwrap());
}

/// An index with a few rows. Retired memory is never freed, as under a pin that never ends.
struct Rows {
    index: OrderedIndex,
    layout: Layout,
    records: Arc<Slab>,
    flag: AtomicU64,
}

impl Rows {
    fn new<const WORDS: usize>(keys: &[[u64; WORDS]]) -> Arc<Rows> {
        let layout = Layout::new(0, WORDS, None, &[Group::new("a", 1)], true, 0).unwrap();
        let memory = Arc::new(Memory::new(usize::MAX));
        let records = Slab::new(SlabId(0), layout.total_words(), &memory);
        let nodes = Slab::new(SlabId(1), OrderedIndex::NODE_WORDS, &memory);
        let index = OrderedIndex::new(nodes, WORDS, 0).unwrap();
        let rows = Rows { index, layout, records, flag: AtomicU64::new(0) };
        keys.iter().for_each(|key| assert!(rows.link(key)));
        Arc::new(rows)
    }

    /// Links a key; false if it had a record.
    fn link(&self, key: &[u64]) -> bool {
        let mut caches = Vec::new();
        let record = RecordAt::allocate(&self.layout, key, &self.records, &mut caches).unwrap();
        let place = (&mut Place::default(), Start::ROOT);
        let linked =
            self.index.link(record, key, place, &mut caches, &mut Vec::new(), |_| ()).unwrap();
        matches!(linked, Linked::New { .. })
    }

    /// Links neighbouring keys.
    fn link_run(&self, keys: &[[u64; 2]]) {
        let (mut caches, mut place) = (Vec::new(), Place::default());
        for key in keys {
            let record = RecordAt::allocate(&self.layout, key, &self.records, &mut caches).unwrap();
            if let Err(start) = place.link_near(record, key, &mut |_| ()) {
                let place = (&mut place, start);
                let linked = self
                    .index
                    .link(record, key, place, &mut caches, &mut Vec::new(), |_| ())
                    .unwrap();
                assert!(matches!(linked, Linked::New { .. }));
            }
        }
    }

    fn find(&self, key: &[u64]) -> bool {
        match self.index.find(key) {
            Found::Record(record) => {
                assert!(record.has_key(key));
                true
            }
            Found::Nothing { .. } => false,
        }
    }

    fn unlink(&self, key: &[u64]) {
        let Found::Record(record) = self.index.find(key) else { panic!("{key:?} is linked") };
        let mut retired: Vec<Retire> = Vec::new();
        self.index.unlink(record, key, &mut retired, |_| ());
    }

    /// Returns the last words of the keys of a whole scan; nothing if it was doomed.
    fn scan(&self, direction: Direction) -> Option<Vec<u64>> {
        let range = WordRange::beginning_with(&[], self.layout.key_words());
        let mut cursor = self.index.cursor(range, direction);
        let mut keys = Vec::new();
        loop {
            match self.index.advance(&mut cursor, &mut |_, _| ()) {
                Advance::Next(record) => keys.push(record.key_word(self.layout.key_words() - 1)),
                Advance::End => return Some(keys),
                Advance::Doomed => return None,
            }
        }
    }
}

/// Runs two closures concurrently.
fn beside(
    rows: &Arc<Rows>,
    first: impl FnOnce(&Rows) + Send + 'static,
    second: impl FnOnce(&Rows),
) {
    let theirs = rows.clone();
    let other = thread::spawn(move || first(&theirs));
    second(rows);
    other.join().unwrap();
}

/// A leaf that takes a new key loses no key, and a reader finds the new key complete or not at all.
#[test]
fn loom_ordered_insert_against_find() {
    explore(4, || {
        let rows = Rows::new(&[[10], [30]]);
        beside(
            &rows,
            |rows| assert!(rows.link(&[20])),
            |rows| {
                rows.find(&[20]);
                assert!(rows.find(&[30]));
            },
        );
        assert!(rows.find(&[20]));
    });
}

/// A reader finds a key absent, and commits if that is still true; a writer links the key. Either
/// the reader finds the node's version raised, or the writer comes later in the serial order.
#[test]
fn loom_ordered_absence_against_insert() {
    explore(4, || {
        let rows = Rows::new(&[[10]]);
        let missed = Arc::new(AtomicU64::new(0));
        let told = missed.clone();
        let seen = Arc::new(AtomicU64::new(0));
        let looked = seen.clone();
        beside(
            &rows,
            move |rows| {
                assert!(rows.link(&[20]));
                full_fence();
                looked.store(rows.flag.load(Ordering::Relaxed), Ordering::Relaxed);
            },
            move |rows| {
                if let Found::Nothing { node, version } = rows.index.find(&[20]) {
                    rows.flag.store(1, Ordering::Relaxed);
                    full_fence();
                    told.store(u64::from(node.version() == version), Ordering::Relaxed);
                }
            },
        );
        assert!(missed.load(Ordering::Relaxed) == 0 || seen.load(Ordering::Relaxed) == 1);
    });
}

/// The root of a layer, a full leaf, becomes an inner node while lookups go through it.
#[test]
fn loom_ordered_root_split_against_find() {
    explore(4, || {
        let rows = Rows::new(&[[10], [20], [30]]);
        beside(
            &rows,
            |rows| assert!(rows.link(&[5])),
            |rows| {
                assert!(rows.find(&[30]));
                assert!(rows.find(&[10]));
            },
        );
        assert!(rows.find(&[5]));
    });
}

/// A leaf below the root is split while one of the keys that move is looked up.
#[test]
fn loom_ordered_split_against_find() {
    explore(4, || {
        let rows = Rows::new(&[[10], [20], [30], [40]]);
        beside(
            &rows,
            |rows| assert!(rows.link(&[5])),
            |rows| {
                assert!(rows.find(&[30]));
                assert!(!rows.find(&[35]));
            },
        );
        assert!(rows.find(&[5]));
    });
}

/// A leaf is split while scans go over it: nothing is missed or seen twice.
#[test]
fn loom_ordered_split_against_scan() {
    for direction in [Direction::Forward, Direction::Reverse] {
        explore(3, move || {
            let rows = Rows::new(&[[10], [20], [30], [40]]);
            beside(
                &rows,
                |rows| assert!(rows.link(&[5])),
                |rows| {
                    let mut keys = rows.scan(direction).expect("nothing is removed");
                    if direction == Direction::Reverse {
                        keys.reverse();
                    }
                    keys.retain(|&key| key != 5);
                    assert_eq!(keys, [10, 20, 30, 40]);
                },
            );
        });
    }
}

/// A record's slot becomes a layer.
#[test]
fn loom_ordered_layer_against_find() {
    explore(4, || {
        let rows = Rows::new(&[[1, 1, 1]]);
        beside(
            &rows,
            |rows| assert!(rows.link(&[1, 1, 2])),
            |rows| {
                assert!(rows.find(&[1, 1, 1]));
                rows.find(&[1, 1, 2]);
            },
        );
        assert!(rows.find(&[1, 1, 2]));
    });
}

/// Two neighbouring keys are linked; the second turns the slot of the first into a layer. The two
/// keys stay in order.
#[test]
fn loom_ordered_run_against_find() {
    explore(2, || {
        let rows = Rows::new(&[[1, 5]]);
        beside(
            &rows,
            |rows| rows.link_run(&[[2, 1], [2, 2], [2, 3]]),
            |rows| {
                let last = rows.find(&[2, 3]);
                assert!(!last || rows.find(&[2, 1]) && rows.find(&[2, 2]));
                assert!(rows.find(&[1, 5]));
            },
        );
        assert_eq!(rows.scan(Direction::Forward).unwrap(), [5, 1, 2, 3]);
    });
}

/// Other keys are linked and unlinked in a leaf in which neighbouring keys are linked.
#[test]
fn loom_ordered_run_against_insert_and_removal() {
    explore(2, || {
        let rows = Rows::new(&[[1, 5], [2, 7]]);
        beside(
            &rows,
            |rows| rows.link_run(&[[2, 8], [2, 9]]),
            |rows| {
                rows.unlink(&[2, 7]);
                assert!(rows.link(&[2, 6]));
            },
        );
        assert_eq!(rows.scan(Direction::Forward).unwrap(), [5, 6, 8, 9]);
    });
}

/// The last key of a leaf is unlinked, and the leaf removed, while another key is linked in its
/// range.
#[test]
fn loom_ordered_removal_against_insert() {
    explore(3, || {
        let rows = Rows::new(&[[10], [20], [30], [40]]);
        beside(&rows, |rows| rows.unlink(&[40]), |rows| assert!(rows.link(&[50])));
        assert_eq!(rows.scan(Direction::Forward).unwrap(), [10, 20, 30, 50]);
        assert!(rows.find(&[50]) && !rows.find(&[40]));
    });
}

/// The last key of a layer is unlinked, and the layer removed, while another key is linked in its
/// range.
#[test]
fn loom_ordered_layer_removal_against_insert() {
    explore(3, || {
        let rows = Rows::new(&[[1, 1], [1, 2]]);
        rows.unlink(&[1, 1]);
        beside(&rows, |rows| rows.unlink(&[1, 2]), |rows| assert!(rows.link(&[1, 3])));
        assert_eq!(rows.scan(Direction::Forward).unwrap(), [3]);
        assert!(rows.find(&[1, 3]));
    });
}

/// A layer ends, and a key comes under its prefix: a reader that missed the key in the rest of the
/// layer fails to validate.
#[test]
fn loom_ordered_absence_in_a_layer_that_ends() {
    explore(2, || {
        let rows = Rows::new(&[[1, 1], [1, 2]]);
        rows.unlink(&[1, 1]);
        let missed = Arc::new(process::Mutex::new(None));
        let noted = missed.clone();
        beside(
            &rows,
            |rows| {
                rows.unlink(&[1, 2]);
                assert!(rows.link(&[1, 3]));
            },
            move |rows| {
                if let Found::Nothing { node, version } = rows.index.find(&[1, 3]) {
                    *noted.lock().unwrap() = Some((node, version));
                }
            },
        );
        if let Some((node, version)) = *missed.lock().unwrap() {
            assert_ne!(node.version(), version);
        }
    });
}

/// A reader that misses a record on its way to the index of deleted records finds it there.
#[test]
fn loom_ordered_move_to_deleted_index_against_find() {
    explore(4, || {
        let rows = Rows::new(&[[10], [20]]);
        let deleted_index = Arc::new(DeletedIndex::beside(&rows.index).unwrap());
        let theirs = deleted_index.clone();
        beside(
            &rows,
            move |rows| {
                let Found::Record(record) = rows.index.find(&[20]) else { panic!("it is linked") };
                assert!(theirs.enter(record, &[20], &mut Vec::new()));
                rows.unlink(&[20]);
            },
            |rows| {
                if !rows.find(&[20]) {
                    assert!(!deleted_index.is_empty());
                    assert!(deleted_index.find(&[20]).is_some_and(|record| record.has_key(&[20])));
                }
            },
        );
    });
}

/// A leaf and its parent are removed during scans.
#[test]
fn loom_ordered_removal_against_scan() {
    for direction in [Direction::Forward, Direction::Reverse] {
        explore(3, move || {
            let rows = Rows::new(&[[10], [20], [30], [40]]);
            beside(
                &rows,
                |rows| rows.unlink(&[40]),
                |rows| {
                    let mut keys = rows.scan(direction).expect("the layer stays");
                    if direction == Direction::Reverse {
                        keys.reverse();
                    }
                    keys.retain(|&key| key != 40);
                    assert_eq!(keys, [10, 20, 30]);
                },
            );
        });
    }
}

/// Two inserts find the same leaf full.
#[test]
fn loom_ordered_two_inserts_into_a_full_leaf() {
    explore(3, || {
        let rows = Rows::new(&[[10], [20], [30]]);
        beside(&rows, |rows| assert!(rows.link(&[25])), |rows| assert!(rows.link(&[5])));
        assert_eq!(rows.scan(Direction::Reverse).unwrap(), [30, 25, 20, 10, 5]);
    });
}
