//! Transactions that view a page, or list the pages of a namespace.

use candide::{Abort, Protocol, Tx};

use super::rows::{
    NamedPage, Page, PageId, PageName, Revision, RevisionId, TextId, User, UserId, text,
};
use super::site::Site;

/// The number of pages of a namespace that are listed.
const LISTED: usize = 20;

/// The result of looking up a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) page: PageId,
    pub(super) revision: RevisionId,
    pub(super) text: TextId,
    /// Whether the text states that it belongs to the page.
    pub(super) is_own: bool,
}

impl<P: Protocol> Site<P> {
    /// Looks a page up by name and copies its newest text.
    pub(super) fn get_page(
        &self,
        tx: &Tx<'_, P>,
        name: &PageName,
        content: &mut Vec<u8>,
    ) -> Result<Found, Abort> {
        let tables = &self.tables;
        let page = tables.page_names.read(tx, name, NamedPage::PAGE)?;
        let revision = tables.pages.read(tx, &page, Page::LATEST)?;
        let text = tables.revisions.read(tx, &revision, Revision::TEXT)?;
        let owner = tables.read_text(tx, text, content)?;
        Ok(Found { page, revision, text, is_own: owner == page })
    }

    /// Looks a page up as [`Site::get_page`] does, and also reads the name of the user, which is
    /// shown above the page.
    pub(super) fn get_page_for(
        &self,
        tx: &Tx<'_, P>,
        user: UserId,
        name: &PageName,
        content: &mut Vec<u8>,
    ) -> Result<Found, Abort> {
        std::hint::black_box(self.tables.users.read(tx, &user, User::NAME)?);
        self.get_page(tx, name, content)
    }

    /// Lists the first pages of a namespace. Returns the number of pages whose titles differ from
    /// those in the list.
    pub(super) fn list_namespace(&self, tx: &Tx<'_, P>, namespace: i32) -> Result<u64, Abort> {
        let tables = &self.tables;
        let first = |namespace| PageName { namespace, title: text("") };
        let range = first(namespace)..first(namespace + 1);
        let mut misnamed = 0;
        for found in tables.page_names.scan(tx, range, NamedPage::PAGE).take(LISTED) {
            let (name, page) = found?;
            misnamed += u64::from(tables.pages.read(tx, &page, Page::TITLE)? != name.title);
        }
        Ok(misnamed)
    }
}
