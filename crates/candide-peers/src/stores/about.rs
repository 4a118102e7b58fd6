//! The notes on the peers of the figures.

use std::error::Error;

use serde::Serialize;

use crate::Role;

/// The notes on a peer of the figures.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// The name of the peer's crate; `None` for the standard library.
    #[serde(rename = "crate")]
    pub(crate) crate_name: Option<&'static str>,
    pub(crate) version: Option<&'static str>,
    #[serde(rename = "use")]
    pub(crate) usage: &'static str,
    /// The largest number of threads that can use the peer at the same time.
    #[serde(skip)]
    pub(crate) threads_max: usize,
}

impl About {
    /// Describes the peer in one line.
    pub(crate) fn line(&self) -> String {
        let version = match (self.crate_name, self.version) {
            (Some(name), Some(version)) => format!(" ({name} {version})"),
            _ => String::new(),
        };
        format!("{}{version}: {}", self.name, self.usage)
    }
}

/// Returns an error that names all `failures`, if there are any.
pub(crate) fn verdict(failures: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let failures: Vec<_> = failures.collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}
