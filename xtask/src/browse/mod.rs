//! A check of the command's reports in a real browser, on a large screen and on a phone. A report
//! must have no errors, fetch nothing, and not scroll sideways. A report must show every number of
//! its JSON. Every axis must start from zero, unless it is logarithmic. Every mark must be drawn in
//! its place and in its protocol's colour, and no ratio that is in doubt. Headings and links must
//! differ from each other, and charts must use the width of a large screen. The file `check.js` has
//! the details.

mod browser;
mod check;
mod damage;

use std::fs;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine};
use browser::{Browser, View};
use check::{VIEWS, problems, url};

/// Checks files, shows that the check refuses damaged files, or makes pictures for inspection.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (options, files): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let files: Vec<&Path> = files.iter().map(Path::new).collect();
    if files.is_empty() {
        return Err("`browse` needs at least one file".to_string());
    }
    let mut browser = Browser::start()?;
    match options.as_slice() {
        [] => files.iter().try_for_each(|file| approve(&mut browser, file)),
        [option] if *option == "--self-test" => {
            files.iter().try_for_each(|file| damage::refuse_all(&mut browser, file))
        }
        [option] if *option == "--pictures" => {
            files.iter().try_for_each(|file| pictures(&mut browser, file))
        }
        _ => Err(format!("`browse` does not know {options:?}")),
    }
}

fn approve(browser: &mut Browser, file: &Path) -> Result<(), String> {
    for view in VIEWS {
        let found = problems(browser, file, view)?;
        if !found.problems.is_empty() {
            let many = found.problems.len();
            found
                .problems
                .iter()
                .take(20)
                .for_each(|problem| println!("{}: {}: {problem}", file.display(), view.name));
            return Err(format!("{} has {many} problems on a {}", file.display(), view.name));
        }
        println!(
            "{}: {}: {} numbers shown, {} drawn in their places, nothing fetched, no errors",
            file.display(),
            view.name,
            found.numbers,
            found.marks
        );
    }
    Ok(())
}

/// Writes pictures of the whole page beside the file: both views in light and in dark, and the
/// printed page.
fn pictures(browser: &mut Browser, file: &Path) -> Result<(), String> {
    let write = |name: String, content: &str| {
        let path = file.with_extension(name);
        println!("{}", path.display());
        let bytes = BASE64_STANDARD
            .decode(content)
            .map_err(|error| format!("the browser's picture: {error}"))?;
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    for view in VIEWS {
        for dark in [false, true] {
            let mut page = browser.open(&url(file)?, View { dark, ..view })?;
            let picture = page.picture()?;
            write(format!("{}-{}.png", view.name, if dark { "dark" } else { "light" }), &picture)?;
            if !dark && !view.mobile {
                write("pdf".to_string(), &page.print()?)?;
            }
            page.close()?;
        }
    }
    Ok(())
}
