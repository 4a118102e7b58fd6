//! The workloads of figures, as large as the machine allows.

use std::cell::RefCell;

use candide_workloads::micro::Array;
use candide_workloads::rubis::Rubis;
use candide_workloads::stamp::genome::Genome;
use candide_workloads::stamp::intruder::Intruder;
use candide_workloads::stamp::kmeans::Kmeans;
use candide_workloads::stamp::labyrinth::Labyrinth;
use candide_workloads::stamp::vacation::Vacation;
use candide_workloads::stamp::{Form, Kept, Mode as StampMode, Scale};
use candide_workloads::tpcc::Tpcc;
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Contention, Layout, Mode, Narrow, Verify, Word, Ycsb};

/// The memory that tables may take.
pub(super) struct Room {
    /// The largest number of bytes that a database may take.
    most: u64,
    /// The size of tables, and the number of transactions drawn beforehand, as fractions of those
    /// published; `None` if --scale was not given.
    fraction: Option<f64>,
    /// Notes on the tables that are smaller than published.
    reduced: RefCell<Vec<String>>,
}

/// The number of bytes that one core loads in a few seconds.
const CORE_BYTES: u64 = 1 << 30;

/// The bytes that one warehouse takes, one wide row, one narrow row, one word, one item with its
/// bids, and one page. These sizes include the versions that a protocol may keep.
const WAREHOUSE_BYTES: u64 = 250_000_000;
const WIDE_BYTES: u64 = 2_600;
const NARROW_BYTES: u64 = 700;
const WORD_BYTES: u64 = 200;
const ITEM_BYTES: u64 = 8_000;
const PAGE_BYTES: u64 = 500_000;
const RELATION_BYTES: u64 = 1_000;

/// The fraction of kmeans' published points by default. Its sequential program runs until the end,
/// which takes minutes with all of them.
const POINTS: f64 = 0.05;

/// The rows of the large table of MOCC's workloads of two tables.
const LARGE_TABLE: u64 = 1_000_000;

impl Room {
    /// Returns the room on a machine with `cores` cores and `free` bytes of free memory. A database
    /// may take half of the free memory, but not more than the cores load in a few seconds.
    pub(super) fn new(free: u64, cores: usize, fraction: Option<f64>) -> Self {
        let most = (free / 2).min(cores as u64 * CORE_BYTES);
        Room { most, fraction, reduced: RefCell::default() }
    }

    /// Returns the fraction given by the user. Without one, returns the largest of 1, 1/2, 1/5,
    /// 1/10, 1/20 and so on, down to 1/10000, such that this fraction of `bytes` fits into the
    /// room.
    fn scale(&self, bytes: u64) -> f64 {
        if let Some(fraction) = self.fraction {
            return fraction;
        }
        let divisors = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
        let divisor = divisors
            .take_while(|&divisor| divisor <= 10_000)
            .find(|divisor| bytes <= self.most.saturating_mul(*divisor));
        1.0 / divisor.unwrap_or(10_000) as f64
    }

    /// Returns TPC-C with `warehouses` warehouses, with fewer customers and items if they do not
    /// fit.
    pub(super) fn tpcc(&self, published: Tpcc, warehouses: usize) -> Tpcc {
        let scale = self.scale(warehouses as u64 * WAREHOUSE_BYTES);
        let customers = scaled(3_000, scale, 10) as u16;
        let items = scaled(100_000, scale, 20) as u32;
        self.note(scale, || {
            format!("TPC-C has {customers} customers a district and {items} items instead of 3000 and 100000")
        });
        let warehouses = u16::try_from(warehouses).unwrap_or(u16::MAX);
        Tpcc { warehouses, customers, items, ..published }
    }

    /// Returns the mix `mode` of YCSB, with fewer rows than published if these do not fit.
    pub(super) fn ycsb(&self, mode: Mode) -> Ycsb {
        self.rows(Ycsb::published(mode), WIDE_BYTES)
    }

    /// Returns YCSB with narrow columns, with fewer rows than published if these do not fit.
    pub(super) fn narrow(&self) -> Ycsb<Narrow> {
        self.rows(Ycsb::granularity(Contention::High), NARROW_BYTES)
    }

    /// Words by their keys, as STO's indexes were measured.
    pub(super) fn words(&self) -> Ycsb<Word> {
        self.rows(Ycsb::index(), WORD_BYTES)
    }

    fn rows<L: Layout>(&self, published: Ycsb<L>, bytes: u64) -> Ycsb<L> {
        let scale = self.scale(published.rows * bytes);
        let rows = scaled(published.rows, scale, 1_000);
        self.note(scale, || {
            format!("{} has {rows} rows instead of {}", published.name, published.rows)
        });
        let transactions = self.replayed(published.transactions, rows);
        // Transactions do the same work as in the published workload, but the check afterwards
        // looks at more than the number of rows.
        Ycsb { rows, transactions, verify: Verify::Values, ..published }
    }

    /// Returns the number of rows of the large table of a workload of two tables: a million, or
    /// fewer if these do not fit.
    pub(super) fn large_table(&self, workload: &str) -> u64 {
        let scale = self.scale(LARGE_TABLE * NARROW_BYTES);
        let rows = scaled(LARGE_TABLE, scale, 1_000);
        self.note(scale, || {
            format!("the large table of {workload} has {rows} rows instead of {LARGE_TABLE}")
        });
        rows
    }

    /// Returns the number of transactions drawn beforehand for a workload whose number of rows does
    /// not determine it: `published` times the fraction given by the user, but at least 1,000.
    pub(super) fn inputs(&self, published: usize) -> usize {
        (published as f64 * self.fraction.unwrap_or(1.0)).round().max(1_000.0) as usize
    }

    /// Returns the number of transactions drawn beforehand: as many as there are `rows`, but at
    /// most [`Room::inputs`] and at most 200,000, so that drawing them takes little time.
    fn replayed(&self, published: usize, rows: u64) -> usize {
        let inputs = self.inputs(published);
        usize::try_from(rows).map_or(inputs, |rows| rows.min(inputs)).min(200_000)
    }

    /// Returns the array of numbers, with fewer elements than published if these do not fit.
    pub(super) fn array(&self, form: Form) -> Array {
        let published = Array::published(form);
        let scale = self.scale(published.elements * WORD_BYTES);
        let elements = scaled(published.elements, scale, 1_024);
        self.note(scale, || {
            format!("the array has {elements} elements instead of {}", published.elements)
        });
        Array { elements, ..published }
    }

    /// Returns kmeans, with fewer points than published. Workloads with the same `kept` run the
    /// sequential program once.
    pub(super) fn kmeans(&self, mode: StampMode, form: Form, kept: &Kept) -> Kmeans {
        let published = Kmeans::published(mode, form);
        let scale = self.fraction.unwrap_or(POINTS);
        let points = scaled(published.points as u64, scale, 500) as usize;
        self.note(scale, || format!("kmeans has {points} points instead of {}", published.points));
        Kmeans { points, kept: kept.clone(), ..published }
    }

    /// Returns vacation, with fewer relations than published if these do not fit, and as many fewer
    /// tasks.
    pub(super) fn vacation(&self, mode: StampMode, form: Form, kept: &Kept) -> Vacation {
        let published = Vacation::published(mode, form);
        let scale = self.scale(u64::from(published.relations) * RELATION_BYTES);
        let relations = scaled(published.relations.into(), scale, 100) as u32;
        let tasks = scaled(published.tasks, scale, 1_000);
        self.note(scale, || {
            format!("vacation has {relations} relations instead of {}", published.relations)
        });
        Vacation { relations, tasks, kept: kept.clone(), ..published }
    }

    /// Returns labyrinth at the size for simulators, or a smaller one if that is asked for.
    pub(super) fn labyrinth(&self, kept: &Kept) -> Labyrinth {
        let published = Labyrinth::published(Scale::Sim);
        let [sides, paths] = [self.asked(32, 12), self.asked(published.paths, 12)];
        Labyrinth { sides: [sides, sides, 3], paths, kept: kept.clone(), ..published }
    }

    /// Returns genome, likewise.
    pub(super) fn genome(&self, kept: &Kept) -> Genome {
        let published = Genome::published(Scale::Sim);
        let [gene, segments] =
            [self.asked(published.gene, 60), self.asked(published.segments, 120)];
        Genome { gene, segments, kept: kept.clone(), ..published }
    }

    /// Returns intruder, likewise.
    pub(super) fn intruder(&self, kept: &Kept) -> Intruder {
        let published = Intruder::published(Scale::Sim);
        Intruder { flows: self.asked(published.flows, 60), kept: kept.clone(), ..published }
    }

    /// Returns the fraction of `count` that was given by the user, but at least `least`.
    fn asked(&self, count: u32, least: u64) -> u32 {
        scaled(count.into(), self.fraction.unwrap_or(1.0), least) as u32
    }

    pub(super) fn rubis(&self) -> Rubis {
        let published = Rubis::published();
        let scale = self.scale(published.items * ITEM_BYTES);
        let (items, users) =
            (scaled(published.items, scale, 100), scaled(published.users, scale, 20));
        self.note(scale, || {
            let (all_items, all_users) = (published.items, published.users);
            format!(
                "RUBiS has {items} items and {users} users instead of {all_items} and {all_users}"
            )
        });
        let purchases = scaled(published.purchases, scale, 100);
        Rubis {
            items,
            users,
            purchases,
            transactions: self.replayed(published.transactions, items),
            ..published
        }
    }

    pub(super) fn wikipedia(&self) -> Wikipedia {
        let published = Wikipedia::published();
        let scale = self.scale(published.pages * PAGE_BYTES);
        let (pages, users) =
            (scaled(published.pages, scale, 10), scaled(published.users, scale, 20));
        self.note(scale, || {
            let (all_pages, all_users) = (published.pages, published.users);
            format!("Wikipedia has {pages} pages and {users} users instead of {all_pages} and {all_users}")
        });
        let transactions = self.inputs(published.transactions);
        Wikipedia { users, pages, transactions, ..published }
    }

    /// Notes that a workload is smaller than published, if `scale` is below one.
    fn note(&self, scale: f64, what: impl FnOnce() -> String) {
        if scale < 1.0 {
            let why = if self.fraction.is_some() { "as asked" } else { "which suits this machine" };
            let note = format!("{}, {why}", what());
            let mut reduced = self.reduced.borrow_mut();
            if !reduced.contains(&note) {
                reduced.push(note);
            }
        }
    }

    /// Returns the notes on the tables that are smaller than published.
    pub(super) fn into_reduced(self) -> Vec<String> {
        self.reduced.into_inner()
    }
}

/// Returns `count` times `scale`, rounded, and at least `least`.
fn scaled(count: u64, scale: f64, least: u64) -> u64 {
    ((count as f64 * scale).round() as u64).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_tables_fit_into_memory_and_do_not_exceed_the_published_sizes() {
        let room = |free| Room::new(free, 1, None);
        assert_eq!(room(200).scale(100), 1.0);
        assert_eq!(room(199).scale(100), 0.5);
        assert_eq!(room(200).scale(1_999), 0.05);
        assert_eq!(room(0).scale(100), 0.0001, "and no smaller");
        assert_eq!(room(u64::MAX).scale(4 << 30), 0.2, "a core has its limits");
        assert_eq!(Room::new(u64::MAX, 4, None).scale(4 << 30), 1.0);
        assert_eq!(Room::new(0, 1, Some(0.3)).scale(100), 0.3, "as asked");
        assert_eq!(Room::new(0, 1, Some(0.3)).inputs(200_000), 60_000, "as asked");
        assert_eq!(Room::new(0, 1, Some(0.0001)).inputs(200_000), 1_000, "and no fewer");
        assert_eq!(room(0).inputs(200_000), 200_000, "as published");
        assert_eq!(room(0).replayed(200_000, 10_000_000), 200_000);
        assert_eq!(room(0).replayed(200_000, 5_000), 5_000);
        assert_eq!(Room::new(0, 1, Some(0.1)).replayed(200_000, 1_000_000), 20_000, "as asked");
    }

    #[test]
    fn smallest_sizes_of_all_workloads_are_valid() {
        use candide_workloads::Workload;
        use candide_workloads::two_tables::{LongScan, Shifting};

        let room = Room::new(0, 1, Some(1e-9));
        assert_eq!(room.tpcc(Tpcc::published(), 1).validate(), Ok(()));
        assert_eq!(room.ycsb(Mode::A).validate(), Ok(()));
        assert_eq!(room.narrow().validate(), Ok(()));
        assert_eq!(room.words().validate(), Ok(()));
        assert_eq!(room.rubis().validate(), Ok(()));
        assert_eq!(room.wikipedia().validate(), Ok(()));
        let rows = room.large_table("long-scan");
        assert_eq!(LongScan { rows, ..LongScan::published() }.validate(), Ok(()));
        assert_eq!(Shifting { rows, ..Shifting::published() }.validate(), Ok(()));
        assert_eq!(room.into_reduced().len(), 7, "each is admitted");
        let room = Room::new(u64::MAX, 64, None);
        assert_eq!((room.ycsb(Mode::A).rows, room.wikipedia().pages), (10_000_000, 10_000));
        assert_eq!(room.large_table("shifting"), 1_000_000);
        assert_eq!(room.into_reduced(), Vec::<String>::new());
    }
}
