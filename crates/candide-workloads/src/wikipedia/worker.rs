//! The worker, which runs the requested transactions and counts their effects.

use std::sync::Arc;

use candide::report::Stats;
use candide::{Abort, Protocol, Session};
use fastrand::Rng;

use super::content;
use super::editing::Edit;
use super::request::{
    ADD_WATCH, GET_PAGE_ANONYMOUS, GET_PAGE_AUTHENTICATED, LIST_NAMESPACE, REMOVE_WATCH, Request,
    UPDATE_PAGE,
};
use super::rows::{PageId, RevisionId, UserId, time};
use super::site::Site;
use super::watching::Rows;
use crate::hottest::probe;
use crate::replay::{Replay, Stopped};
use crate::workload::{look_counted, run_counted};
use crate::{Probe, Step, Worker};

/// The effects of committed transactions, as counted by workers.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The number of complete edits.
    pub(super) edits: u64,
    pub(super) added: Rows,
    pub(super) removed: Rows,
    /// The number of texts and titles that were found to belong to another page.
    pub(super) misplaced: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.edits += other.edits;
        self.added.add(other.added);
        self.removed.add(other.removed);
        self.misplaced += other.misplaced;
    }
}

/// The worker that runs the transactions of one thread.
pub struct WikipediaWorker<P: Protocol> {
    session: Session<P>,
    site: Arc<Site<P>>,
    requests: Replay<Request>,
    rng: Rng,
    /// The number of the worker's round.
    round: u64,
    time: u64,
    /// Buffers for a text and for the users that watch a page.
    content: Vec<u8>,
    watchers: Vec<UserId>,
    tally: Tally,
    /// For each page, the last revision that this worker has made; 0 if the worker has made none.
    latest: Vec<RevisionId>,
}

impl<P: Protocol> WikipediaWorker<P> {
    pub(super) fn new(
        session: Session<P>,
        site: Arc<Site<P>>,
        mut rng: Rng,
        round: u64,
        stopped: Stopped<'_>,
    ) -> Self {
        let requests = Replay::new(Request::draw_all(&site.knobs, &mut rng, stopped), 1);
        let latest = vec![0; site.names.len()];
        let (content, watchers, tally) = (Vec::new(), Vec::new(), Tally::default());
        WikipediaWorker {
            session,
            site,
            requests,
            rng,
            round,
            time: 1,
            content,
            watchers,
            tally,
            latest,
        }
    }

    /// Returns the worker's round, its tally, and, for each page, the last revision that the worker
    /// has made.
    pub(super) fn into_account(self) -> (u64, Tally, Vec<RevisionId>) {
        (self.round, self.tally, self.latest)
    }

    /// Reads the page, writes a new text, and notifies the users that watch the page. This takes up
    /// to four transactions, and counts as one step.
    fn update_page(&mut self, user: UserId, page: PageId) -> Result<u64, Abort> {
        let WikipediaWorker { session, site, rng, content, watchers, tally, latest, .. } = self;
        let place = page as usize - 1;
        let name = &site.names[place];
        let (read, mut retries) = look_counted(session, |tx| site.get_page(tx, name, content));
        let read = read?;
        content::edit(content, rng);
        let (numbers, minor, now) =
            (site.numbers.draw(), content::minor_edit(rng), time(self.time));
        let edit = Edit { user, name, read, content, numbers, minor, now };
        let (end, vain) = run_counted(session, |tx| site.update_page(tx, &edit, watchers));
        let () = end?;
        retries += vain;
        if !watchers.is_empty() {
            let (end, vain) = run_counted(session, |tx| site.notify(tx, &edit, watchers));
            let () = end?;
            retries += vain;
            let (end, vain) = run_counted(session, |tx| site.conclude(tx, &edit));
            let () = end?;
            retries += vain;
        }
        tally.misplaced += u64::from(!read.is_own);
        tally.edits += 1;
        latest[place] = numbers.revision;
        Ok(retries)
    }

    fn watch(&mut self, kind: usize, user: UserId, page: PageId) -> Result<u64, Abort> {
        let WikipediaWorker { session, site, tally, .. } = self;
        let (name, now) = (&site.names[page as usize - 1], time(self.time));
        if kind == ADD_WATCH {
            let (rows, retries) = run_counted(session, |tx| site.add_watch(tx, user, name, now));
            tally.added.add(rows?);
            Ok(retries)
        } else {
            let (rows, retries) = run_counted(session, |tx| site.remove_watch(tx, user, name, now));
            tally.removed.add(rows?);
            Ok(retries)
        }
    }

    fn look(&mut self, kind: usize, user: UserId, page: PageId) -> Result<u64, Abort> {
        let WikipediaWorker { session, site, content, tally, .. } = self;
        let name = &site.names[page as usize - 1];
        let (misplaced, retries) = match kind {
            LIST_NAMESPACE => look_counted(session, |tx| site.list_namespace(tx, name.namespace)),
            GET_PAGE_AUTHENTICATED => look_counted(session, |tx| {
                Ok(u64::from(!site.get_page_for(tx, user, name, content)?.is_own))
            }),
            _ => {
                look_counted(session, |tx| Ok(u64::from(!site.get_page(tx, name, content)?.is_own)))
            }
        };
        std::hint::black_box(content);
        tally.misplaced += misplaced?;
        Ok(retries)
    }
}

impl<P: Protocol> Worker for WikipediaWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let Request { kind, user, page } = self.requests.next()[0];
        let (user, page) = (UserId::from(user), PageId::from(page));
        self.time += 1;
        let retries = match kind {
            UPDATE_PAGE => self.update_page(user, page)?,
            ADD_WATCH | REMOVE_WATCH => self.watch(kind, user, page)?,
            LIST_NAMESPACE | GET_PAGE_ANONYMOUS | GET_PAGE_AUTHENTICATED => {
                self.look(kind, user, page)?
            }
            _ => unreachable!("there are six types"),
        };
        Ok(Step { kind, committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.site.tables.pages, 1)
    }
}
