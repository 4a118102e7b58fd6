//! The arguments of Wikipedia.

use candide_workloads::wikipedia::{Texts, Wikipedia};
use clap::{Args, ValueEnum};

use super::values::{weights, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct WikipediaArgs {
    /// Users [default: 2000, or 20000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    users: Option<u64>,

    /// Pages; a page and its revisions take about 200 KB [default: 1000, or 10000 with --profile
    /// paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    pages: Option<u64>,

    /// Relative frequencies of the transaction types: add-watch, remove-watch, update-page,
    /// list-namespace, get-page-anonymous, get-page-authenticated
    #[arg(long, value_parser = weights::<6>, default_value = "700,700,46725,474218,468438,9219", allow_hyphen_values = true)]
    weights: [u32; 6],

    /// List each user that watches an article as a watcher of its talk page, too, until the user
    /// stops watching the article. The published measurements do not [default: on, or off with
    /// --profile paper]
    #[arg(long, value_enum)]
    index_talk: Option<Switch>,

    /// Tables that are not scanned are hashed (on) or ordered (off) [default: on, or off with
    /// --profile paper]
    #[arg(long, value_enum)]
    hash_index: Option<Switch>,

    /// The bytes of a text are a column of its row (whole), or rows of 2 KiB (parts)
    #[arg(long, value_enum, default_value_t = TextsChoice::Whole)]
    texts: TextsChoice,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TextsChoice {
    Whole,
    Parts,
}

impl WikipediaArgs {
    pub(crate) fn workload(&self) -> Wikipedia {
        let profile = self.common.by_profile(Wikipedia::strict(), Wikipedia::published());
        Wikipedia {
            users: self.users.unwrap_or(profile.users),
            pages: self.pages.unwrap_or(profile.pages),
            weights: self.weights,
            index_talk: self.index_talk.map_or(profile.index_talk, Switch::is_on),
            hash_index: self.hash_index.map_or(profile.hash_index, Switch::is_on),
            texts: match self.texts {
                TextsChoice::Whole => Texts::Whole,
                TextsChoice::Parts => Texts::Parts,
            },
            transactions: self.transactions,
        }
    }
}
