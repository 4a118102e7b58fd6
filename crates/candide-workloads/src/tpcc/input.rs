//! The inputs of a transaction, drawn before its first attempt.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::knobs::{Homes, Tpcc};
use super::rows::{CustomerId, DISTRICTS, DistrictId, ItemId, LastName, WarehouseId};
use super::text;

/// The largest number of lines of an order.
pub(super) const LINES_MAX: usize = 15;

/// One line of a new order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) item: ItemId,
    pub(super) supplier: WarehouseId,
    pub(super) quantity: u8,
}

/// A new order.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewOrderInput {
    pub(super) warehouse: WarehouseId,
    pub(super) district: DistrictId,
    pub(super) customer: CustomerId,
    pub(super) date: u32,
    lines: [Line; LINES_MAX],
    count: u8,
}

impl NewOrderInput {
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines[..usize::from(self.count)]
    }
}

/// A customer, given by number or by last name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    Number(CustomerId),
    Name(LastName),
}

/// A payment.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaymentInput {
    pub(super) warehouse: WarehouseId,
    pub(super) district: DistrictId,
    pub(super) customer_warehouse: WarehouseId,
    pub(super) customer_district: DistrictId,
    pub(super) who: Who,
    pub(super) amount: i64,
    pub(super) date: u32,
}

/// The request for a customer's newest order.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderStatusInput {
    pub(super) warehouse: WarehouseId,
    pub(super) district: DistrictId,
    pub(super) who: Who,
}

/// The deliveries of one warehouse.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryInput {
    pub(super) warehouse: WarehouseId,
    pub(super) carrier: u8,
    pub(super) date: u32,
}

/// The district, and the quantity below which the stock of an item counts as low.
#[derive(Debug, Clone, Copy)]
pub(super) struct StockLevelInput {
    pub(super) warehouse: WarehouseId,
    pub(super) district: DistrictId,
    pub(super) threshold: i32,
}

/// The source of the inputs of one thread.
pub(super) struct Inputs {
    rng: Rng,
    home: RangeInclusive<WarehouseId>,
    date: u32,
}

impl Inputs {
    /// Creates the inputs of thread number `thread` out of `threads`.
    pub(super) fn new(rng: Rng, knobs: &Tpcc, thread: usize, threads: usize) -> Self {
        let home = match knobs.homes {
            Homes::Range => home(knobs.warehouses, thread, threads),
            Homes::Random => 1..=knobs.warehouses,
        };
        Inputs { rng, home, date: 1 }
    }

    /// Draws the number of a transaction type, by the percentages of the types.
    pub(super) fn kind(&mut self, percentages: &[u8; 5]) -> usize {
        let mut lot = self.rng.u8(..100);
        let mut kind = 0;
        while lot >= percentages[kind] {
            lot -= percentages[kind];
            kind += 1;
        }
        kind
    }

    pub(super) fn new_order(&mut self, knobs: &Tpcc) -> NewOrderInput {
        let (warehouse, district) = (self.warehouse(), self.district());
        let date = self.now();
        let rng = &mut self.rng;
        let customer = text::customer(rng, knobs.customers);
        let count = rng.u8(5..=LINES_MAX as u8);
        let mut lines = [Line::default(); LINES_MAX];
        for line in &mut lines[..usize::from(count)] {
            let item = text::item(rng, knobs.items);
            let supplier = other_warehouse(rng, knobs.remote_item_pct, warehouse, knobs.warehouses);
            *line = Line { item, supplier, quantity: rng.u8(1..=10) };
        }
        if rng.u32(..100) < knobs.rollback_pct {
            lines[usize::from(count) - 1].item = knobs.items + 1;
        }
        NewOrderInput { warehouse, district, customer, date, lines, count }
    }

    pub(super) fn payment(&mut self, knobs: &Tpcc) -> PaymentInput {
        let (warehouse, district) = (self.warehouse(), self.district());
        let date = self.now();
        let customer_warehouse =
            other_warehouse(&mut self.rng, knobs.remote_payment_pct, warehouse, knobs.warehouses);
        let customer_district =
            if customer_warehouse == warehouse { district } else { self.district() };
        let (who, amount) = (self.who(knobs), self.rng.i64(100..=500_000));
        PaymentInput {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            who,
            amount,
            date,
        }
    }

    pub(super) fn order_status(&mut self, knobs: &Tpcc) -> OrderStatusInput {
        OrderStatusInput {
            warehouse: self.warehouse(),
            district: self.district(),
            who: self.who(knobs),
        }
    }

    pub(super) fn delivery(&mut self, warehouse: WarehouseId) -> DeliveryInput {
        DeliveryInput { warehouse, carrier: self.rng.u8(1..=10), date: self.now() }
    }

    pub(super) fn stock_level(&mut self) -> StockLevelInput {
        let (warehouse, district) = (self.warehouse(), self.district());
        StockLevelInput { warehouse, district, threshold: self.rng.i32(10..=20) }
    }

    /// Draws whether a transaction leaves its changes to the commit.
    pub(super) fn is_deferred(&mut self, knobs: &Tpcc) -> bool {
        knobs.deferred_pct.is_some_and(|percentage| self.rng.u32(..100) < percentage)
    }

    /// Draws one of the thread's warehouses.
    pub(super) fn warehouse(&mut self) -> WarehouseId {
        self.rng.u16(self.home.clone())
    }

    pub(super) fn district(&mut self) -> DistrictId {
        self.rng.u8(1..=DISTRICTS)
    }

    /// Draws a customer. Six of ten customers are given by last name.
    fn who(&mut self, knobs: &Tpcc) -> Who {
        if self.rng.u32(..100) < 60 {
            Who::Name(text::last_name(text::name_asked_for(&mut self.rng, knobs.names())))
        } else {
            Who::Number(text::customer(&mut self.rng, knobs.customers))
        }
    }

    /// Returns the next date, which is never 0.
    fn now(&mut self) -> u32 {
        self.date = self.date.wrapping_add(1).max(1);
        self.date
    }
}

/// With a probability of `percentage` per cent, returns a warehouse other than `warehouse`, if
/// there is one. Otherwise returns `warehouse`.
fn other_warehouse(
    rng: &mut Rng,
    percentage: u32,
    warehouse: WarehouseId,
    warehouses: WarehouseId,
) -> WarehouseId {
    if warehouses == 1 || rng.u32(..100) >= percentage {
        return warehouse;
    }
    let other = rng.u16(1..warehouses);
    if other < warehouse { other } else { other + 1 }
}

/// Returns the warehouses of one thread: its share of them, or, if there are fewer warehouses than
/// threads, one warehouse that several threads share.
fn home(warehouses: WarehouseId, thread: usize, threads: usize) -> RangeInclusive<WarehouseId> {
    let count = usize::from(warehouses);
    if count < threads {
        let only = (thread / threads.div_ceil(count)) as WarehouseId + 1;
        return only..=only;
    }
    let (share, larger) = (count / threads, count % threads);
    let before = share * thread + thread.min(larger);
    let own = share + usize::from(thread < larger);
    before as WarehouseId + 1..=(before + own) as WarehouseId
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;
    use crate::tpcc::Mix;

    #[test]
    fn every_thread_has_a_home_and_every_warehouse_a_thread() {
        assert_eq!([0, 1, 2].map(|thread| home(8, thread, 3)), [1..=3, 4..=6, 7..=8]);
        assert_eq!([0, 1, 2, 3, 4].map(|thread| *home(2, thread, 5).start()), [1, 1, 1, 2, 2]);
        for (warehouses, threads) in [(1, 1), (1, 4), (3, 4), (4, 4), (7, 2), (9, 4)] {
            let homes = (0..threads).flat_map(|thread| home(warehouses, thread, threads));
            assert!(homes.clone().all(|warehouse| (1..=warehouses).contains(&warehouse)));
            // Rounding up leaves the last warehouses without threads if there are only a few more
            // threads than warehouses.
            if usize::from(warehouses) >= threads {
                assert!(homes.eq(1..=warehouses), "{warehouses} warehouses, {threads} threads");
            }
        }
    }

    #[test]
    fn inputs_have_the_shares_of_their_knobs() {
        let knobs = Tpcc { warehouses: 3, ..Tpcc::strict() };
        let mut inputs = Inputs::new(stream(1, 0), &knobs, 0, 3);
        let (mut lines, mut remote, mut rolled_back, mut kinds) = (0, 0, 0, [0; 5]);
        for _ in 0..100_000 {
            let order = inputs.new_order(&knobs);
            assert_eq!(order.warehouse, 1);
            lines += order.lines().len();
            remote += order.lines().iter().filter(|line| line.supplier != 1).count();
            rolled_back += order.lines().iter().filter(|line| line.item > knobs.items).count();
            kinds[inputs.kind(&Mix::Full.percentages())] += 1;
        }
        assert!((990_000..1_010_000).contains(&lines), "{lines}");
        assert!((9_500..10_500).contains(&remote), "{remote}");
        assert!((900..1_100).contains(&rolled_back), "{rolled_back}");
        for (drawn, percentage) in kinds.into_iter().zip(Mix::Full.percentages()) {
            let expected = u32::from(percentage) * 1000;
            assert!(u32::abs_diff(drawn, expected) < expected / 10, "{kinds:?}");
        }
    }

    #[test]
    fn customers_pay_elsewhere_in_fifteen_of_a_hundred_cases() {
        let knobs = Tpcc { warehouses: 2, ..Tpcc::strict() };
        let mut inputs = Inputs::new(stream(2, 0), &knobs, 0, 1);
        let (mut elsewhere, mut named) = (0, 0);
        for _ in 0..10_000 {
            let payment = inputs.payment(&knobs);
            elsewhere += u32::from(payment.warehouse != payment.customer_warehouse);
            named += u32::from(matches!(payment.who, Who::Name(_)));
        }
        assert!(
            (1_400..1_600).contains(&elsewhere) && (5_800..6_200).contains(&named),
            "{elsewhere}, {named}"
        );
    }
}
