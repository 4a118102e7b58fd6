//! The pairs of an account and a teller, drawn before the measurement begins.

use fastrand::Rng;

use super::knobs::TpcB;
use super::tables::TELLERS;
use crate::replay::{Stopped, draw_all};

/// One transaction's inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) account: u32,
    pub(super) teller: u32,
    pub(super) branch: u32,
    pub(super) amount: i32,
}

impl Request {
    /// Draws the requests of one thread.
    pub(super) fn draw_all(knobs: &TpcB, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Request> {
        draw_all(knobs.transactions, stopped, || Self::draw(knobs, rng))
    }

    fn draw(knobs: &TpcB, rng: &mut Rng) -> Request {
        if knobs.account_first {
            let account = rng.u64(..knobs.accounts_in_all());
            let amount = rng.i32(-1_000_000..1_000_000);
            return Self::of(account, account / (knobs.accounts / TELLERS), amount);
        }
        let teller = rng.u64(..knobs.branches * TELLERS);
        let own = teller / TELLERS;
        let branch = if knobs.branches > 1 && rng.u32(..100) < knobs.remote_pct {
            let other = rng.u64(..knobs.branches - 1);
            if other < own { other } else { other + 1 }
        } else {
            own
        };
        let account = branch * knobs.accounts + rng.u64(..knobs.accounts);
        Self::of(account, teller, rng.i32(-999_999..=999_999))
    }

    fn of(account: u64, teller: u64, amount: i32) -> Request {
        Request {
            account: account as u32,
            teller: teller as u32,
            branch: (teller / TELLERS) as u32,
            amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn the_share_of_accounts_of_other_branches_is_that_of_the_knob() {
        let knobs = TpcB { branches: 5, accounts: 100, transactions: 100_000, ..TpcB::strict() };
        let (mut remote, mut tellers) = (0, [0u32; 50]);
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            assert!(request.account < 500 && request.branch == request.teller / 10);
            tellers[request.teller as usize] += 1;
            remote += u32::from(request.account / 100 != request.branch);
        }
        assert!((14_500..15_500).contains(&remote), "{remote}");
        assert!(tellers.iter().all(|&count| (1_700..2_300).contains(&count)), "{tellers:?}");
    }

    #[test]
    fn numbers_of_published_accounts_and_tellers_correspond() {
        let knobs = TpcB { branches: 2, accounts: 30, transactions: 1_000, ..TpcB::published() };
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            assert_eq!(
                (request.teller, request.branch),
                (request.account / 3, request.account / 30)
            );
        }
    }
}
