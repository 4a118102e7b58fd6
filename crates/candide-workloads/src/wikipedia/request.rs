//! The requests of users for pages, drawn before the measurement begins.

use fastrand::Rng;

use super::knobs::{THETA_PAGES, Wikipedia};
use crate::Zipf;
use crate::replay::{Stopped, draw_all};
use crate::rng::draw_kind;

/// The transaction types, numbered as in [`super::KINDS`].
pub(super) const ADD_WATCH: usize = 0;
pub(super) const REMOVE_WATCH: usize = 1;
pub(super) const UPDATE_PAGE: usize = 2;
pub(super) const LIST_NAMESPACE: usize = 3;
pub(super) const GET_PAGE_ANONYMOUS: usize = 4;
pub(super) const GET_PAGE_AUTHENTICATED: usize = 5;

/// One transaction's inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) kind: usize,
    pub(super) user: u32,
    pub(super) page: u32,
}

impl Request {
    /// Draws the requests of one thread.
    pub(super) fn draw_all(knobs: &Wikipedia, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Request> {
        let pages = Zipf::new(knobs.pages, THETA_PAGES);
        let draw = || Request {
            kind: draw_kind(&knobs.weights, rng),
            user: rng.u32(1..=knobs.users as u32),
            page: pages.sample(rng) as u32 + 1,
        };
        draw_all(knobs.transactions, stopped, draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn types_users_and_pages_are_drawn_with_published_shares() {
        let knobs = Wikipedia { transactions: 200_000, ..Wikipedia::published() };
        let (mut kinds, mut first) = ([0; 6], 0);
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            assert!((1..=20_000).contains(&request.user) && (1..=10_000).contains(&request.page));
            kinds[request.kind] += 1;
            first += u32::from(request.page == 1);
        }
        for (drawn, weight) in kinds.into_iter().zip(knobs.weights) {
            let expected = f64::from(weight) / 5.0;
            assert!((f64::from(drawn) - expected).abs() < 4.0 * expected.sqrt(), "{kinds:?}");
        }
        // The first page has a share of 1 / 9.78, where 9.78 is the sum of i^-1.0001.
        assert!((20_000..21_000).contains(&first), "{first}");
    }
}
