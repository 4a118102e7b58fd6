//! The findings of `check.js` on a page, in each view.

use super::browser::{Browser, View};
use serde_json::Value;
use std::path::Path;

const CHECK: &str = include_str!("check.js");

pub(super) const VIEWS: [View; 2] = [
    View { name: "desktop", width: 1280, height: 900, mobile: false, dark: false },
    View { name: "phone", width: 390, height: 844, mobile: true, dark: true },
];

/// The problems of a page, and the numbers of the things that were checked.
pub(super) struct Found {
    pub(super) problems: Vec<String>,
    pub(super) numbers: Value,
    pub(super) marks: Value,
}

pub(super) fn problems(browser: &mut Browser, file: &Path, view: View) -> Result<Found, String> {
    let mut page = browser.open(&url(file)?, view)?;
    let checked = page.evaluate(CHECK)?;
    let mut problems = std::mem::take(&mut page.troubles);
    page.close()?;
    let found = checked["problems"].as_array().ok_or("the check gives no list")?;
    problems.extend(found.iter().filter_map(Value::as_str).map(str::to_string));
    Ok(Found { problems, numbers: checked["numbers"].clone(), marks: checked["marks"].clone() })
}

pub(super) fn url(file: &Path) -> Result<String, String> {
    let path = file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("file://{}", path.display()))
}
