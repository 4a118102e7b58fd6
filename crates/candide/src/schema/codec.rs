//! Columns of types that are stored as another type.

#![forbid(unsafe_code)]

use super::field::Field;

/// The way in which columns store values of a type that is no [`Field`]: as values of one that is.
/// A field of a row has it by `#[record(with = ..)]`.
///
/// ```
/// use candide::{Codec, Database, Record, Whole};
///
/// /// An amount as another crate has it.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Money {
///     euros: i64,
///     cents: u8,
/// }
///
/// /// Money as cents.
/// struct Cents;
///
/// impl Codec for Cents {
///     type Value = Money;
///     type Stored = i64;
///
///     fn encode(money: &Money) -> i64 {
///         money.euros * 100 + i64::from(money.cents)
///     }
///
///     fn decode(cents: i64) -> Result<Money, String> {
///         if cents < 0 {
///             return Err(format!("{cents} cents are no amount"));
///         }
///         Ok(Money { euros: cents / 100, cents: (cents % 100) as u8 })
///     }
/// }
///
/// #[derive(Record, Clone, Copy, Debug, PartialEq)]
/// struct Product {
///     #[key]
///     id: u64,
///     #[record(with = Cents)]
///     price: Money,
/// }
///
/// let db = Database::new();
/// let products = db.table::<Product>("products")?;
/// let price = Money { euros: 3, cents: 50 };
/// let mut session = db.session()?;
/// session.run(|tx| {
///     products.insert(tx, Product { id: 7, price })?;
///     products.update(tx, 7, Product::PRICE.set(Money { euros: 4, cents: 0 }))?;
///     products.modify(tx, 7, Product::PRICE, |price| price.cents = 5)?;
///     assert_eq!(products.read(tx, 7, Product::PRICE)?, Money { euros: 4, cents: 5 });
///     // The stored numbers are a column, too, with the updates that such numbers have.
///     products.update(tx, 7, Product::PRICE.stored().sub(500))
/// })?;
/// // Such an update can leave what the codec refuses.
/// let read = session.run(|tx| products.read(tx, 7, Whole));
/// assert_eq!(read, Err(candide::Abort::Undecodable));
/// assert_eq!(
///     session.last_outcome().unwrap().to_string(),
///     "undecodable on products.price, key id: 7: -95 cents are no amount"
/// );
/// # Ok::<(), candide::Error>(())
/// ```
///
/// Files, exports and the tools have the type and the values as they are stored. So a column gets a
/// codec, or another one, without a migration if the stored type stays. An index of the column has
/// the stored values as keys: `#[index]` needs a stored type that is a [`Key`](crate::Key).
///
/// A read of stored words that `decode` refuses fails with
/// [`Abort::Undecodable`](crate::Abort::Undecodable), and an import with the place in the text.
/// Where no error can be returned, there is a panic: in [`Record::load`](crate::Record::load) and
/// [`Coded::take`](crate::schema::Coded::take), in the key of an index that
/// [`create_index`](crate::Table::create_index) makes, and for the old rows of a
/// [migration](crate::Builder::migrate), which ends in an error then. `decode` may be called twice
/// for one read, and depends on nothing but the stored value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a codec",
    label = "expected a type that implements `candide::Codec`",
    note = "`#[record(with = Cents)]` names a type `Cents` with `impl Codec for Cents`, whose `Value` is the type of the field"
)]
pub trait Codec: 'static {
    /// The type of the values.
    type Value: Copy + Send + Sync + 'static;
    /// The type of the column as it is stored.
    type Stored: Field;

    /// Returns a value as it is stored.
    fn encode(value: &Self::Value) -> Self::Stored;

    /// Returns the value that is stored so.
    ///
    /// # Errors
    /// The reason why there is no such value, for messages.
    fn decode(stored: Self::Stored) -> Result<Self::Value, String>;
}

/// A stored value that its column's codec has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecoded {
    /// The name of the column.
    pub(crate) column: &'static str,
    /// The reason that the codec has given.
    pub(crate) problem: String,
}

/// Returns the value that is stored so.
///
/// # Panics
/// If the codec refuses it.
#[inline]
pub fn decode<C: Codec>(stored: C::Stored, column: &str) -> C::Value {
    C::decode(stored).unwrap_or_else(|problem| refuse(column, &problem))
}

#[cold]
#[inline(never)]
fn refuse(column: &str, problem: &str) -> ! {
    panic!("column `{column}` has a value that its codec refuses: {problem}")
}
