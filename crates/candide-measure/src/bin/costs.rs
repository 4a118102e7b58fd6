//! Runs every kind of operation and transaction under one protocol, on one thread, for an emulator
//! that counts what each takes:
//!
//! ```text
//! cargo xtask costs
//! ```
//!
//! The command runs this program under callgrind, which counts only inside of [`measured`] and only
//! on this thread. Callgrind writes out a *part*, its counts so far, whenever `measured` returns
//! and before [`divide`]. For each part, in the same order, this program prints a line with tabs
//! between: the name of the operation, its size, and its repetitions. If a name comes with two
//! sizes, the difference of the counts is the cost of the difference in size, without the cost of
//! the code around. Parts without a name are ignored.
//!
//! The databases have epochs of their own, which this program ends, so that no count depends on the
//! clock. The cost of garbage collection is counted by parts of its own; transactions of workloads
//! collect garbage only if [`Sizes::collects`]. `occ` is not opaque here, since the number of its
//! revalidations would depend on the age of the rows.

use candide::policy::{Policies, Policy};
use candide::{
    Abort, Builder, Database, Level, LogOptions, Protocol, Record, Session, Table, TableOptions,
    Text, Tx, Whole,
};
use candide_workloads::tpcc::Tpcc;
use candide_workloads::ycsb::{Mode, Ycsb};
use candide_workloads::{Loaded, Loading, Worker, Workload};
use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

macro_rules! runs {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        vec![$($((<$protocol>::properties(&$policy).name, (|sizes| all::<$protocol>(sizes, $policy)) as Run)),+),+]
    };
}

/// Returns the protocols, by name, and one locking policy. Everything is run under each; the first
/// argument names one.
fn protocols() -> Vec<(&'static str, Run)> {
    let mut runs = candide::for_each_protocol!(runs);
    runs.retain(|(name, _)| match name.parse() {
        Ok(policy) => matches!(policy, Policy::Optimistic | Policy::NoWait),
        Err(_) => *name != Policies::mixed().name(),
    });
    runs
}

type Run = fn(&Sizes) -> Done;
type Done = Result<(), Box<dyn Error>>;

/// The numbers of rows loaded and of operations run.
struct Sizes {
    /// Rows in each of the two tables of single operations.
    rows: u64,
    /// Transactions that are counted, of each kind.
    transactions: usize,
    /// Transactions of whole workloads that are counted.
    steps: usize,
    /// Rows in the table of YCSB.
    ycsb_rows: u64,
    /// TPC-C's customers in each district, and its items.
    customers: u16,
    items: u32,
    /// Whether the transactions of workloads collect the garbage of the earlier ones, as they do in
    /// a program.
    collects: bool,
}

/// More than the emulated caches hold, and a whole warehouse.
const FULL: Sizes = Sizes {
    rows: 60_000,
    transactions: 200,
    steps: 2_000,
    ycsb_rows: 10_000,
    customers: 3_000,
    items: 100_000,
    collects: true,
};
/// Loaded in a second or two.
const SMALL: Sizes = Sizes {
    rows: 4_000,
    transactions: 40,
    steps: 300,
    ycsb_rows: 1_000,
    customers: 30,
    items: 300,
    collects: false,
};

/// The number of transactions of each kind that run before the counted ones, so that buffers have
/// grown.
const WARM_UP: usize = 16;
/// The number of transactions of a workload for which an epoch lasts: about as many as there are in
/// a millisecond.
const STEPS: usize = 100;
/// The number of transactions whose parts are counted, one by one.
const DIVIDED: usize = 8;
/// The two numbers of operations in a transaction whose difference gives the cost of one operation.
/// Both numbers fit into a write set that is searched linearly.
const FEW: usize = 2;
const SEVERAL: usize = 8;

/// The two numbers of garbage entries whose difference gives the cost of collecting one. One
/// transaction collects at most as many.
const COLLECTED: [usize; 2] = [64, 192];
/// The number of epochs after whose end garbage can be freed. A session does not count as idle yet.
const EPOCHS: usize = 4;
/// The number of epochs after which idle sessions must be without garbage.
const EPOCHS_MAX: usize = 100;

/// A row with two groups, found by hash.
#[derive(Record, Debug, Clone, Copy)]
struct Product {
    #[key]
    id: u64,
    price: u64,
    weight: u64,
    supplier: u64,
    #[group(stock)]
    stock: i64,
    #[group(stock)]
    ordered: i64,
}

impl Product {
    fn new(id: u64) -> Product {
        Product { id, price: 3 * id, weight: id, supplier: id % 100, stock: 1 << 40, ordered: 0 }
    }
}

/// A product, in a table ordered by keys.
#[derive(Record, Debug, Clone, Copy)]
#[record(ordered)]
struct Listed {
    #[key]
    id: u64,
    price: u64,
    weight: u64,
    supplier: u64,
    #[group(stock)]
    stock: i64,
    #[group(stock)]
    ordered: i64,
}

impl Listed {
    fn new(id: u64) -> Listed {
        let Product { id, price, weight, supplier, stock, ordered } = Product::new(id);
        Listed { id, price, weight, supplier, stock, ordered }
    }
}

/// The two texts of the columns below, each of 100 bytes.
const TEXTS: [&str; 2] = [
    "All this is indispensable, replied the one-eyed doctor: private ills make up the general good, and s",
    "In the country of Westphalia, in the castle of the most noble Baron of Thunder-ten-tronckh lived a y",
];

/// A row with a text of a fixed bound.
#[derive(Record, Debug, Clone, Copy)]
struct Bounded {
    #[key]
    id: u64,
    text: Text<104>,
}

/// A row with a text of any length.
#[derive(Record, Debug, Clone)]
struct Unbounded {
    #[key]
    id: u64,
    text: String,
}

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let known: Vec<&str> = protocols().iter().map(|(name, _)| *name).collect();
    let usage =
        || format!("expected --list, or a protocol ({}) and full or small", known.join(", "));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--list"] => {
            known.iter().for_each(|name| println!("{name}"));
            Ok(())
        }
        [protocol, size] => {
            let (_, run) =
                protocols().into_iter().find(|(name, _)| name == protocol).ok_or_else(usage)?;
            match *size {
                "full" => run(&FULL),
                "small" => run(&SMALL),
                _ => Err(usage().into()),
            }
        }
        _ => Err(usage().into()),
    }
}

/// Runs the code that is counted. The function does some work after the call, since otherwise the
/// call would be a jump, and callgrind does not see the end of a jump.
#[inline(never)]
fn measured(work: &mut dyn FnMut() -> Result<(), Abort>) -> Result<(), Abort> {
    let done = work();
    keep("measured");
    done
}

/// Marks the end of one part and the beginning of the next, inside the counted code.
#[inline(never)]
fn divide() {
    keep("divide");
}

/// Uses a value in a way that the compiler cannot optimize away.
#[inline(always)]
fn keep<T>(value: T) {
    black_box(&value);
}

/// Prints the line for a part that callgrind writes.
fn part(name: &str, size: usize, times: usize) {
    println!("{name}\t{size}\t{times}");
}

/// Moves the bound of garbage collection past everything that has been left behind.
fn move_bound<P: Protocol>(db: &Database<P>) {
    (0..EPOCHS).for_each(|_| db.end_epoch());
}

/// Ends epochs until all garbage of idle sessions is collected.
fn collect_idle<P: Protocol>(db: &Database<P>) -> Done {
    for _ in 0..EPOCHS_MAX {
        if db.health().garbage == 0 {
            return Ok(());
        }
        db.end_epoch();
    }
    Err("the garbage of an idle session is not collected".into())
}

fn all<P: Protocol>(sizes: &Sizes, policy: P::Policy) -> Done {
    // A fixed seed makes hashes and random choices the same in every run.
    let builder = Database::<P>::builder().policy(policy).seed(1).opaque(false).own_epochs();
    Operations::<P>::load(sizes, &builder)?.run()?;
    for (name, mode) in [("YCSB-A", Mode::A), ("YCSB-B", Mode::B), ("YCSB-C", Mode::C)] {
        let inputs = sizes.steps + WARM_UP;
        workload(
            &builder,
            name,
            &Ycsb { rows: sizes.ycsb_rows, transactions: inputs, ..Ycsb::published(mode) },
            sizes,
        )?;
    }
    let company =
        Tpcc { customers: sizes.customers, items: sizes.items, audit_every: 0, ..Tpcc::strict() };
    workload(&builder, "TPC-C", &company, sizes)?;
    logged(&builder, "TPC-C, logged", &company, sizes)
}

/// Measures the transactions of a workload in a database in files. The transactions do not wait for
/// the log, and the logger does not write before the end.
fn logged<P: Protocol, W: Workload>(
    builder: &Builder<P>,
    name: &str,
    workload: &W,
    sizes: &Sizes,
) -> Done {
    let directory = std::env::temp_dir().join(format!("candide-costs-{}", std::process::id()));
    let options =
        LogOptions::new().acknowledge(Level::Memory).flush_every(Duration::from_secs(3600));
    let db = builder.clone().open(&directory, options)?;
    let done = workload_in(db, name, workload, sizes);
    std::fs::remove_dir_all(directory)?;
    done
}

fn workload<P: Protocol, W: Workload>(
    builder: &Builder<P>,
    name: &str,
    workload: &W,
    sizes: &Sizes,
) -> Done {
    workload_in(builder.clone().build()?, name, workload, sizes)
}

fn workload_in<P: Protocol, W: Workload>(
    db: Database<P>,
    name: &str,
    workload: &W,
    sizes: &Sizes,
) -> Done {
    let loaded = workload
        .load(&db, &Loading { threads: 1, seed: 1, progress: &|_| {}, stopped: &|| false })?;
    let mut worker = loaded.worker(db.session()?, 0);
    // A session has two buffers of commit records, and each keeps the room that it once needed.
    for _ in 0..2 {
        for _ in 0..sizes.steps {
            worker.step()?;
        }
        db.sync()?;
    }
    for _ in 0..sizes.steps / STEPS {
        move_bound(&db);
        if !sizes.collects {
            collect_idle(&db)?;
        }
        measured(&mut || (0..STEPS).try_for_each(|_| worker.step().map(|_| ())))?;
        part(&format!("transaction of {name}"), 1, sizes.steps);
    }
    loaded.absorb(worker);
    Ok(())
}

/// Runs a transaction that does nothing.
fn nothing<P: Protocol>(tx: &Tx<'_, P>) -> Result<(), Abort> {
    keep(tx);
    Ok(())
}

/// Keys that are used one after another, each once, in random order.
struct Keys {
    keys: Vec<u64>,
    used: usize,
}

impl Keys {
    /// Returns every second key: loaded rows have the even keys.
    fn new(first: u64, rows: u64) -> Keys {
        let mut keys: Vec<u64> = (0..rows).map(|number| 2 * number + first).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut keys);
        Keys { keys, used: 0 }
    }

    fn next(&mut self, many: usize) -> &[u64] {
        if self.used + many > self.keys.len() {
            self.used = 0;
        }
        self.used += many;
        &self.keys[self.used - many..self.used]
    }
}

/// The keys that an operation is given.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    /// The keys of existing rows, as many as the transaction's size.
    Present,
    /// The same operations on rows that do not exist, unless this run has inserted them.
    Absent,
    /// One key, of a row that exists.
    One,
}

/// Two tables with the same rows, and a session.
struct Operations<P: Protocol> {
    session: Session<P>,
    hash: Table<Product, P>,
    ordered: Table<Listed, P>,
    bounded: Table<Bounded, P>,
    unbounded: Table<Unbounded, P>,
    present: Keys,
    absent: Keys,
    transactions: usize,
    db: Database<P>,
}

impl<P: Protocol> Operations<P> {
    fn load(sizes: &Sizes, builder: &Builder<P>) -> Result<Self, Box<dyn Error>> {
        let db = builder.clone().build()?;
        // Space for the rows inserted later, so that no index grows while costs are counted.
        let hash =
            db.table_with("hash", TableOptions::default().capacity(2 * sizes.rows as usize))?;
        let ordered = db.table("ordered")?;
        let (bounded, unbounded) = (db.table("bounded")?, db.table("unbounded")?);
        let mut session = db.session()?;
        let (present, absent) = (Keys::new(0, sizes.rows), Keys::new(1, sizes.rows));
        for id in &present.keys {
            session.run(|tx| {
                hash.insert(tx, Product::new(*id))?;
                ordered.insert(tx, Listed::new(*id))?;
                let text = TEXTS[0].parse().expect("at most 104 bytes");
                bounded.insert(tx, Bounded { id: *id, text })?;
                unbounded.insert(tx, Unbounded { id: *id, text: TEXTS[0].to_string() })
            })?;
        }
        let transactions = sizes.transactions;
        Ok(Operations {
            session,
            hash,
            ordered,
            bounded,
            unbounded,
            present,
            absent,
            transactions,
            db,
        })
    }

    fn run(mut self) -> Done {
        let (hash, ordered) = (self.hash.clone(), self.ordered.clone());
        let (hash, ordered) = (&hash, &ordered);
        self.begin()?;
        self.transactions("empty transaction", 0, Given::Present, |tx, _| nothing(tx))?;

        let found = Given::Present;
        self.each("find a row, hash", found, |tx, id| hash.find(tx, id).map(keep))?;
        self.each("find a row, ordered", found, |tx, id| ordered.find(tx, id).map(keep))?;
        self.each("get a column, hash", found, |tx, id| {
            hash.get(tx, id, Product::PRICE).map(keep)
        })?;
        self.each("get a group of three columns, hash", found, |tx, id| {
            hash.get(tx, id, (Product::PRICE, Product::WEIGHT, Product::SUPPLIER)).map(keep)
        })?;
        self.each("get a row of two groups, hash", found, |tx, id| {
            hash.get(tx, id, Whole).map(keep)
        })?;
        self.each("get a column, ordered", found, |tx, id| {
            ordered.get(tx, id, Listed::PRICE).map(keep)
        })?;
        self.each_alone("get a column by itself, hash", found, |session, id| {
            hash.get_now(session, id, Product::PRICE).map(keep)
        })?;
        self.each_alone("get a column by itself, ordered", found, |session, id| {
            ordered.get_now(session, id, Listed::PRICE).map(keep)
        })?;
        let missing = Given::Absent;
        self.each("get what is absent, hash", missing, |tx, id| {
            hash.get(tx, id, Product::PRICE).map(keep)
        })?;
        self.each("get what is absent, ordered", missing, |tx, id| {
            ordered.get(tx, id, Listed::PRICE).map(keep)
        })?;

        self.each("update a column, hash", found, |tx, id| {
            hash.update(tx, id, Product::STOCK.sub(1))
        })?;
        self.each("update with a guard, hash", found, |tx, id| {
            hash.update(tx, id, Product::STOCK.sub(1).at_least(0))
        })?;
        self.each("modify a column, hash", found, |tx, id| {
            hash.modify(tx, id, Product::STOCK, |stock| *stock -= 1)
        })?;
        self.each("put over a row, hash", found, |tx, id| hash.put(tx, Product::new(*id)))?;
        self.absent.used = 0;
        self.each("insert a row, hash", missing, |tx, id| hash.insert(tx, Product::new(*id)))?;
        self.absent.used = 0;
        self.each("delete a row, hash", missing, |tx, id| hash.delete(tx, id))?;
        self.absent.used = 0;
        self.each("insert a row, ordered", missing, |tx, id| ordered.insert(tx, Listed::new(*id)))?;
        self.absent.used = 0;
        self.each("delete a row, ordered", missing, |tx, id| ordered.delete(tx, id))?;

        self.collecting(
            "collect after an update, hash",
            found,
            |_, _| Ok(()),
            |tx, id| hash.update(tx, id, Product::STOCK.sub(1)),
        )?;
        self.collecting(
            "collect after a delete, hash",
            missing,
            |tx, id| hash.insert(tx, Product::new(*id)),
            |tx, id| hash.delete(tx, id),
        )?;
        self.collecting(
            "collect after a delete, ordered",
            missing,
            |tx, id| ordered.insert(tx, Listed::new(*id)),
            |tx, id| ordered.delete(tx, id),
        )?;
        self.texts()?;
        self.scans(ordered)?;
        self.commits(hash)
    }

    /// Counts a set and a read of a text of 100 bytes in a column of each kind, and collecting what
    /// the set of a column of any length has replaced.
    fn texts(&mut self) -> Done {
        let (bounded, unbounded) = (self.bounded.clone(), self.unbounded.clone());
        let (bounded, unbounded) = (&bounded, &unbounded);
        let text = TEXTS[1];
        let fixed: Text<104> = text.parse()?;
        let found = Given::Present;
        self.each("get 100 bytes of a Text<104>, hash", found, |tx, id| {
            bounded.get(tx, id, Bounded::TEXT).map(keep)
        })?;
        self.each("get 100 bytes of a String, hash", found, |tx, id| {
            unbounded.get(tx, id, Unbounded::TEXT).map(keep)
        })?;
        self.each("lend 100 bytes of a String, hash", found, |tx, id| {
            unbounded.get_with(tx, id, Unbounded::TEXT, |text| keep(text)).map(keep)
        })?;
        self.each("set 100 bytes of a Text<104>, hash", found, |tx, id| {
            bounded.update(tx, id, Bounded::TEXT.set(fixed))
        })?;
        self.each("set 100 bytes of a String, hash", found, |tx, id| {
            unbounded.update(tx, id, Unbounded::TEXT.set(text))
        })?;
        self.collecting(
            "collect after a set of a String, hash",
            found,
            |_, _| Ok(()),
            |tx, id| unbounded.update(tx, id, Unbounded::TEXT.set(text)),
        )
    }

    /// Counts the time until the first operation, without the time that counting takes.
    fn begin(&mut self) -> Done {
        let session = &mut self.session;
        (0..WARM_UP).try_for_each(|_| session.run(nothing))?;
        measured(&mut || {
            divide();
            Ok(())
        })?;
        measured(&mut || {
            session.run(|_| {
                divide();
                Ok(())
            })
        })?;
        for size in [0, 1] {
            part("begin", size, 1);
            part("", 0, 1);
        }
        Ok(())
    }

    fn scans(&mut self, ordered: &Table<Listed, P>) -> Done {
        let last = *self.present.keys.iter().max().expect("rows are loaded");
        for rows in [10, 1000] {
            for size in [0, rows] {
                let begin_max = last + 2 - 2 * rows as u64;
                self.transactions(
                    &format!("scan a row, {rows} forwards"),
                    size,
                    Given::One,
                    |tx, ids| {
                        let scan = (size > 0)
                            .then(|| ordered.scan(tx, ids[0].min(begin_max).., Listed::PRICE));
                        scan.into_iter().flatten().take(rows).try_for_each(|row| row.map(keep))
                    },
                )?;
            }
            for size in [0, rows] {
                let end_min = 2 * rows as u64;
                self.transactions(
                    &format!("scan a row, {rows} backwards"),
                    size,
                    Given::One,
                    |tx, ids| {
                        let scan = (size > 0)
                            .then(|| ordered.scan_rev(tx, ..ids[0].max(end_min), Listed::PRICE));
                        scan.into_iter().flatten().take(rows).try_for_each(|row| row.map(keep))
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Ends of transactions, from the last operation on.
    fn commits(&mut self, hash: &Table<Product, P>) -> Done {
        for (which, sizes) in [
            ("the first", [0, 1]),
            ("the second to fourth", [1, 4]),
            ("the fifth to sixteenth", [4, 16]),
        ] {
            for size in sizes {
                self.ends(&format!("commit a read, {which}"), size, |tx, id| {
                    hash.get(tx, id, Product::PRICE).map(keep)
                })?;
            }
            for size in sizes {
                self.ends(&format!("commit an update, {which}"), size, |tx, id| {
                    hash.update(tx, id, Product::STOCK.sub(1))
                })?;
            }
        }
        Ok(())
    }

    /// Counts the end of a transaction, behind its operations.
    fn ends(
        &mut self,
        name: &str,
        size: usize,
        operation: impl Fn(&Tx<'_, P>, &u64) -> Result<(), Abort>,
    ) -> Done {
        for number in 0..WARM_UP + DIVIDED {
            if number >= WARM_UP {
                // The garbage of earlier transactions is collected first, so that this one does not
                // collect it.
                self.settle()?;
            }
            let (session, ids) = (&mut self.session, self.present.next(size));
            let mut transaction = |is_counted: bool| {
                session.run(|tx| {
                    ids.iter().try_for_each(|id| operation(tx, id))?;
                    if is_counted {
                        divide();
                    }
                    Ok(())
                })
            };
            if number < WARM_UP {
                transaction(false)?;
            } else {
                measured(&mut || transaction(true))?;
                part("", size, 1);
                part(name, size, DIVIDED);
            }
        }
        self.settle()
    }

    /// Transactions with few operations, and with several.
    fn each(
        &mut self,
        name: &str,
        given: Given,
        operation: impl Fn(&Tx<'_, P>, &u64) -> Result<(), Abort>,
    ) -> Done {
        [FEW, SEVERAL].into_iter().try_for_each(|size| {
            self.transactions(name, size, given, |tx, ids| {
                ids.iter().try_for_each(|id| operation(tx, id))
            })
        })
    }

    /// Counts an operation that is a whole transaction.
    fn each_alone(
        &mut self,
        name: &str,
        given: Given,
        operation: impl Fn(&mut Session<P>, &u64) -> Result<(), Abort>,
    ) -> Done {
        [FEW, SEVERAL].into_iter().try_for_each(|size| {
            self.repeated(name, size, given, |session, ids| {
                ids.iter().try_for_each(|id| operation(session, id))
            })
        })
    }

    /// Transactions of one kind.
    fn transactions(
        &mut self,
        name: &str,
        size: usize,
        given: Given,
        body: impl Fn(&Tx<'_, P>, &[u64]) -> Result<(), Abort>,
    ) -> Done {
        self.repeated(name, size, given, |session, ids| session.run(|tx| body(tx, ids)))
    }

    /// Counts repeated operations of a session.
    fn repeated(
        &mut self,
        name: &str,
        size: usize,
        given: Given,
        act: impl Fn(&mut Session<P>, &[u64]) -> Result<(), Abort>,
    ) -> Done {
        let many = if given == Given::One { 1 } else { size };
        let repeat = |session: &mut Session<P>, keys: &mut Keys, times: usize| {
            (0..times).try_for_each(|_| act(session, keys.next(many)))
        };
        for counted in [None, Some(self.transactions)] {
            let keys = if given == Given::Absent { &mut self.absent } else { &mut self.present };
            let session = &mut self.session;
            match counted {
                None => repeat(session, keys, WARM_UP)?,
                Some(times) => {
                    measured(&mut || repeat(session, keys, times))?;
                    part(name, size, times);
                }
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Counts the cost of collecting the garbage of `operation`, with few keys and with several,
    /// for which `prepare` was called before. Empty transactions of the session collect it when the
    /// bound has moved, until none is left.
    fn collecting(
        &mut self,
        name: &str,
        given: Given,
        prepare: impl Fn(&Tx<'_, P>, &u64) -> Result<(), Abort>,
        operation: impl Fn(&Tx<'_, P>, &u64) -> Result<(), Abort>,
    ) -> Done {
        self.absent.used = 0;
        for size in COLLECTED {
            let keys = if given == Given::Absent { &mut self.absent } else { &mut self.present };
            let (session, keys) = (&mut self.session, keys.next(size));
            session.run(|tx| keys.iter().try_for_each(|id| prepare(tx, id)))?;
            session.run(|tx| keys.iter().try_for_each(|id| operation(tx, id)))?;
            loop {
                move_bound(&self.db);
                measured(&mut || self.session.run(nothing))?;
                part(name, size, 1);
                if self.db.health().garbage == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Collects until nothing is left behind.
    fn settle(&mut self) -> Done {
        while self.db.health().garbage > 0 {
            move_bound(&self.db);
            self.session.run(nothing)?;
        }
        Ok(())
    }
}
