//! The knobs.

use std::str::FromStr;

use serde::Serialize;

use super::rows::WarehouseId;
use super::text::LAST_NAMES;
use crate::Think;

/// The transaction types. The last one is not part of TPC-C: it examines consistency conditions
/// while other transactions run.
pub(super) const KINDS: [&str; 6] =
    ["new-order", "payment", "order-status", "delivery", "stock-level", "audit"];

/// The shares of the transaction types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// The standard's: 45 % new orders, 43 % payments, 4 % each of the three others.
    Full,
    /// 49 % new orders, 47 % payments, 4 % order status.
    Three,
    /// 51 % new orders, 49 % payments.
    Two,
    /// 50 % new orders, 50 % payments.
    Even,
    /// New orders only.
    NewOrder,
}

impl Mix {
    const ALL: [Mix; 5] = [Mix::Full, Mix::Three, Mix::Two, Mix::Even, Mix::NewOrder];

    /// Returns the name of the mix.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Full => "full",
            Mix::Three => "three",
            Mix::Two => "two",
            Mix::Even => "even",
            Mix::NewOrder => "new-order",
        }
    }

    fn has_stock_level(self) -> bool {
        self.percentages()[4] > 0
    }

    /// Returns the percentages of new order, payment, order status, delivery and stock level.
    pub(super) fn percentages(self) -> [u8; 5] {
        match self {
            Mix::Full => [45, 43, 4, 4, 4],
            Mix::Three => [49, 47, 4, 0, 0],
            Mix::Two => [51, 49, 0, 0, 0],
            Mix::Even => [50, 50, 0, 0, 0],
            Mix::NewOrder => [100, 0, 0, 0, 0],
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Mix::ALL
            .into_iter()
            .find(|mix| mix.name() == name)
            .ok_or_else(|| "expected full, three, two, even or new-order".to_string())
    }
}

/// The source of the numbers of new orders. The choice decides which numbers stay unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderIds {
    /// A counter outside the database, from which every attempt draws a new number. Aborted
    /// attempts leave holes.
    PerAttempt,
    /// A counter outside the database, from which each transaction draws one number. Only rollbacks
    /// leave holes.
    Once,
    /// The district's row, as in the standard. There are no holes, but new orders of one district
    /// conflict.
    District,
}

/// The order in which payments are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryKeys {
    /// The payments are in the order of their numbers. All payments of a warehouse's customers are
    /// inserted at one end.
    Sequential,
    /// The payments are in the order of districts and customers.
    Customer,
}

/// The warehouses whose orders a thread enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Homes {
    /// Orders of the thread's own share of the warehouses. If there are fewer warehouses than
    /// threads, several threads share one warehouse.
    Range,
    /// Orders of any warehouse, drawn for each transaction.
    Random,
}

/// The tables whose column groups have timestamps of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Splits {
    /// All tables, if the database splits timestamps; otherwise none.
    Database,
    /// Districts and customers, if the database splits timestamps; and warehouses in any case.
    DistrictsAndCustomers,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Tpcc {
    /// The number of warehouses.
    pub warehouses: WarehouseId,
    /// The number of customers in each of the ten districts of a warehouse. The number of initial
    /// orders of a district is the same. The standard has 3,000.
    pub customers: u16,
    /// The number of items. The standard has 100,000.
    pub items: u32,
    /// The shares of the transaction types.
    pub mix: Mix,
    /// The percentage of order lines that ask for an item of another warehouse. Ignored with only
    /// one warehouse.
    pub remote_item_pct: u32,
    /// The percentage of payments by customers of another warehouse. Ignored with only one
    /// warehouse.
    pub remote_payment_pct: u32,
    /// The percentage of new orders whose last item does not exist, so that they roll back.
    pub rollback_pct: u32,
    /// The source of the numbers of new orders.
    pub order_ids: OrderIds,
    /// Whether deliveries are queued for the one thread that executes all deliveries of the
    /// warehouse. If not, the thread that draws a delivery executes it.
    pub delivery_queue: bool,
    /// Whether a delivery starts its search for the next order at the last order found, instead of
    /// at the beginning.
    pub delivery_hint: bool,
    /// Whether each component of an order's key has its own word, so that districts do not share
    /// leaves.
    pub contention_aware_keys: bool,
    /// Whether tables that are not scanned are hashed; if not, all are ordered.
    pub hash_index: bool,
    /// The order in which payments are kept.
    pub history_keys: HistoryKeys,
    /// Whether a payment returns the customer's balance and therefore reads it.
    pub payment_observes_balance: bool,
    /// Whether customers of one last name are sorted by first name. Transactions take the customer
    /// in the middle of this order.
    pub sorted_names: bool,
    /// Whether transactions read and compute everything that the standard requires to be printed.
    /// New orders never read the quantity that they leave in stock, since that read would conflict
    /// with all other orders of the item.
    pub full_output: bool,
    /// Whether stock level scans nothing. The code behind the published measurements scans nothing,
    /// since it passes the bounds of the scan in the wrong order.
    pub stock_level_empty_scan: bool,
    /// Whether orders, their lines and payments are inserted. If not, they are only counted, and
    /// there are no orders to deliver or to look up.
    pub inserts: bool,
    /// Whether payments of customers with bad credit are recorded in the customers' rows.
    pub credit_data: bool,
    /// The percentage of new orders, payments and deliveries that leave their changes to the
    /// commit, and read nothing but columns that never change; `None` if each transaction reads
    /// what it needs. All deliveries of a warehouse must be queued for one thread.
    pub deferred_pct: Option<u32>,
    /// The time for which a transaction works after each row that it changes.
    #[serde(rename = "think_ns")]
    pub think: Think,
    /// The warehouses whose orders a thread enters.
    pub homes: Homes,
    /// The tables whose column groups have timestamps of their own.
    pub splits: Splits,
    /// The number of transactions after which a worker audits a district, that is, examines
    /// consistency conditions while others work. If the number is 0, workers never audit.
    pub audit_every: u64,
    /// Whether workers find out, for each attempt aborted by a conflict, the place of the conflict
    /// and the types of transactions involved. Workers then announce their writes to one another,
    /// which slows them down by some percent.
    pub causes: bool,
}

impl Tpcc {
    /// Returns the standard's transactions and data.
    pub fn strict() -> Self {
        Tpcc {
            warehouses: 1,
            customers: 3000,
            items: 100_000,
            mix: Mix::Full,
            remote_item_pct: 1,
            remote_payment_pct: 15,
            rollback_pct: 1,
            order_ids: OrderIds::Once,
            delivery_queue: true,
            delivery_hint: false,
            contention_aware_keys: true,
            hash_index: true,
            history_keys: HistoryKeys::Customer,
            payment_observes_balance: true,
            sorted_names: true,
            full_output: true,
            stock_level_empty_scan: false,
            inserts: true,
            credit_data: true,
            deferred_pct: None,
            think: Think::NONE,
            homes: Homes::Range,
            splits: Splits::Database,
            audit_every: 10_000,
            causes: false,
        }
    }

    /// Returns the knobs of the measurements in the paper on optimistic engines (Huang et al., VLDB
    /// 2020) and in its code of that time.
    pub fn published() -> Self {
        Tpcc {
            rollback_pct: 0,
            order_ids: OrderIds::PerAttempt,
            history_keys: HistoryKeys::Sequential,
            sorted_names: false,
            full_output: false,
            stock_level_empty_scan: true,
            audit_every: 0,
            ..Self::strict()
        }
    }

    /// Returns the knobs of the measurements on FOEDUS and for MOCC (Wang and Kimura, VLDB 2016).
    /// These measurements had as many warehouses as threads. Numbers of orders come from the
    /// districts' rows, and the thread that draws a delivery executes it.
    pub fn foedus() -> Self {
        Tpcc {
            order_ids: OrderIds::District,
            delivery_queue: false,
            history_keys: HistoryKeys::Sequential,
            payment_observes_balance: false,
            audit_every: 0,
            ..Self::strict()
        }
    }

    /// Returns the knobs of the measurements of deferred runtime pipelining (Mu, Angel and Shasha,
    /// EuroSys 2019). Numbers of orders come from the districts' rows, and nothing rolls back.
    pub fn pipelining() -> Self {
        Tpcc {
            rollback_pct: 0,
            order_ids: OrderIds::District,
            homes: Homes::Random,
            audit_every: 0,
            ..Self::strict()
        }
    }

    /// Returns DBx1000's form of TPC-C, which has as many payments as new orders. Transactions
    /// insert nothing, and new orders never roll back. In DBx1000, no order has two lines of one
    /// item. In the standard and here, an order may have such lines.
    pub fn dbx1000() -> Self {
        Tpcc {
            mix: Mix::Even,
            rollback_pct: 0,
            order_ids: OrderIds::District,
            inserts: false,
            credit_data: false,
            audit_every: 0,
            ..Self::strict()
        }
    }

    /// Returns the number of last names in a district.
    pub(super) fn names(&self) -> u16 {
        self.customers.min(LAST_NAMES)
    }

    /// Returns the number of the last loaded order of a district that has been delivered.
    pub(super) fn delivered(&self) -> u32 {
        u32::from(self.customers) * 7 / 10
    }

    /// Returns the differences from the standard, except the mix, which is part of the workload's
    /// name.
    pub(super) fn departures(&self) -> Vec<&'static str> {
        let departures = [
            (
                self.order_ids != OrderIds::District,
                "order numbers come from a counter outside the database, so new orders of a district do not meet at its row, and conditions \
                 2 and 3 have to allow for gaps",
            ),
            (
                true,
                "a new order does not return the remaining stock, which TPC-C prints, so orders of one item need not conflict",
            ),
            (
                self.rollback_pct == 0,
                "no new order rolls back, where TPC-C has one in a hundred do so",
            ),
            (
                self.rollback_pct > 1,
                "more new orders roll back than one in a hundred, the share of TPC-C",
            ),
            (
                self.warehouses > 1 && (self.remote_item_pct, self.remote_payment_pct) != (1, 15),
                "other shares of items and payments belong to other warehouses than the 1 and 15 in a hundred of TPC-C",
            ),
            (
                !self.sorted_names,
                "customers of one last name are not sorted by their first, so another one is in the middle",
            ),
            (!self.full_output, "columns that TPC-C only prints are not read"),
            (
                self.audit_every > 0,
                "audits, which look at some of the consistency conditions while others work, are counted as transactions",
            ),
            (
                self.stock_level_empty_scan && self.mix.has_stock_level(),
                "stock-level scans an empty range, as published, and looks at no stock",
            ),
            (
                self.customers < 3000 || self.items < 100_000,
                "there are fewer customers or items than TPC-C has",
            ),
            (!self.payment_observes_balance, "payments do not return the balance"),
            (!self.inserts, "orders and payments are counted only, and no row is inserted"),
            (
                !self.credit_data,
                "payments of customers with bad credit are not noted in their data",
            ),
        ];
        let departures = departures.into_iter().filter(|(departs, _)| *departs);
        departures.map(|(_, how)| how).chain(self.think.difference()).collect()
    }
}
