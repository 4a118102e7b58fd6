//! Calculations with measured numbers, and their form in texts.

/// The number of bytes in a mebibyte.
pub(crate) const MEBIBYTE: f64 = 1048576.0;

/// Returns the median of `values`, which are not empty. If their number is even, the median is the
/// mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Returns the smallest and the largest of `values`.
pub fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
}

/// Returns the share of attempts that were aborted.
pub(crate) fn abort_ratio(committed: u64, aborted: u64) -> f64 {
    let attempts = committed + aborted;
    if attempts == 0 { 0.0 } else { aborted as f64 / attempts as f64 }
}

/// Writes a number rounded to a whole one, with its digits in groups of three.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_values_is_their_middle() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), 5.5);
    }

    #[test]
    fn digits_of_large_numbers_are_grouped_by_thousands() {
        let texts = [0.4, 12.0, 999.6, 123_456.0, 1_234_567.2].map(grouped);
        assert_eq!(texts, ["0", "12", "1,000", "123,456", "1,234,567"]);
    }
}
