//! The rows, with the columns of the published schema.
//!
//! In users and pages, the columns that an edit changes are in a separate group from those that
//! hardly ever change. Numbers begin with 1. A text is one column, or is stored in parts, as the
//! knob [`Texts`](super::Texts) says.

use candide::{Bytes, Key, Record, Text};

/// The number of a user.
pub type UserId = u64;
/// The number of a page.
pub type PageId = u64;
/// The number of a revision of a page.
pub type RevisionId = u64;
/// The number of a text.
pub type TextId = u64;
/// A title. The longest published title has 141 bytes; here the page's number is appended to the
/// title.
pub type Title = Text<160>;
/// A time: fourteen digits.
pub type Time = Bytes<14>;
/// A text of up to 255 bytes, the size of most columns of text.
pub(super) type Text255 = Text<255>;

/// The number of bytes in one part of a text.
pub const PART_BYTES: usize = 2048;

/// A user.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct User {
    /// Number.
    #[key]
    pub id: UserId,
    /// Name.
    pub name: Text<255>,
    /// Real name.
    pub real_name: Text<255>,
    /// Password.
    pub password: Text<32>,
    /// New password, not yet in use.
    pub new_password: Text<32>,
    /// The time at which the new password was requested.
    pub new_password_time: Time,
    /// Address for mail.
    pub email: Text<40>,
    /// Preferences.
    pub options: Text<255>,
    /// Token that identifies the user.
    pub token: Text<32>,
    /// The time at which the address was verified.
    pub email_authenticated: Text<32>,
    /// Token that verifies the address.
    pub email_token: Text<32>,
    /// The time at which that token expires.
    pub email_token_expires: Time,
    /// The time of registration.
    pub registration: Time,
    /// The time of the user's last activity.
    #[group(activity)]
    pub touched: Time,
    /// The number of the user's edits.
    #[group(activity)]
    pub edit_count: i32,
}

/// A page. The text of a page is the text of its newest revision.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Page {
    /// Number.
    #[key]
    pub id: PageId,
    /// The kind of page.
    pub namespace: i32,
    /// Title.
    pub title: Title,
    /// The restrictions on which users may edit the page.
    pub restrictions: Text<255>,
    /// The number of views, which are not counted.
    pub counter: i64,
    /// The number by which pages are drawn at random.
    pub random: f32,
    /// Whether the page only leads to another page.
    #[group(revision)]
    pub is_redirect: i32,
    /// Whether the page has not been edited yet.
    #[group(revision)]
    pub is_new: i32,
    /// The time of the last edit.
    #[group(revision)]
    pub touched: Time,
    /// Newest revision.
    #[group(revision)]
    pub latest: RevisionId,
    /// Length of the newest revision's text.
    #[group(revision)]
    pub len: u32,
}

/// The key by which a page is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
pub struct PageName {
    /// The kind of page.
    pub namespace: i32,
    /// Title.
    pub title: Title,
}

/// An entry that leads from a name to a page.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct NamedPage {
    /// Name.
    #[key]
    pub name: PageName,
    /// Page.
    pub page: PageId,
}

/// A revision of a page.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Revision {
    /// Number.
    #[key]
    pub id: RevisionId,
    /// Page.
    pub page: PageId,
    /// Text.
    pub text: TextId,
    /// The author's comment.
    pub comment: Text<1024>,
    /// Author.
    pub user: UserId,
    /// Name or address of the author.
    pub user_text: Text<255>,
    /// The time of the edit.
    pub timestamp: Time,
    /// Whether the edit is minor.
    pub minor_edit: i32,
    /// The hidden parts.
    pub deleted: i32,
    /// Length of the text.
    pub len: u32,
    /// The revision that the author had read.
    pub parent: RevisionId,
}

/// A text.
#[derive(Debug, Clone, PartialEq, Record)]
pub struct Article {
    /// Number.
    #[key]
    pub id: TextId,
    /// The encoding.
    pub flags: Text<30>,
    /// Page.
    pub page: PageId,
    /// Length in bytes.
    pub len: u32,
    /// The bytes; none if they are in parts.
    pub content: Vec<u8>,
}

/// A part of a text's bytes. Zeros follow the last byte of the text.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Part {
    /// Text.
    #[key]
    pub text: TextId,
    /// The number of the part, from 0.
    #[key]
    pub number: u32,
    /// The bytes.
    pub bytes: Bytes<PART_BYTES>,
}

/// An entry of the list of recent changes.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct RecentChange {
    /// Number.
    #[key]
    pub id: u64,
    /// The time of the change.
    pub timestamp: Time,
    /// The time of the change, again.
    pub cur_time: Time,
    /// The user.
    pub user: UserId,
    /// Name or address.
    pub user_text: Text<255>,
    /// The kind of page.
    pub namespace: i32,
    /// Title of the page.
    pub title: Text<255>,
    /// The author's comment.
    pub comment: Text<255>,
    /// Whether the edit was minor.
    pub minor: i32,
    /// Whether a program made the edit.
    pub bot: i32,
    /// Whether the page is new.
    pub new: i32,
    /// Page.
    pub page: PageId,
    /// New text.
    pub text: TextId,
    /// Previous text.
    pub last_text: TextId,
    /// Kind of change.
    pub kind: i32,
    /// The kind of page after a move.
    pub moved_to_namespace: i32,
    /// The title after a move.
    pub moved_to_title: Text<255>,
    /// Whether the change has been reviewed.
    pub patrolled: i32,
    /// Address of the author.
    pub ip: Text<40>,
    /// Previous length of the text.
    pub old_len: u32,
    /// New length of the text.
    pub new_len: u32,
    /// The hidden parts.
    pub deleted: i32,
    /// Entry of the log.
    pub log: u64,
    /// Kind of the entry of the log.
    pub log_type: Text<255>,
    /// Action of the entry of the log.
    pub log_action: Text<255>,
    /// Parameters of that action.
    pub params: Text<255>,
}

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct LogEntry {
    /// Number.
    #[key]
    pub id: u64,
    /// Kind.
    pub kind: Text<32>,
    /// Action.
    pub action: Text<32>,
    /// The time of the action.
    pub timestamp: Time,
    /// The user.
    pub user: UserId,
    /// The kind of page.
    pub namespace: i32,
    /// Title of the page.
    pub title: Text<255>,
    /// The author's comment.
    pub comment: Text<255>,
    /// Parameters of the action.
    pub params: Text<255>,
    /// The hidden parts.
    pub deleted: i32,
    /// Name or address of the author.
    pub user_text: Text<255>,
    /// Page.
    pub page: PageId,
}

/// A user and a page that the user watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
pub struct WatchKey {
    /// User.
    pub user: UserId,
    /// Page.
    pub page: PageName,
}

/// An entry that makes edits of a page notify a user.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Watch {
    /// The user and the page.
    #[key]
    pub key: WatchKey,
    /// The time of the notification; zeros if there was none.
    pub notified: Time,
}

/// A page and a user that watches it.
#[derive(Debug, Clone, Copy, PartialEq, Key)]
pub struct WatcherKey {
    /// Page.
    pub page: PageName,
    /// User.
    pub user: UserId,
}

/// An entry that leads from a page to a user that watches it.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Watcher {
    /// The page and the user.
    #[key]
    pub key: WatcherKey,
}

/// Returns `text`, which is known to fit.
pub(super) fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).expect("made to fit")
}

/// Returns a time as fourteen digits.
pub(super) fn time(moment: u64) -> Time {
    let mut rest = moment;
    let mut digits = [b'0'; 14];
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    Bytes::new(digits)
}
