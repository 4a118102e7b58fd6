//! Names that can change while they are read.

#![forbid(unsafe_code)]

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::Deref;
use std::sync::OnceLock;

/// The name of a table. A former name stays in memory as long as the table, since a reader may
/// still use it.
pub(crate) struct Name {
    text: Box<str>,
    /// The name after this one; empty if this is the present one.
    next: OnceLock<Box<Name>>,
}

impl Name {
    /// Changes the name. The caller prevents other threads from changing it meanwhile.
    pub(crate) fn change(&self, text: &str) {
        let next = Name::from(Box::from(text));
        let is_last = self.last().next.set(Box::new(next)).is_ok();
        debug_assert!(is_last, "one thread at a time changes a name");
    }

    fn last(&self) -> &Name {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
}

impl From<Box<str>> for Name {
    fn from(text: Box<str>) -> Name {
        Name { text, next: OnceLock::new() }
    }
}

impl Deref for Name {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.last().text
    }
}

impl Debug for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, f)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&**self, f)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // One after another: a long list would need a deep stack.
        let mut next = self.next.take();
        while let Some(mut name) = next {
            next = name.next.take();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_former_name_stays_readable() {
        let name = Name::from(Box::from("users"));
        let former: &str = &name;
        name.change("people");
        name.change("");
        assert_eq!((former, &*name), ("users", ""));
        let mut last = name.last();
        for number in 0..100_000 {
            last.change(&number.to_string());
            last = last.last();
        }
        assert_eq!(name.to_string(), "99999");
    }
}
