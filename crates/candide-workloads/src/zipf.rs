//! Zipf-distributed ranks, without a table.

use fastrand::Rng;

/// The largest exponent accepted. With larger exponents, nearly every draw is rank 0, and drawing
/// distinct keys would not end.
pub const THETA_MAX: f64 = 2.0;

/// Draws ranks from 0 to n - 1 with probability proportional to 1 / (rank + 1)^theta; theta 0 is
/// uniform.
///
/// This is rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", 1996). This method is exact for every exponent, 1
/// included, and needs no sum over the ranks. Most YCSB drivers use a closed form. That form is
/// only an approximation, fails from exponent 1 on, and needs a pass over all ranks at the start.
/// The idea of the method: the area under the curve x^-theta over [k - 1/2, k + 1/2] is at least
/// k^-theta, since the curve is convex. So the sampler draws a point under the curve by inverting
/// the curve's integral, rounds to the nearest k, and rejects the part of the area that exceeds
/// k^-theta.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    ranks: f64,
    theta: f64,
    /// The integral at the left end of the first bar. The first bar is exactly as wide as the share
    /// of rank 0.
    integral_low: f64,
    /// The integral at the right end of the last bar.
    integral_high: f64,
    /// A point that is less than this above its rounded rank is accepted without evaluating the
    /// curve.
    sure: f64,
}

impl Zipf {
    /// Creates a sampler of `ranks` ranks (at least one) with exponent `theta` (from 0 to
    /// [`THETA_MAX`]).
    pub fn new(ranks: u64, theta: f64) -> Self {
        assert!(
            ranks > 0 && (0.0..=THETA_MAX).contains(&theta),
            "a rank at least, and theta in range"
        );
        let mut zipf =
            Zipf { ranks: ranks as f64, theta, integral_low: 0.0, integral_high: 0.0, sure: 0.0 };
        zipf.integral_low = zipf.integral(1.5) - 1.0;
        zipf.integral_high = zipf.integral(zipf.ranks + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws a rank, counted from 0.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.integral_high + rng.f64() * (self.integral_low - self.integral_high);
            let x = self.inverse(area);
            let k = x.round().clamp(1.0, self.ranks);
            if k - x <= self.sure || area >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }

    /// Returns k^-theta.
    fn weight(&self, k: f64) -> f64 {
        (-self.theta * k.ln()).exp()
    }

    /// Returns the integral of t^-theta from 1 to `x`: (x^(1-theta) - 1) / (1 - theta), whose limit
    /// at theta 1 is ln x.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        log * expm1_over((1.0 - self.theta) * log)
    }

    /// Returns the `x` whose [`Zipf::integral`] is `area`.
    fn inverse(&self, area: f64) -> f64 {
        let t = ((1.0 - self.theta) * area).max(-1.0);
        (area * ln1p_over(t)).exp()
    }
}

/// Returns (e^x - 1) / x. Near 0, where the quotient loses all digits, returns 1 + x / 2.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// Returns ln(1 + x) / x. Near 0, returns 1 - x / 2.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}
