//! loom's atomics, with orderings that a run of the tests can weaken. `cargo xtask orderings`
//! checks that each ordering is needed.
//!
//! A *site* is the place of an operation's call: `file:line:column`. `CANDIDE_WEAKEN=site=Ordering`
//! gives one site another ordering throughout the process (`=None` leaves a fence out).
//! `CANDIDE_SITES=file` records the sites that the process reaches. One build serves for all sites.
//! This module exists under `--cfg loom` only.

use loom::sync::atomic;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::panic::Location;
use std::sync::{Mutex, OnceLock};

pub(crate) use atomic::Ordering;

/// The site whose ordering is weakened in this process.
struct Weakened {
    file: String,
    line: u32,
    column: u32,
    to: Option<Ordering>,
}

impl Weakened {
    /// Parses `file:line:column=Ordering`.
    fn parse(text: &str) -> Option<Weakened> {
        let (site, to) = text.split_once('=')?;
        let to = match to {
            "None" => None,
            "Relaxed" => Some(Ordering::Relaxed),
            "Acquire" => Some(Ordering::Acquire),
            "Release" => Some(Ordering::Release),
            "AcqRel" => Some(Ordering::AcqRel),
            _ => return None,
        };
        let mut parts = site.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Weakened { file: parts.next()?.to_string(), line, column, to })
    }

    fn is_at(&self, site: &Location<'_>) -> bool {
        self.line == site.line() && self.column == site.column() && self.file == site.file()
    }
}

/// The file of sites, and the sites written to it.
struct Notes {
    file: File,
    seen: BTreeSet<(&'static str, u32, u32)>,
}

/// Writes `site` to the file named by `CANDIDE_SITES`, unless the file has it already. Does nothing
/// if `CANDIDE_SITES` is not set.
fn note(site: &'static Location<'static>) {
    static NOTES: OnceLock<Option<Mutex<Notes>>> = OnceLock::new();
    let notes = NOTES.get_or_init(|| {
        let path = std::env::var_os("CANDIDE_SITES")?;
        let file =
            File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Some(Mutex::new(Notes { file, seen: BTreeSet::new() }))
    });
    let Some(notes) = notes else { return };
    let mut notes = notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if notes.seen.insert((site.file(), site.line(), site.column())) {
        writeln!(notes.file, "{site}").expect("notes of sites can be written");
    }
}

/// Returns the ordering of an operation at `site`; `None` if the operation is left out.
fn effective(site: &'static Location<'static>, ordering: Ordering) -> Option<Ordering> {
    static WEAKENED: OnceLock<Option<Weakened>> = OnceLock::new();
    let weakened = WEAKENED.get_or_init(|| {
        let text = std::env::var("CANDIDE_WEAKEN").ok()?;
        Some(
            Weakened::parse(&text)
                .unwrap_or_else(|| panic!("{text:?} is not file:line:column=Ordering")),
        )
    });
    if ordering != Ordering::Relaxed {
        note(site);
    }
    match weakened {
        Some(weakened) if weakened.is_at(site) => weakened.to,
        _ => Some(ordering),
    }
}

/// Returns the ordering of the operation of the caller's caller.
#[track_caller]
fn here(ordering: Ordering) -> Ordering {
    effective(Location::caller(), ordering).expect("only a fence can be left out")
}

#[track_caller]
pub(crate) fn fence(ordering: Ordering) {
    if let Some(ordering) = effective(Location::caller(), ordering) {
        atomic::fence(ordering);
    }
}

/// An atomic of loom, with an ordering that can be weakened.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Atomic<A>(A);

pub(crate) type AtomicBool = Atomic<atomic::AtomicBool>;
pub(crate) type AtomicU64 = Atomic<atomic::AtomicU64>;
pub(crate) type AtomicUsize = Atomic<atomic::AtomicUsize>;

impl AtomicBool {
    #[track_caller]
    pub(crate) fn new(value: bool) -> AtomicBool {
        Atomic(atomic::AtomicBool::new(value))
    }

    #[track_caller]
    pub(crate) fn load(&self, ordering: Ordering) -> bool {
        self.0.load(here(ordering))
    }

    #[track_caller]
    pub(crate) fn store(&self, value: bool, ordering: Ordering) {
        self.0.store(value, here(ordering));
    }

    #[track_caller]
    pub(crate) fn swap(&self, value: bool, ordering: Ordering) -> bool {
        self.0.swap(value, here(ordering))
    }
}

impl AtomicUsize {
    #[track_caller]
    pub(crate) fn new(value: usize) -> AtomicUsize {
        Atomic(atomic::AtomicUsize::new(value))
    }

    #[track_caller]
    pub(crate) fn load(&self, ordering: Ordering) -> usize {
        self.0.load(here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_add(&self, value: usize, ordering: Ordering) -> usize {
        self.0.fetch_add(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_sub(&self, value: usize, ordering: Ordering) -> usize {
        self.0.fetch_sub(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        update: impl FnMut(usize) -> Option<usize>,
    ) -> Result<usize, usize> {
        self.0.fetch_update(here(success), failure, update)
    }
}

impl AtomicU64 {
    #[track_caller]
    pub(crate) fn new(value: u64) -> AtomicU64 {
        Atomic(atomic::AtomicU64::new(value))
    }

    #[track_caller]
    pub(crate) fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(here(ordering))
    }

    #[track_caller]
    pub(crate) fn store(&self, value: u64, ordering: Ordering) {
        self.0.store(value, here(ordering));
    }

    #[track_caller]
    pub(crate) fn swap(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.swap(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, here(success), failure)
    }

    #[track_caller]
    pub(crate) fn compare_exchange_weak(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange_weak(current, new, here(success), failure)
    }

    #[track_caller]
    pub(crate) fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_add(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_sub(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_sub(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_and(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_and(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_or(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_or(value, here(ordering))
    }

    #[track_caller]
    pub(crate) fn fetch_max(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.fetch_max(value, here(ordering))
    }

    #[cfg(test)]
    #[track_caller]
    pub(crate) fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        update: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        self.0.fetch_update(here(success), failure, update)
    }
}
