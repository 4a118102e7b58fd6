//! The arguments of TPC-C, which has the most knobs of all workloads.

use candide_harness::each_once;
use candide_workloads::Think;
use candide_workloads::tpcc::{HistoryKeys, Homes, Mix, OrderIds, Tpcc};
use clap::{Args, ValueEnum};

use super::values::{percent, think, whole};
use super::{Common, Profile, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct TpccArgs {
    /// Numbers of warehouses, separated by commas; a warehouse takes about 200 MB, and each new
    /// order a kilobyte more
    #[arg(long, value_parser = whole::<u16>, value_name = "COUNT", value_delimiter = ',', default_value = "1")]
    warehouses: Vec<u16>,

    /// System whose variant of TPC-C replaces the one that --profile selects: `foedus`, also
    /// measured for MOCC with as many warehouses as threads; `dbx1000`, which inserts nothing; or
    /// `drp`, deferred runtime pipelining. Other options change the variant further
    #[arg(long, value_name = "SYSTEM", value_enum)]
    like: Option<System>,

    /// Mixes, separated by commas: `full` (45 % new-order, 43 % payment, 4 % each of order-status,
    /// delivery, stock-level), `three` (49 % new-order, 47 % payment, 4 % order-status), `two` (51
    /// % new-order, 49 % payment), `even` (50 % each), `new-order` [default: full, or even with
    /// --like dbx1000]
    #[arg(long, value_delimiter = ',')]
    mix: Vec<Mix>,

    /// Customers of each of a warehouse's ten districts; a district initially has as many orders
    #[arg(long, value_parser = whole::<u16>, value_name = "COUNT", default_value_t = 3000)]
    customers: u16,

    /// Items
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT", default_value_t = 100_000)]
    items: u32,

    /// Percentage of order lines that ask for an item of another warehouse
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value_t = 1)]
    remote_items: u32,

    /// Percentage of payments that are by customers of another warehouse
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value_t = 15)]
    remote_payments: u32,

    /// Percentage of new orders that roll back [default: 1, or 0 with --profile paper]
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    rollbacks: Option<u32>,

    /// Source of order numbers: a counter outside the database, which is incremented by each
    /// attempt (`per-attempt`) or once for each transaction (`once`), or the district's row
    /// (`district`) [default: once, or per-attempt with --profile paper, or district with --like]
    #[arg(long, value_name = "SOURCE", value_enum)]
    order_ids: Option<OrderIdSource>,

    /// Deliveries are queued for one thread of each warehouse (on), or executed by the thread that
    /// draws them (off) [default: on, or off with --like foedus]
    #[arg(long, value_enum)]
    delivery_queue: Option<Switch>,

    /// A delivery searches for the next order from the position of the last one found (on), or from
    /// the beginning (off)
    #[arg(long, value_enum, default_value = "off")]
    delivery_hint: Switch,

    /// Each component of the keys of orders has its own word, so that districts do not share leaves
    #[arg(long, value_enum, default_value = "on")]
    contention_aware_keys: Switch,

    /// Tables that are not scanned are hashed (on) or ordered (off)
    #[arg(long, value_enum, default_value = "on")]
    hash_index: Switch,

    /// Order of the rows of payments: by customer, or by sequence number [default: customer, or
    /// sequential with --profile paper]
    #[arg(long, value_name = "ORDER", value_enum)]
    history_keys: Option<HistoryOrder>,

    /// A payment changes the customer's balance and then reads it [default: on, or off with --like
    /// foedus]
    #[arg(long, value_enum)]
    payment_observes_balance: Option<Switch>,

    /// Stock-level scans an empty range, as in published measurements [default: off, or on with
    /// --profile paper]
    #[arg(long, value_enum)]
    stock_level_empty_scan: Option<Switch>,

    /// Percentage of new orders, payments and deliveries that leave their changes to the commit,
    /// with --cu on, and read only what never changes. Under the policy `pipelined` these are tame,
    /// which is counted and checked [default: transactions read what they need]
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    deferred: Option<u32>,

    /// Time for which a transaction works after each row that it changes, such as 2us, up to 1ms
    #[arg(long, value_parser = think, value_name = "DURATION", default_value = "0", allow_hyphen_values = true)]
    think: Think,

    /// Warehouses for which a thread works: those of its own share (`range`), or any (`random`)
    /// [default: range, or random with --like drp]
    #[arg(long, value_name = "WAREHOUSES", value_enum)]
    homes: Option<HomeChoice>,

    /// Number of transactions after which a thread examines consistency conditions while the others
    /// work; 0 for never [default: 10000, or 0 with --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "TRANSACTIONS")]
    audit: Option<u64>,

    /// Find out and report at which rows, and because of which other transactions, attempts abort;
    /// this costs some throughput
    #[arg(long)]
    causes: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum System {
    Foedus,
    Dbx1000,
    Drp,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderIdSource {
    PerAttempt,
    Once,
    District,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HistoryOrder {
    Sequential,
    Customer,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HomeChoice {
    Range,
    Random,
}

impl TpccArgs {
    /// Returns one workload for each number of warehouses and each mix.
    pub(crate) fn workloads(&self) -> Vec<Tpcc> {
        let chosen =
            if self.mix.is_empty() { vec![self.profile().mix] } else { each_once(&self.mix) };
        let mixes = |warehouses| chosen.iter().map(move |&mix| self.workload(warehouses, mix));
        each_once(&self.warehouses).into_iter().flat_map(mixes).collect()
    }

    /// Returns the knobs that --like and --profile select, before the other options change them.
    fn profile(&self) -> Tpcc {
        let strict = Tpcc::strict();
        let like = self.like.map(|system| match system {
            System::Foedus => Tpcc::foedus(),
            System::Dbx1000 => Tpcc::dbx1000(),
            System::Drp => Tpcc::pipelining(),
        });
        match (like, self.common.profile) {
            (Some(like), Profile::Strict) => Tpcc { audit_every: strict.audit_every, ..like },
            (Some(like), Profile::Paper) => like,
            (None, Profile::Strict) => strict,
            (None, Profile::Paper) => Tpcc::published(),
        }
    }

    fn workload(&self, warehouses: u16, mix: Mix) -> Tpcc {
        let profile = self.profile();
        let order_ids = self.order_ids.map(|source| match source {
            OrderIdSource::PerAttempt => OrderIds::PerAttempt,
            OrderIdSource::Once => OrderIds::Once,
            OrderIdSource::District => OrderIds::District,
        });
        let history_keys = self.history_keys.map(|order| match order {
            HistoryOrder::Sequential => HistoryKeys::Sequential,
            HistoryOrder::Customer => HistoryKeys::Customer,
        });
        let empty_scan = self.stock_level_empty_scan.map(Switch::is_on);
        Tpcc {
            warehouses,
            customers: self.customers,
            items: self.items,
            mix,
            remote_item_pct: self.remote_items,
            remote_payment_pct: self.remote_payments,
            rollback_pct: self.rollbacks.unwrap_or(profile.rollback_pct),
            order_ids: order_ids.unwrap_or(profile.order_ids),
            delivery_queue: self.delivery_queue.map_or(profile.delivery_queue, Switch::is_on),
            delivery_hint: self.delivery_hint.is_on(),
            contention_aware_keys: self.contention_aware_keys.is_on(),
            hash_index: self.hash_index.is_on(),
            history_keys: history_keys.unwrap_or(profile.history_keys),
            payment_observes_balance: self
                .payment_observes_balance
                .map_or(profile.payment_observes_balance, Switch::is_on),
            stock_level_empty_scan: empty_scan.unwrap_or(profile.stock_level_empty_scan),
            deferred_pct: self.deferred,
            think: self.think,
            homes: match self.homes {
                None => profile.homes,
                Some(HomeChoice::Range) => Homes::Range,
                Some(HomeChoice::Random) => Homes::Random,
            },
            audit_every: self.audit.unwrap_or(profile.audit_every),
            causes: self.causes,
            ..profile
        }
    }
}
