//! The figures of the picture.

use candide_harness::results::{Doubt, least_share, median, range};

use crate::stores::about::About;
use crate::stores::figures::BASELINE;

/// The durability of the transactions of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    InMemory,
    Synced,
}

impl Durability {
    pub(crate) const ALL: [Durability; 2] = [Durability::InMemory, Durability::Synced];

    /// Returns the durability in a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Durability::InMemory => "In memory",
            Durability::Synced => "Each commit synced to disk",
        }
    }
}

/// The names of the compared stores, in the order of the picture, and how the picture calls them.
pub(crate) const STORES: [(&str, &str); 4] =
    [(BASELINE, "Candide"), ("mutex", "mutex"), ("redb", "redb"), ("fjall", "fjall")];

/// The figures of one store, with one durability and one number of threads.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) durability: Durability,
    pub(crate) threads: usize,
    /// The store's name in the picture.
    pub(crate) shown: &'static str,
    pub(crate) store: About,
    /// The number of commits per second of all threads together, in each round.
    pub(crate) rounds: Vec<f64>,
    /// The least share of a core that a thread had; `None` if the system does not report it.
    pub(crate) core_share: Option<f64>,
    /// The commits per second divided by those of Candide with as many threads: the median of the
    /// rounds. `None` for Candide itself.
    pub(crate) ratio: Option<Result<f64, Doubt>>,
}

impl Figure {
    /// Creates the figures of a store that has not had a turn yet.
    pub(crate) fn new(durability: Durability, threads: usize, store: About) -> Option<Figure> {
        let &(_, shown) = STORES.iter().find(|(name, _)| *name == store.name)?;
        let rounds = Vec::new();
        Some(Figure { durability, threads, shown, store, rounds, core_share: None, ratio: None })
    }

    /// Adds the result of another round.
    pub(crate) fn add(&mut self, per_second: f64, core_share: Option<f64>) {
        self.rounds.push(per_second);
        self.core_share = least_share(self.core_share, core_share);
    }

    /// Returns the median of the rounds.
    pub(crate) fn per_second(&self) -> f64 {
        median(&self.rounds)
    }

    /// Returns the slowest and the fastest round.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.rounds)
    }

    /// Returns whether the figure can be drawn: whether each thread had its core.
    pub(crate) fn is_sound(&self) -> bool {
        Doubt::of_runs(self.core_share, self.rounds.len()) != Some(Doubt::Cores)
    }

    pub(crate) fn is_candide(&self) -> bool {
        self.store.name == BASELINE
    }
}

/// Compares each figure with Candide's of the same durability and number of threads.
pub(crate) fn compare(figures: &mut [Figure]) {
    let bases: Vec<_> = figures
        .iter()
        .filter(|figure| figure.is_candide())
        .map(|base| (base.durability, base.threads, base.rounds.clone(), base.core_share))
        .collect();
    for figure in figures.iter_mut().filter(|figure| !figure.is_candide()) {
        let base = bases.iter().find(|(durability, threads, ..)| {
            (*durability, *threads) == (figure.durability, figure.threads)
        });
        let Some((.., rounds, share)) = base else { continue };
        let ratios: Vec<f64> =
            figure.rounds.iter().zip(rounds).map(|(own, base)| own / base).collect();
        let share = least_share(figure.core_share, *share);
        figure.ratio = Some(match Doubt::of_ratios(&ratios, share) {
            None => Ok(median(&ratios)),
            Some(doubt) => Err(doubt),
        });
    }
}

/// Returns a rate with three significant digits, as far as they are in front of the point.
pub(crate) fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powf((rate.max(1.0).log10().floor() - 2.0).max(0.0));
    (rate / unit).round() * unit
}
