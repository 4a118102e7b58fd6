//! vacation: counters agree with reservations after honest runs, and damage has a name.

use candide::policy::Policy;
use candide::{Abort, Occ, Protocol, Tx};
use candide_workloads::stamp::vacation::{
    Agency, Customer, Reservation, Resource, Vacation, VacationTables,
};
use candide_workloads::stamp::{Form, Mode};
use candide_workloads::{Loaded, Worker, Workload};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_refused, assert_same_remains, check, database,
    database_of, honest, load, run, run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 1_500;

/// Few relations, so that threads meet, and few tasks that delete, so that some is sold out.
fn knobs(form: Form) -> Vacation {
    let published = Vacation::published(Mode::HighSim, form);
    Vacation { relations: 12, queried_pct: 100, tasks: 2_000, ..published }
}

#[test]
fn counters_agree_with_reservations_under_every_protocol_and_option() {
    for form in [Form::Eager, Form::Deferred] {
        assert_holds(&knobs(form), THREADS, STEPS, |committed, all| {
            assert_eq!(committed, all, "nothing rolls back")
        });
    }
}

#[test]
fn both_forms_do_the_same_as_the_sequential_program() {
    let remains = [Form::Eager, Form::Deferred].map(|form| {
        let (_db, loaded) = honest(&knobs(form), STEPS);
        Vec::<Resource>::of(&loaded)
    });
    assert!(remains[0] == remains[1]);
    let (_db, loaded) = honest(&knobs(Form::Eager), STEPS);
    assert!(Vec::<Resource>::of(&loaded) == loaded.sequential_resources(STEPS as u64));
}

/// So many relations that none is reserved twice by the same customer.
#[test]
fn tasks_that_reserve_are_tame_under_the_policy_pipelined() {
    let knobs = Vacation { relations: 3_000, user_pct: 100, ..knobs(Form::Deferred) };
    let db = database_of::<Occ>(Policy::Pipelined.into(), true, true);
    let loaded = load(&db, &knobs, THREADS);
    let before = db.stats();
    run(&db, &loaded, THREADS, 200);
    let after = db.stats();
    let locks = after.locks.since(before.locks);
    let wild = locks.wild_reads + locks.wild_keys + locks.wild_others;
    let unchained = locks.unchained_holds + locks.unchained_late + locks.unchained_others;
    assert_eq!((wild, unchained), (0, 0));
    assert_eq!(after.total_aborts(), before.total_aborts());
    let consistency = check(&db, &loaded);
    assert_eq!((consistency.failed, consistency.notes), (Vec::new(), Vec::new()));
}

#[test]
fn items_without_stock_are_not_reserved_and_all_others_are() {
    let knobs = Vacation { relations: 3, user_pct: 100, ..knobs(Form::Deferred) };
    let many = Vacation { relations: 2_000, queried_pct: 1, user_pct: 100, ..knobs.clone() };
    for knobs in [knobs, many] {
        let db = database(true, true);
        let loaded = load(&db, &knobs, 1);
        db.run(|tx| {
            for table in &loaded.agency.resources {
                for id in 1..=3 {
                    let sold =
                        (Resource::USED.set(0), Resource::FREE.set(1), Resource::TOTAL.set(1));
                    table.update(tx, id, sold)?;
                }
            }
            Ok(())
        })
        .expect("no other transaction");
        run(&db, &loaded, 3, STEPS);
        let consistency = check(&db, &loaded);
        let unexpected =
            consistency.failed.iter().filter(|failure| !failure.contains("add up to")).count();
        assert_eq!(unexpected, 0, "{:?}", consistency.failed);
    }
}

#[test]
fn speed_is_that_of_the_same_tasks_done_in_sequence() {
    let (_db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    assert!(loaded.sequential_tps(STEPS as u64, &|| false).is_some_and(|tps| tps > 0.0));
    assert_eq!(loaded.sequential_tps(0, &|| false), None);
}

#[test]
fn a_worker_of_vacation_returns_type_and_outcome_of_each_step() {
    let db = database(true, true);
    for (user_pct, kinds) in [(100, &[0][..]), (0, &[1, 2])] {
        let db = if user_pct == 0 { database(true, true) } else { db.clone() };
        let loaded = load(&db, &Vacation { user_pct, ..knobs(Form::Eager) }, 1);
        let mut worker = loaded.worker(db.session().expect("a session"), 0);
        let mut seen: Vec<usize> =
            (0..100).map(|_| worker.step().expect("no surprises").kind).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, kinds);
    }
    assert_eq!(Vacation::KINDS, ["reserve", "delete", "update"]);
}

/// Asserts that the check says `words` after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Agency<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    db.run(|tx| damage(&loaded.agency, tx)).expect("can be done");
    assert_failed(&check(&db, &loaded), words);
}

/// Returns the key of the first reservation that satisfies `wanted`.
fn reservation(
    agency: &Agency<Occ>,
    tx: &Tx<'_, Occ>,
    wanted: impl Fn(u8) -> bool,
) -> Result<(u32, u8, u32), Abort> {
    for row in agency.reservations.scan(tx, .., ()) {
        let (key, ()) = row?;
        if wanted(key.1) {
            return Ok(key);
        }
    }
    panic!("there are reservations")
}

#[test]
fn vacation_check_names_every_kind_of_damage() {
    let [cars, flights, rooms] = [0, 1, 2];
    let first = |agency: &Agency<Occ>, tx: &Tx<'_, Occ>, kind: usize| {
        let first = agency.resources[kind].scan(tx, .., ()).next().transpose()?;
        Ok::<u32, Abort>(first.expect("some are left").0)
    };
    assert_noticed("1 cars do not add up", |agency, tx| {
        let id = first(agency, tx, cars)?;
        agency.resources[cars].update(tx, id, Resource::FREE.add(1))
    });
    assert_noticed("1 rooms do not add up", |agency, tx| {
        let id = first(agency, tx, rooms)?;
        agency.resources[rooms].update(tx, id, Resource::PRICE.set(-1))
    });
    assert_noticed("1 flights have another number of reservations", |agency, tx| {
        let id = first(agency, tx, flights)?;
        agency.resources[flights].update(tx, id, (Resource::USED.add(1), Resource::FREE.sub(1)))
    });
    assert_noticed("reservations of cars where", |agency, tx| {
        let key = reservation(agency, tx, |kind| kind == 0)?;
        agency.reservations.delete(tx, key)
    });
    assert_noticed("flights add up to", |agency, tx| {
        let id = first(agency, tx, flights)?;
        agency.resources[flights].update(tx, id, (Resource::TOTAL.add(1), Resource::FREE.add(1)))
    });
    assert_noticed("rooms where", |agency, tx| {
        let row = Resource { id: 13, price: 50, used: 0, free: 0, total: 0 };
        agency.resources[rooms].insert(tx, row)
    });
    assert_noticed("something that does not exist", |agency, tx| {
        let id = reservation(agency, tx, |kind| kind == 1)?.2;
        agency.resources[flights].delete(tx, id)
    });
    assert_noticed("something that does not exist", |agency, tx| {
        let customer = reservation(agency, tx, |_| true)?.0;
        agency.customers.delete(tx, customer)
    });
    assert_noticed("customers where", |agency, tx| {
        agency.customers.put(tx, Customer { id: 13, bookings: 0 })
    });
    assert_noticed("have numbers beyond 1 to 12", |agency, tx| {
        agency.customers.put(tx, Customer { id: 13, bookings: 0 })
    });
    assert_noticed("read different contents", |agency, tx| {
        agency.customers.put(tx, Customer { id: 13, bookings: 0 })
    });
    assert_noticed("customers could be removed where", |agency, tx| {
        let customer = agency.customers.scan(tx, .., ()).next().transpose()?;
        agency.customers.delete(tx, customer.expect("some are left").0)
    });
    assert_noticed("another number of reservations", |agency, tx| {
        let (customer, kind, id) = reservation(agency, tx, |kind| kind == 2)?;
        let other = if customer == 1 { 2 } else { 1 };
        agency.customers.put(tx, Customer { id: other, bookings: 0 })?;
        agency
            .reservations
            .put(tx, Reservation { customer: other, kind, id: id % 12 + 1, price: 50 })?;
        agency.reservations.delete(tx, (customer, kind, id))
    });
}

#[test]
fn unaccounted_tasks_are_noticed() {
    let (db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    run_unaccounted(&db, &loaded, 101);
    assert_failed(&check(&db, &loaded), "were committed");
}

#[test]
fn the_check_changes_no_row() {
    let (db, loaded) = honest(&knobs(Form::Deferred), STEPS);
    let before = Vec::<Resource>::of(&loaded);
    assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
    assert!(before == Vec::<Resource>::of(&loaded));
}

impl Remains<Vacation> for Vec<Resource> {
    fn of<P: Protocol>(loaded: &VacationTables<P>) -> Self {
        let resources = loaded.agency.resources.iter();
        resources.flat_map(|table| sorted(table, |row| row.id)).collect()
    }
}

#[test]
fn one_thread_leaves_vacation_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<Resource>>(&knobs(Form::Deferred), STEPS);
}

#[test]
fn knobs_of_vacation_out_of_range_are_refused() {
    let knobs = || knobs(Form::Eager);
    assert_refused([
        (Vacation { queries: 17, ..knobs() }, "from 1 to 16, not 17"),
        (Vacation { queried_pct: 0, ..knobs() }, "the percentage of queried ids"),
        (Vacation { user_pct: 101, ..knobs() }, "from 0 to 100, not 101"),
        (Vacation { relations: 0, ..knobs() }, "the number of relations"),
        (Vacation { tasks: 0, ..knobs() }, "at least one task"),
    ]);
}

#[test]
fn configurations_of_vacation_are_the_published_ones() {
    for (mode, expected) in [
        ("low", (2, 90, 98, 1_048_576, 4_194_304)),
        ("high", (4, 60, 90, 1_048_576, 4_194_304)),
        ("low-sim", (2, 90, 98, 16_384, 4_096)),
        ("high-sim", (4, 60, 90, 16_384, 4_096)),
        ("drp", (2, 90, 98, 1_048_576, 4_194_304)),
        ("drp-hi", (4, 1, 90, 184_857, 12_194_304)),
    ] {
        let knobs = Vacation::published(mode.parse().expect("a mode"), Form::Deferred);
        let Vacation { queries, queried_pct, user_pct, relations, tasks, .. } = knobs;
        assert_eq!((queries, queried_pct, user_pct, relations, tasks), expected, "{mode}");
    }
}
