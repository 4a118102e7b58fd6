//! Reads by closures, to which strings and bytes of any length are lent.

#![forbid(unsafe_code)]

use super::index_scan::IndexScan;
use super::row::Row;
use super::scan::Scan;
use super::table::Table;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::schema::{AsKey, IndexKind, Key, Pinned, Projection, Record, Unread};
use crate::txn::Tx;
use std::borrow::Borrow;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Reads columns of a row as [`Table::get`] does, and calls `read` with them; `None`, without a
    /// call, if there is no row with this key. Columns of `String` and `Vec<u8>` are not copied:
    /// `read` gets `&str` and `&[u8]`, options of these of an option, and the text of a column of
    /// JSON.
    ///
    /// `read` is called at most once, and may use `tx`; what it changes there does not change what
    /// it has been lent. That cannot leave `read`:
    ///
    /// ```compile_fail
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone)]
    /// # struct Page { #[key] id: u64, title: String }
    /// # let db = Database::new();
    /// # let pages = db.table::<Page>("pages")?;
    /// db.run(|tx| pages.get_with(tx, 1, Page::TITLE, |title| title).map(drop))?;
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn get_with<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
        read: impl FnOnce(Pr::View<'_>) -> T,
    ) -> Result<Option<T>, Abort> {
        let Some(key) = key.into_key() else { return self.look_for_impossible(tx) };
        let key: &R::Key = key.borrow();
        match self.get(tx, key, Unread(projection))? {
            Some(words) => self.lend(tx, key, &projection, &words, read).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Table::get_with`], for a row that must exist.
    ///
    /// ```
    /// use candide::{Database, Record};
    ///
    /// #[derive(Record, Clone)]
    /// struct Page { #[key] id: u64, title: String, body: Option<Vec<u8>>, views: u32 }
    ///
    /// let db = Database::new();
    /// let pages = db.table::<Page>("pages")?;
    /// let page = Page { id: 1, title: "Candide".to_string(), body: None, views: 8 };
    /// db.run(|tx| pages.insert(tx, page.clone()))?;
    /// let long = db.run(|tx| pages.read_with(tx, 1, Page::TITLE, |title| title.len() > 40))?;
    /// assert!(!long);
    /// let columns = (Page::TITLE, Page::BODY, Page::VIEWS);
    /// db.run(|tx| {
    ///     pages.read_with(tx, 1, columns, |(title, body, views)| {
    ///         assert_eq!((title, body, views), ("Candide", None, 8));
    ///         pages.update(tx, 1, Page::TITLE.set(title.to_uppercase()))
    ///     })?
    /// })?;
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    pub fn read_with<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
        read: impl FnOnce(Pr::View<'_>) -> T,
    ) -> Result<T, Abort> {
        let Some(key) = key.into_key() else { return Err(self.find_impossible(tx)) };
        let key: &R::Key = key.borrow();
        let read = self.get_with(tx, key, projection, read)?;
        read.ok_or_else(|| self.refuse(tx, Abort::NotFound, key))
    }

    /// Calls `read` with columns of a present row whose words the attempt has read. The transaction
    /// is not borrowed meanwhile. The words' blocks are kept at least until the attempt has ended,
    /// whatever `read` does: replaced ones by its pin, and its own ones by the attempt (BL2).
    fn lend<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: &Pr,
        words: &Pr::Words,
        read: impl FnOnce(Pr::View<'_>) -> T,
    ) -> Result<T, Abort> {
        match projection.view(key, words, Pinned::by(tx)) {
            Ok(view) => Ok(read(view)),
            Err(undecoded) => {
                Err(tx.state.borrow_mut().refuse_undecoded(self.core(), key, undecoded))
            }
        }
    }

    /// Calls `each` with columns of each of `rows`, whose words a scan reads, until it returns an
    /// error.
    fn lend_all<Pr: Projection<R>, E: From<Abort>>(
        &self,
        tx: &Tx<'_, P>,
        projection: &Pr,
        rows: impl Iterator<Item = Result<(R::Key, Pr::Words), Abort>>,
        mut each: impl FnMut(R::Key, Pr::View<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in rows {
            let (key, words) = row?;
            self.lend(tx, &key, projection, &words, |columns| each(key, columns))??;
        }
        Ok(())
    }
}

impl<R: Record, P: Protocol> Row<'_, R, P> {
    /// As [`Table::get_with`].
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn get_with<Pr: Projection<R>, T>(
        &self,
        projection: Pr,
        read: impl FnOnce(Pr::View<'_>) -> T,
    ) -> Result<Option<T>, Abort> {
        match self.get(Unread(projection))? {
            Some(words) => self.table.lend(self.tx, &self.key, &projection, &words, read).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Table::read_with`].
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row.
    pub fn read_with<Pr: Projection<R>, T>(
        &self,
        projection: Pr,
        read: impl FnOnce(Pr::View<'_>) -> T,
    ) -> Result<T, Abort> {
        self.get_with(projection, read)?.ok_or_else(|| self.not_found())
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> Scan<'_, R, P, Pr> {
    /// Calls `each` with each row, of which strings and bytes of any length are not copied
    /// ([`Table::get_with`]).
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone)]
    /// # struct Page { #[key] id: u64, title: String }
    /// # let db = Database::new();
    /// # let pages = db.table::<Page>("pages")?;
    /// # db.run(|tx| pages.insert(tx, Page { id: 1, title: "Candide".to_string() }))?;
    /// let bytes = db.run(|tx| {
    ///     let mut bytes = 0;
    ///     pages.iter(tx, Page::TITLE).for_each_with(|_id, title| bytes += title.len())?;
    ///     Ok(bytes)
    /// })?;
    /// assert_eq!(bytes, 7);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Those of every operation](Table#errors-of-every-operation).
    pub fn for_each_with(self, mut each: impl FnMut(R::Key, Pr::View<'_>)) -> Result<(), Abort> {
        self.try_for_each_with(|key, columns| {
            each(key, columns);
            Ok(())
        })
    }

    /// As [`Scan::for_each_with`], until `each` returns an error.
    ///
    /// # Errors
    /// The error of `each`, and [those of every operation](Table#errors-of-every-operation).
    pub fn try_for_each_with<E: From<Abort>>(
        self,
        each: impl FnMut(R::Key, Pr::View<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Scan { table, tx, projection, units, way } = self;
        let rows = Scan { table, tx, projection: Unread(projection), units, way };
        table.lend_all(tx, &projection, rows, each)
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>>
    IndexScan<'_, R, K, I, P, Pr>
{
    /// As [`Scan::for_each_with`].
    ///
    /// # Errors
    /// [Those of every operation](Table#errors-of-every-operation); [`Abort::NoIndex`] if the index
    /// has been dropped.
    pub fn for_each_with(self, mut each: impl FnMut(R::Key, Pr::View<'_>)) -> Result<(), Abort> {
        self.try_for_each_with(|key, columns| {
            each(key, columns);
            Ok(())
        })
    }

    /// As [`IndexScan::for_each_with`], until `each` returns an error.
    ///
    /// # Errors
    /// The error of `each`, and those of [`IndexScan::for_each_with`].
    pub fn try_for_each_with<E: From<Abort>>(
        self,
        each: impl FnMut(R::Key, Pr::View<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (table, tx, &projection) = self.parts();
        table.lend_all(tx, &projection, self.with(Unread(projection)), each)
    }
}
