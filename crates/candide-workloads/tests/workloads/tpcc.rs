//! TPC-C's conditions hold after honest runs, and each of them is missed after a row was changed
//! behind the accounts.

use candide::policy::Policy;
use candide::{Abort, Bytes, Database, Occ, Protocol, Serial, Tx};
use candide_workloads::tpcc::{
    Customer, CustomerOrder, District, History, HistoryKeys, Homes, Item, Mix, NewOrder, Order,
    OrderIds, OrderLine, Stock, Tables, Tpcc, TpccTables, Warehouse,
};
use candide_workloads::{Loaded, Loading, Think, Worker, Workload};
use std::time::Duration;

use crate::common::{
    Remains, assert_failed, assert_holds, assert_holds_under, assert_refused, assert_same_remains,
    check, database, honest, load, run, run_unaccounted,
};

/// A company of two small warehouses, where threads meet often, and every condition is audited now
/// and then.
fn knobs() -> Tpcc {
    Tpcc { warehouses: 2, customers: 30, items: 200, audit_every: 50, ..Tpcc::strict() }
}

/// Transactions of a thread before each check.
const STEPS: usize = 400;

#[test]
fn consistency_conditions_of_tpcc_hold_under_every_protocol_and_option() {
    for threads in [1, 4] {
        assert_holds(&knobs(), threads, STEPS, |_, _| {});
    }
}

#[test]
fn consistency_conditions_hold_in_published_tpcc() {
    let knobs = Tpcc { warehouses: 1, audit_every: 50, ..Tpcc::published() };
    let knobs = Tpcc { customers: 30, items: 200, ..knobs };
    assert_holds_under::<Occ>(&knobs, 4, STEPS);
    assert_holds_under::<Serial>(&knobs, 4, STEPS);
}

#[test]
fn consistency_conditions_hold_in_tpcc_of_foedus_and_dbx1000() {
    for like in [Tpcc::foedus(), Tpcc::dbx1000()] {
        let knobs = Tpcc { warehouses: 2, customers: 30, items: 200, audit_every: 50, ..like };
        assert_holds(&knobs, 4, STEPS, |_, _| {});
    }
}

#[test]
fn consistency_conditions_hold_with_deferred_transactions() {
    assert_holds(&Tpcc { deferred_pct: Some(100), ..knobs() }, 4, STEPS / 2, |_, _| {});
    assert_holds_under::<Occ>(&Tpcc { deferred_pct: Some(50), ..knobs() }, 4, STEPS);
    let pipelining = Tpcc { customers: 30, items: 200, ..Tpcc::pipelining() };
    let think = Think::new(Duration::from_micros(1)).expect("short");
    let deferred_pct = Some(100);
    for order_ids in [OrderIds::District, OrderIds::Once] {
        let knobs = Tpcc { order_ids, think, deferred_pct, ..pipelining.clone() };
        assert_holds_under::<Occ>(&knobs, 4, STEPS);
    }
}

/// Under the policy `pipelined`, new orders and payments are tame. Most deliveries are, too: each
/// thread that delivers orders first has to find the oldest one.
#[test]
fn deferred_transactions_are_tame_in_pipelines() {
    let cases = [
        (OrderIds::Once, Mix::Two, 0),
        (OrderIds::District, Mix::Two, 0),
        (OrderIds::Once, Mix::Full, STEPS as u64 / 4),
    ];
    for (order_ids, mix, most) in cases {
        let deferred_pct = Some(100);
        let knobs = Tpcc { mix, order_ids, deferred_pct, audit_every: 0, ..knobs() };
        let builder = Database::<Occ>::builder().policy(Policy::Pipelined);
        let db = builder.build().expect("a database");
        let loaded = load(&db, &knobs, 2);
        run(&db, &loaded, 2, STEPS);
        let consistency = check(&db, &loaded);
        assert_eq!(consistency.failed, Vec::<String>::new());
        let notes = consistency.notes.join("; ");
        let told = notes.split("attempts of deferred transactions").nth(1).expect("a note");
        let mut numbers = told.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        assert!(numbers.next().unwrap_or(0) <= most, "{notes}");
    }
}

#[test]
fn no_update_of_a_customer_can_fail() {
    let knobs = Tpcc { customers: 10, audit_every: 0, ..knobs() };
    let db = database(true, true);
    let loaded = load(&db, &knobs, 1);
    let tables = loaded.tables();
    db.run(|tx| {
        for id in tables.customers.iter(tx, ()).map(|row| row.map(|(id, ())| id)) {
            let ends = (
                Customer::BALANCE.set(i64::MIN),
                Customer::YTD_PAYMENT.set(i64::MAX),
                Customer::PAYMENTS.set(u32::MAX),
                Customer::DELIVERIES.set(u32::MAX),
            );
            tables.customers.update(tx, id?, ends)?;
        }
        Ok::<_, Abort>(())
    })
    .expect("no other transaction");
    run(&db, &loaded, 1, STEPS);
}

#[test]
fn tpcc_without_inserts_adds_no_row_and_finds_damage() {
    let damages: [(&str, Damage); 6] = [
        ("the districts have counted", |tx, tables| {
            tables.districts.modify(tx, &(1, 1), District::NEXT_ORDER, |next| *next += 1)
        }),
        ("the customers have paid", |tx, tables| {
            tables.customers.update(tx, &(1, 1, 1), Customer::PAYMENTS.add(1))
        }),
        ("the balances are", |tx, tables| {
            tables.customers.update(tx, &(1, 1, 1), Customer::BALANCE.add(1))
        }),
        ("lines of orders, and", |tx, tables| {
            tables.stocks.update(tx, &(1, 7), Stock::ORDERS.add(1))
        }),
        ("items taken, and", |tx, tables| tables.stocks.update(tx, &(1, 7), Stock::YTD.add(1))),
        ("has quantity 9", |tx, tables| tables.stocks.update(tx, &(1, 7), Stock::QUANTITY.set(9))),
    ];
    for (words, damage) in damages {
        let db = database(true, true);
        let knobs = Tpcc { warehouses: 2, customers: 30, items: 200, ..Tpcc::dbx1000() };
        let loaded = load(&db, &knobs, 1);
        let tables = loaded.tables();
        let rows = || {
            [
                tables.orders.for_each_quiescent(|_| {}),
                tables.order_lines.for_each_quiescent(|_| {}),
                tables.history.for_each_quiescent(|_| {}),
            ]
            .map(|count| count.expect("nothing runs"))
        };
        let before = rows();
        run(&db, &loaded, 1, 500);
        assert_eq!(rows(), before);
        assert_eq!(check(&db, &loaded).failed, Vec::<String>::new());
        db.run(|tx| damage(tx, tables)).unwrap();
        let consistency = check(&db, &loaded);
        for way in ["transactions", "raw iteration"] {
            assert_failed(&consistency, &format!("read by {way}: condition 19"));
        }
        assert_failed(&consistency, words);
    }
}

/// Something that no transaction does.
type Damage = fn(&Tx<'_, Occ>, &Tables<Occ>) -> Result<(), Abort>;

#[test]
fn consistency_conditions_hold_with_every_other_knob() {
    let others = [
        Tpcc { order_ids: OrderIds::District, ..knobs() },
        Tpcc {
            order_ids: OrderIds::District,
            delivery_hint: true,
            delivery_queue: false,
            ..knobs()
        },
        Tpcc { order_ids: OrderIds::PerAttempt, homes: Homes::Random, ..knobs() },
        Tpcc { contention_aware_keys: false, hash_index: false, ..knobs() },
        Tpcc { history_keys: HistoryKeys::Sequential, payment_observes_balance: false, ..knobs() },
        Tpcc { remote_item_pct: 50, remote_payment_pct: 50, rollback_pct: 30, ..knobs() },
        Tpcc { warehouses: 5, ..knobs() },
    ];
    for knobs in others {
        assert_holds_under::<Occ>(&knobs, 3, STEPS);
    }
    for mix in [Mix::Three, Mix::Two, Mix::Even, Mix::NewOrder] {
        assert_holds_under::<Occ>(&Tpcc { mix, ..knobs() }, 2, STEPS);
    }
}

#[test]
fn every_type_is_drawn_and_new_orders_roll_back() {
    let db = database(true, true);
    let tables = load(&db, &Tpcc { rollback_pct: 10, ..knobs() }, 1);
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    let (mut committed, mut rolled_back) = ([0; 6], [0; 6]);
    for _ in 0..10_000 {
        let step = worker.step().expect("no surprises");
        let counts = if step.committed { &mut committed } else { &mut rolled_back };
        counts[step.kind] += 1;
    }
    assert_eq!(
        Tpcc::KINDS,
        ["new-order", "payment", "order-status", "delivery", "stock-level", "audit"]
    );
    let ranges = [3_900..4_200, 4_100..4_500, 330..470, 330..470, 330..470, 190..210];
    for (count, range) in committed.into_iter().zip(ranges) {
        assert!(range.contains(&count), "{committed:?}");
    }
    assert!((370..530).contains(&rolled_back[0]), "{rolled_back:?}");
    assert_eq!(rolled_back[1..], [0; 5]);
}

#[test]
fn outstanding_deliveries_are_made_before_the_check() {
    let db = database(true, true);
    let knobs = Tpcc { warehouses: 4, ..knobs() };
    let tables = load(&db, &knobs, 1);
    // The second of two workers draws deliveries that only the first, which never comes, would
    // make.
    tables.expect_workers(2);
    let mut worker = tables.worker(db.session().expect("a session"), 1);
    for _ in 0..1_000 {
        worker.step().expect("no surprises");
    }
    tables.absorb(worker);
    let consistency = check(&db, &tables);
    assert_eq!(consistency.failed, Vec::<String>::new());
    assert_eq!(consistency.notes.len(), 1, "{:?}", consistency.notes);
    assert!(
        consistency.notes[0].contains("deliveries were still queued"),
        "{:?}",
        consistency.notes
    );
    assert_eq!(check(&db, &tables).notes, Vec::<String>::new(), "and now none is");
}

/// A company after an honest run that numbers its orders so.
fn numbered(order_ids: OrderIds) -> (Database<Occ>, TpccTables<Occ>) {
    honest(&Tpcc { order_ids, audit_every: 0, ..knobs() }, 500)
}

/// Asserts that the check finds what is wrong after `damage` to a company that numbers its orders
/// in the districts' rows, in both ways of reading.
fn assert_noticed(
    condition: &str,
    words: &str,
    damage: impl Fn(&Tx<'_, Occ>, &Tables<Occ>) -> Result<(), Abort>,
) {
    assert_noticed_with(OrderIds::District, condition, words, damage);
}

fn assert_noticed_with(
    order_ids: OrderIds,
    condition: &str,
    words: &str,
    damage: impl Fn(&Tx<'_, Occ>, &Tables<Occ>) -> Result<(), Abort>,
) {
    let (db, tables) = numbered(order_ids);
    db.run(|tx| damage(tx, tables.tables()))
        .unwrap_or_else(|abort| panic!("condition {condition}: {abort}"));
    let consistency = check(&db, &tables);
    for way in ["transactions", "raw iteration"] {
        assert_failed(&consistency, &format!("read by {way}: condition {condition}: {words}"));
    }
}

/// The oldest order of district (1, 1) that is not delivered.
fn oldest_new(tx: &Tx<'_, Occ>, tables: &Tables<Occ>) -> Result<(u16, u8, u32), Abort> {
    let oldest = tables.new_orders.scan(tx, (1, 1, 0)..(1, 2, 0), ()).next();
    Ok(oldest.expect("there are new orders")?.0)
}

#[test]
fn wrong_year_to_date_sums_are_noticed() {
    let damage_warehouse = |tx: &Tx<'_, Occ>, tables: &Tables<Occ>| {
        tables.warehouses.update(tx, 2, Warehouse::YTD.add(7))
    };
    assert_noticed("1", "warehouse 2 has taken", damage_warehouse);
    assert_noticed("8", "warehouse 2 has taken", damage_warehouse);
    assert_noticed("16", "the warehouses have taken", damage_warehouse);
    assert_noticed("9", "district (1, 3) has taken", |tx, tables| {
        tables.districts.update(tx, &(1, 3), District::YTD.add(7))
    });
}

#[test]
fn wrong_numbers_of_orders_are_noticed() {
    assert_noticed("2", "district (1, 4): the next order is", |tx, tables| {
        tables.districts.update(tx, &(1, 4), District::NEXT_ORDER.add(1))
    });
    assert_noticed("3", "district (1, 1): there are", |tx, tables| {
        let (warehouse, district, oldest) = oldest_new(tx, tables)?;
        tables.new_orders.delete(tx, &(warehouse, district, oldest + 1))
    });
}

#[test]
fn wrong_order_numbers_are_noticed_where_gaps_are_allowed() {
    for order_ids in [OrderIds::Once, OrderIds::PerAttempt] {
        assert_noticed_with(order_ids, "2", "district (2, 2): the next order is", |tx, tables| {
            let order = tables.orders.read(tx, &(2, 2, 1), candide::Whole)?;
            tables.orders.insert(tx, Order { id: 900, ..order })
        });
        assert_noticed_with(order_ids, "2", "district (2, 2): the next order is", |tx, tables| {
            tables.new_orders.insert(tx, NewOrder { warehouse: 2, district: 2, id: 900 })
        });
        assert_noticed_with(order_ids, "3", "district (2, 2): there are", |tx, tables| {
            let new_orders = tables
                .new_orders
                .scan(tx, (2, 2, 0)..(2, 3, 0), ())
                .collect::<Result<Vec<_>, Abort>>()?;
            tables.new_orders.delete(tx, &new_orders[1].0)
        });
    }
}

#[test]
fn orders_that_contradict_their_lines_are_noticed() {
    assert_noticed("4", "district (2, 1): the orders state", |tx, tables| {
        tables.order_lines.delete(tx, &(2, 1, 1, 5))
    });
    assert_noticed("5", "order (1, 1, ", |tx, tables| {
        let key = oldest_new(tx, tables)?;
        tables.orders.update(tx, &key, Order::CARRIER.set(3))
    });
    assert_noticed("6", "order (1, 2, 7) states", |tx, tables| {
        let line = tables.order_lines.read(tx, &(1, 2, 7, 2), candide::Whole)?;
        tables.order_lines.delete(tx, &(1, 2, 7, 2))?;
        tables.order_lines.insert(tx, OrderLine { number: 16, ..line })
    });
    assert_noticed("7", "order (1, 1, 1) has carrier", |tx, tables| {
        tables.order_lines.update(tx, &(1, 1, 1, 1), OrderLine::DELIVERED.set(0))
    });
    assert_noticed("15", "order (1, 1, 1) is of customer", |tx, tables| {
        let customer = tables.orders.read(tx, &(1, 1, 1), Order::CUSTOMER)?;
        tables.customer_orders.delete(tx, &(1, 1, customer, 1))?;
        let other =
            CustomerOrder { warehouse: 1, district: 1, customer: customer % 30 + 1, order: 1 };
        tables.customer_orders.insert(tx, other)
    });
}

#[test]
fn wrong_balances_of_customers_are_noticed() {
    let damage_balance = |tx: &Tx<'_, Occ>, tables: &Tables<Occ>| {
        tables.customers.update(tx, &(2, 9, 8), Customer::BALANCE.sub(1))
    };
    assert_noticed("10", "customer (2, 9, 8) has balance", damage_balance);
    assert_noticed("12", "customer (2, 9, 8) has balance", damage_balance);
    assert_noticed("13", "customer (1, 1, 1) states", |tx, tables| {
        tables.customers.update(tx, &(1, 1, 1), Customer::PAYMENTS.add(1))
    });
    assert_noticed("13", "customer (1, 1, 2) states", |tx, tables| {
        tables.customers.update(tx, &(1, 1, 2), Customer::DELIVERIES.add(1))
    });
    assert_noticed("names", "the list of the name", |tx, tables| {
        tables.customers.update(tx, &(1, 1, 1), Customer::LAST.set("CUNEGONDE"))
    });
}

#[test]
fn wrong_stocks_and_lines_are_noticed() {
    assert_noticed("14", "stock (2, 17) has StockCounts", |tx, tables| {
        tables.stocks.update(tx, &(2, 17), Stock::REMOTE_ORDERS.add(1))
    });
    assert_noticed("14", "stock (2, 18) has quantity 9", |tx, tables| {
        tables.stocks.update(tx, &(2, 18), Stock::QUANTITY.set(9))
    });
    assert_noticed("18", "order line (1, 1, ", |tx, tables| {
        tables.order_lines.update(tx, &(1, 1, 31, 1), OrderLine::AMOUNT.add(1))
    });
    assert_noticed("18", "order line (1, 1, ", |tx, tables| {
        tables.order_lines.update(
            tx,
            &(1, 1, 31, 1),
            OrderLine::DIST_INFO.set(Bytes::new([b'?'; 24])),
        )
    });
    assert_noticed("rows", "1 items are missing", |tx, tables| tables.items.delete(tx, 200));
}

#[test]
fn rows_that_no_key_leads_to_are_noticed() {
    let (db, tables) = numbered(OrderIds::Once);
    let items = &tables.tables().items;
    let damage = db.run(|tx| {
        let item = items.read(tx, 1, candide::Whole)?;
        items.insert(tx, Item { id: 201, ..item })
    });
    damage.unwrap();
    let consistency = check(&db, &tables);
    assert_failed(
        &consistency,
        "read by raw iteration: condition rows: there is an unexpected item 201",
    );
    assert_failed(&consistency, "transactions and raw iteration read different contents");
}

#[test]
fn rows_that_no_transaction_accounts_for_are_noticed() {
    // An order with everything that belongs to it, which no transaction has entered.
    let forge = |tx: &Tx<'_, Occ>, tables: &Tables<Occ>| {
        let id = tables.districts.modify(tx, &(1, 1), District::NEXT_ORDER, |next| {
            *next += 1;
            *next - 1
        })?;
        let (warehouse, district, customer) = (1, 1, 5);
        let order = Order {
            warehouse,
            district,
            id,
            customer,
            entered: 1,
            lines: 0,
            all_local: true,
            carrier: 0,
        };
        tables.orders.insert(tx, order)?;
        tables.new_orders.insert(tx, NewOrder { warehouse, district, id })?;
        tables
            .customer_orders
            .insert(tx, CustomerOrder { warehouse, district, customer, order: id })
    };
    assert_noticed("16", "there are", forge);
    assert_noticed("16", "there are", |tx, tables| {
        let payment =
            tables.history.iter(tx, candide::Whole).next().expect("there are payments")?.1;
        tables.history.insert(tx, History { id: u64::MAX, ..payment })
    });
    let deliver = |tx: &Tx<'_, Occ>, tables: &Tables<Occ>| {
        let key = oldest_new(tx, tables)?;
        tables.new_orders.delete(tx, &key)
    };
    assert_noticed("11", "district (1, 1) has", deliver);
    assert_noticed("17", "there are", deliver);
}

#[test]
fn tpcc_check_finds_unaccounted_commits() {
    let (db, tables) = numbered(OrderIds::Once);
    run_unaccounted(&db, &tables, 100);
    assert_failed(&check(&db, &tables), "orders; 600 were loaded and");
}

/// A company that audits after every second transaction, and where something is wrong.
fn audited(damage: impl Fn(&Tx<'_, Occ>, &Tables<Occ>) -> Result<(), Abort>, words: &str) {
    let db = database(true, true);
    let knobs = Tpcc { warehouses: 1, order_ids: OrderIds::District, audit_every: 2, ..knobs() };
    let tables = load(&db, &knobs, 1);
    db.run(|tx| damage(tx, tables.tables())).unwrap_or_else(|abort| panic!("{words}: {abort}"));
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    for _ in 0..300 {
        // A damaged company need not be able to do everything.
        if worker.step().is_err() {
            break;
        }
    }
    tables.absorb(worker);
    assert_failed(&check(&db, &tables), words);
}

#[test]
fn audits_beside_running_transactions_notice_damage() {
    audited(
        |tx, tables| tables.warehouses.update(tx, 1, Warehouse::YTD.add(7)),
        "condition 1 (audited): warehouse 1",
    );
    audited(
        |tx, tables| {
            (1..=10).try_for_each(|id| {
                tables.districts.update(tx, &(1, id), District::NEXT_ORDER.add(1))
            })
        },
        "condition 2 (audited): district (1, ",
    );
    audited(
        |tx, tables| {
            (1..=10).try_for_each(|district| tables.new_orders.delete(tx, &(1, district, 29)))
        },
        "condition 3 (audited): district (1, ",
    );
    audited(
        |tx, tables| {
            (1..=10).try_for_each(|district| tables.order_lines.delete(tx, &(1, district, 29, 2)))
        },
        "condition 4 (audited): district (1, ",
    );
}

#[test]
fn knobs_out_of_range_are_refused_with_the_range() {
    let refused = [
        (Tpcc { warehouses: 0, ..knobs() }, "at least one warehouse"),
        (Tpcc { customers: 3001, ..knobs() }, "from 10 to 3000"),
        (Tpcc { items: 19, ..knobs() }, "from 20 to 1000000"),
        (Tpcc { rollback_pct: 101, ..knobs() }, "at most 100"),
    ];
    assert_refused(refused);
    assert_eq!((Tpcc::strict().validate(), Tpcc::published().validate()), (Ok(()), Ok(())));
}

#[test]
fn tpcc_lists_its_departures_from_the_standard() {
    let standard = Tpcc { order_ids: OrderIds::District, audit_every: 0, ..Tpcc::strict() };
    assert!(matches!(*standard.differences(), [how] if how.contains("the remaining stock")));
    let [ids, _, audits] = Tpcc::strict().differences().try_into().expect("three");
    assert!(
        ids.contains("a counter outside the database")
            && audits.contains("counted as transactions")
    );
    assert_eq!(Tpcc::published().differences().len(), 6);
    let empty = Tpcc { stock_level_empty_scan: true, ..standard.clone() };
    let how = "stock-level scans an empty range, as published, and looks at no stock";
    assert_eq!(empty.differences()[1..], [how]);
    assert_eq!(Tpcc { mix: Mix::Three, ..empty }.differences().len(), 1, "there is no stock-level");
    let differences =
        Tpcc { warehouses: 2, remote_item_pct: 100, rollback_pct: 50, ..standard }.differences();
    assert!(
        matches!(*differences, [_, rolls_back, remote] if rolls_back.contains("more new orders") && remote.contains("1 and 15"))
    );
}

#[test]
fn a_company_is_loaded_with_the_documented_number_of_rows() {
    let told = std::sync::atomic::AtomicU64::new(0);
    let db = database(true, true);
    let progress = |keys| {
        told.fetch_add(keys, std::sync::atomic::Ordering::Relaxed);
    };
    let tables = knobs()
        .load(&db, &Loading { threads: 2, seed: 5, progress: &progress, stopped: &|| false })
        .expect("loads");
    assert_eq!(told.into_inner(), knobs().keys());
    assert_eq!(tables.tables().orders.len_estimate(), 600);
    assert_eq!(tables.tables().new_orders.len_estimate(), 180);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_loading() {
    let told = std::sync::atomic::AtomicU64::new(0);
    let db = database(true, true);
    let progress = |keys| {
        told.fetch_add(keys, std::sync::atomic::Ordering::Relaxed);
    };
    let stopped = || told.load(std::sync::atomic::Ordering::Relaxed) >= 100;
    let knobs = Tpcc { customers: 3_000, ..knobs() };
    let loaded =
        knobs.load(&db, &Loading { threads: 2, seed: 5, progress: &progress, stopped: &stopped });
    assert!(matches!(loaded, Err(candide_workloads::Failure::Stopped)));
    // Neither thread goes beyond the transaction that it is in, of 16 rows.
    let told = told.into_inner();
    assert!(told < 100 + 2 * 16, "{told}");
}

/// All rows that transactions change, after 1,000 of them on one thread.
impl Remains<Tpcc> for Vec<String> {
    fn of<P: Protocol>(loaded: &TpccTables<P>) -> Self {
        let tables = loaded.tables();
        let mut rows = Vec::new();
        let quiet = "nothing runs";
        tables.warehouses.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.districts.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.customers.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.history.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.new_orders.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.orders.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.order_lines.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        tables.stocks.for_each_quiescent(|row| rows.push(format!("{row:?}"))).expect(quiet);
        rows.sort_unstable();
        rows
    }
}

#[test]
fn one_thread_leaves_tpcc_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, Vec<_>>(&knobs(), 1_000);
}
