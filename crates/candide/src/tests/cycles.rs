//! A small checker of histories: the committed transactions must have a serial order.
//!
//! Edges: who wrote a version comes before who read it (wr) and who wrote the next one (ww); who read a version comes before
//! who wrote the next one (rw); for strict protocols, who ended comes before who began later. A cycle is an anomaly.

use super::rows::Item;
use super::{ForProtocol, for_each_overlapping};
use crate::history::{Access, Recorded, Transaction};
use crate::protocol::Protocol;
use crate::sync::Random;
use crate::{Abort, Database, Whole};
use std::collections::{BTreeMap, HashMap};

type Unit = (u16, Box<[u64]>, u8);

fn unit(access: &Access) -> Unit {
    (access.table, access.key.clone(), access.group)
}

/// A cycle of transactions in the history, if there is one.
pub(crate) fn find_cycle(history: &[Transaction], strict: bool) -> Option<Vec<usize>> {
    let committed: Vec<usize> = (0..history.len()).filter(|&index| history[index].committed).collect();
    // The versions of each unit, with their writers; version 0 is the unwritten one.
    let mut versions: HashMap<Unit, BTreeMap<u64, usize>> = HashMap::new();
    for &writer in &committed {
        for write in &history[writer].writes {
            let version = write.version.expect("writes have versions");
            let other = versions.entry(unit(write)).or_default().insert(version, writer);
            assert_eq!(other, None, "two transactions wrote version {version} of {:?}", unit(write));
        }
    }
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    for writers in versions.values() {
        for (&earlier, &later) in writers.values().zip(writers.values().skip(1)) {
            edges[earlier].push(later);
        }
    }
    for &reader in &committed {
        for read in &history[reader].reads {
            let Some(writers) = versions.get(&unit(read)) else { continue };
            let version = read.version.unwrap_or(0);
            match writers.get(&version) {
                Some(&writer) if writer != reader => edges[writer].push(reader),
                Some(_) => {}
                None => assert_eq!(version, 0, "{read:?} was read but nobody committed it"),
            }
            if let Some((_, &next)) = writers.range(version + 1..).next()
                && next != reader
            {
                edges[reader].push(next);
            }
        }
    }
    if strict {
        // One node per moment would do; with histories this small, all pairs are as good.
        for &earlier in &committed {
            let later = committed.iter().filter(|&&later| history[earlier].ended < history[later].begun);
            edges[earlier].extend(later);
        }
    }
    cycle_in(&edges)
}

fn cycle_in(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let (mut done, mut path, mut on_path) =
        (vec![false; edges.len()], Vec::<(usize, usize)>::new(), vec![false; edges.len()]);
    for root in 0..edges.len() {
        if done[root] {
            continue;
        }
        path.push((root, 0));
        on_path[root] = true;
        while let Some((node, next)) = path.last_mut() {
            match edges[*node].get(*next) {
                Some(&target) if on_path[target] => {
                    let start = path.iter().position(|&(node, _)| node == target).expect("it is on the path");
                    return Some(path[start..].iter().map(|&(node, _)| node).collect());
                }
                Some(&target) => {
                    *next += 1;
                    if !done[target] {
                        on_path[target] = true;
                        path.push((target, 0));
                    }
                }
                None => {
                    (done[*node], on_path[*node]) = (true, false);
                    path.pop();
                }
            }
        }
    }
    None
}

struct RandomHistories;

impl ForProtocol for RandomHistories {
    fn run<P: Protocol>(&self) {
        for round in 0..30u64 {
            // Epochs stand still, so that tombstones stay and every absent read has a version to point to.
            let db = Database::<Recorded<P>>::builder().manual_epochs(2).build().unwrap();
            let table = db.table::<Item>("items").unwrap();
            std::thread::scope(|scope| {
                for thread in 0..6u64 {
                    let (db, table) = (&db, &table);
                    scope.spawn(move || {
                        let mut session = db.session().unwrap();
                        let mut random = Random::seeded(round << 8 | thread);
                        for _ in 0..150 {
                            let script: Vec<_> =
                                (0..1 + random.below(5)).map(|_| (random.below(11), random.below(6))).collect();
                            let fails = random.below(8) == 0;
                            let _: Result<(), Abort> = session.run(|tx| {
                                for &(operation, key) in &script {
                                    let done = match operation {
                                        0 | 1 => table.get(tx, &key, Item::COUNT).map(drop),
                                        2 => table.get(tx, &key, Item::OTHER).map(drop),
                                        3 => table.insert_if_absent(tx, Item::new(key, 1)).map(drop),
                                        4 => table.put(tx, Item::new(key, 2)),
                                        5 => table.update_if_present(tx, &key, Item::COUNT.add(1)).map(drop),
                                        6 => table.update_if_present(tx, &key, Item::OTHER.set(1)).map(drop),
                                        7 => table.modify_if_present(tx, &key, Item::COUNT, |c| *c += 1).map(drop),
                                        8 => table.delete_if_present(tx, &key).map(drop),
                                        9 => table.get_for_update(tx, &key, Item::COUNT).map(drop),
                                        _ => table.get_for_update(tx, &key, Whole).map(drop),
                                    };
                                    done?;
                                    if random.below(4) == 0 {
                                        std::thread::yield_now();
                                    }
                                }
                                if fails { Err(Abort::NotFound) } else { Ok(()) }
                            });
                        }
                    });
                }
            });
            let history = db.take_history();
            assert!(history.iter().filter(|transaction| transaction.committed).count() >= 900);
            if let Some(cycle) = find_cycle(&history, P::STRICT) {
                let transactions: Vec<_> = cycle.iter().map(|&index| &history[index]).collect();
                panic!("{}, round {round}: a cycle of {}: {transactions:#?}", P::NAME, cycle.len());
            }
        }
    }
}

#[test]
fn random_histories_are_serializable() {
    for_each_overlapping(&RandomHistories);
}

/// The checker itself: it must find the anomalies it exists for.
mod the_checker {
    use super::*;

    fn access(key: u64, version: u64) -> Access {
        Access { table: 0, key: [key].into(), group: 0, version: Some(version), present: true }
    }

    fn transaction(time: (u64, u64), reads: &[(u64, u64)], writes: &[(u64, u64)]) -> Transaction {
        let accesses = |list: &[(u64, u64)]| list.iter().map(|&(key, version)| access(key, version)).collect();
        let (begun, ended) = time;
        Transaction { session: 1, begun, ended, committed: true, reads: accesses(reads), writes: accesses(writes) }
    }

    #[test]
    fn finds_write_skew_and_lost_updates() {
        let skew = [transaction((1, 9), &[(1, 0)], &[(2, 5)]), transaction((2, 8), &[(2, 0)], &[(1, 6)])];
        assert!(find_cycle(&skew, false).is_some());
        let lost = [transaction((1, 9), &[(1, 0)], &[(1, 5)]), transaction((2, 8), &[(1, 0)], &[(1, 6)])];
        assert!(find_cycle(&lost, false).is_some());
    }

    #[test]
    fn finds_stale_reads_only_if_asked_for_real_time() {
        let stale = [transaction((1, 2), &[], &[(1, 5)]), transaction((3, 4), &[(1, 0)], &[])];
        assert!(find_cycle(&stale, false).is_none());
        assert!(find_cycle(&stale, true).is_some());
    }

    #[test]
    fn accepts_a_serial_history() {
        let serial = [transaction((1, 2), &[(1, 0)], &[(1, 5)]), transaction((3, 4), &[(1, 5)], &[(1, 6), (2, 6)])];
        assert!(find_cycle(&serial, true).is_none());
    }
}
