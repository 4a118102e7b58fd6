//! Main-memory transactions for Rust programs: closures over typed tables, serializable, from every
//! core.
//!
//! A program opens a [`Database`], defines tables of plain rows, and runs closures on them from as
//! many threads as it likes. Each closure happens as if it were alone: all of it or nothing, in one
//! order for all. Nothing is written to disk.
//!
//! Contents: [a first program](#a-first-program), [keys](#keys), [rows and
//! groups](#rows-and-groups), [reading](#reading), [writing](#writing), [updates and
//! guards](#updates-and-guards), [errors](#errors), [scans](#scans), [secondary
//! indexes](#secondary-indexes), [threads and sessions](#threads-and-sessions), [bulk load, export
//! and import](#bulk-load-export-and-import), [watching it](#watching-it), [costs](#costs),
//! [protocols](#protocols), [limits](#limits). Whole programs are in the folder `examples` of the
//! crate: a ledger, an auction, an inventory.
//!
//! # A first program
//! ```
//! use candide::{Abort, Database, Record, Whole};
//!
//! /// An account. The balance is a column group of its own: reading the owner never conflicts with a transfer.
//! #[derive(Record, Clone, Copy, Debug, PartialEq)]
//! struct Account {
//!     #[key]
//!     id: u64,
//!     owner: u32,
//!     #[group(balance)]
//!     cents: i64,
//! }
//!
//! let db = Database::new();
//! let accounts = db.table::<Account>("accounts")?;
//! db.run(|tx| {
//!     accounts.insert(tx, Account { id: 1, owner: 10, cents: 500 })?;
//!     accounts.insert(tx, Account { id: 2, owner: 20, cents: 0 })
//! })?;
//!
//! let transfer = |cents| {
//!     db.run(|tx| {
//!         accounts.update(tx, &1, Account::CENTS.sub(cents).at_least(0))?; // reads nothing: other transfers do not disturb it
//!         accounts.update(tx, &2, Account::CENTS.add(cents))?;
//!         accounts.read(tx, &2, (Account::OWNER, Account::CENTS)) // sees the pending update
//!     })
//! };
//! assert_eq!(transfer(300), Ok((20, 300)));
//! assert_eq!(transfer(300), Err(Abort::Guard)); // and nothing has happened
//! assert_eq!(db.run(|tx| accounts.read(tx, &1, Whole)), Ok::<_, Abort>(Account { id: 1, owner: 10, cents: 200 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Database::run`] runs a closure as a transaction, **again after every conflict**, until it
//! commits. So closures have no effects outside the database; what is to happen once goes into
//! [`Tx::on_commit`]. A closure may return any type of error that is made from an [`Abort`]; where
//! nothing else says which, as in a closure that ends in `Ok(())`, it is named: `Ok::<_,
//! Abort>(())`.
//!
//! # Keys
//! A row is found by its primary key. Keys are integers, `bool`, `char`, [`Text`], [`Bytes`], enums
//! that derive [`Key`](macro@Key), options of one-word keys, and composites: several fields with
//! `#[key]`, whose key is a tuple, or one field of a struct that derives `Key`. The order is that
//! of the values; a composite is ordered by its first component, then by the second, and so on;
//! `None` comes before every value, a text before what it is the beginning of.
//!
//! ```
//! use candide::{Abort, Database, Key, Record, Text};
//!
//! #[derive(Key, Clone, Copy)]
//! struct Name {
//!     branch: u16,
//!     last: Text<24>,
//! }
//!
//! #[derive(Record, Clone, Copy)]
//! struct Customer {
//!     #[key]
//!     name: Name,
//!     orders: u32,
//! }
//!
//! #[derive(Record, Clone, Copy)]
//! #[record(ordered)] // rows in the order of their keys; the default, `hash`, finds single rows faster
//! struct Line {
//!     #[key]
//!     order: u32,
//!     #[key]
//!     number: u8, // the key is `(u32, u8)`
//!     article: u32,
//! }
//!
//! let db = Database::new();
//! let (customers, lines) = (db.table::<Customer>("customers")?, db.table::<Line>("lines")?);
//! let name = Name { branch: 3, last: Text::new("Martin")? };
//! db.run(|tx| {
//!     customers.insert(tx, Customer { name, orders: 1 })?;
//!     lines.insert(tx, Line { order: 70, number: 1, article: 9 })
//! })?;
//! assert_eq!(db.run(|tx| lines.read(tx, &(70, 1), Line::ARTICLE)), Ok::<_, Abort>(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A key has at most 32 words of eight bytes: one for each component of up to 64 bits, more for
//! texts and bytes, of which a text takes one for its length. A row keeps its key for life; to
//! change it, delete the row and insert another.
//!
//! # Rows and groups
//! A [`Record`](macro@Record) is plain data of a fixed size, kept inline in 64-bit words: the types
//! are listed at [`Field`]. Its columns lie in *groups*, and the group is the unit of conflict: a
//! transaction that has read a column runs again if, before it commits, another transaction changes
//! any column of the same group. If that was another column than the one it read, the conflict is
//! *false*: nothing it knew has become wrong.
//!
//! To choose groups, put columns that are written together into one, and keep columns that many
//! transactions write away from those that many only read. Without the attribute `#[group(name)]` a
//! column is in the group `row`. Groups are not free: each adds a version of eight bytes to every
//! row, and a read or a write of several groups does the work of each. One group for what seldom
//! changes and one for each hot spot is usually enough.
//!
//! ```
//! # use candide::Record;
//! #[derive(Record, Clone, Copy)]
//! struct Product {
//!     #[key]
//!     id: u32,
//!     price: u32, // read by all, changed now and then
//!     #[group(stock)]
//!     stock: i32, // changed by every order
//! }
//! assert_eq!(Product::GROUPS.iter().map(|group| group.name).collect::<Vec<_>>(), ["row", "stock"]);
//! ```
//!
//! # Reading
//! A read names what it wants as a value, a *projection*: a [`Column`], a tuple of up to eight
//! projections, a part of the key, [`Whole`] for the row as a struct, or `()` for nothing but
//! whether the row is there. It observes exactly the groups that its columns lie in (for `()` and
//! for parts of the key, the first group).
//!
//! [`Table::get`] gives an option and [`Table::read`] the outcome [`Abort::NotFound`].
//! [`Table::find`] gives a [`Row`], through which many operations on one row look it up once.
//! [`Table::find_many`] finds the rows of an array of keys and waits for their cache misses all at
//! once (of a longer list, give it a piece at a time). [`Table::get_now`] reads one row by itself,
//! without a closure. [`Table::get_for_update`] also locks what it reads: for transactions that
//! read a row that many write and then take long, and would otherwise run again many times.
//!
//! ```
//! # use candide::{Abort, Database, Record};
//! # #[derive(Record, Clone, Copy)]
//! # struct Product { #[key] id: u32, price: u32, #[group(stock)] stock: i32 }
//! # let db = Database::new();
//! # let products = db.table::<Product>("products")?;
//! # db.run(|tx| (1..=3).try_for_each(|id| products.insert(tx, Product { id, price: 10 * id, stock: 5 })))?;
//! db.run(|tx| {
//!     assert_eq!(products.get(tx, &9, Product::PRICE)?, None);
//!     assert_eq!(products.read(tx, &1, (Product::PRICE, Product::STOCK))?, (10, 5));
//!     assert!(products.get(tx, &1, ())?.is_some());
//!     let row = products.find(tx, &2)?;
//!     row.update(Product::STOCK.sub(row.read(Product::PRICE)? as i32))?;
//!     let rows = products.find_many(tx, &[1, 2, 3])?;
//!     let stocks = rows.each_ref().map(|row| row.read(Product::STOCK));
//!     assert_eq!(stocks, [Ok(5), Ok(-15), Ok(5)]);
//!     Ok::<_, Abort>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Writing
//! The table says what each operation does to a row that is there, and to one that is not, and what
//! the transaction observes by it: if another transaction changes that, it runs again. A
//! transaction sees its own writes: a row that it has inserted is there, one that it has deleted is
//! not.
//!
//! | operation | the row is there | it is not | observes, in a table without secondary indexes |
//! |---|---|---|---|
//! | [`get`](Table::get) | `Some` columns | `None` | the columns' groups |
//! | [`read`](Table::read) | the columns | `NotFound` | the columns' groups |
//! | [`insert`](Table::insert) | `Duplicate` | inserts | whether the row is there |
//! | [`insert_if_absent`](Table::insert_if_absent) | leaves it; `false` | inserts; `true` | whether the row is there |
//! | [`put`](Table::put) | replaces it | inserts | nothing |
//! | [`upsert`](Table::upsert) | updates it; `false` | inserts; `true` | whether the row is there |
//! | [`update`](Table::update) | updates it at commit | `NotFound` | whether the row is there |
//! | [`update_if_present`](Table::update_if_present) | as `update`; `true` | `false` | whether the row is there |
//! | [`modify`](Table::modify) | reads, calls the closure, writes | `NotFound` | the columns' groups |
//! | [`modify_if_present`](Table::modify_if_present) | as `modify`; `Some` | `None` | the columns' groups |
//! | [`delete`](Table::delete) | deletes it | `NotFound` | whether the row is there |
//! | [`delete_if_present`](Table::delete_if_present) | deletes it; `true` | `false` | whether the row is there |
//!
//! Outcomes are part of the transaction: a transaction that saw `NotFound` commits only if the row
//! is still missing.
//!
//! # Updates and guards
//! An update is data. It is applied when the transaction commits, to the row as it is then; since
//! it reads nothing before, transactions that only update the same counter do not make each other
//! run again. There are [`set`](Column::set), [`add`](Column::add), [`sub`](Column::sub),
//! [`max`](Column::max) and [`min`](Column::min), the guards [`at_least`](ColumnUpdate::at_least)
//! and [`at_most`](ColumnUpdate::at_most) on the result, and tuples of up to six updates. A failed
//! guard ends the whole transaction in [`Abort::Guard`], a result outside the column's type in
//! [`Abort::Overflow`]: at commit, or earlier if the transaction reads what it has updated. Guards
//! are asked first: of an unsigned column, `sub(n).at_least(0)` ends in `Guard`. Other updates are
//! an [`Updater`] of the program's own, or a [`modify`](Table::modify).
//!
//! ```
//! use candide::{Abort, Column, Database, Record, Refused, Updater};
//!
//! #[derive(Record, Clone, Copy)]
//! struct Gauge {
//!     #[key]
//!     id: u32,
//!     level: i64,
//!     changes: u32,
//! }
//!
//! /// Halves the level; refuses odd ones.
//! #[derive(Clone, Copy)]
//! struct Halve;
//!
//! impl Updater<Gauge> for Halve {
//!     type Target = (Column<Gauge, i64>, Column<Gauge, u32>);
//!
//!     fn target(&self) -> Self::Target {
//!         (Gauge::LEVEL, Gauge::CHANGES)
//!     }
//!     fn apply(&self, (level, changes): &mut (i64, u32)) -> Result<(), Refused> {
//!         if *level % 2 != 0 {
//!             return Err(Refused);
//!         }
//!         (*level, *changes) = (*level / 2, *changes + 1);
//!         Ok(())
//!     }
//! }
//!
//! let db = Database::new();
//! let gauges = db.table::<Gauge>("gauges")?;
//! db.run(|tx| gauges.insert(tx, Gauge { id: 1, level: 10, changes: 0 }))?;
//! db.run(|tx| {
//!     gauges.update(tx, &1, (Gauge::LEVEL.add(4).at_most(20), Gauge::CHANGES.add(1)))?;
//!     gauges.update_with(tx, &1, Halve)
//! })?;
//! assert_eq!(db.run(|tx| gauges.read(tx, &1, (Gauge::LEVEL, Gauge::CHANGES))), Ok::<_, Abort>((7, 2)));
//! assert_eq!(db.run(|tx| gauges.update_with(tx, &1, Halve)), Err(Abort::Guard));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors
//! Within transactions there is one error type, [`Abort`], of three kinds. *Conflicts* doom the
//! attempt: `run` runs the closure again, whatever the closure does with the error. *Outcomes* are
//! definite answers: `NotFound`, `Duplicate`, `NotUnique`, `Guard`, `Overflow`; a closure may match
//! on the first three and go on, the last two end the transaction. *Refusals* are limits and
//! misuse. Setting up has an error type of its own, [`Error`].
//!
//! A closure returns any error type that converts from [`Abort`]. If it returns an error, the
//! transaction has no effect, and `run` returns that error once it is certain that what it was
//! based on is true in the serial order; until then it runs the closure again. The same goes for
//! panics. An update that fails has failed when it was made: if the closure ends in an error or a
//! panic later on, `run` returns the update's `Guard` or `Overflow` instead.
//!
//! ```
//! use candide::{Abort, Database, Record};
//! # #[derive(Record, Clone, Copy)]
//! # struct Account { #[key] id: u64, #[group(balance)] cents: i64 }
//!
//! #[derive(Debug, PartialEq)]
//! enum Refusal {
//!     NoMoney,
//!     Unknown(u64),
//!     Engine(Abort),
//! }
//!
//! impl From<Abort> for Refusal {
//!     fn from(abort: Abort) -> Refusal {
//!         // A guard fails at commit, when the closure is over: this is the place to give it a name.
//!         if abort == Abort::Guard { Refusal::NoMoney } else { Refusal::Engine(abort) }
//!     }
//! }
//!
//! let db = Database::new();
//! let accounts = db.table::<Account>("accounts")?;
//! db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
//! let (receipts, printer) = std::sync::mpsc::channel();
//! let pay = |id, cents| {
//!     db.run(|tx| {
//!         if !accounts.update_if_present(tx, &id, Account::CENTS.sub(cents).at_least(0))? {
//!             return Err(Refusal::Unknown(id));
//!         }
//!         let receipts = receipts.clone();
//!         tx.on_commit(move || receipts.send((id, cents)).expect("the receiver listens")); // once, and only if it commits
//!         Ok(())
//!     })
//! };
//! assert_eq!((pay(1, 30), pay(1, 30), pay(2, 30)), (Ok(()), Err(Refusal::NoMoney), Err(Refusal::Unknown(2))));
//! assert_eq!(printer.try_iter().collect::<Vec<_>>(), [(1, 30)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`RunOptions`] limit the attempts, set a deadline, or report every conflict to the program
//! ([`RunOptions::on_conflict`]). [`Tx::attempt`] says which attempt it is.
//!
//! # Scans
//! Ordered tables are scanned by ranges of keys and by [`Prefix`]es (the first components of a
//! composite, or `Prefix("smi")` where the key is a text), forwards ([`Table::scan`]) and backwards
//! ([`Table::scan_rev`]); every table can be gone through whole ([`Table::iter`], in no order if it
//! is hashed). A scan is an iterator of `Result<(key, columns), Abort>`: a limit is
//! [`take`](Iterator::take), and rows that are not asked for are not looked at.
//!
//! A scan sees the transaction **as it was when the scan was made**, so rows can be inserted,
//! changed and deleted while it goes on, its own included. What it has gone through, gaps included,
//! is observed: if another transaction inserts a row there (a *phantom*), the transaction does not
//! commit but runs again. Absence is observed by the leaf of the tree (in a hash table, by the
//! bucket), so an insert close by can be a false conflict. Each component of a composite key has
//! trees of its own: once two rows share a prefix, their leaves hold nothing else, and inserts
//! under other prefixes do not disturb a scan of them.
//!
//! ```
//! use candide::{Abort, Database, Prefix, Record};
//!
//! #[derive(Record, Clone, Copy)]
//! #[record(ordered)]
//! struct Booking {
//!     #[key]
//!     room: u32,
//!     #[key]
//!     from: u64,
//!     until: u64,
//! }
//!
//! let db = Database::new();
//! let bookings = db.table::<Booking>("bookings")?;
//! // Books the room unless it is taken. Two threads cannot both find the same gap.
//! let book = |room, from, until| {
//!     db.run(|tx| {
//!         let last = bookings.scan_rev(tx, (room, 0)..(room, until), Booking::UNTIL).next().transpose()?;
//!         if last.is_some_and(|(_, ends)| ends > from) {
//!             return Ok(false);
//!         }
//!         bookings.insert(tx, Booking { room, from, until })?;
//!         Ok::<_, Abort>(true)
//!     })
//! };
//! assert_eq!((book(7, 10, 20), book(7, 15, 30), book(7, 20, 30)), (Ok(true), Ok(false), Ok(true)));
//!
//! // Keys only, with a limit.
//! let first = db.run(|tx| {
//!     bookings.scan(tx, Prefix((7,)), ()).take(1).map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Abort>>()
//! })?;
//! assert_eq!(first, [(7, 10)]);
//!
//! // Rows that are inserted on the way do not come.
//! db.run(|tx| {
//!     for row in bookings.scan(tx, .., Booking::UNTIL) {
//!         let ((room, from), until) = row?;
//!         bookings.insert(tx, Booking { room: room + 1, from, until })?;
//!     }
//!     assert_eq!(bookings.iter(tx, ()).count(), 4);
//!     Ok::<_, Abort>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Secondary indexes
//! A secondary index finds rows by other columns. Transactions keep it along with the table, so
//! what it finds is what a search through all rows would. `#[index]` and `#[unique]` declare
//! indexes of one column, `#[index(columns(a, b))]` of several; [`Table::index`] gives the handle.
//! [`Table::create_index`] adds one while transactions run, and [`Table::drop_index`] drops such a
//! one. In a unique index no two rows have the same key (nor, unlike in SQL, are there two rows
//! that have none): writing a second one is the outcome [`Abort::NotUnique`].
//!
//! ```
//! use candide::{Abort, Database, IndexOptions, Prefix, Record, Text};
//!
//! #[derive(Record, Clone, Copy)]
//! #[index(columns(city, name))] // ordered unless it says `hash`
//! struct Customer {
//!     #[key]
//!     id: u32,
//!     #[unique] // `hash` unless it says `ordered`
//!     email: Text<32>,
//!     city: u16,
//!     name: u64,
//!     points: u32,
//! }
//!
//! let db = Database::new();
//! let customers = db.table::<Customer>("customers")?;
//! let customer = |id, email, name| Ok::<_, candide::TextTooLong>(Customer { id, email: Text::new(email)?, city: 1, name, points: 0 });
//! let (ann, bob, eve) = (customer(1, "ann@x", 20)?, customer(2, "bob@x", 10)?, customer(3, "ann@x", 30)?);
//! let insert = |row| db.run(|tx| customers.insert(tx, row));
//! assert_eq!((insert(ann), insert(bob), insert(eve)), (Ok(()), Ok(()), Err(Abort::NotUnique)));
//!
//! let (by_email, by_city_name) = (customers.index(Customer::BY_EMAIL), customers.index(Customer::BY_CITY_NAME));
//! let by_points = customers.create_index("by_points", Customer::POINTS, IndexOptions::ordered())?;
//! db.run(|tx| {
//!     assert_eq!(by_email.read(tx, &ann.email, Customer::ID)?, 1);
//!     let names = by_city_name.scan(tx, Prefix((1,)), Customer::NAME).map(|row| Ok(row?.1));
//!     assert_eq!(names.collect::<Result<Vec<_>, Abort>>()?, [10, 20]);
//!     // An indexed column is changed by `modify` or `put`, which look at the row; `update` would not.
//!     customers.modify(tx, &2, Customer::POINTS, |points| *points += 5)?;
//!     assert_eq!(by_points.scan_rev(tx, .., ()).next().transpose()?, Some((2, ())));
//!     Ok::<_, Abort>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What an index costs writers: an insert and a delete of a row write one entry more for each
//! index; so does a change of an indexed column, twice. Such writes also observe the groups of the
//! indexed columns, where in a table without indexes they would observe nothing of the row. Changes
//! of other columns cost nothing more. An indexed column has no commit-time updates: for one that a
//! declaration indexes that is an error of compilation, after `create_index` it is the refusal
//! [`Abort::Indexed`].
//!
//! # Threads and sessions
//! Handles ([`Database`], [`Table`], [`Index`]) are cheap to clone, and threads share them freely.
//! A thread that runs many transactions makes itself a [`Session`]; [`Database::run`] keeps one for
//! every thread that uses it, and looks it up each time. A transaction belongs to its thread and
//! cannot be held across an `.await`.
//!
//! ```
//! # use candide::{Abort, Database, Record};
//! # #[derive(Record, Clone, Copy)]
//! # struct Counter { #[key] id: u32, hits: u64 }
//! # let db = Database::new();
//! # let counters = db.table::<Counter>("counters")?;
//! # db.run(|tx| counters.insert(tx, Counter { id: 1, hits: 0 }))?;
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         let (mut session, counters) = (db.session()?, &counters);
//!         scope.spawn(move || (0..100).try_for_each(|_| session.run(|tx| counters.update(tx, &1, Counter::HITS.add(1)))));
//!     }
//!     Ok::<_, candide::Error>(())
//! })?;
//! assert_eq!(db.run(|tx| counters.read(tx, &1, Counter::HITS)), Ok::<_, Abort>(400));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A closure must not call `run` of the same database on its thread ([`Abort::Nested`]), and should
//! not wait for other threads' transactions: after a conflict an attempt may lock, before its
//! closure runs, the rows that the attempt before has read for update, so such a transaction may
//! never end. Another session's transaction may run in it, but not on a row that the closure's own
//! transaction has read for update, nor once others give way to that, after 32 conflicts: it would
//! wait for itself, and is [`Abort::Nested`], too.
//!
//! # Bulk load, export and import
//! [`Table::insert_many`] inserts rows in one transaction, and in an ordered table keeps its place
//! between neighbours. [`Table::load`] inserts any number, in many transactions and from several
//! threads. [`Table::export`] writes a table to a stream while no transaction runs;
//! [`Table::import`] reads it into a table of the same row type, which is recognized by
//! [`Record::SCHEMA`].
//!
//! ```
//! # use candide::{Abort, Database, LoadOptions, Record};
//! # #[derive(Record, Clone, Copy)]
//! # struct Counter { #[key] id: u32, hits: u64 }
//! # let db = Database::new();
//! # let counters = db.table::<Counter>("counters")?;
//! counters.load((0..1_000).map(|id| Counter { id, hits: 1 }), LoadOptions::new())?;
//! let mut stream = Vec::new();
//! counters.export(&mut stream)?;
//!
//! let copy = Database::new();
//! let copied = copy.table::<Counter>("counters")?;
//! assert_eq!(copied.import(&mut &stream[..])?, 1_000);
//! assert_eq!(copy.run(|tx| copied.read(tx, &999, Counter::HITS)), Ok::<_, Abort>(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Watching it
//! [`Database::stats`] and [`Session::stats`] count what became of transactions.
//! [`Tx::last_conflict`] tells a closure why it is run again, [`Session::last_conflict`] tells
//! afterwards, [`RunOptions::on_conflict`] tells of each; a [`Conflict`] names the table, and
//! unless it was about an absent key also group and key. [`Database::health`] says how much garbage
//! there is and which session keeps it from being freed, [`Database::tables`] what each table takes
//! (the entries of secondary indexes are tables there, named like `customers.by_email`),
//! [`Table::versions_of`] how many versions of a row there are.
//!
//! ```
//! # use candide::{Abort, Database, Record};
//! # #[derive(Record, Clone, Copy)]
//! # struct Counter { #[key] id: u32, hits: u64 }
//! # let db = Database::new();
//! # let counters = db.table::<Counter>("counters")?;
//! # db.run(|tx| counters.insert(tx, Counter { id: 7, hits: 0 }))?;
//! let (mut mine, mut theirs) = (db.session()?, db.session()?);
//! mine.run(|tx| {
//!     let hits = counters.read(tx, &7, Counter::HITS)?;
//!     if tx.attempt() == 1 {
//!         theirs.run(|tx| counters.update(tx, &7, Counter::HITS.add(1)))?; // in between, on purpose
//!     }
//!     counters.update(tx, &7, Counter::HITS.set(hits * 10))
//! })?;
//! assert_eq!(mine.last_conflict().map(|conflict| conflict.to_string()).as_deref(), Some("read_changed on counters.row, key 7"));
//! assert_eq!((mine.stats().commits, mine.stats().retries), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the cargo feature `tracing` (off by default; nothing of it is compiled then) conflicts are
//! events of the crate of that name: one for each at level `DEBUG`, target `candide::conflict`,
//! with the fields `cause`, `table`, `group`, `key` and `attempt`; and one at level `WARN`, target
//! `candide::token`, with `session` and `conflicts`, when a transaction has met so many that others
//! have to give way to it. They come when the attempt is over and holds nothing, so a subscriber
//! may use the database (with another session).
//!
//! # Costs
//! In a table that does not fit into the processor's caches, time is cache misses.
//!
//! * **Hash or ordered?** A lookup by hash takes two misses: the bucket, and the record with its
//!   key and first columns. An ordered table has a tree for each word of the key, with nodes of 256
//!   bytes and up to 15 children: a lookup goes down its levels, of which the upper ones are in the
//!   cache, and then to the record. Use `ordered` where keys are scanned, `hash` otherwise.
//! * **Reading** copies the words of the projection and no others, so name columns rather than
//!   [`Whole`] where rows are large; and looks at each group's version again at commit. A
//!   transaction of one read of one group looks at nothing again; by [`Table::get_now`] it is most
//!   often hardly more than the lookup.
//! * **Writing** locks each group at commit, and stores what changes. A delete leaves a record that
//!   is removed milliseconds later. An insert takes memory from the session's own store, and the
//!   index writes one slot.
//! * **A row** takes its key, its columns, and eight bytes for each group (sixteen under [`TicToc`]
//!   and [`Mvcc`], more under [`Mvto`]), rounded up to a multiple of 16 bytes, of 64 if it is
//!   longer than a cache line. A bucket of the hash index takes 64 bytes for up to six rows; an
//!   entry of a secondary index is a row with the index key and the primary key.
//! * **Long transactions.** One that reads what others keep writing runs again and again; after 32
//!   conflicts it gets a token to which others give way. While any transaction runs, what is
//!   deleted meanwhile cannot be freed. So cut bulk work into many transactions, and lock what is
//!   hot with [`Table::get_for_update`].
//! * **Memory** of deleted rows is free again within a few milliseconds of the last transaction
//!   that could see them, also while their session is idle. It serves the same table; it does not
//!   go back to the operating system before the database is dropped. [`Builder::memory_limit`]
//!   bounds what tables and indexes take, and shows as [`Abort::MemoryLimit`].
//!
//! # Protocols
//! | type | name | readers | writers | guarantee |
//! |---|---|---|---|---|
//! | [`Occ`] (default) | `occ` | take no lock, validate at commit | lock at commit | strictly serializable, opaque |
//! | [`TicToc`] | `tictoc` | take no lock, may raise a timestamp at commit | lock at commit | serializable |
//! | [`Mvcc`] | `mvcc` | see one moment, and hardly ever fail if they write nothing | lock at commit, and put aside what they change | strictly serializable, opaque |
//! | [`Mvto`] | `mvto` | take no lock, validate at commit; see one moment if they say that they only read | link versions where they belong in time | strictly serializable |
//! | [`Serial`] | `serial` | | one session, nothing to wait for | one after another |
//! | [`Serial`] by [`Exclusion::GlobalLock`] | `global-lock` | wait for all others | wait for all others | one after another |
//! | [`Erased`] | | chosen at run time, by [`Builder::policy`] | | that of the chosen one |
//!
//! `Database::<Mvcc>::builder().build()?` chooses another than the default. Under `TicToc` and
//! `Mvto`, and under `Occ` [if that is chosen](Builder::opaque), an attempt that is going to be
//! repeated may see values of different times before it is; it never sees half of a write, and
//! [`Tx::validate`] says whether all that it has seen belongs together. Under `TicToc` fewer have
//! to be repeated: one may come before a transaction that had ended when it began, if no chain of
//! data leads from the one to the other. Under `Mvcc` a transaction that only reads is repeated
//! only where a commit in its way takes very long, or an ordered index is restructured under its
//! scan, and not even then if [it says so](Session::run_read_only); under it and `Mvto` a database
//! has [snapshots](Snapshot). Under `Mvto` updates that cannot fail, such as
//! [`Column::wrapping_add`], and [updaters](Updater::TOTAL) that say so, are put off until a
//! transaction reads. [`Protocol::STRICT`] and [`Protocol::OPAQUE`] say what each promises, and [a
//! page for each](protocols) why it keeps that.
//!
//! # Limits
//! | | at most |
//! |---|---|
//! | tables of a database, secondary indexes included | 65,535 |
//! | secondary indexes of a table | 32 |
//! | a row with its key and versions | 65,535 words (512 KiB) |
//! | groups of a row | 64 |
//! | a primary key | 32 words; as bytes or text, 248 bytes |
//! | an entry of an index that is not unique: index key and primary key | 32 words |
//! | components of a tuple as a key, columns of a declared index | 4, of one word each: in a composite of texts, wide integers or options, derive [`Key`](macro@Key) |
//! | projections in a tuple, updates in a tuple | 8, 6 |
//! | an [`Updater`] | 48 bytes |
//!
//! Rows have a fixed size; there are no columns for `String`, `Vec` or other data that owns memory.
//! Nothing is kept beyond the process. Forking a process with open databases is not supported.
//! `panic = "abort"` turns the panic of a doomed attempt into the end of the process.

#![warn(missing_docs)]

mod access;
mod api;
mod catalog;
mod engine;
mod epoch;
mod error;
mod factor;
mod gc;
mod index;
mod memory;
pub mod protocols;
mod record;
mod schema;
mod shared;
mod stats;
mod sync;
#[cfg(test)]
mod tests;
mod timestamps;
mod txn;

pub use api::LoadOptions;
pub use api::Scan;
pub use api::Session;
pub use api::Snapshot;
pub use api::StreamError;
pub use api::{Builder, Database, MemoryUse};
pub use api::{Health, OldestPin, OldestSnapshot, TableUse};
pub use api::{Index, IndexOptions, IndexScan};
pub use api::{Row, Table};
#[cfg(feature = "derive")]
pub use candide_derive::{Key, Record};
pub use catalog::TableOptions;
pub use engine::{Properties, Protocol, Versioned};
pub use error::{Abort, Error};
#[cfg(any(test, feature = "history"))]
pub use protocols::recorded as history;
pub use protocols::{Chosen, DefaultProtocol, Erased, Exclusion, Mvcc, Mvto, Occ, Serial, TicToc};
pub use schema::{
    Buffer, Bytes, Column, ColumnKind, ColumnUpdate, Field, Free, Group, Hashed, InOrder,
    IndexKind, IndexOf, IndexSpec, Indexed, Key, KeyColumn, KeyPrefix, KeyRange, Number, Ordered,
    Prefix, Projection, Record, Refused, Text, TextTooLong, Updatable, Update, Updater, Whole,
};
pub use stats::Stats;
pub use txn::Conflict;
pub use txn::{RunOptions, Tx};

/// Choices that benchmarks compare, in builds with the cargo feature `experiments`: basis factors,
/// of which the defaults are the good ones, and sources of timestamps. Whatever is chosen, the
/// guarantees are the same. [`Builder::factors`], [`Builder::timestamps`] and
/// [`TableOptions::contention_aware_keys`] take them.
///
/// ```
/// use candide::experiments::{Factor, Timestamps};
/// use candide::{Database, Error, Mvto, Occ};
///
/// let by_clock = Database::<Mvto>::builder().timestamps(Timestamps::Clock);
/// let db = by_clock.factors([Factor::NoBackoff]).build()?;
/// # let _ = db;
/// let none = Database::<Occ>::builder().timestamps(Timestamps::Clock).build();
/// assert!(matches!(none, Err(Error::Timestamps { protocol: "occ", .. })));
/// # Ok::<(), Error>(())
/// ```
#[cfg(any(test, feature = "experiments"))]
pub mod experiments {
    pub use crate::factor::Factor;
    pub use crate::timestamps::Timestamps;
}

/// Parts that code made by the derive macros uses. Not for use by hand.
#[doc(hidden)]
pub mod derived {
    pub use crate::schema::ColumnType;
    pub use crate::schema::key_text::{Show, show_components, show_variant};
    pub use crate::schema::packing::{Packing, join, no_variant};
    pub use crate::schema::{OneWord, Place, WordRange, schema_hash};
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
