//! Wikipedia, after OLTP-Bench (PVLDB 7, 2013), in the form of STOv2 (VLDB 2020): users view, list,
//! edit and watch pages.
//!
//! An edit is up to four transactions, as in STOv2, and counts as one step. The first transaction
//! reads the page. The second adds a text, a revision and a recent change, and makes the page point
//! to the new revision. The third notifies the users that watch the page. The last adds the edit to
//! the log. The revision that the author read may be older than the one that the edit replaces, as
//! in the real Wikipedia. Lengths, namespaces and shares follow OLTP-Bench's histograms, by their
//! quantiles. Titles have at most 160 bytes, and texts at most 256 KiB. In the published schema,
//! strings have any length. Addresses, groups and blocked users are not modelled, as in STOv2.
//!
//! [`Wikipedia::strict`] keeps both directions of the list of watched pages equal.
//! [`Wikipedia::published`] follows the published measurements, which differ in the ways that
//! [`Workload::differences`] names. Times count a worker's transactions.

mod audit;
mod conditions;
mod content;
mod contents;
mod editing;
mod knobs;
mod loader;
mod pages;
mod request;
mod rows;
mod site;
mod tables;
mod watching;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use candide::{Database, Protocol, Session};

use crate::replay::Stopped;
use crate::workload::{lock, require_range, require_transactions, require_weights};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
use conditions::Account;
use knobs::KINDS;
pub use knobs::{Texts, Wikipedia};
pub use rows::{
    Article, LogEntry, NamedPage, PART_BYTES, Page, PageId, PageName, Part, RecentChange, Revision,
    RevisionId, TextId, Time, Title, User, UserId, Watch, WatchKey, Watcher, WatcherKey,
};
use site::Site;
use tables::Numbers;
pub use tables::Tables;
pub use worker::WikipediaWorker;

/// The bytes of a page with its revisions, and of a user with the pages that the user watches.
const PAGE_BYTES: u64 = 200_000;
const USER_BYTES: u64 = 6_000;
/// The bytes of the rows that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 350_000_000;

impl Workload for Wikipedia {
    type Loaded<P: Protocol> = WikipediaTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[
        "useracct",
        "page",
        "page_idx",
        "revision",
        "text",
        "text_part",
        "recentchanges",
        "logging",
        "watchlist",
        "watchlist_idx",
    ];

    fn name(&self) -> String {
        "wikipedia".to_string()
    }

    fn keys(&self) -> u64 {
        self.pages + self.users
    }

    fn size(&self) -> Size {
        let pages = Size::of(self.pages, "pages", PAGE_BYTES);
        let users = Size::of(self.users, "users", USER_BYTES);
        Size { tables: pages.tables.saturating_add(users.tables), ..pages }
            .with_inputs::<request::Request>(self.transactions)
            .growing_by(GROWTH)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let mut differences = vec![
            "lengths of titles, texts, names and edits, and how many revisions pages have, follow quantiles of OLTP-Bench's histograms",
            "texts end at 256 KiB, titles at 160 bytes; numbers have 64 bits",
        ];
        if self.texts == Texts::Parts {
            differences.push("texts are kept in rows of 2 KiB");
        }
        if !self.index_talk {
            differences
                .push("watchers of an article's talk page are not listed there, and watch it for ever, as published");
            differences.push("scans are safe from phantoms, which the published ones are not");
        }
        differences
    }

    fn grows(&self) -> bool {
        true
    }

    fn hottest(&self) -> Option<&'static str> {
        Some("page[1]")
    }

    fn validate(&self) -> Result<(), String> {
        // The numbers of users and pages are drawn with 32 bits, and a title has room for such a
        // number.
        let most = u64::from(u32::MAX);
        require_range("users", 1..=most, self.users)?;
        require_range("pages", 1..=most, self.pages)?;
        require_weights(&self.weights, &KINDS)?;
        require_transactions(self.transactions)
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<WikipediaTables<P>, Failure> {
        let tables = Tables::create(db, self)?;
        let names: Box<[PageName]> = (1..=self.pages).map(content::page_name).collect();
        let revisions = loader::load(&tables, db, self, &names, loading)?;
        let watches = tables.watches.for_each_quiescent(|_| {})? as u64;
        let account = Mutex::new(Account::new(revisions, watches, names.len()));
        let site = Arc::new(Site {
            tables,
            numbers: Numbers::after(revisions),
            names,
            knobs: self.clone(),
        });
        Ok(WikipediaTables { site, seed: loading.seed, account, round: AtomicU64::new(0) })
    }
}

/// The filled tables of the site.
pub struct WikipediaTables<P: Protocol> {
    site: Arc<Site<P>>,
    seed: u64,
    account: Mutex<Account>,
    /// The number of this round of workers. This number is written between rounds, and workers read
    /// it when they start.
    round: AtomicU64,
}

impl<P: Protocol> WikipediaTables<P> {
    /// Returns the tables.
    pub fn tables(&self) -> &Tables<P> {
        &self.site.tables
    }
}

impl<P: Protocol> Loaded<P> for WikipediaTables<P> {
    type Worker = WikipediaWorker<P>;

    fn expect_workers(&self, _workers: usize) {
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> WikipediaWorker<P> {
        let rng = rng::stream(self.seed, thread as u64);
        WikipediaWorker::new(
            session,
            self.site.clone(),
            rng,
            self.round.load(Ordering::Relaxed),
            stopped,
        )
    }

    fn absorb(&self, worker: WikipediaWorker<P>) {
        let (round, tally, latest) = worker.into_account();
        lock(&self.account).absorb(round, &tally, &latest);
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.site, session, &lock(&self.account))
    }
}
