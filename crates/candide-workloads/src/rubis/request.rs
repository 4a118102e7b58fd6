//! The requests of users, drawn before the measurement begins.

use fastrand::Rng;

use super::knobs::Rubis;
use super::tables::FIRST_BID;
use crate::Zipf;
use crate::replay::{Stopped, draw_all};
use crate::rng::draw_kind;

/// The largest amount by which varying bids exceed the first bids. The range is so large that two
/// bids are hardly ever equal. The inputs are drawn once and then repeated in a cycle. So from the
/// second cycle on, no bid exceeds the price.
const RISE: u32 = 1_000_000;

/// One transaction's inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Request {
    PlaceBid { item: u32, user: u32, bid: u32, max_bid: u32 },
    BuyNow { item: u32, user: u32 },
    ViewItem { item: u32 },
}

impl Request {
    /// Returns the number of the type, in the order of [`super::KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Request::PlaceBid { .. } => 0,
            Request::BuyNow { .. } => 1,
            Request::ViewItem { .. } => 2,
        }
    }

    /// Draws the requests of one thread.
    pub(super) fn draw_all(knobs: &Rubis, rng: &mut Rng, stopped: Stopped<'_>) -> Vec<Request> {
        let items = Zipf::new(knobs.items, knobs.theta_items);
        let users = Zipf::new(knobs.users, knobs.theta_users);
        let draw = || {
            let kind = draw_kind(&knobs.weights, rng);
            let (item, user) = (items.sample(rng) as u32, users.sample(rng) as u32 + 1);
            match kind {
                0 if knobs.vary_bids => {
                    let bid = FIRST_BID + rng.u32(1..=RISE);
                    Request::PlaceBid { item, user, bid, max_bid: bid }
                }
                0 => {
                    let bid = FIRST_BID + rng.u32(1..=10) - 5;
                    Request::PlaceBid { item, user, bid, max_bid: FIRST_BID }
                }
                1 => Request::BuyNow { item, user },
                _ => Request::ViewItem { item },
            }
        };
        draw_all(knobs.transactions, stopped, draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn requests_follow_the_weights_skew_and_range_of_their_knobs() {
        let knobs = Rubis { items: 1000, users: 10, transactions: 100_000, ..Rubis::strict() };
        let (mut kinds, mut first, mut highest) = ([0u32; 3], 0, 0);
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            kinds[request.kind()] += 1;
            let (Request::PlaceBid { item, .. }
            | Request::BuyNow { item, .. }
            | Request::ViewItem { item }) = request;
            assert!(item < 1000);
            first += u32::from(item == 0);
            if let Request::PlaceBid { user, bid, max_bid, .. } = request {
                assert!((1..=10).contains(&user) && bid == max_bid && bid > FIRST_BID);
                highest = highest.max(bid);
            }
        }
        for (drawn, weight) in kinds.into_iter().zip(knobs.weights) {
            assert!(drawn.abs_diff(weight * 1000) < 1000, "{kinds:?}");
        }
        // The first item has a share of 1 / H(1000), where H(1000) = 7.485.
        assert!((12_900..13_900).contains(&first), "{first}");
        assert!(highest > 900_000, "{highest}");
    }

    #[test]
    fn published_bids_never_rise() {
        let knobs =
            Rubis { items: 10, weights: [1, 0, 0], transactions: 1000, ..Rubis::published() };
        for request in Request::draw_all(&knobs, &mut stream(1, 0), &|| false) {
            let Request::PlaceBid { bid, max_bid, .. } = request else {
                panic!("only bids have a weight")
            };
            assert!((36..=45).contains(&bid) && max_bid == FIRST_BID);
        }
    }
}
