//! Many threads.

use crate::index::ordered::tests::*;
use crate::sync::AtomicBool;
use crate::sync::size::share;
use std::sync::Barrier;
use std::thread;

const THREADS: usize = 4;
const STEPS: usize = 90_000;

/// Raises a flag at the end of a scope, even after a panic, so that no other thread waits for this
/// one without success.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Scans repeatedly until the flag is raised; checks that keys that stay are always seen, and that
/// all keys are in order and in range.
fn scan_until(
    done: &AtomicBool,
    begin: &Barrier,
    rows: &Rows,
    domain: Domain,
    steady: &BTreeSet<Vec<u64>>,
    seed: u64,
) -> usize {
    let mut random = Random::seeded(seed);
    let (mut scans, mut doomed) = (0, 0);
    begin.wait();
    // Once more after the end, so that a thread that was never run until then has scanned.
    while scans == 0 || !done.load(Ordering::Relaxed) {
        let range = domain.range(rows.key_words, &mut random);
        let direction = direction(&mut random);
        let mut cursor = rows.index.cursor(range.of_whole_keys(rows.key_words), direction);
        let Some((mut keys, _)) = rows.try_scan(&mut cursor) else {
            doomed += 1;
            continue;
        };
        if direction == Direction::Reverse {
            keys.reverse();
        }
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(keys.iter().all(|key| contains(&range, key)));
        let mut missing =
            steady.iter().filter(|key| contains(&range, key) && keys.binary_search(key).is_err());
        assert_eq!(missing.next(), None, "{range:?} {direction:?}");
        scans += 1;
    }
    println!("{scans} scans, {doomed} doomed");
    scans
}

/// Threads insert and delete keys while others scan. The thread that links a key owns it until it
/// unlinks it; where keys are shared, links of the same key compete.
fn come_and_go(key_words: usize, node_words: usize, domain: Domain, shared: bool) {
    let rows = Rows::new(key_words, node_words);
    let mut own = Own::default();
    let mut random = Random::seeded(key_words as u64);
    let mut steady = BTreeSet::new();
    for _ in 0..200 {
        let key = domain.key(key_words, &mut random);
        if rows.link(&mut own, &key).is_some() {
            steady.insert(key);
        }
    }
    let done = AtomicBool::new(false);
    let begin = Barrier::new(3);
    let owned: BTreeSet<Vec<u64>> = thread::scope(|scope| {
        let (rows, steady, done, begin) = (&rows, &steady, &done, &begin);
        let scanners: Vec<_> = (0..2)
            .map(|seed| {
                scope.spawn(move || scan_until(done, begin, rows, domain, steady, 100 + seed))
            })
            .collect();
        let writer = |thread: usize| {
            let mut own = Own::default();
            let mut random = Random::seeded(7 * (thread as u64 + 1));
            let mut owned = BTreeMap::new();
            let steps = share(STEPS);
            for step in 0..steps {
                let mut key = domain.key(key_words, &mut random);
                if !shared {
                    let last = key_words - 1;
                    key[last] = key[last] / THREADS as u64 * THREADS as u64 + thread as u64;
                }
                let growing = (step / (steps / 6)).is_multiple_of(2);
                if steady.contains(&key) {
                    assert!(rows.find(&key).is_some());
                } else if let Some(&record) = owned.get(&key) {
                    assert_eq!(rows.find(&key), Some(record));
                    rows.unlink(&mut own, record);
                    owned.remove(&key);
                } else if growing {
                    assert!(shared || rows.find(&key).is_none());
                    if step % 2 == 0 {
                        own.place = Place::default();
                    }
                    match rows.try_link(&mut own, &key, |_| ()).unwrap() {
                        (record, Linked::New { .. }) => {
                            assert!(owned.insert(key, record).is_none())
                        }
                        (_, Linked::Existing(_)) => assert!(shared),
                    }
                } else if let Some((_, record)) = owned.pop_first() {
                    rows.unlink(&mut own, record);
                }
            }
            owned.into_keys().collect::<Vec<_>>()
        };
        let stop = Raise(done);
        begin.wait();
        let writers: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || writer(thread))).collect();
        let owned = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        drop(stop);
        assert!(scanners.into_iter().all(|scanner| scanner.join().unwrap() > 0));
        owned
    });
    println!("{} nodes, {} records left", rows.check(), owned.len() + steady.len());
    let all = KeyRange::all();
    let expected: BTreeSet<_> = owned.union(&steady).cloned().collect();
    assert!(rows.scan(&all, Direction::Forward).0.iter().eq(&expected));
    for key in expected {
        rows.unlink(&mut own, rows.find(&key).unwrap());
    }
    assert_eq!(rows.check(), 1);
}

#[test]
fn threads_with_disjoint_keys_find_all_their_keys() {
    for (key_words, domain) in
        [(1, Domain::Small), (1, Domain::Huge), (2, Domain::Small), (3, Domain::Huge)]
    {
        come_and_go(key_words, 0, domain, false);
    }
}

#[test]
fn each_contended_key_is_inserted_by_one_thread() {
    for (key_words, domain) in
        [(1, Domain::Small), (2, Domain::Tiny), (2, Domain::Small), (4, Domain::Tiny)]
    {
        come_and_go(key_words, 0, domain, true);
    }
}

#[test]
fn timestamps_of_leaves_survive_concurrent_splits() {
    for (key_words, domain) in [(1, Domain::Huge), (2, Domain::Tiny), (2, Domain::Small)] {
        come_and_go(key_words, 2, domain, true);
    }
}

/// Threads that remember their places fill the same leaves, below the first layer.
#[test]
fn remembered_places_stay_right_while_other_threads_insert() {
    const ROWS: u64 = 40_000;
    let rows = Rows::new(3, 0);
    thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let rows = &rows;
            scope.spawn(move || {
                let mut own = Own::default();
                for row in (thread..ROWS).step_by(THREADS) {
                    let linked = rows.try_link(&mut own, &[7, row / 5_000, row], |_| ()).unwrap().1;
                    assert!(matches!(linked, Linked::New { .. }));
                }
            });
        }
    });
    rows.check();
    let all = KeyRange::all();
    assert!(rows.scan(&all, Direction::Forward).0.into_iter().eq((0..ROWS).map(|row| vec![
        7,
        row / 5_000,
        row
    ])));
}

/// Keys are linked one after another. A scan whose observations all still hold at its end has seen
/// everything that had been linked at one moment: a beginning of the sequence.
#[test]
fn a_valid_scan_is_a_snapshot() {
    for round in 0..12 {
        let (key_words, domain) =
            [(1, Domain::Huge), (2, Domain::Small), (3, Domain::Tiny)][round % 3];
        let rows = Rows::new(key_words, 0);
        let mut random = Random::seeded(round as u64);
        let mut sequence = Vec::new();
        let mut numbers = BTreeMap::new();
        for _ in 0..2_000 {
            let key = domain.key(key_words, &mut random);
            if !numbers.contains_key(&key) {
                numbers.insert(key.clone(), sequence.len());
                sequence.push(key);
            }
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let (rows, done, numbers) = (&rows, &done, &numbers);
            let scanners: Vec<_> = (0..2)
                .map(|seed| {
                    scope.spawn(move || expect_snapshots(done, rows, domain, numbers, seed))
                })
                .collect();
            let stop = Raise(done);
            let mut own = Own::default();
            for (number, key) in sequence.iter().enumerate() {
                assert!(rows.link(&mut own, key).is_some());
                if number.is_multiple_of(16) {
                    thread::yield_now();
                }
            }
            drop(stop);
            scanners.into_iter().for_each(|scanner| scanner.join().unwrap());
        });
        let all = KeyRange::all();
        assert_eq!(rows.scan(&all, Direction::Forward).0.len(), sequence.len());
    }
}

/// Scans until a flag is raised, while keys are linked in the order of their numbers.
fn expect_snapshots(
    done: &AtomicBool,
    rows: &Rows,
    domain: Domain,
    numbers: &BTreeMap<Vec<u64>, usize>,
    seed: u64,
) {
    let mut random = Random::seeded(seed);
    let (mut valid, mut failed) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        let range = domain.range(rows.key_words, &mut random);
        let mut cursor =
            rows.index.cursor(range.of_whole_keys(rows.key_words), direction(&mut random));
        let (keys, observed) = rows.try_scan(&mut cursor).expect("no layer ends");
        if !observed.iter().all(|(node, version)| node.version() == *version) {
            failed += 1;
            continue;
        }
        valid += 1;
        let seen: BTreeSet<usize> = keys.iter().map(|key| numbers[key]).collect();
        let Some(&last) = seen.last() else { continue };
        let in_range =
            numbers.iter().filter(|&(key, &number)| number <= last && contains(&range, key));
        assert_eq!(in_range.count(), seen.len(), "a phantom");
    }
    println!("{valid} valid scans, {failed} failed");
}
