//! The consistency conditions: TPC-C's twelve, and further ones that must also hold here.

use candide::{Protocol, Session};

use super::audit::numbers_agree;
use super::condition::Condition;
use super::contents::{Contents, StockBook};
use super::gather;
use super::knobs::{OrderIds, Tpcc};
use super::rows::{DISTRICTS, OrderId};
use super::store::Store;
use super::tables::{Numbers, district_at};
use super::worker::Tally;
use crate::{Consistency, Failure};

/// Conditions between inserted rows and counters. These conditions do not hold if transactions only
/// count and insert nothing.
const OF_WRITTEN_DOWN: [&str; 6] = ["2", "8", "9", "10", "13", "14"];

/// The number of conditions that an audit examines.
const AUDITED: usize = 4;

/// Examines all conditions, both on the rows that transactions read and on those of raw iteration.
pub(super) fn check<P: Protocol>(
    store: &Store<P>,
    session: Session<P>,
    tally: &Tally,
) -> Result<Consistency, Failure> {
    let Store { tables, knobs, numbers, .. } = store;
    let (looked_up, iterated) =
        gather::read(tables, session, knobs, order_bound(knobs, numbers, tally))?;
    Ok(compare(&looked_up, &iterated, knobs, numbers, tally))
}

/// Examines all conditions on both contents, and checks that the contents are the same.
fn compare(
    looked_up: &Contents,
    iterated: &Contents,
    knobs: &Tpcc,
    next: &Numbers,
    tally: &Tally,
) -> Consistency {
    let mut consistency = Consistency { checked: tally.audits * AUDITED, ..Consistency::default() };
    consistency.failed.extend(tally.failures.iter().map(|failure| format!("condition {failure}")));
    settle(looked_up, knobs, next, tally, "read by transactions", &mut consistency);
    settle(iterated, knobs, next, tally, "read by raw iteration", &mut consistency);
    let same = [
        ("warehouses", looked_up.warehouses == iterated.warehouses),
        ("districts and orders", looked_up.districts == iterated.districts),
        ("customers", looked_up.customers == iterated.customers),
        ("stocks", looked_up.stocks == iterated.stocks),
        ("contents", looked_up == iterated),
    ];
    for (what, same) in same {
        consistency
            .expect(same, || format!("transactions and raw iteration read different {what}"));
    }
    consistency
}

/// Returns a number that is higher than that of any order. The bound is 1,000 above the highest
/// number expected, so that orders with numbers that should not exist are found.
fn order_bound(knobs: &Tpcc, next: &Numbers, tally: &Tally) -> OrderId {
    let entered = if knobs.inserts { tally.orders as OrderId } else { 0 };
    let districts =
        (1..=knobs.warehouses).flat_map(|id| (1..=DISTRICTS).map(move |district| (id, district)));
    let drawn = districts
        .map(|(warehouse, district)| next.next_order(warehouse, district))
        .max()
        .unwrap_or(0);
    drawn.max(OrderId::from(knobs.customers) + entered) + 1000
}

/// Examines the contents that one way of reading found.
fn settle(
    contents: &Contents,
    knobs: &Tpcc,
    next: &Numbers,
    tally: &Tally,
    way: &str,
    consistency: &mut Consistency,
) {
    let all = [
        &[contents.places.clone(), contents.names.clone()] as &[_],
        &takings(contents),
        &numbers(contents, knobs, next),
        &orders(contents),
        &accounts(contents, knobs),
        &stocks(contents),
        &totals(contents, knobs, tally),
        std::slice::from_ref(&contents.lines),
    ];
    let inserts = knobs.inserts;
    let examined = all
        .iter()
        .copied()
        .flatten()
        .filter(|condition| inserts || !OF_WRITTEN_DOWN.contains(&condition.name));
    examined.for_each(|condition| condition.report(way, consistency));
    if !inserts {
        counted(contents, knobs, tally).report(way, consistency);
    }
}

/// Examines conditions 1, 8 and 9, on the payments received.
fn takings(contents: &Contents) -> [Condition; 3] {
    let [mut districts, mut warehouse_paid, mut district_paid] =
        ["1", "8", "9"].map(Condition::new);
    let of_districts = contents.districts.chunks(usize::from(DISTRICTS));
    for ((id, warehouse), parts) in (1..).zip(&contents.warehouses).zip(of_districts) {
        let sum: i64 = parts.iter().map(|district| district.takings.ytd).sum();
        districts.expect(warehouse.ytd == sum, || {
            format!("warehouse {id} has taken {}, and its districts {sum}", warehouse.ytd)
        });
        warehouse_paid.expect(warehouse.ytd == warehouse.paid, || {
            format!("warehouse {id} has taken {}, and was paid {}", warehouse.ytd, warehouse.paid)
        });
    }
    for (place, district) in contents.districts.iter().enumerate() {
        let takings = district.takings;
        district_paid.expect(takings.ytd == takings.paid, || {
            format!(
                "district {:?} has taken {}, and was paid {}",
                district_at(place),
                takings.ytd,
                takings.paid
            )
        });
    }
    [districts, warehouse_paid, district_paid]
}

/// Examines conditions 2 and 3, on the numbers of orders.
fn numbers(contents: &Contents, knobs: &Tpcc, counters: &Numbers) -> [Condition; 2] {
    let [mut agree, mut dense] = ["2", "3"].map(Condition::new);
    let is_exact = knobs.order_ids == OrderIds::District;
    for (place, book) in contents.districts.iter().enumerate() {
        let (warehouse, district) = district_at(place);
        let next =
            if is_exact { book.next_order } else { counters.next_order(warehouse, district) };
        let newest = book.orders.iter().rposition(|order| order.is_there).unwrap_or(0) as OrderId;
        let waiting = &book.waiting;
        agree.expect(numbers_agree(is_exact, next, newest, waiting), || {
            format!(
                "district ({warehouse}, {district}): the next order is {next}, the newest {newest}, the newest new order {}",
                waiting.last
            )
        });
        let between =
            book.orders.iter().take(waiting.last as usize + 1).skip(waiting.first as usize);
        let undelivered =
            between.filter(|order| order.is_there && order.carrier == 0).count() as u32;
        dense.expect(waiting.agrees(is_exact, undelivered), || {
            format!(
                "district ({warehouse}, {district}): there are {waiting} new orders, and {undelivered} orders in their range are not delivered"
            )
        });
    }
    [agree, dense]
}

/// Examines conditions 4 to 7 and 15, on orders and the rows that belong to them.
fn orders(contents: &Contents) -> [Condition; 5] {
    let [mut line_count, mut new, mut lines, mut delivered, mut leads] =
        ["4", "5", "6", "7", "15"].map(Condition::new);
    for (place, book) in contents.districts.iter().enumerate() {
        let district = district_at(place);
        let expected: u64 = book.orders.iter().map(|order| u64::from(order.lines)).sum();
        let found: u64 = book.orders.iter().map(|order| u64::from(order.found)).sum();
        line_count.expect(expected == found, || {
            format!("district {district:?}: the orders state {expected} lines, and have {found}")
        });
        for (id, order) in book.orders.iter().enumerate() {
            let key = (district.0, district.1, id);
            new.expect(order.is_new == (order.is_there && order.carrier == 0), || {
                let is_new = if order.is_new { "is" } else { "is not" };
                format!(
                    "order {key:?} has carrier {}, and {is_new} in the table of new orders",
                    order.carrier
                )
            });
            let numbers = (1u32 << order.lines.min(16)) - 1;
            lines.expect(order.lines == order.found && numbers == u32::from(order.numbers), || {
                format!(
                    "order {key:?} states {} lines, and has {} with numbers {:#b}",
                    order.lines, order.found, order.numbers
                )
            });
            let undelivered = if order.carrier == 0 { order.found } else { 0 };
            delivered.expect(order.undelivered == undelivered, || {
                format!(
                    "order {key:?} has carrier {}, and {} of its {} lines are not delivered",
                    order.carrier, order.undelivered, order.found
                )
            });
            let is_led_to = order.leads == u8::from(order.is_there)
                && (!order.is_there || order.led_from == order.customer);
            leads.expect(is_led_to, || {
                let (customer, leads, from) = (order.customer, order.leads, order.led_from);
                format!("order {key:?} is of customer {customer}, and {leads} entries lead to it, the last from {from}")
            });
        }
    }
    [line_count, new, lines, delivered, leads]
}

/// Examines conditions 10, 12 and 13, on customers' accounts.
fn accounts(contents: &Contents, knobs: &Tpcc) -> [Condition; 3] {
    let [mut balance, mut ytd, mut counts] = ["10", "12", "13"].map(Condition::new);
    // The sum delivered to each customer, and the number of its orders since loading.
    let mut received = vec![(0i64, 0u32); contents.customers.len()];
    let customers = usize::from(knobs.customers);
    for (district, book) in contents.districts.iter().enumerate() {
        for (id, order) in book.orders.iter().enumerate().filter(|(_, order)| order.is_there) {
            let place = usize::from(order.customer).wrapping_sub(1);
            // An order without a customer is missing from the index, which violates condition 15.
            if place < customers {
                let (amount, count) = &mut received[district * customers + place];
                *amount += order.amount;
                *count += u32::from(order.carrier > 0 && id as OrderId > knobs.delivered());
            }
        }
    }
    for (place, (book, (amount, count))) in contents.customers.iter().zip(received).enumerate() {
        let key = || contents.customer_at(place);
        balance.expect(book.balance == amount - book.paid, || {
            format!(
                "customer {:?} has balance {}, deliveries of {amount} and payments of {}",
                key(),
                book.balance,
                book.paid
            )
        });
        ytd.expect(book.balance + book.ytd_payment == amount, || {
            format!(
                "customer {:?} has balance {}, deliveries of {amount} and states payments of {}",
                key(),
                book.balance,
                book.ytd_payment
            )
        });
        let own = (book.ytd_payment, book.payments, book.deliveries);
        let found = (book.paid, book.payments_found, count);
        counts.expect(own == found, || {
            format!(
                "customer {:?} states {own:?} (paid, payments, deliveries), but payments and orders add up to {found:?}",
                key()
            )
        });
    }
    [balance, ytd, counts]
}

/// Examines condition 14, on stocks.
fn stocks(contents: &Contents) -> [Condition; 1] {
    let mut counts = Condition::new("14");
    for (place, book) in contents.stocks.iter().enumerate() {
        let key = || contents.stock_at(place);
        counts.expect(book.counts == book.found, || {
            format!(
                "stock {:?} has {:?}, and order lines have {:?}",
                key(),
                book.counts,
                book.found
            )
        });
        let quantity = book.quantity;
        counts.expect((10..=100).contains(&quantity), || {
            format!("stock {:?} has quantity {quantity}", key())
        });
    }
    [counts]
}

/// Examines conditions 11, 16 and 17, which compare the tables with the workers' counts.
fn totals(contents: &Contents, knobs: &Tpcc, tally: &Tally) -> [Condition; 3] {
    let [mut per_district, mut committed, mut delivered] = ["11", "16", "17"].map(Condition::new);
    let (mut orders, mut waiting) = (0, 0);
    for (place, (book, made)) in contents.districts.iter().zip(&tally.delivered).enumerate() {
        let there = book.orders.iter().filter(|order| order.is_there).count() as u64;
        let new = u64::from(book.waiting.count);
        let expected = u64::from(knobs.delivered()) + made;
        per_district.expect(there == new + expected, || {
            format!(
                "district {:?} has {there} orders, of which {new} are new and {expected} were delivered",
                district_at(place)
            )
        });
        orders += there;
        waiting += new;
    }
    let districts = contents.districts.len() as u64;
    let loaded = districts * u64::from(knobs.customers);
    let (entered, made) = if knobs.inserts { (tally.orders, tally.payments) } else { (0, 0) };
    committed.expect(orders == loaded + entered, || {
        format!("there are {orders} orders; {loaded} were loaded and {entered} entered")
    });
    committed.expect(contents.payments == loaded + made, || {
        format!("there are {} payments; {loaded} were loaded and {made} made", contents.payments)
    });
    // Each customer was loaded with one payment.
    let before = loaded as i64 * super::loader::FIRST_PAYMENT;
    let taken: i64 = contents.warehouses.iter().map(|warehouse| warehouse.ytd).sum();
    committed.expect(taken == before + tally.paid, || {
        format!("the warehouses have taken {taken}; {before} were loaded and {} paid", tally.paid)
    });
    let expected = districts * u64::from(knobs.delivered()) + tally.delivered.iter().sum::<u64>();
    delivered.expect(orders == waiting + expected, || {
        format!(
            "there are {orders} orders, of which {waiting} are new and {expected} were delivered"
        )
    });
    [per_district, committed, delivered]
}

/// Examines condition 19: if nothing is inserted, the counters in the tables have grown by the
/// workers' counts.
fn counted(contents: &Contents, knobs: &Tpcc, tally: &Tally) -> Condition {
    let mut counters = Condition::new("19");
    let loaded = OrderId::from(knobs.customers) + 1;
    let orders: u64 = contents
        .districts
        .iter()
        .map(|district| u64::from(district.next_order.wrapping_sub(loaded)))
        .sum();
    counters.expect(orders == tally.orders, || {
        format!("the districts have counted {orders} orders, and {} were entered", tally.orders)
    });
    let first = super::loader::FIRST_PAYMENT;
    let paid: i64 = contents.customers.iter().map(|customer| customer.ytd_payment - first).sum();
    let owed: i64 =
        contents.customers.iter().map(|customer| -customer.paid - customer.balance).sum();
    let payments: u64 = contents
        .customers
        .iter()
        .map(|customer| u64::from(customer.payments.wrapping_sub(1)))
        .sum();
    counters.expect((paid, payments) == (tally.paid, tally.payments), || {
        format!(
            "the customers have paid {paid} in {payments} payments, and {} were made, of {}",
            tally.payments, tally.paid
        )
    });
    let delivered = contents
        .districts
        .iter()
        .flat_map(|district| &district.orders)
        .map(|order| order.amount)
        .sum::<i64>();
    counters.expect(owed + delivered == tally.paid, || {
        format!(
            "the balances are {} lower than before, and {} were paid",
            owed + delivered,
            tally.paid
        )
    });
    // Counters continue from their loaded values, and wrap around beyond 32 bits.
    let gone_on = |of: fn(&StockBook) -> (u32, u32)| {
        let sum = |sum: u32, stock| of(stock).0.wrapping_sub(of(stock).1).wrapping_add(sum);
        contents.stocks.iter().fold(0, sum)
    };
    let lines = gone_on(|stock| (stock.counts.orders, stock.found.orders));
    counters.expect(lines == tally.lines as u32, || {
        format!("the stocks have counted {lines} lines of orders, and {} were entered", tally.lines)
    });
    let taken = gone_on(|stock| (stock.counts.ytd, stock.found.ytd));
    counters.expect(taken == tally.taken as u32, || {
        format!("the stocks have counted {taken} items taken, and {} were", tally.taken)
    });
    for (place, stock) in contents.stocks.iter().enumerate() {
        let quantity = stock.quantity;
        counters.expect((10..=100).contains(&quantity), || {
            format!("stock {:?} has quantity {quantity}", contents.stock_at(place))
        });
    }
    counters
}
