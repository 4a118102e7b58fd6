//! The format of numbers on the page. Numbers are always exact to less than a hundredth of their
//! value, so that they can be compared with the JSON.

use crate::results::{MEBIBYTE, grouped};

/// Writes a count, with its digits in groups of three.
pub(crate) fn count(value: u64) -> String {
    grouped(value as f64)
}

/// Writes a number of transactions per second.
pub(crate) fn rate(value: f64) -> String {
    if value < 100.0 { decimal(value) } else { grouped(value) }
}

/// Writes a quantity of any size: exact to a thousandth if it is below ten, to a tenth if it is
/// below a thousand, and rounded to a whole number otherwise.
pub(crate) fn decimal(value: f64) -> String {
    match value {
        0.0 => "0".to_string(),
        value if value < 10.0 => format!("{value:.3}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value => grouped(value),
    }
}

/// Writes a fraction in per cent. A very small fraction is not shown as zero.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        0.0 => "0 %".to_string(),
        percent if percent < 0.1 => format!("{percent:.4} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// Writes a ratio, such as "1.50×".
pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.2}\u{d7}")
}

/// Writes a number of bytes in MiB.
pub(crate) fn mebibytes(bytes: u64) -> String {
    decimal(bytes as f64 / MEBIBYTE)
}

/// Writes a number at an axis in a short form.
pub(crate) fn short(value: f64) -> String {
    let (value, suffix) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    // Ticks have few digits. The further digits that binary fractions add are cut off.
    let text = format!("{value:.4}");
    format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Writes `count` with a noun, which is in the plural unless `count` is 1.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_grouped() {
        assert_eq!(
            [0.0, 0.14, 9.9996, 12.34, 123_456.7].map(decimal),
            ["0", "0.140", "10.000", "12.3", "123,457"]
        );
        assert_eq!([3.25, 99.0, 201_123.4].map(rate), ["3.250", "99.0", "201,123"]);
        assert_eq!(
            [0.0, 0.5, 20.0, 2500.0, 400_000.0, 1.2e6].map(short),
            ["0", "0.5", "20", "2.5k", "400k", "1.2M"]
        );
        assert_eq!(
            (percent(0.012_34), times(1.239), mebibytes(3 << 20)),
            ("1.23 %".into(), "1.24\u{d7}".into(), "3.000".into())
        );
        assert_eq!([1, 2].map(|threads| counted(threads, "thread")), ["1 thread", "2 threads"]);
    }
}
