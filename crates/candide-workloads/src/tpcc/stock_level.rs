//! Stock-level: counts the items in the recent orders of a district that are running out.

use candide::{Abort, Protocol, Tx};

use super::input::StockLevelInput;
use super::knobs::OrderIds;
use super::rows::{District, ItemId, OrderLine, Stock};
use super::store::Store;
use super::tables::find_up_to;

/// The number of a district's newest orders that count as recent.
const ORDERS: u32 = 20;
/// The number of stocks that are looked up at once.
const AT_ONCE: usize = 16;

impl<P: Protocol> Store<P> {
    /// Returns the number of items that are running out. `items` is a buffer for the numbers of the
    /// items ordered.
    pub(super) fn stock_level(
        &self,
        tx: &Tx<'_, P>,
        input: &StockLevelInput,
        items: &mut Vec<ItemId>,
    ) -> Result<u32, Abort> {
        let &StockLevelInput { warehouse, district, threshold } = input;
        let tables = &self.tables;
        let next = match self.knobs.order_ids {
            OrderIds::PerAttempt | OrderIds::Once => self.numbers.next_order(warehouse, district),
            OrderIds::District => {
                tables.districts.read(tx, &(warehouse, district), District::NEXT_ORDER)?
            }
        };
        let (first, end) =
            ((warehouse, district, next.saturating_sub(ORDERS), 0), (warehouse, district, next, 0));
        let range = if self.knobs.stock_level_empty_scan { end..first } else { first..end };
        items.clear();
        for line in tables.order_lines.scan(tx, range, OrderLine::ITEM) {
            items.push(line?.1);
        }
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for some in items.chunks(AT_ONCE) {
            let mut keys = [(warehouse, 0); AT_ONCE];
            keys.iter_mut().zip(some).for_each(|((_, item), some)| *item = *some);
            find_up_to::<AT_ONCE, _, _, Abort>(
                &tables.stocks,
                tx,
                &keys[..some.len()],
                |_, stock| {
                    low += u32::from(stock.read(Stock::QUANTITY)? < threshold);
                    Ok(())
                },
            )?;
        }
        Ok(low)
    }
}
