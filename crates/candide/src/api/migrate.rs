//! Asking for migrations.

#![forbid(unsafe_code)]

use super::database::Builder;
use super::row_values::take_values;
use crate::catalog::{Migration, NewRow};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::KeptBytes;
use crate::schema::{Key, LONG_BYTES_MAX, Pinned, Record, RowMeta, RowReader, RowType, store_in};
use candide_log::format::long_row::LongRow;
use std::any::TypeId;

impl<P: Protocol> Builder<P> {
    /// Sets what happens when the program names a table whose rows in the files are of another type
    /// ([`Database::table`](crate::Database::table)). By default the table is refused, and
    /// [`Error::Schema`](crate::Error::Schema) has the plan of the migration, which says what it
    /// would add, drop and change, and how many rows it would rewrite.
    ///
    /// A migration goes by the names of the fields. A column that is new gets its default, which
    /// the row type must have (`#[default = 5]`, or `#[default]` for that of the column's type).
    /// Columns that are gone are dropped. Columns may be in another order or another group. A field
    /// that has got another name says its earlier one (`#[renamed = "mail"]`). A number, a text, an
    /// option, an array, the part of a struct may become one of another size, and the variants of
    /// an enum may have other places: each value must fit. `Text<N>` may become `String`, and
    /// `Bytes<N>` `Vec<u8>`, and the other way; bytes must then be exactly `N`. A new column that
    /// is an option of a `String` or a `Vec<u8>` is `None` without a default. A new part of a
    /// struct or of a variant with data must be an option, and is `None`; parts have no defaults.
    /// Parts of the key stay parts of the key, and no other parts come. For anything else there is
    /// [`migrate`](Builder::migrate).
    ///
    /// ```
    /// use candide::{Database, LogOptions, Migration, Occ, Record, Text, Whole};
    ///
    /// mod first {
    ///     #[derive(candide::Record, Clone, Copy)]
    ///     pub struct User { #[key] pub id: u32, pub visits: u32, pub mail: candide::Text<16> }
    /// }
    ///
    /// #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// struct User {
    ///     #[key] id: u32,
    ///     #[default = 10] credit: i64,
    ///     visits: u64,
    ///     #[renamed = "mail"] address: Text<40>,
    /// }
    ///
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-migration-{}", std::process::id()));
    /// let db = Database::open(&directory)?;
    /// let users = db.table::<first::User>("users")?;
    /// let ann = first::User { id: 7, visits: 3, mail: Text::new("ann@a.org")? };
    /// db.run(|tx| users.insert(tx, ann))?;
    /// drop((db, users));
    ///
    /// let db = Database::open(&directory)?;
    /// let refused = db.table::<User>("users").unwrap_err().to_string();
    /// assert!(refused.contains("a migration would add `credit: i64`, change `visits`"), "{refused}");
    /// drop(db);
    ///
    /// let builder = Database::<Occ>::builder().migration(Migration::Apply);
    /// let db = builder.open(&directory, LogOptions::new())?;
    /// let users = db.table::<User>("users")?;
    /// let ann = db.run(|tx| users.read(tx, 7, Whole))?;
    /// assert_eq!(ann, User { id: 7, credit: 10, visits: 3, address: Text::new("ann@a.org")? });
    /// # drop((db, users));
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # What happens
    /// The rows are copied to a new table, a few hundred in each transaction. There must be memory
    /// for both; that of the old one comes back when the database is opened again. A thread that
    /// names the same table waits, and nothing else does. Under [`Mvcc`](crate::Mvcc) and
    /// [`Mvto`](crate::Mvto), the call waits for transactions that run, and no older
    /// [`Snapshot`](crate::Snapshot) may be open, which would miss the new rows. When all rows are
    /// durable in the new table, one change of the files gives it the name. After an error before
    /// that ([`Error::Migration`](crate::Error::Migration)), and after a crash, the old table is as
    /// it was.
    #[must_use]
    pub fn migration(mut self, migration: Migration) -> Self {
        self.migrations.wanted = migration;
        self
    }

    /// Gives a function by which rows of a table are migrated from the type `Old`, which the files
    /// describe, to the type `New`, which the program names. It takes precedence over the names of
    /// fields, and may change the key. Like any migration it takes place if it is
    /// [asked for](Builder::migration), and only if rows of `Old` are not rows of `New` as they are.
    /// Of several functions for a table, the one counts whose `Old` the files describe.
    ///
    /// The function is called once for each row, outside of transactions. It must not use the
    /// database. If it panics, the migration ends in an error.
    ///
    /// ```
    /// use candide::{Database, LogOptions, Migration, Occ, Record, Whole};
    ///
    /// mod first {
    ///     #[derive(candide::Record, Clone, Copy)]
    ///     pub struct Price { #[key] pub article: u32, pub euros: u32 }
    /// }
    ///
    /// #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// struct Price { #[key] currency: u16, #[key] article: u32, cents: u64 }
    ///
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-migrate-{}", std::process::id()));
    /// # let db = Database::open(&directory)?;
    /// # let prices = db.table::<first::Price>("prices")?;
    /// # db.run(|tx| prices.insert(tx, first::Price { article: 7, euros: 3 }))?;
    /// # drop((db, prices));
    /// let builder = Database::<Occ>::builder().migration(Migration::Apply);
    /// let builder = builder.migrate("prices", |old: first::Price| Price {
    ///     currency: 978,
    ///     article: old.article,
    ///     cents: u64::from(old.euros) * 100,
    /// });
    /// let db = builder.open(&directory, LogOptions::new())?;
    /// let prices = db.table::<Price>("prices")?;
    /// let price = db.run(|tx| prices.read(tx, (978, 7), Whole))?;
    /// assert_eq!(price, Price { currency: 978, article: 7, cents: 300 });
    /// # drop((db, prices));
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn migrate<Old: Record, New: Record>(
        mut self,
        table: &str,
        function: impl Fn(Old) -> New + Send + Sync + 'static,
    ) -> Self {
        let convert = move |old: LongRow<'_>, kept: &mut KeptBytes<'_>, to: &mut NewRow| {
            let words = kept_words(old, kept).map_err(|abort| refused(abort, kept))?;
            let reader = RowReader::pinned(&words, Old::LONG, Pinned::by(&*kept));
            let new = function(Old::load(&Old::Key::from_words(old.key), &reader));
            to.key.extend_from_slice(new.key().words().as_ref());
            let mut image = <New::Image as crate::schema::Buffer>::ZERO;
            match store_in(&new, &mut image, kept) {
                Ok(words) => to.words.extend_from_slice(words),
                Err(abort) => return Err(refused(abort, kept)),
            }
            take_values(New::LONG.iter().copied(), &mut to.words, kept, &mut to.values);
            Ok(())
        };
        let (old, new) = (RowType::of::<Old>(), TypeId::of::<New>());
        self.migrations.add(table, old, new, Box::new(convert));
        self
    }
}

/// Returns the words that a row has in memory, with values that are kept.
fn kept_words(row: LongRow<'_>, kept: &mut KeptBytes<'_>) -> Result<Vec<u64>, Abort> {
    let mut words = row.words.to_vec();
    for value in row.values() {
        if let Some(bytes) = value.bytes() {
            words[usize::from(value.place)] = kept.word_of(&bytes)?;
        }
    }
    Ok(words)
}

/// Returns why a value was not kept.
fn refused(abort: Abort, kept: &KeptBytes<'_>) -> String {
    match kept.too_long {
        Some((column, bytes)) => {
            format!("column `{column}`: a value of {bytes} bytes; {LONG_BYTES_MAX} are the most")
        }
        None => abort.to_string(),
    }
}
