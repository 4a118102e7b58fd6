//! The sampler against exact probabilities.

use candide_workloads::{Zipf, stream};

const DRAWS: u64 = 1_000_000;

/// Pearson's statistic of `DRAWS` samples against the exact distribution, normalized so that a
/// right sampler gives a standard normal value (Wilson and Hilferty's cube root).
fn deviation(ranks: u64, theta: f64) -> f64 {
    let zipf = Zipf::new(ranks, theta);
    let mut rng = stream(42, ranks);
    let mut counts = vec![0u64; ranks as usize];
    for _ in 0..DRAWS {
        counts[zipf.sample(&mut rng) as usize] += 1;
    }
    let weights: Vec<f64> = (1..=ranks).map(|k| (k as f64).powf(-theta)).collect();
    let total: f64 = weights.iter().sum();
    let statistic: f64 = counts
        .iter()
        .zip(&weights)
        .map(|(&count, weight)| {
            let expected = DRAWS as f64 * weight / total;
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    let freedom = (ranks - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
fn samples_match_the_exact_probabilities() {
    for theta in [0.0, 0.5, 0.8, 0.99, 1.0, 1.0001, 1.75, 2.0] {
        for ranks in [2, 10, 100] {
            let deviation = deviation(ranks, theta);
            assert!(
                deviation.abs() < 4.0,
                "theta {theta}, {ranks} ranks: {deviation} standard deviations"
            );
        }
    }
}

#[test]
fn the_hottest_of_ten_million_ranks_have_their_exact_share() {
    const RANKS: u64 = 10_000_000;
    let zipf = Zipf::new(RANKS, 0.99);
    let mut rng = stream(7, 0);
    let total: f64 = (1..=RANKS).map(|k| (k as f64).powf(-0.99)).sum();
    let hot: f64 = (1..=100).map(|k| f64::from(k).powf(-0.99)).sum();
    let draws = 200_000;
    let met = (0..draws).filter(|_| zipf.sample(&mut rng) < 100).count() as f64;
    let expected = f64::from(draws) * hot / total;
    assert!((met - expected).abs() < 4.0 * expected.sqrt(), "met {met}, expected {expected}");
}

#[test]
fn a_distribution_of_one_rank_always_draws_it() {
    let zipf = Zipf::new(1, 0.99);
    let mut rng = stream(1, 1);
    assert!((0..1000).all(|_| zipf.sample(&mut rng) == 0));
}
