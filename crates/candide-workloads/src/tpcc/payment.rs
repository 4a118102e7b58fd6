//! Payment: a customer pays a district.

use candide::schema::{Refused, Updater};
use candide::{Abort, Bytes, Column, Later, Protocol, Row, Tx};

use super::input::{PaymentInput, Who};
use super::knobs::HistoryKeys;
use super::rows::{
    Customer, CustomerId, District, DistrictId, History, NameKey, Namesakes, Warehouse, WarehouseId,
};
use super::store::Store;
use super::tame::Manner;
use super::text;
use super::trail::Announcer;

/// The mark of bad credit.
const BAD_CREDIT: Bytes<2> = Bytes::new(*b"BC");

/// The largest number of customers of one name among which the published code selects the middle
/// one.
const NAMESAKES_PUBLISHED: u16 = 100;

/// An update that inserts the payment and its place before all other text about a customer with bad
/// credit.
#[derive(Debug, Clone, Copy)]
struct Remark([u64; 6]);

impl Updater<Customer> for Remark {
    type Target = Column<Customer, Bytes<500>>;

    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Customer::DATA
    }

    fn apply(&self, data: &mut Bytes<500>) -> Result<(), Refused> {
        let mut bytes = [0; 500];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let told = size_of_val(&self.0);
        bytes[told..].copy_from_slice(&data.as_bytes()[..500 - told]);
        *data = Bytes::new(bytes);
        Ok(())
    }
}

impl<P: Protocol> Store<P> {
    /// Makes a payment. `number` is the payment's number among those of the customer's warehouse.
    /// Returns the customer's balance, if it is asked for.
    pub(super) fn payment(
        &self,
        tx: &Tx<'_, P>,
        input: &PaymentInput,
        number: u64,
        manner: &Manner,
        announcer: Announcer<'_>,
    ) -> Result<Option<Later<i64>>, Abort> {
        let &PaymentInput {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            amount,
            date,
            ..
        } = input;
        let tables = &self.tables;
        let home = tables.warehouses.find(tx, &warehouse)?;
        let place = tables.districts.find(tx, &(warehouse, district))?;
        place.prefetch((District::NAME, District::ZIP, District::YTD));
        let address = (
            Warehouse::STREET_1,
            Warehouse::STREET_2,
            Warehouse::CITY,
            Warehouse::STATE,
            Warehouse::ZIP,
        );
        let (warehouse_name, address) = home.read((Warehouse::NAME, address))?;
        announcer.writes(|writes| {
            writes.update::<Warehouse>(&warehouse, "takings");
            writes.update::<District>(&(warehouse, district), "takings");
        });
        // All payments write this column, and no payment reads it. The addition cannot fail, so it
        // may be deferred; the same is true of the additions to the district and to the customer.
        home.update(Warehouse::YTD.wrapping_add(amount))?;
        self.knobs.think.work();
        std::hint::black_box(address);
        let address = (
            District::STREET_1,
            District::STREET_2,
            District::CITY,
            District::STATE,
            District::ZIP,
        );
        let (district_name, address) = place.read((District::NAME, address))?;
        place.update(District::YTD.wrapping_add(amount))?;
        self.knobs.think.work();
        std::hint::black_box(address);

        let id = self.customer_of(tx, customer_warehouse, customer_district, input.who)?;
        let payer = tables.customers.find(tx, &(customer_warehouse, customer_district, id))?;
        payer.prefetch((Customer::CREDIT, Customer::BALANCE));
        let (_, credit, _) = std::hint::black_box(payer.read((
            Customer::SINCE,
            Customer::CREDIT,
            Customer::DISCOUNT,
        ))?);
        if self.knobs.full_output {
            read_identity(&payer)?;
        }
        let paid = history_id(self.knobs.history_keys, customer_district, id, number);
        announcer.writes(|writes| {
            writes.update::<Customer>(&(customer_warehouse, customer_district, id), "account");
            writes.insert::<History>(&(customer_warehouse, paid));
        });
        let balance = self.take_from(&payer, manner, amount)?;
        self.knobs.think.work();
        if self.knobs.credit_data && credit == BAD_CREDIT {
            let [id, customer_district, customer_warehouse] =
                [u64::from(id), u64::from(customer_district), u64::from(customer_warehouse)];
            let remark = [
                id,
                customer_district,
                customer_warehouse,
                u64::from(district),
                u64::from(warehouse),
                amount as u64,
            ];
            payer.update_with(Remark(remark))?;
            if self.knobs.full_output && !manner.is_deferred {
                std::hint::black_box(payer.read(Customer::DATA)?);
            }
        }
        let balance = match balance {
            None if self.knobs.payment_observes_balance => {
                manner.read();
                Some(Later::ready(payer.read(Customer::BALANCE)?))
            }
            balance => balance,
        };
        if !self.knobs.inserts {
            return Ok(balance);
        }
        tables.history.insert(
            tx,
            History {
                customer_warehouse,
                id: paid,
                customer: id,
                customer_district,
                district,
                warehouse,
                date,
                amount,
                data: text::paid_where(&warehouse_name, &district_name),
            },
        )?;
        Ok(balance)
    }

    /// Takes an amount from a customer's account. Returns the balance after that, if it is asked
    /// for and the change is left to the commit.
    fn take_from(
        &self,
        payer: &Row<'_, Customer, P>,
        manner: &Manner,
        amount: i64,
    ) -> Result<Option<Later<i64>>, Abort> {
        if manner.is_deferred && self.knobs.payment_observes_balance {
            let account = (Customer::BALANCE, Customer::YTD_PAYMENT, Customer::PAYMENTS);
            payer
                .defer(account, (), move |(balance, paid, payments), ()| {
                    *balance = balance.wrapping_sub(amount);
                    *paid = paid.wrapping_add(amount);
                    *payments = payments.wrapping_add(1);
                    *balance
                })
                .map(Some)
        } else {
            payer.update((
                Customer::BALANCE.wrapping_sub(amount),
                Customer::YTD_PAYMENT.wrapping_add(amount),
                Customer::PAYMENTS.wrapping_add(1),
            ))?;
            Ok(None)
        }
    }

    /// Returns the number of a customer. If several customers have the given name, returns the
    /// number of the customer in the middle of their list.
    pub(super) fn customer_of(
        &self,
        tx: &Tx<'_, P>,
        warehouse: WarehouseId,
        district: DistrictId,
        who: Who,
    ) -> Result<CustomerId, Abort> {
        let last = match who {
            Who::Number(id) => return Ok(id),
            Who::Name(last) => last,
        };
        let namesakes = self.tables.namesakes.find(tx, &NameKey { warehouse, district, last })?;
        let count = namesakes.read(Namesakes::COUNT)?;
        let middle = if self.knobs.sorted_names {
            (count - 1) / 2
        } else {
            count.min(NAMESAKES_PUBLISHED) / 2
        };
        namesakes.read(Namesakes::CUSTOMERS.at(usize::from(middle)))
    }
}

/// Reads the other columns of a customer that the standard displays.
#[inline]
fn read_identity<P: Protocol>(payer: &Row<'_, Customer, P>) -> Result<(), Abort> {
    let name = (Customer::FIRST, Customer::MIDDLE, Customer::LAST);
    let address = (
        Customer::STREET_1,
        Customer::STREET_2,
        Customer::CITY,
        Customer::STATE,
        Customer::ZIP,
        Customer::PHONE,
    );
    std::hint::black_box(payer.read((name, address, Customer::CREDIT_LIMIT))?);
    Ok(())
}

/// Returns the part of a payment's key that follows the customer's warehouse.
pub(super) fn history_id(
    keys: HistoryKeys,
    district: DistrictId,
    customer: CustomerId,
    number: u64,
) -> u64 {
    match keys {
        HistoryKeys::Sequential => number,
        // Numbers stay below 2^44, since no run lasts long enough for more payments.
        HistoryKeys::Customer => u64::from(district) << 60 | u64::from(customer) << 44 | number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_on_a_customer_replace_the_oldest() {
        let mut data = Bytes::from_fn(|index| index as u8);
        Remark([1, 2, 3, 4, 5, 6]).apply(&mut data).expect("total");
        let bytes = data.as_bytes();
        assert_eq!((bytes[0], bytes[8], bytes[40], bytes[41]), (1, 2, 6, 0));
        assert_eq!((bytes[48], bytes[49], bytes[499]), (0, 1, 451u16 as u8));
    }

    #[test]
    fn history_rows_of_one_customer_are_adjacent() {
        let key = |district, customer, number| {
            history_id(HistoryKeys::Customer, district, customer, number)
        };
        assert!(
            key(1, 3000, 9) < key(1, 3000, 10)
                && key(1, 3000, 10) < key(2, 1, 1)
                && key(2, 1, 1) < key(10, 1, 1)
        );
    }
}
