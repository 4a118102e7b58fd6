//! Wikipedia: pages, revisions, texts and lists agree after honest runs, and damage has a name.

use candide::{Abort, Bytes, Occ, Protocol, Text, Tx};
use candide_workloads::Workload;
use candide_workloads::wikipedia::{
    Article, Page, PageName, RecentChange, Revision, Tables, Texts, User, Watch, WatchKey, Watcher,
    WatcherKey, Wikipedia, WikipediaTables,
};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_same_remains, assert_types_are_told_apart, check,
    database, honest, load, run, run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 120;

/// Few pages, so that threads meet; more edits and changes of what is watched than in the published
/// mix.
fn knobs() -> Wikipedia {
    Wikipedia {
        users: 12,
        pages: 8,
        weights: [3, 2, 5, 3, 3, 1],
        transactions: 500,
        ..Wikipedia::strict()
    }
}

/// The same, with texts in parts.
fn in_parts() -> Wikipedia {
    Wikipedia { texts: Texts::Parts, ..knobs() }
}

#[test]
fn wikipedia_is_consistent_under_every_protocol_and_option() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert_eq!(committed, all, "nothing rolls back")
    });
}

#[test]
fn wikipedia_with_texts_in_parts_is_consistent_under_every_protocol_and_option() {
    assert_holds(&in_parts(), THREADS, STEPS, |committed, all| assert_eq!(committed, all));
}

#[test]
fn published_wikipedia_is_consistent() {
    let published = Wikipedia { index_talk: false, hash_index: false, ..knobs() };
    assert!(published.differences().iter().any(|how| how.contains("for ever, as published")));
    let db = database(true, true);
    let tables = load(&db, &published, THREADS);
    run(&db, &tables, THREADS, STEPS);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
}

#[test]
fn no_update_of_a_user_can_fail() {
    let db = database(true, true);
    let site = load(&db, &knobs(), 1);
    let users = &site.tables().users;
    db.run(|tx| (1..=12).try_for_each(|id| users.update(tx, id, User::EDIT_COUNT.set(i32::MAX))))
        .expect("no other transaction");
    run(&db, &site, 1, STEPS);
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    assert_types_are_told_apart(|weights| Wikipedia { weights, ..knobs() });
}

/// Returns what the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Tables<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    assert_noticed_in(&knobs(), words, damage);
}

fn assert_noticed_in(
    knobs: &Wikipedia,
    words: &str,
    damage: impl Fn(&Tables<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>,
) {
    let (db, site) = honest(knobs, STEPS);
    db.run(|tx| damage(site.tables(), tx)).expect("can be done");
    assert_failed(&check(&db, &site), words);
}

#[test]
fn wikipedia_check_finds_unaccounted_commits() {
    let (db, tables) = honest(&knobs(), STEPS);
    run_unaccounted(&db, &tables, 50);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "were loaded or committed");
    assert_failed(&consistency, "pages name a last revision that is not the last edit of a user");
}

fn title(text: &str) -> Text<160> {
    Text::new(text).expect("fits")
}

#[test]
fn damage_to_pages_and_texts_is_noticed_by_name() {
    assert_noticed("1 pages name a last revision of another page or length", |tables, tx| {
        tables.pages.update(tx, 1, Page::LEN.add(1))
    });
    assert_noticed(
        "1 pages name a last revision that is not the last edit of a user",
        |tables, tx| {
            // An edit of the page, but not the last one.
            let latest = tables.pages.read(tx, 1, Page::LATEST)?;
            let parent = tables.revisions.read(tx, &latest, Revision::PARENT)?;
            tables.pages.update(tx, 1, Page::LATEST.set(parent))
        },
    );
    assert_noticed("1 pages are not found by their names", |tables, tx| {
        tables.pages.update(tx, 1, Page::TITLE.set(title("else")))
    });
}

#[test]
fn damage_to_lists_is_noticed_by_name() {
    let name = PageName { namespace: 0, title: title("nowhere") };
    assert_noticed("1 revisions have no text", |tables, tx| {
        tables.revisions.update(tx, 1, Revision::PAGE.set(5))
    });
    assert_noticed("1 texts lack characters", |tables, tx| {
        let mut content = tables.texts.read(tx, 1, Article::CONTENT)?;
        content[3] = 0;
        tables.texts.update(tx, 1, Article::CONTENT.set(content))
    });
    assert_noticed("1 texts lack characters", |tables, tx| {
        let mut content = tables.texts.read(tx, 1, Article::CONTENT)?;
        content.pop();
        tables.texts.update(tx, 1, Article::CONTENT.set(content))
    });
    assert_noticed_in(&in_parts(), "1 texts lack characters", |tables, tx| {
        let mut part = tables.parts.read(tx, &(1, 0), candide::Whole)?;
        part.bytes =
            Bytes::from_fn(|index| if index == 3 { 0 } else { part.bytes.as_bytes()[index] });
        tables.parts.put(tx, part)
    });
    assert_noticed_in(&in_parts(), "parts of texts, and", |tables, tx| {
        tables.parts.delete(tx, &(1, 0))
    });
    assert_noticed("1 users have a number of revisions that differs", |tables, tx| {
        tables.users.update(tx, 3, User::EDIT_COUNT.add(1))
    });
    assert_noticed("1 recent changes have no text", |tables, tx| {
        tables.recent_changes.update(tx, 1, RecentChange::NEW_LEN.add(1))
    });
    assert_noticed("edits are in one of recent changes and log only", |tables, tx| {
        tables.log.delete(tx, 1)
    });
    assert_noticed("1 entries of watchers have no watched page", |tables, tx| {
        tables.watchers.insert(tx, Watcher { key: WatcherKey { page: name, user: 1 } })
    });
    assert_noticed("1 watched pages are not in the list of their watchers", |tables, tx| {
        let notified = Bytes::new([b'0'; 14]);
        tables.watches.insert(tx, Watch { key: WatchKey { user: 1, page: name }, notified })
    });
    assert_noticed("watched pages have no user", |tables, tx| {
        let (watch, ()) = tables.watches.iter(tx, ()).next().expect("watched pages")?;
        tables.users.delete(tx, &watch.user)
    });
    assert_noticed("were added and not removed", |tables, tx| {
        let (key, ()) = tables.watches.iter(tx, ()).next().expect("watched pages")?;
        tables.watches.delete(tx, &key)?;
        tables.watchers.delete(tx, &WatcherKey { page: key.page, user: key.user })
    });
    assert_noticed("read different contents", |tables, tx| {
        let flags = Text::new("").expect("fits");
        let text = Article { id: 1_000_000, flags, page: 1, len: 0, content: Vec::new() };
        tables.texts.insert(tx, text)
    });
}

#[test]
fn misplaced_rows_that_readers_find_are_noticed() {
    let (db, site) = honest(&knobs(), STEPS);
    let tables = site.tables();
    let damage = db.run(|tx| {
        (1..=8).try_for_each(|page| {
            let text = tables.pages.read(tx, &page, Page::LATEST)?;
            let text = tables.revisions.read(tx, &text, Revision::TEXT)?;
            tables.texts.update(tx, &text, Article::PAGE.set(page + 1))
        })
    });
    damage.unwrap();
    run(&db, &site, 1, STEPS);
    assert_failed(&check(&db, &site), "texts or titles that belong to another page");
}

impl Remains<Wikipedia> for (Vec<Page>, Vec<User>) {
    fn of<P: Protocol>(site: &WikipediaTables<P>) -> Self {
        (sorted(&site.tables().pages, |row| row.id), sorted(&site.tables().users, |row| row.id))
    }
}

#[test]
fn one_thread_leaves_wikipedia_in_the_same_state_under_every_protocol_and_option() {
    assert_same_remains::<_, (Vec<Page>, Vec<User>)>(&knobs(), STEPS);
}
