//! The requests of customers, drawn before the measurement begins.

use fastrand::Rng;

use super::knobs::{Customers, HOT_SHARE, SmallBank};
use crate::Zipf;
use crate::replay::{Stopped, draw_all};
use crate::rng::draw_kind;

/// The sums that customers move in BenchBase, in cents.
const DEPOSIT: i64 = 130;
const SAVING: i64 = 2020;
const CHECK: i64 = 500;
const PAYMENT: i64 = 500;

/// One transaction's inputs. Customers are given by number. Transactions that look up customers by
/// name convert these numbers to names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    Amalgamate { from: u64, to: u64 },
    Balance { customer: u64 },
    DepositChecking { customer: u64, cents: i64 },
    SendPayment { from: u64, to: u64, cents: i64 },
    TransactSavings { customer: u64, cents: i64 },
    WriteCheck { customer: u64, cents: i64 },
}

impl Request {
    /// Returns the number of the type, in the order of [`super::KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Request::Amalgamate { .. } => 0,
            Request::Balance { .. } => 1,
            Request::DepositChecking { .. } => 2,
            Request::SendPayment { .. } => 3,
            Request::TransactSavings { .. } => 4,
            Request::WriteCheck { .. } => 5,
        }
    }

    /// Draws the requests of one thread.
    pub(super) fn draw_all(knobs: &SmallBank, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Request> {
        let crowd = Crowd::new(knobs);
        draw_all(knobs.transactions, stopped, || Self::draw(knobs, &crowd, rng))
    }

    fn draw(knobs: &SmallBank, crowd: &Crowd, rng: &mut Rng) -> Request {
        let customer = crowd.sample(rng);
        match draw_kind(&knobs.weights, rng) {
            0 => Request::Amalgamate { from: customer, to: crowd.sample_other(customer, rng) },
            1 => Request::Balance { customer },
            2 => Request::DepositChecking { customer, cents: DEPOSIT },
            3 => Request::SendPayment {
                from: customer,
                to: crowd.sample_other(customer, rng),
                cents: PAYMENT,
            },
            // Deposits and withdrawals are equally likely, so that the sum of all savings stays
            // about the same. The savings of one customer may shrink or grow, since the inputs are
            // repeated.
            4 => Request::TransactSavings {
                customer,
                cents: if rng.bool() { SAVING } else { -SAVING },
            },
            _ => Request::WriteCheck { customer, cents: CHECK },
        }
    }
}

/// The customers to draw from.
enum Crowd {
    Zipf(Zipf),
    Hotspot { hot: u64, accounts: u64 },
}

impl Crowd {
    fn new(knobs: &SmallBank) -> Self {
        match knobs.customers {
            Customers::Theta(theta) => Crowd::Zipf(Zipf::new(knobs.accounts, theta)),
            Customers::Hotspot(hot) => Crowd::Hotspot { hot, accounts: knobs.accounts },
        }
    }

    fn sample(&self, rng: &mut Rng) -> u64 {
        match *self {
            Crowd::Zipf(zipf) => zipf.sample(rng),
            Crowd::Hotspot { hot, .. } if rng.f64() < HOT_SHARE => rng.u64(..hot),
            Crowd::Hotspot { hot, accounts } => rng.u64(hot..accounts),
        }
    }

    /// Returns another customer than `customer`.
    fn sample_other(&self, customer: u64, rng: &mut Rng) -> u64 {
        loop {
            let other = self.sample(rng);
            if other != customer {
                return other;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn weights_decide_how_often_a_type_is_drawn() {
        let knobs = SmallBank {
            weights: [1, 0, 2, 0, 3, 4],
            transactions: 100_000,
            ..SmallBank::bench_base()
        };
        let mut drawn = [0u32; 6];
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            drawn[request.kind()] += 1;
        }
        for (drawn, weight) in drawn.into_iter().zip(knobs.weights) {
            let expected = weight * 10_000;
            assert!(drawn.abs_diff(expected) <= expected / 20, "{drawn} of weight {weight}");
        }
    }

    #[test]
    fn payments_have_two_accounts_and_the_hotspot_has_its_share() {
        let knobs = SmallBank {
            accounts: 100,
            customers: Customers::Hotspot(1),
            weights: [0, 0, 0, 1, 0, 0],
            transactions: 10_000,
        };
        let mut hot = 0;
        for request in Request::draw_all(&knobs, &mut stream(2, 0), &|| false) {
            let Request::SendPayment { from, to, .. } = request else {
                panic!("only payments have a weight")
            };
            assert_ne!(from, to);
            assert!(from < 100 && to < 100);
            hot += u32::from(from == 0);
        }
        assert!((8_800..9_200).contains(&hot), "{hot} of 10,000 from the hotspot");
    }
}
