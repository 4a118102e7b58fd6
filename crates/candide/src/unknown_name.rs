//! The error for a name of a protocol or of a policy that does not exist.

#![forbid(unsafe_code)]

use std::fmt;

/// The error for a name that no protocol, or no policy, has.
///
/// ```
/// use candide::any::AnyDatabase;
/// use candide::Error;
///
/// let Err(Error::UnknownName(unknown)) = AnyDatabase::choose("mvvc") else { panic!("a typo") };
/// assert_eq!((unknown.kind, &*unknown.name), ("protocol", "mvvc"));
/// assert!(unknown.known.contains(&"mvcc"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// The kind of thing that the name should denote: `"protocol"` or `"policy"`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The names that exist.
    pub known: Vec<&'static str>,
}

impl UnknownName {
    /// Returns the error for the name `name` of a thing of this kind.
    pub(crate) fn new(kind: &'static str, name: &str, known: Vec<&'static str>) -> UnknownName {
        UnknownName { kind, name: name.to_string(), known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { kind, name, known } = self;
        write!(f, "no {kind} is called {name:?}; there are {}", known.join(", "))
    }
}

impl std::error::Error for UnknownName {}
