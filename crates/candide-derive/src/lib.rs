//! The derive macros of [Candide](https://docs.rs/candide), which re-exports them:
//! [`Record`](macro@Record) for the rows of tables, [`Key`](macro@Key) for composite keys and enums,
//! [`Field`](macro@Field) for columns that consist of parts, [`Tables`](macro@Tables) for the handles
//! of a program.

#![forbid(unsafe_code)]

// Layers, lowest first: attributes, record, expand, key, field, tables.
mod attributes;
mod expand;
mod field;
mod key;
mod record;
mod tables;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields the row of a table, and its fields columns.
///
/// ```
/// use candide::{Database, Record, Text, Whole};
///
/// /// An account.
/// #[derive(Record, Clone, Copy, Debug, PartialEq)]
/// struct Account {
///     #[key]
///     id: u64,
///     /// Whose it is.
///     #[index]
///     owner: Text<32>,
///     frozen: bool,
///     #[group(balance)]
///     cents: i64,
///     #[group(history)]
///     months: [i64; 12],
/// }
///
/// let db = Database::new();
/// let accounts = db.table::<Account>("accounts")?;
/// let owner = Text::new("Pangloss")?;
/// let account = Account { id: 1, owner, frozen: false, cents: 500, months: [0; 12] };
/// db.run(|tx| accounts.insert(tx, account))?;
/// db.run(|tx| {
///     accounts.update(tx, 1, (Account::CENTS.sub(20).at_least(0), Account::FROZEN.set(true)))?;
///     accounts.update(tx, 1, Account::MONTHS.at(3).add(-20))?;
///     assert_eq!(accounts.read(tx, 1, (Account::ID, Account::OWNER, Account::CENTS))?, (1, owner, 480));
///     accounts.read(tx, 1, Whole)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The struct derives `Clone`, too, or `Clone` and `Copy`, and has no generic parameters. Its
/// fields have the types that implement `Field`: the integers, `f32`, `f64`, `bool`, `char`,
/// `Bytes<N>`, `Text<N>`, times and addresses of the standard library, enums (and structs of one
/// field) that derive [`Key`](macro@Key), structs and enums with data that derive
/// [`Field`](macro@Field), and options and arrays of all these; or they are `String`, `Vec<u8>`,
/// `Json<T>`, or an option of one; any other type has a codec.
///
/// # Constants
/// Every field gets a constant, which is named like it in capitals, is as visible as it is, and has
/// its documentation:
///
/// | field | constant | can be |
/// |---|---|---|
/// | part of the key | `KeyColumn<Row, T>` | read |
/// | kept by an index | `Column<Row, T, Indexed>` | read, modified |
/// | with a codec | `Coded<Row, C>` | read, modified, set |
/// | `String`, `Vec<u8>`, an option of one | `Column<Row, T>` | read, modified, set |
/// | any other | `Column<Row, T>` | read, modified, updated |
///
/// An index gets an `IndexOf<Row, K, Ordered>` or `IndexOf<Row, K, Hashed>`, where `K` is the type
/// of its column or the tuple of the types of several; of a `String` with `bytes = 120` it is
/// `Text<120>`, of a `Vec<u8>` `BytesUpTo<120>`. The constant is no more visible than any of
/// the index's columns.
///
/// # Attributes of fields
/// | attribute | |
/// |---|---|
/// | `#[key]` | The field is the primary key; or part of it, if there are several: the key is then a tuple in their order. A key of more than four parts, or with a part that is a struct of more than four words, is one field whose type derives [`Key`](macro@Key). |
/// | `#[group(name)]` | The field lies in this column group, which is in conflict with nothing but itself. Fields without the attribute are in a group called `row`, the first one. |
/// | `#[index]` | The field, which is not the whole primary key, has a secondary index, `by_` and its name. In parentheses: `hash` or `ordered` (which it is by default), `name = ..` for another name; for a `String` or `Vec<u8>`, or an option of one, `bytes = 120`, the most bytes of a value that can be stored, from 1 to 240, by default 64. (A type that is one of these under another name needs the number.) |
/// | `#[unique]` | As `#[index]`, but no two rows have the same value, nor are two `None` of an option allowed; `hash` by default. |
/// | `#[column(NAME)]` | The constant has another name. |
/// | `#[default = 5]`, `#[default(State::Open)]`, `#[default]` | The value of the column in rows that were made without the column: a literal, for a text a string, or an expression in parentheses; or that of `Default`. Descriptions of tables have it. |
/// | `#[record(with = Cents)]` | The column stores what the codec `Cents` makes of the field, whose type need not be one for columns: see the trait `Codec` of `candide`. The constant is a `Coded<Row, Cents>`, which is read, set and modified, and whose `stored()` is the column of the stored values. An index of the field has these as keys; a key field has no codec. |
/// | `#[renamed = "name"]` | An earlier name of the field, by which a migration finds it; also several. |
///
/// ```
/// use candide::schema::{IndexOf, KeyColumn};
/// use candide::{Hashed, Ordered, Record, Text};
///
/// #[derive(Record, Clone, Copy)]
/// struct Line {
///     #[key]
///     order: u32,
///     #[key]
///     number: u8,
///     #[index(hash)]
///     article: u32,
///     #[unique(ordered, name = labels)]
///     label: Text<16>,
///     #[column(AMOUNT_ORDERED)]
///     amount: u16,
/// }
///
/// impl Line {
///     const AMOUNT: u16 = 1; // one's own
/// }
///
/// let number: KeyColumn<Line, u8> = Line::NUMBER;
/// let by_article: IndexOf<Line, u32, Hashed> = Line::BY_ARTICLE;
/// let labels: IndexOf<Line, Text<16>, Ordered> = Line::LABELS;
/// assert_eq!(Line::AMOUNT_ORDERED.name(), "amount");
/// # let _ = (number, by_article, labels, Line::AMOUNT);
/// ```
///
/// # Attributes of the struct
/// | attribute | |
/// |---|---|
/// | `#[index(columns(a, b))]`, `#[unique(columns(a, b))]` | An index of several fields, in this order, parts of the primary key included; four at most. Of a field whose type derives [`Field`](macro@Field), also a part, with its type: `columns(at.x: i32, id)`. A `String` or `Vec<u8>` has the most bytes of a value behind it: `columns(a, name(bytes = 120))`. Its name is `by_a_b` (`by_at_x_id`), or what `name = ..` says. |
/// | `#[record(hash)]`, `#[record(ordered)]` | How rows are found by their primary key; `hash` by default. |
/// | `#[record(groups(a, b))]` | The groups that fields may name, beside `row`. Then a misspelt name is an error of compilation; without this, any name makes a group. |
/// | `#[record(crate = path)]` | The path of the crate `candide`, for crates that re-export it. |
///
/// ```
/// mod framework {
///     pub use candide as storage;
/// }
/// use candide::schema::IndexOf;
/// use candide::{Hashed, Ordered, Record};
///
/// #[derive(Record, Clone, Copy)]
/// #[record(ordered, groups(residents), crate = framework::storage)]
/// #[index(columns(city, street))]
/// #[unique(name = by_place, columns(street, number), hash)]
/// struct House {
///     #[key]
///     id: u64,
///     city: u32,
///     street: u32,
///     number: u16,
///     #[group(residents)]
///     residents: u8,
/// }
///
/// let by_city_street: IndexOf<House, (u32, u32), Ordered> = House::BY_CITY_STREET;
/// let by_place: IndexOf<House, (u32, u16), Hashed> = House::BY_PLACE;
/// # let _ = (by_city_street, by_place);
/// ```
///
/// # Where fields lie
/// Each group begins on a word. Fields of a word or more come first, in order; smaller ones follow,
/// large before small, each in the first word that has room for it. So their order in the struct
/// does not matter for the size:
///
/// ```
/// use candide::Record;
/// use candide::schema::RowMeta;
///
/// #[derive(Record, Clone, Copy)]
/// struct Flags {
///     #[key]
///     id: u64,
///     a: bool,
///     sum: u64,
///     b: bool,
///     level: u32,
///     initial: Option<char>,
/// }
///
/// assert_eq!(Flags::GROUPS[0].words, 2); // one for `sum`, one for 1 + 1 + 32 + 22 bits
/// ```
/// `RowMeta::FIELDS` describes all fields: their names, types and places. Files and exports have
/// the description, and a table of another description is refused by an error that names the
/// columns.
/// An enum may have further variants, if it needs no further bit for them.
///
/// `RowMeta::SCHEMA`, by which files and exports of earlier versions recognise the type, is a hash
/// of the names and types of all fields, as they are written, of the columns' groups, and of how
/// the types lie in words: it does not depend on the compiler. Another variant of an enum changes
/// it if it needs another bit. The names and types of the fields of a struct that derives `Key`
/// count like those of the record, if the struct is its key.
#[proc_macro_derive(
    Record,
    attributes(record, key, group, column, index, unique, default, renamed)
)]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let record = record::Record::read(input);
    record.map_or_else(syn::Error::into_compile_error, |record| record.expand()).into()
}

/// Makes a struct, or an enum without fields, usable as a key of tables and indexes.
///
/// A struct, with names or without, is a composite: its components are compared one after another.
/// The type of each component implements `Key`, as texts and other composites do. All components
/// together take at most 32 words. Tuples of the first components are prefixes:
///
/// ```
/// use candide::{Database, Key, Prefix, Record, Text};
///
/// #[derive(Key, Clone, Copy, Debug, PartialEq)]
/// struct Name {
///     branch: u16,
///     last: Text<24>,
///     first: Text<16>,
/// }
///
/// #[derive(Record, Clone, Copy)]
/// struct Customer {
///     #[key]
///     name: Name,
///     cents: i64,
/// }
///
/// let candide = Name { branch: 3, last: Text::new("Thunder-ten-tronckh")?, first: Text::new("Candide")? };
/// let db = Database::new();
/// let customers = db.table::<Customer>("customers")?;
/// db.run(|tx| customers.insert(tx, Customer { name: candide, cents: 0 }))?;
/// assert_eq!(db.run(|tx| customers.read(tx, candide, Customer::NAME)), Ok(candide));
///
/// // The customers of branch 3 with that name.
/// fn is_range<K: Key>(range: impl candide::schema::KeyRange<K>) {}
/// is_range::<Name>(Prefix((3, candide.last)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A struct of one field can be a column wherever the field could be one, and an index can contain
/// it. The values of an enum are ordered as they are declared. If an enum has discriminants, they
/// must ascend. An enum can also be a column, which takes as few bits as its variants need:
///
/// ```
/// use candide::schema::{Field, IndexOf};
/// use candide::{Key, Ordered, Record};
///
/// #[derive(Key, Clone, Copy)]
/// struct CustomerId(u64);
///
/// #[derive(Key, Clone, Copy)]
/// enum State {
///     Open,
///     Frozen,
///     Closed,
/// }
///
/// #[derive(Record, Clone, Copy)]
/// #[index(columns(state, owner))]
/// struct Account {
///     #[key]
///     id: u64,
///     owner: CustomerId,
///     state: State,
/// }
///
/// let by_state_owner: IndexOf<Account, (State, CustomerId), Ordered> = Account::BY_STATE_OWNER;
/// assert_eq!(State::BITS, 2);
/// # let _ = (by_state_owner, State::Frozen, State::Closed);
/// ```
///
/// The type derives `Clone` and `Copy`, too, and has no generic parameters. `#[key(crate = path)]`
/// names the path of the crate `candide`.
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct of fields, or an enum whose variants have data, the type of a column.
///
/// ```
/// use candide::{Database, Field, Record, Text};
///
/// #[derive(Field, Clone, Copy, Debug, PartialEq)]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// #[derive(Field, Clone, Copy, Debug, PartialEq)]
/// enum Order {
///     Stay,
///     Walk { to: Point },
///     Say(Text<24>),
/// }
///
/// #[derive(Field, Clone, Copy, Debug, PartialEq)]
/// struct Coins(u32);
///
/// #[derive(Record, Clone, Copy, Debug, PartialEq)]
/// struct Player {
///     #[key]
///     id: u64,
///     at: Point,
///     order: Option<Order>,
///     purse: Coins,
/// }
///
/// let db = Database::new();
/// let players = db.table::<Player>("players")?;
/// let at = Point { x: 3, y: -4 };
/// db.run(|tx| {
///     players.insert(tx, Player { id: 1, at, order: None, purse: Coins(7) })?;
///     players.update(tx, 1, Player::AT.part(Point::X).add(10))?;
///     players.update(tx, 1, Player::PURSE.sub(Coins(5)).at_least(Coins(0)))?;
///     players.modify(tx, 1, Player::ORDER, |order| *order = Some(Order::Walk { to: at }))?;
///     assert_eq!(players.read(tx, 1, (Player::AT, Player::PURSE))?, (Point { x: 13, y: -4 }, Coins(2)));
///     assert_eq!(players.read(tx, 1, Player::ORDER)?, Some(Order::Walk { to: at }));
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The type of each part is one that columns can have, other structs and enums with data included.
/// The parts lie one behind the other in a word if they fit into one; otherwise those of a word or
/// more come first. The parts of a variant lie behind the tag, which has as few bits as the
/// variants need; all variants begin at the same place, so an enum takes as much as its largest
/// variant.
///
/// | type | constants | |
/// |---|---|---|
/// | struct | `Point::X` for each field, `PART_0` if it has no name | `Player::AT.part(Point::X)` is a column, with updates and guards if it is a number; `#[index(columns(at.x: i32))]` of a row is an index of it |
/// | enum | `Order::STAY` for each variant | `Job::ORDER.tag()` is a column that is read and indexed |
/// | struct of one number | as above | the column has the updates of the number: `add`, `sub`, `min`, `max`, and sums |
///
/// `Key` and `Field`: an enum without data, and a struct of one field, derive [`Key`](macro@Key)
/// alone, which makes them columns, too. A struct of several fields derives both if it is to be
/// both. The type derives `Clone` and `Copy`, and has no generic parameters. `#[field(crate =
/// path)]` names the path of the crate `candide`.
#[proc_macro_derive(Field, attributes(field))]
pub fn derive_field(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    field::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct of handles open all its tables by one call.
///
/// ```
/// use candide::{Database, Protocol, Record, Sequence, Table, Tables};
///
/// #[derive(Record, Clone, Copy)]
/// struct Player {
///     #[key]
///     id: u64,
///     score: u32,
/// }
///
/// #[derive(Record, Clone, Copy)]
/// struct Prize {
///     #[key]
///     id: u64,
///     winner: u64,
/// }
///
/// #[derive(Tables)]
/// struct World<P: Protocol> {
///     players: Table<Player, P>,
///     #[table(name = "all prizes")]
///     prizes: Table<Prize, P>,
///     ids: Sequence<P>,
/// }
///
/// let db = Database::new();
/// let world = World::open(&db)?;
/// db.run(|tx| world.players.insert(tx, Player { id: world.ids.next(tx)?, score: 0 }))?;
/// assert_eq!((world.players.name(), world.prizes.name()), ("players", "all prizes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The function `open` is as visible as the struct. It opens the tables, and makes those that the
/// database does not have, in the order of the fields; the first error ends it, and the tables
/// before it stay. A field is a `Table<R, P>` or a `Sequence<P>`; its name is that of the field, or
/// what `#[table(name = "..")]` says. The struct has the parameters that its handles need: one for
/// the protocol, or none. `#[tables(crate = path)]` names the path of the crate `candide`.
#[proc_macro_derive(Tables, attributes(tables, table))]
pub fn derive_tables(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tables::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
