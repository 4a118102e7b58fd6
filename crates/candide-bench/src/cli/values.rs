//! Values of options: numbers, times and weights. The error of each parser names the values
//! allowed.

use std::time::Duration;

use candide::Level;
use candide_harness::level_name;
use candide_workloads::Think;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The largest number of threads of a run; each thread has its own session.
const THREADS_MAX: u64 = 1_024;

/// The longest duration, which is short enough to be added to an `Instant`.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Parses a whole number of an unsigned type.
pub(super) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole_between(text, 0, u64::MAX >> (u64::BITS - 8 * size_of::<T>() as u32))
}

/// Parses a whole number above 0.
pub(super) fn positive<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole_between(text, 1, u64::MAX >> (u64::BITS - 8 * size_of::<T>() as u32))
}

/// Parses a number of threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    whole_between(text, 1, THREADS_MAX)
}

/// Returns the parser of levels of durability.
pub(super) fn level() -> impl TypedValueParser<Value = Level> {
    let levels = [Level::Memory, Level::Written, Level::Durable];
    PossibleValuesParser::new(levels.map(level_name)).map(move |name| {
        let named = levels.into_iter().find(|&level| level_name(level) == name);
        named.expect("the parser allows these names only")
    })
}

/// Parses a percentage.
pub(super) fn percent(text: &str) -> Result<u32, String> {
    whole_between(text, 0, 100)
}

fn whole_between<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

/// Parses a number, with or without a decimal point.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a number, such as 0.5".to_string())
}

/// Parses a number of transactions per second. The limit of a billion is more than threads can
/// execute, and small enough for the beginnings to be counted.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate| 0.0 < rate && rate <= 1e9);
    rate.ok_or_else(|| "expected a number above 0 and up to a billion, such as 25000".to_string())
}

/// Parses a fraction above 0 and up to 1.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|&fraction| 0.0 < fraction && fraction <= 1.0);
    fraction.ok_or_else(|| "expected a number above 0 and up to 1, such as 0.1".to_string())
}

/// Parses a share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, such as 0.01".to_string())
}

/// Parses a time above zero, which is in seconds if it has no unit.
pub(super) fn positive_duration_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let duration = seconds.or_else(|| humantime::parse_duration(text).ok());
    let duration = duration.filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX);
    duration.ok_or_else(|| {
        "expected a time above 0s and up to 365d, in seconds or with a unit, such as 60 or 8h"
            .to_string()
    })
}

/// Parses a time that may be zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration =
        humantime::parse_duration(text).ok().filter(|duration| *duration <= DURATION_MAX);
    duration.ok_or_else(|| {
        "expected a time from 0s to 365d, with its unit, such as 5s or 200ms".to_string()
    })
}

/// Parses a time above zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| {
        "expected a time above 0s and up to 365d, with its unit, such as 5s or 200ms".to_string()
    })
}

/// Parses the time for which a transaction works after each of its operations.
pub(super) fn think(text: &str) -> Result<Think, String> {
    duration(text).ok().and_then(Think::new).ok_or_else(|| {
        "expected 0, or a time up to 1ms with its unit, such as 500ns or 2us".to_string()
    })
}

/// Parses `N` numbers, such as one weight for each transaction type.
pub(super) fn weights<const N: usize>(list: &str) -> Result<[u32; N], String> {
    let weights: Option<Vec<u32>> =
        list.split(',').map(|weight| weight.trim().parse().ok()).collect();
    weights.and_then(|weights| weights.try_into().ok()).ok_or_else(|| {
        let example = ["15"; N].join(",");
        format!("expected {N} whole numbers separated by commas, such as {example}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_answered_with_their_range() {
        fn range<T>(most: &str) -> Result<T, String> {
            Err(format!("expected a whole number from 0 to {most}"))
        }
        assert_eq!((whole::<u16>("65535"), whole::<u16>("65536")), (Ok(65_535), range("65535")));
        assert_eq!((whole::<u32>("0"), whole::<u32>("-1")), (Ok(0), range("4294967295")));
        assert_eq!(whole::<u64>(&u64::MAX.to_string()), Ok(u64::MAX));
        assert_eq!(whole::<u64>("18446744073709551616"), range("18446744073709551615"));
        assert_eq!(
            positive::<u16>("0"),
            Err("expected a whole number from 1 to 65535".to_string())
        );
        assert_eq!((threads("1024"), threads("1")), (Ok(1_024), Ok(1)));
        for text in ["0", "-1", "1025", "", "two", "1.5"] {
            assert_eq!(
                threads(text),
                Err("expected a whole number from 1 to 1024".to_string()),
                "{text}"
            );
        }
        assert_eq!(percent("100"), Ok(100));
        assert_eq!(percent("101"), Err("expected a whole number from 0 to 100".to_string()));
        assert_eq!((number("-0.5"), number("2")), (Ok(-0.5), Ok(2.0)));
        for text in ["x", "", "nan", "inf"] {
            assert_eq!(number(text), Err("expected a number, such as 0.5".to_string()), "{text}");
        }
    }

    #[test]
    fn invalid_shares_and_times_of_runs_are_refused_with_the_valid_range() {
        assert_eq!((share("0"), share("0.25"), share("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for text in ["", "x", "-0.1", "1.1", "nan"] {
            assert_eq!(share(text), Err("expected a number from 0 to 1, such as 0.01".to_string()));
        }
        let seconds = Duration::from_secs;
        assert_eq!(positive_duration_or_seconds("60"), Ok(seconds(60)));
        assert_eq!(positive_duration_or_seconds("2m"), Ok(seconds(120)));
        for text in ["", "0", "-1", "366d", "x", "99999999999999999999"] {
            let refused = positive_duration_or_seconds(text).expect_err(text);
            assert!(refused.contains("in seconds or with a unit, such as 60 or 8h"), "{refused}");
        }
    }

    #[test]
    fn think_times_are_answered_with_their_range_and_unit() {
        assert_eq!((think("0"), think("0s")), (Ok(Think::NONE), Ok(Think::NONE)));
        for (text, nanos) in [("1ns", 1), ("0.5us", 500), ("2us", 2_000), ("1ms", 1_000_000)] {
            assert_eq!(think(text).ok(), Think::new(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["1000001ns", "1s", "500", "-1us", "1us,2us", "us", "soon", ""] {
            assert_eq!(
                think(text),
                Err("expected 0, or a time up to 1ms with its unit, such as 500ns or 2us"
                    .to_string()),
                "{text}"
            );
        }
    }

    #[test]
    fn times_are_answered_with_their_range_and_unit() {
        assert_eq!(
            (duration("0s"), positive_duration("365d")),
            (Ok(Duration::ZERO), Ok(DURATION_MAX))
        );
        for text in ["0", "0s", "5", "-5s", "366d", "s", "5x", "", "999999999999999999999s"] {
            let refused = positive_duration(text).expect_err(text);
            assert!(
                refused.starts_with("expected a time above 0s and up to 365d, with its unit"),
                "{refused}"
            );
        }
        assert!(
            duration("5")
                .is_err_and(|refused| refused.starts_with("expected a time from 0s to 365d"))
        );
    }
}
