//! An auction house: many threads bid for a few items, every bid must beat the one before, and
//! items close at their time.
//!
//! ```sh
//! cargo run --release -p candide --example auction
//! ```

use candide::{Abort, Database, Key, Prefix, Record, Session, Table, Tx, Whole};
use std::sync::atomic::{AtomicU64, Ordering};

const ITEMS: u32 = 8;
const BIDDERS: u32 = 20;
const THREADS: u64 = 4;
/// Bids of one bidder that may be open at a time.
const OPEN_BIDS_MAX: usize = 20;
/// Ticks of the clock, which moves with every bid, between the ends of two items.
const TICKS_PER_ITEM: u64 = 4_000;

/// What has become of an item. A field of such a type can be part of a key, in the order of the
/// declaration.
#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Closed,
}

/// Something for sale. The index on state and end finds the items that are due; a bid touches
/// neither column, so the highest bid is a group of its own.
#[derive(Record, Clone, Copy, Debug)]
#[record(ordered)]
#[index(columns(state, ends))]
struct Item {
    #[key]
    id: u32,
    state: State,
    ends: u64,
    winner: Option<u32>,
    #[group(bidding)]
    highest: u32,
}

/// An offer. No two offers for one item are equal, and the index that sees to this finds the
/// highest one.
#[derive(Record, Clone, Copy, Debug)]
#[unique(columns(item, cents), ordered)]
#[index(columns(bidder, open))]
struct Bid {
    #[key]
    id: u64,
    item: u32,
    bidder: u32,
    cents: u32,
    placed: u64,
    open: bool,
}

/// Why a bid was not taken.
enum BidError {
    /// The item is closed, or is about to be.
    TooLate,
    TooLow,
    TooManyOpen,
    /// The engine's word. Conflicts are repeated by `run` and never get here.
    Engine(Abort),
}

impl From<Abort> for BidError {
    fn from(abort: Abort) -> BidError {
        BidError::Engine(abort)
    }
}

/// The tables, and a clock.
struct House {
    items: Table<Item>,
    bids: Table<Bid>,
    clock: AtomicU64,
}

impl House {
    fn open(db: &Database) -> Result<House, candide::Error> {
        Ok(House { items: db.table("items")?, bids: db.table("bids")?, clock: AtomicU64::new(0) })
    }

    fn bid(
        &self,
        tx: &Tx<'_>,
        id: u64,
        item: u32,
        bidder: u32,
        cents: u32,
    ) -> Result<(), BidError> {
        let row = self.items.find(tx, item)?;
        let placed = self.clock.load(Ordering::Relaxed);
        let (state, ends) = row.read((Item::STATE, Item::ENDS))?;
        // The item may be due and not yet closed.
        if state != State::Open || placed >= ends {
            return Err(BidError::TooLate);
        }
        if self.open_bids(tx, bidder)?.len() >= OPEN_BIDS_MAX {
            return Err(BidError::TooManyOpen);
        }
        // All bid for the same items. Locked now, the highest bid cannot change before this
        // transaction ends.
        if cents <= row.read_for_update(Item::HIGHEST)? {
            return Err(BidError::TooLow);
        }
        row.update(Item::HIGHEST.set(cents))?;
        Ok(self.bids.insert(tx, Bid { id, item, bidder, cents, placed, open: true })?)
    }

    /// The items and amounts of a bidder's open bids.
    fn open_bids(&self, tx: &Tx<'_>, bidder: u32) -> Result<Vec<(u32, u32)>, Abort> {
        let by_bidder_open = self.bids.index(Bid::BY_BIDDER_OPEN);
        let rows = by_bidder_open.rows(tx, (bidder, true), (Bid::ITEM, Bid::CENTS));
        rows.map(|row| Ok(row?.1)).collect()
    }

    /// Who has offered most for an item: the last of its entries in the index on item and amount.
    fn highest_bid(&self, tx: &Tx<'_>, item: u32) -> Result<Option<(u32, u32)>, Abort> {
        let by_item_cents = self.bids.index(Bid::BY_ITEM_CENTS);
        let highest = by_item_cents.scan(tx, Prefix((item,)), (Bid::BIDDER, Bid::CENTS)).last()?;
        Ok(highest.map(|(_, bid)| bid))
    }

    /// Closes all open items whose time has come, in one transaction; gives their number.
    fn close_due(&self, tx: &Tx<'_>) -> Result<usize, Abort> {
        let now = self.clock.load(Ordering::Relaxed);
        let by_state_ends = self.items.index(Item::BY_STATE_ENDS);
        let by_item_cents = self.bids.index(Bid::BY_ITEM_CENTS);
        let mut closed = 0;
        // A scan sees the table as it was when the scan was made: that closed items leave the range
        // does not disturb it.
        for row in by_state_ends.scan(tx, (State::Open, 0)..=(State::Open, now), ()) {
            let (item, ()) = row?;
            let winner = self.highest_bid(tx, item)?.map(|(bidder, _)| bidder);
            // `modify`, not `update`: the index has to learn which entry moves.
            self.items.modify(tx, item, (Item::STATE, Item::WINNER), |columns| {
                *columns = (State::Closed, winner)
            })?;
            for bid in by_item_cents.scan(tx, Prefix((item,)), ()) {
                self.bids.modify(tx, bid?.0, Bid::OPEN, |open| *open = false)?;
            }
            closed += 1;
        }
        Ok(closed)
    }
}

/// What came of bids.
#[derive(Default, Debug)]
struct Tally {
    taken: usize,
    too_low: usize,
    too_many_open: usize,
    too_late: usize,
    items_closed: usize,
}

/// One thread: bids on behalf of all bidders until the auction has ended, and now and then closes
/// what is due.
fn work(house: &House, session: &mut Session, seed: u64) -> Result<Tally, Abort> {
    let mut tally = Tally::default();
    let mut random = seed;
    let mut below = |bound: u32| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % bound
    };
    for number in 0.. {
        let is_over =
            house.clock.fetch_add(1, Ordering::Relaxed) >= u64::from(ITEMS) * TICKS_PER_ITEM;
        if is_over || number % 64 == 0 {
            tally.items_closed += session.run(|tx| house.close_due(tx))?;
        }
        if is_over {
            break;
        }
        let (item, bidder) = (below(ITEMS), below(BIDDERS));
        let cents = session.run(|tx| house.items.read(tx, item, Item::HIGHEST))? + below(20);
        match session.try_run(|tx| house.bid(tx, seed << 32 | number, item, bidder, cents)) {
            Ok(()) => tally.taken += 1,
            Err(BidError::TooLow) => tally.too_low += 1,
            Err(BidError::TooManyOpen) => tally.too_many_open += 1,
            Err(BidError::TooLate) => tally.too_late += 1,
            Err(BidError::Engine(abort)) => return Err(abort),
        }
        let open = session.run(|tx| house.open_bids(tx, bidder))?;
        assert!(open.len() <= OPEN_BIDS_MAX, "the limit holds at every moment: {open:?}");
    }
    Ok(tally)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::new();
    let house = &House::open(&db)?;
    let item = |id| Item {
        id,
        state: State::Open,
        ends: u64::from(id + 1) * TICKS_PER_ITEM,
        winner: None,
        highest: 0,
    };
    db.run(|tx| house.items.insert_many(tx, (0..ITEMS).map(item)))?;

    let mut tallies = Vec::new();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 1..=THREADS {
            let mut session = db.session()?;
            threads.push(scope.spawn(move || work(house, &mut session, seed)));
        }
        for thread in threads {
            tallies.push(thread.join().expect("the limit holds")?);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    tallies.iter().for_each(|tally| println!("{tally:?}"));

    // Check by a search through all bids what was found through indexes.
    let items = db.run(|tx| {
        house.items.iter(tx, Whole).map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>()
    })?;
    let bids = db.run(|tx| {
        house.bids.iter(tx, Whole).map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>()
    })?;
    assert_eq!(
        bids.len(),
        tallies.iter().map(|tally| tally.taken).sum::<usize>(),
        "every bid that was taken is there"
    );
    assert_eq!(
        items.len(),
        tallies.iter().map(|tally| tally.items_closed).sum::<usize>(),
        "each item closed once"
    );
    for item in items {
        let offers = || bids.iter().filter(|bid| bid.item == item.id);
        let highest = offers().max_by_key(|bid| bid.cents);
        println!(
            "item {}: {} bids, won by bidder {:?} for {} cents",
            item.id,
            offers().count(),
            item.winner,
            item.highest
        );
        assert_eq!(item.winner, highest.map(|bid| bid.bidder), "the winner offered most");
        assert_eq!(item.highest, highest.map_or(0, |bid| bid.cents), "the highest bid is a bid");
        assert_eq!(item.state, State::Closed);
        assert!(offers().all(|bid| bid.placed < item.ends), "no bid came late");
    }
    assert!(bids.iter().all(|bid| !bid.open), "all is over");
    println!(
        "{} bids taken; {} attempts met a conflict and were repeated",
        bids.len(),
        db.stats().retries
    );
    Ok(())
}
