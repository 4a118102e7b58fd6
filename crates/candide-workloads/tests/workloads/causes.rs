//! Who meets whom in TPC-C is who must: every cause of an aborted attempt is one that can be
//! predicted from what the transactions read and write, with commit-time updates and timestamp
//! splitting and without.

use std::thread;

use candide::{Abort, Database, Occ, Protocol, Session, TicToc};
use candide_workloads::tpcc::{Mix, OrderIds, Tpcc, TpccTables};
use candide_workloads::{Cause, Causes, Loaded, Worker, Workload};

use crate::common::{check, database_of, load};

/// More than there are cores on small machines, so that transactions are interrupted in the middle,
/// too.
const THREADS: usize = 4;
/// Transactions of each thread in one round.
const STEPS: usize = 200;
/// Rounds continue until so many attempts have been aborted in a setting, or there have been so
/// many.
const ABORTED: u64 = 150;
const ROUNDS_MAX: usize = 40;

/// A tiny company, where all transactions meet. No new order rolls back: one that does has to find
/// out that what it was based on was true, so it reads what it would have updated.
fn knobs(mix: Mix) -> Tpcc {
    Tpcc {
        mix,
        customers: 10,
        items: 40,
        rollback_pct: 0,
        delivery_queue: false,
        audit_every: 0,
        causes: true,
        ..Tpcc::strict()
    }
}

/// The switches of one setting.
#[derive(Debug, Clone, Copy)]
struct Switches {
    updates: bool,
    splitting: bool,
}

const SWITCHES: [Switches; 4] = [
    Switches { updates: true, splitting: true },
    Switches { updates: true, splitting: false },
    Switches { updates: false, splitting: true },
    Switches { updates: false, splitting: false },
];

/// How one type of transactions depends on a column group that another one writes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// It reads columns of the group, or scans keys that the other inserts.
    Reads,
    /// It updates columns of the group by commit-time updates.
    Updates,
    /// It does so, and reads them instead if it rolls back.
    UpdatesOrRollsBack,
    /// It reads other columns of the row.
    Beside,
}

impl How {
    /// Returns whether it can be aborted so.
    fn permits(self, reason: Abort, knobs: &Tpcc, switches: Switches) -> bool {
        // A writer of the same row has to wait for the lock, and not every wait ends well.
        let updates = !switches.updates || reason == Abort::Locked;
        match self {
            How::Reads => true,
            How::Updates => updates,
            How::UpdatesOrRollsBack => updates || knobs.rollback_pct > 0,
            How::Beside => !switches.splitting,
        }
    }
}

/// The group of a key that is absent.
const ABSENT: &str = "";

/// Who can be aborted by whom, where: the aborted type, the type it meets, table and group as the
/// latter writes them.
#[rustfmt::skip]
const PREDICTIONS: &[(&str, &str, &str, &str, &[How])] = &[
    ("new-order", "payment", "warehouses", "takings", &[How::Beside]),
    ("new-order", "payment", "districts", "takings", &[How::Beside]),
    ("new-order", "payment", "customers", "account", &[How::Beside]),
    ("new-order", "delivery", "customers", "account", &[How::Beside]),
    ("new-order", "new-order", "stocks", "supply", &[How::UpdatesOrRollsBack, How::Beside]),
    ("payment", "payment", "warehouses", "takings", &[How::Updates, How::Beside]),
    ("payment", "payment", "districts", "takings", &[How::Updates, How::Beside]),
    ("payment", "payment", "customers", "account", &[How::Reads]),
    ("payment", "delivery", "customers", "account", &[How::Reads]),
    ("delivery", "new-order", "new_orders", ABSENT, &[How::Reads]),
    ("delivery", "new-order", "new_orders", "row", &[How::Reads]),
    // Its new order is there already, and the rest is about to be.
    ("delivery", "new-order", "orders", "row", &[How::Reads]),
    ("delivery", "new-order", "orders", "delivery", &[How::Updates]),
    ("delivery", "new-order", "order_lines", "row", &[How::Reads]),
    ("delivery", "new-order", "order_lines", "delivery", &[How::Updates]),
    ("delivery", "payment", "customers", "account", &[How::Updates]),
    ("delivery", "delivery", "new_orders", "row", &[How::Reads]),
    ("delivery", "delivery", "orders", "delivery", &[How::Updates, How::Beside]),
    ("delivery", "delivery", "order_lines", "delivery", &[How::Updates, How::Beside]),
    ("delivery", "delivery", "customers", "account", &[How::Updates]),
    ("order-status", "payment", "customers", "account", &[How::Reads]),
    ("order-status", "delivery", "customers", "account", &[How::Reads]),
    ("order-status", "new-order", "customer_orders", ABSENT, &[How::Reads]),
    ("order-status", "new-order", "customer_orders", "row", &[How::Reads]),
    ("order-status", "new-order", "orders", "row", &[How::Reads]),
    ("order-status", "new-order", "orders", "delivery", &[How::Reads]),
    ("order-status", "new-order", "order_lines", ABSENT, &[How::Reads]),
    ("order-status", "new-order", "order_lines", "row", &[How::Reads]),
    ("order-status", "new-order", "order_lines", "delivery", &[How::Reads]),
    ("order-status", "delivery", "orders", "delivery", &[How::Reads]),
    ("order-status", "delivery", "order_lines", "delivery", &[How::Reads]),
    ("stock-level", "new-order", "order_lines", ABSENT, &[How::Reads]),
    ("stock-level", "new-order", "order_lines", "row", &[How::Reads]),
    ("stock-level", "new-order", "stocks", "supply", &[How::Reads]),
    ("stock-level", "delivery", "order_lines", "delivery", &[How::Beside]),
];

/// What the transactions do besides, where the districts' rows number the orders.
const NUMBERED_BY_DISTRICTS: &[(&str, &str, &str, &str, &[How])] = &[
    ("new-order", "new-order", "districts", "takings", &[How::Reads]),
    ("new-order", "payment", "districts", "takings", &[How::Reads]),
    ("payment", "new-order", "districts", "takings", &[How::Updates, How::Beside]),
    ("stock-level", "new-order", "districts", "takings", &[How::Reads]),
    ("stock-level", "payment", "districts", "takings", &[How::Reads]),
    // Two have drawn the same number.
    ("new-order", "new-order", "orders", "row", &[How::Reads]),
    ("new-order", "new-order", "orders", "delivery", &[How::Reads]),
    ("new-order", "new-order", "new_orders", "row", &[How::Reads]),
    ("new-order", "new-order", "customer_orders", "row", &[How::Reads]),
    ("new-order", "new-order", "order_lines", "row", &[How::Reads]),
    ("new-order", "new-order", "order_lines", "delivery", &[How::Reads]),
];

/// What is inserted. An aborted attempt leaves records that are absent, which are removed outside
/// of transactions once they are old; the next attempt, if it begins late, may be about to use one
/// that is just being removed.
const INSERTED: &[(&str, &[&str])] = &[
    ("new-order", &["orders", "new_orders", "customer_orders", "order_lines"]),
    ("payment", &["history"]),
];

/// Returns whether an attempt was aborted by the removal of what the one before it has left.
fn is_left_over(cause: &Cause, table: &str) -> bool {
    let inserts = |&(kind, tables): &(&str, &[&str])| {
        Tpcc::KINDS[cause.aborted] == kind && tables.contains(&table)
    };
    cause.reason == Abort::RecordRemoved && cause.met.is_empty() && INSERTED.iter().any(inserts)
}

/// Returns whether a cause is among the predictions. Where it was one of several types, one that is
/// predicted suffices; where it is not known whom it met, there must be one.
fn is_predicted(cause: &Cause, knobs: &Tpcc, switches: Switches) -> bool {
    let Some(table) = &cause.table else { return cause.reason == Abort::Yielded };
    if is_left_over(cause, table) {
        return true;
    }
    let by_districts =
        if knobs.order_ids == OrderIds::District { NUMBERED_BY_DISTRICTS } else { &[] };
    PREDICTIONS.iter().chain(by_districts).any(|&(aborted, met, predicted_table, group, how)| {
        let is_met = cause.met.is_empty() || cause.met.iter().any(|&kind| Tpcc::KINDS[kind] == met);
        let is_there = table == predicted_table
            && match cause.group {
                None => group == ABSENT,
                Some("*") => !switches.splitting && group != ABSENT,
                Some(found) => switches.splitting && group == found,
            };
        Tpcc::KINDS[cause.aborted] == aborted
            && is_met
            && is_there
            && how.iter().any(|how| how.permits(cause.reason, knobs, switches))
    })
}

/// Returns the causes found in a setting.
fn run<P: Protocol>(knobs: &Tpcc, switches: Switches) -> Causes {
    let db: Database<P> = database_of(P::Policy::default(), switches.updates, switches.splitting);
    let tables = load(&db, knobs, THREADS);
    tables.expect_workers(THREADS);
    let mut causes = Causes::default();
    for _ in 0..ROUNDS_MAX {
        let sessions: Vec<_> = (0..THREADS).map(|_| db.session().expect("a session")).collect();
        thread::scope(|scope| {
            let tables = &tables;
            let work = |(thread, session)| scope.spawn(move || work(tables, session, thread));
            let threads: Vec<_> = sessions.into_iter().enumerate().map(work).collect();
            threads.into_iter().for_each(|thread| causes.merge(&thread.join().expect("no panic")));
        });
        if causes.total() >= ABORTED {
            break;
        }
    }
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    causes
}

/// What one worker finds out in a round: as many aborted attempts, by each reason, as the engine
/// has counted.
fn work<P: Protocol>(tables: &TpccTables<P>, session: Session<P>, thread: usize) -> Causes {
    let mut worker = tables.worker(session, thread);
    let retries: u64 = (0..STEPS).map(|_| worker.step().expect("no surprises").retries).sum();
    let (causes, stats) = (worker.take_causes().expect("asked for"), worker.stats());
    assert_eq!((causes.total(), stats.total_aborts()), (retries, retries));
    for (reason, aborts) in Abort::ALL.into_iter().zip(stats.aborts) {
        assert_eq!(count(&causes, |cause| cause.reason == reason), aborts, "{reason:?}");
    }
    assert_eq!(worker.take_causes(), Some(Causes::default()), "taken");
    tables.absorb(worker);
    causes
}

/// Returns how many attempts had causes of some kind.
fn count(causes: &Causes, of: impl Fn(&Cause) -> bool) -> u64 {
    causes.by_frequency().into_iter().filter(|(cause, _)| of(cause)).map(|(_, count)| count).sum()
}

/// Returns whether a new order was aborted by a payment, or the other way round, in one table.
fn is_between_order_and_payment(cause: &Cause, table: &str) -> bool {
    let types = |aborted: &str, met: &str| {
        Tpcc::KINDS[cause.aborted] == aborted
            && cause.met.iter().any(|&kind| Tpcc::KINDS[kind] == met)
    };
    cause.table.as_deref() == Some(table)
        && (types("new-order", "payment") || types("payment", "new-order"))
}

/// Runs every setting of one company and compares.
fn assert_as_predicted<P: Protocol>(knobs: &Tpcc) {
    let by_districts = knobs.order_ids == OrderIds::District;
    for switches in SWITCHES {
        let causes = run::<P>(knobs, switches);
        let story = format!("{}, {switches:?}, {knobs:?}: {}", P::NAME, told(&causes));
        for (cause, _) in causes.by_frequency() {
            assert!(is_predicted(cause, knobs, switches), "not predicted: {cause:?} in {story}");
        }
        // It takes a thread that has had no core for milliseconds between two attempts.
        let left_over = count(&causes, |cause| {
            cause.table.as_ref().is_some_and(|table| is_left_over(cause, table))
        });
        assert!(
            left_over <= 3 + causes.total() / 20,
            "{left_over} met what the attempt before had left: {story}"
        );
        let between = |table| count(&causes, |cause| is_between_order_and_payment(cause, table));
        let (warehouses, districts) = (between("warehouses"), between("districts"));
        match switches {
            Switches { updates: true, splitting: true } => {
                assert_eq!(warehouses, 0, "{story}");
                assert_eq!(districts > 0, by_districts, "{story}");
            }
            // A new order that finds its warehouse changed does not come to look at its district.
            Switches { updates: false, splitting: false } => {
                assert_eq!(warehouses > 0, knobs.mix != Mix::NewOrder, "{story}");
            }
            _ => {}
        }

        // Deleted new orders are removed outside of transactions, which disturbs those that look
        // for the first that is there.
        let elsewhere =
            |cause: &Cause| cause.table.as_ref().is_some_and(|table| table != "new_orders");
        let all = count(&causes, elsewhere);
        let known = count(&causes, |cause| elsewhere(cause) && !cause.met.is_empty());
        assert!(known * 10 >= all * 9, "{known} of {all} known in {story}");
        // Whom it met is certain where only one type writes.
        let is_shared = |cause: &Cause| match cause.table.as_deref() {
            Some("customers" | "new_orders" | "orders" | "order_lines") => knobs.mix == Mix::Full,
            Some("districts") => by_districts,
            _ => false,
        };
        let doubtful = count(&causes, |cause| cause.met.len() > 1 && !is_shared(cause));
        assert_eq!(doubtful, 0, "{story}");
    }
}

/// The causes, one in a line.
fn told(causes: &Causes) -> String {
    let line = |(cause, count): (&Cause, u64)| {
        let met: Vec<_> = cause.met.iter().map(|&kind| Tpcc::KINDS[kind]).collect();
        let (aborted, reason) = (Tpcc::KINDS[cause.aborted], cause.reason.name());
        format!("\n{count} {reason} {}: {aborted} met {met:?}", cause.place())
    };
    causes.by_frequency().into_iter().map(line).collect()
}

#[test]
fn causes_of_aborts_of_the_full_mix_are_the_predicted_ones() {
    assert_as_predicted::<Occ>(&knobs(Mix::Full));
    assert_as_predicted::<TicToc>(&knobs(Mix::Full));
}

#[test]
fn causes_of_aborts_of_smaller_mixes_are_the_predicted_ones() {
    for mix in [Mix::Three, Mix::Two, Mix::NewOrder] {
        assert_as_predicted::<Occ>(&knobs(mix));
    }
}

#[test]
fn causes_of_aborts_with_other_order_numbers_and_keys_are_the_predicted_ones() {
    let by_districts =
        Tpcc { order_ids: OrderIds::District, contention_aware_keys: false, ..knobs(Mix::Full) };
    assert_as_predicted::<Occ>(&Tpcc { rollback_pct: 10, ..by_districts });
}

#[test]
fn predicted_causes_differ_between_settings() {
    let knobs = knobs(Mix::Full);
    let [both, unsplit, observed, neither] = SWITCHES;
    let foreseen =
        |causes: &Causes, switches| count(causes, |cause| is_predicted(cause, &knobs, switches));
    for (switches, others) in [(unsplit, [both, observed]), (neither, [both, observed])] {
        let causes = run::<Occ>(&knobs, switches);
        assert_eq!(foreseen(&causes, switches), causes.total(), "{}", told(&causes));
        for other in others {
            assert!(
                foreseen(&causes, other) * 2 < causes.total(),
                "{switches:?} passes for {other:?}"
            );
        }
    }
    let causes = run::<Occ>(&knobs, observed);
    assert!(foreseen(&causes, both) < causes.total(), "{}", told(&causes));
}

#[test]
fn causes_of_aborts_are_recorded_with_the_option_only() {
    let knobs = Tpcc { causes: false, ..knobs(Mix::Full) };
    let db: Database<Occ> = database_of(Default::default(), false, false);
    let tables = load(&db, &knobs, 1);
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    worker.step().expect("no surprises");
    assert_eq!(worker.take_causes(), None);
}
