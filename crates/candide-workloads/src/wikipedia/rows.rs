//! The rows, with the columns of the published schema.
//!
//! In users and pages, what an edit changes is apart from what hardly ever changes. Numbers begin
//! with 1. A text is longer than a row may be, so it is kept in parts.

use candide::{Bytes, Key, Record, Text};

/// The number of a user.
pub type UserId = u64;
/// The number of a page.
pub type PageId = u64;
/// The number of a revision of a page.
pub type RevisionId = u64;
/// The number of a text.
pub type TextId = u64;
/// A title. The longest of the published ones has 141 bytes, before its number is added.
pub type Title = Text<160>;
/// A time: fourteen digits.
pub type Time = Bytes<14>;
/// A text with the room that most columns have.
pub(super) type Text255 = Text<255>;

/// Bytes in one part of a text.
pub const PART_BYTES: usize = 2048;

/// Whoever may edit.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct User {
    /// Number.
    #[key]
    pub id: UserId,
    /// Name.
    pub name: Text<255>,
    /// Name outside.
    pub real_name: Text<255>,
    /// Password.
    pub password: Text<32>,
    /// Password to come.
    pub new_password: Text<32>,
    /// When the password to come was asked for.
    pub new_password_time: Time,
    /// Where to write to.
    pub email: Text<40>,
    /// What the user has chosen.
    pub options: Text<255>,
    /// What identifies the user.
    pub token: Text<32>,
    /// When the address was found to be right.
    pub email_authenticated: Text<32>,
    /// What proves that the address is right.
    pub email_token: Text<32>,
    /// Until when.
    pub email_token_expires: Time,
    /// When the user came.
    pub registration: Time,
    /// When the user was last seen doing something.
    #[group(activity)]
    pub touched: Time,
    /// How often the user has edited.
    #[group(activity)]
    pub edit_count: i32,
}

/// A page, of which the newest revision has the text.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Page {
    /// Number.
    #[key]
    pub id: PageId,
    /// Which kind of page it is.
    pub namespace: i32,
    /// Title.
    pub title: Title,
    /// Who may not edit.
    pub restrictions: Text<255>,
    /// How often it was looked at, if somebody counted.
    pub counter: i64,
    /// By which pages are drawn.
    pub random: f32,
    /// Whether it only leads to another one.
    #[group(revision)]
    pub is_redirect: i32,
    /// Whether nobody has edited it yet.
    #[group(revision)]
    pub is_new: i32,
    /// When it was edited.
    #[group(revision)]
    pub touched: Time,
    /// Newest revision.
    #[group(revision)]
    pub latest: RevisionId,
    /// Length of that one's text.
    #[group(revision)]
    pub len: u32,
}

/// What a page is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
pub struct PageName {
    /// Which kind of page it is.
    pub namespace: i32,
    /// Title.
    pub title: Title,
}

/// Leads from a name to a page.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct NamedPage {
    /// Name.
    #[key]
    pub name: PageName,
    /// Page.
    pub page: PageId,
}

/// One state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Revision {
    /// Number.
    #[key]
    pub id: RevisionId,
    /// Page.
    pub page: PageId,
    /// Text.
    pub text: TextId,
    /// What its author says about it.
    pub comment: Text<1024>,
    /// Author.
    pub user: UserId,
    /// Name or address of the author.
    pub user_text: Text<255>,
    /// When.
    pub timestamp: Time,
    /// Whether little is changed.
    pub minor_edit: i32,
    /// What of it is hidden.
    pub deleted: i32,
    /// Length of the text.
    pub len: u32,
    /// The revision that the author had read.
    pub parent: RevisionId,
}

/// A text, but for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Article {
    /// Number.
    #[key]
    pub id: TextId,
    /// How it is encoded.
    pub flags: Text<30>,
    /// Page.
    pub page: PageId,
    /// Length in bytes.
    pub len: u32,
}

/// A part of a text's bytes; zeros follow the last one.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Part {
    /// Text.
    #[key]
    pub text: TextId,
    /// Which part, from 0.
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
    /// When.
    pub timestamp: Time,
    /// When, again.
    pub cur_time: Time,
    /// Who.
    pub user: UserId,
    /// Name or address.
    pub user_text: Text<255>,
    /// Which kind of page.
    pub namespace: i32,
    /// Title of the page.
    pub title: Text<255>,
    /// What the author says about it.
    pub comment: Text<255>,
    /// Whether little was changed.
    pub minor: i32,
    /// Whether a program did it.
    pub bot: i32,
    /// Whether the page is new.
    pub new: i32,
    /// Page.
    pub page: PageId,
    /// New text.
    pub text: TextId,
    /// Text before.
    pub last_text: TextId,
    /// Kind of change.
    pub kind: i32,
    /// Which kind of page it has become.
    pub moved_to_namespace: i32,
    /// The title it has got.
    pub moved_to_title: Text<255>,
    /// Whether somebody has looked at it.
    pub patrolled: i32,
    /// Address of the author.
    pub ip: Text<40>,
    /// Length before.
    pub old_len: u32,
    /// Length.
    pub new_len: u32,
    /// What of it is hidden.
    pub deleted: i32,
    /// Entry of the log.
    pub log: u64,
    /// Kind of that entry.
    pub log_type: Text<255>,
    /// What it says.
    pub log_action: Text<255>,
    /// And of what.
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
    /// What was done.
    pub action: Text<32>,
    /// When.
    pub timestamp: Time,
    /// Who.
    pub user: UserId,
    /// Which kind of page.
    pub namespace: i32,
    /// Title of the page.
    pub title: Text<255>,
    /// What the author says about it.
    pub comment: Text<255>,
    /// Of what.
    pub params: Text<255>,
    /// What of it is hidden.
    pub deleted: i32,
    /// Name or address of the author.
    pub user_text: Text<255>,
    /// Page.
    pub page: PageId,
}

/// A user and a page that he watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
pub struct WatchKey {
    /// User.
    pub user: UserId,
    /// Page.
    pub page: PageName,
}

/// That a user wants to know of edits of a page.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Watch {
    /// Who watches what.
    #[key]
    pub key: WatchKey,
    /// When the user was told; zeros if never.
    pub notified: Time,
}

/// A page and a user who watches it.
#[derive(Debug, Clone, Copy, PartialEq, Key)]
pub struct WatcherKey {
    /// Page.
    pub page: PageName,
    /// User.
    pub user: UserId,
}

/// Leads from a page to those who watch it.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
pub struct Watcher {
    /// What is watched by whom.
    #[key]
    pub key: WatcherKey,
}

/// `text`, which is known to fit.
pub(super) fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).expect("made to fit")
}

/// A time as fourteen digits.
pub(super) fn time(moment: u64) -> Time {
    let mut rest = moment;
    let mut digits = [b'0'; 14];
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    Bytes::new(digits)
}
