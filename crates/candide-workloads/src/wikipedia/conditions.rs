//! The conditions that the tables have to satisfy.

use std::collections::HashMap;

use super::contents::{ChangeEntry, Contents, TextEntry};
use super::knobs::{Texts, Wikipedia};
use super::rows::{PageId, RevisionId, UserId, WatchKey};
use super::tables::parts_of;
use super::watching::TALK;
use super::worker::Tally;
use crate::Consistency;

/// The account of loaded rows and of the transactions committed since.
pub(super) struct Account {
    /// The number of loaded revisions, which are numbered from 1.
    revisions: u64,
    /// The number of loaded watched pages, which is also the number of loaded watchers.
    watches: u64,
    tally: Tally,
    latest: Vec<Candidates>,
}

/// The revisions of one page among which the newest one must be. These are the last revisions that
/// each worker made in the last round in which the page was edited.
#[derive(Debug, Clone, Default)]
struct Candidates {
    round: u64,
    revisions: Vec<RevisionId>,
}

impl Account {
    pub(super) fn new(revisions: u64, watches: u64, pages: usize) -> Self {
        Account {
            revisions,
            watches,
            tally: Tally::default(),
            latest: vec![Candidates::default(); pages],
        }
    }

    /// Adds the tally of a worker of round `round`, and the last revisions that the worker made.
    pub(super) fn absorb(&mut self, round: u64, tally: &Tally, latest: &[RevisionId]) {
        self.tally.add(tally);
        for (candidates, &revision) in self.latest.iter_mut().zip(latest) {
            if revision == 0 || candidates.round > round {
                continue;
            }
            if candidates.round < round {
                *candidates = Candidates { round, revisions: Vec::new() };
            }
            candidates.revisions.push(revision);
        }
    }

    /// Examines the texts and titles that the workers' transactions read.
    pub(super) fn settle_reads(&self, consistency: &mut Consistency) {
        let misplaced = self.tally.misplaced;
        consistency.expect(misplaced == 0, || {
            format!("transactions read {misplaced} texts or titles that belong to another page")
        });
    }

    /// Examines the contents that one way of reading found.
    pub(super) fn settle(
        &self,
        way: &str,
        contents: &Contents,
        knobs: &Wikipedia,
        consistency: &mut Consistency,
    ) {
        let mut audit = Audit { way, contents, consistency };
        audit.rows(self, knobs);
        audit.pages(self);
        audit.revisions(knobs);
        audit.users();
        audit.lists();
        audit.watching(knobs);
    }
}

/// The examination of one way of reading.
struct Audit<'a> {
    way: &'a str,
    contents: &'a Contents,
    consistency: &'a mut Consistency,
}

impl Audit<'_> {
    /// Expects that `wrong` is empty. Otherwise reports the number of its elements and the first
    /// one.
    fn none<T: std::fmt::Debug>(&mut self, wrong: impl Iterator<Item = T>, what: &str) {
        let wrong: Vec<T> = wrong.collect();
        self.consistency.expect(wrong.is_empty(), || {
            format!("{}: {} {what}, such as {:?}", self.way, wrong.len(), wrong[0])
        });
    }

    fn rows(&mut self, account: &Account, knobs: &Wikipedia) {
        let Contents {
            users,
            pages,
            names,
            revisions,
            texts,
            changes,
            log,
            watches,
            watchers,
            parts,
            ..
        } = self.contents;
        let (edits, way) = (account.tally.edits, self.way);
        let rows = [
            users.len(),
            pages.len(),
            names.len(),
            revisions.len(),
            texts.len(),
            changes.len(),
            log.len(),
        ];
        let all = account.revisions + edits;
        let expected = [knobs.users, knobs.pages, knobs.pages, all, all, edits, edits];
        self.consistency.expect(rows.map(|count| count as u64) == expected, || {
            format!(
                "{way}: users, pages, names, revisions, texts, recent changes, log have {rows:?} rows where {expected:?} \
                 were loaded or committed"
            )
        });
        let expected = match knobs.texts {
            Texts::Whole => 0,
            Texts::Parts => texts.values().map(|text| u64::from(parts_of(text.len))).sum::<u64>(),
        };
        self.consistency.expect(*parts == expected, || {
            format!("{way}: there are {parts} parts of texts, and {expected} by the lengths")
        });
        let Tally { added, removed, .. } = account.tally;
        let rows = [watches.len() as i64, watchers.len() as i64];
        let expected = [(added.watches, removed.watches), (added.watchers, removed.watchers)];
        let expected =
            expected.map(|(added, removed)| account.watches as i64 + added as i64 - removed as i64);
        self.consistency.expect(rows == expected, || {
            format!("{way}: watched pages and their watchers have {rows:?} rows where {expected:?} were added and not removed")
        });
    }

    fn pages(&mut self, account: &Account) {
        let Contents { pages, revisions, names, .. } = self.contents;
        let is_complete = |page: &PageId| {
            let entry = &pages[page];
            let revision = revisions.get(&entry.latest);
            revision.is_some_and(|revision| revision.page == *page && revision.len == entry.len)
        };
        self.none(
            pages.keys().filter(|page| !is_complete(page)),
            "pages name a last revision of another page or length",
        );
        let mut newest_loaded: HashMap<PageId, RevisionId> = HashMap::new();
        for (&id, revision) in revisions.iter().filter(|(id, _)| **id <= account.revisions) {
            let newest = newest_loaded.entry(revision.page).or_default();
            *newest = id.max(*newest);
        }
        let is_last = |page: &PageId| {
            let latest = pages[page].latest;
            let edits = account
                .latest
                .get((*page as usize).wrapping_sub(1))
                .map_or(&[][..], |last| &last.revisions);
            if edits.is_empty() {
                newest_loaded.get(page) == Some(&latest)
            } else {
                edits.contains(&latest)
            }
        };
        self.none(
            pages.keys().filter(|page| !is_last(page)),
            "pages name a last revision that is not the last edit of a user",
        );
        let is_found = |page: &PageId| names.get(&pages[page].name) == Some(page);
        self.none(
            pages.keys().filter(|page| !is_found(page)),
            "pages are not found by their names",
        );
    }

    fn revisions(&mut self, knobs: &Wikipedia) {
        let Contents { revisions, texts, .. } = self.contents;
        let has_text = |id: &RevisionId| {
            let revision = &revisions[id];
            texts
                .get(&revision.text)
                .is_some_and(|text| text.page == revision.page && text.len == revision.len)
        };
        self.none(
            revisions.keys().filter(|id| !has_text(id)),
            "revisions have no text of the same page and length",
        );
        let is_whole = |text: &TextEntry| match knobs.texts {
            Texts::Whole => text.is_whole,
            Texts::Parts => text.parts == parts_of(text.len),
        };
        self.none(
            texts.values().filter(|text| !is_whole(text)),
            "texts lack characters or have too many",
        );
    }

    fn users(&mut self) {
        let Contents { users, revisions, .. } = self.contents;
        let mut edits: HashMap<UserId, i32> = HashMap::new();
        revisions.values().for_each(|revision| *edits.entry(revision.user).or_default() += 1);
        let wrong =
            users.iter().filter(|(user, count)| edits.get(user).copied().unwrap_or(0) != **count);
        self.none(wrong, "users have a number of revisions that differs from their edits");
    }

    fn lists(&mut self) {
        let Contents { texts, changes, log, .. } = self.contents;
        let is_true = |change: &&ChangeEntry| {
            texts
                .get(&change.text)
                .is_some_and(|text| text.page == change.page && text.len == change.len)
        };
        self.none(
            changes.iter().filter(|change| !is_true(change)),
            "recent changes have no text of the same page and length",
        );
        let mut open: HashMap<(UserId, PageId), i64> = HashMap::new();
        changes.iter().for_each(|change| *open.entry((change.user, change.page)).or_default() += 1);
        log.iter().for_each(|edit| *open.entry(*edit).or_default() -= 1);
        self.none(
            open.iter().filter(|(_, count)| **count != 0),
            "edits are in one of recent changes and log only",
        );
    }

    fn watching(&mut self, knobs: &Wikipedia) {
        let Contents { users, names, watches, watchers, .. } = self.contents;
        // In the published code, a user that watches an article is not listed as a watcher of the
        // talk page. Such a talk page is recognised by its name, since no page has this name.
        let is_listed = |watch: &WatchKey| {
            let is_talk = watch.page.namespace == TALK && !names.contains_key(&watch.page);
            watchers.contains(watch) || is_talk && !knobs.index_talk
        };
        self.none(
            watches.iter().filter(|watch| !is_listed(watch)),
            "watched pages are not in the list of their watchers",
        );
        self.none(watchers.difference(watches), "entries of watchers have no watched page");
        self.none(
            watches.iter().filter(|watch| !users.contains_key(&watch.user)),
            "watched pages have no user",
        );
    }
}
