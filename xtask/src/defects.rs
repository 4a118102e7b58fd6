//! The list of deliberate defects, and the changes of the source that make them.
//!
//! The files `xtask/defects/*.defects` are the list. No defect is in the source itself:
//! [`instrumented`](crate::instrumented) writes a copy of the workspace that contains them all. An
//! entry is
//!
//! ```text
//! name: one sentence that says what the defect breaks
//! usual tests::of::a_property
//! in crates/candide/src/file.rs fn Type::method
//! - the statement before
//! + the statement after
//! ```
//!
//! * A line with a build (`usual`, `loom`, or `log` for the tests of the log's crate) names a test
//!   that must find the defect, the quickest one that does so in every run; or a module of tests,
//!   one for each protocol, of which at least one must. If several protocols contain the defect,
//!   several tests may be named.
//! * A line with `in` is a place: a file, and an item in it. The statement before, or any part of
//!   it, has to be in that item exactly once. Only tokens are compared.
//! * The statement after takes its place while the defect is active; and always if it contains
//!   `$before`, which stands for the statement before. Then it asks `defect("name")`.

use crate::tokens::{items, nearest, places, tokens};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The folder of the list.
const FOLDER: &str = "xtask/defects";
/// The call by which a statement asks whether a defect is active.
const ASK: &str = "defect(\"";
/// The text that stands for the statement before in a statement after.
const BEFORE: &str = "$before";

/// A build of tests, in the copy of the workspace with all deliberate defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Build {
    /// The library's test binary as `cargo test` builds it.
    Usual,
    /// The library's test binary in which loom's types replace every atomic, lock and thread.
    Loom,
    /// The library's test binary in which shuttle's types replace every atomic, lock and thread.
    Shuttle,
    /// The test binaries of the crates of the log and of reach.
    Log,
}

impl Build {
    /// Returns the build of this name.
    pub(crate) fn named(name: &str) -> Option<Build> {
        let builds = [Build::Usual, Build::Loom, Build::Shuttle, Build::Log];
        builds.into_iter().find(|build| format!("{build:?}").to_lowercase() == name)
    }
}

/// A defect, the tests that must find it, and its places.
#[derive(Debug)]
pub(crate) struct Defect {
    pub(crate) name: String,
    /// The place of the entry in the list.
    entry: String,
    pub(crate) checks: Vec<(Build, String)>,
    places: Vec<Place>,
}

/// A part of an item, and the text that the defect puts in its place.
#[derive(Debug)]
struct Place {
    file: String,
    item: String,
    before: String,
    after: String,
}

/// A change of a file.
#[derive(Debug)]
struct Edit<'a> {
    /// The range of the text that is changed.
    range: Range<usize>,
    /// The number of the defect, from 1 on.
    number: usize,
    place: &'a Place,
}

/// Returns all defects, in the order of their names.
pub(crate) fn all(root: &Path) -> Result<Vec<Defect>, String> {
    let explain = |error| format!("{FOLDER}: {error}");
    let entries = fs::read_dir(root.join(FOLDER)).map_err(explain)?;
    let files = entries.map(|entry| Ok(entry.map_err(explain)?.path()));
    let mut defects = Vec::new();
    for file in files.collect::<Result<Vec<PathBuf>, String>>()? {
        let name = file.file_name().unwrap_or_default().display().to_string();
        if let Some(name) = name.strip_suffix(".defects") {
            let text = fs::read_to_string(&file).map_err(explain)?;
            defects.extend(parse(&format!("{FOLDER}/{name}.defects"), &text)?);
        }
    }
    defects.sort_by(|a, b| a.name.cmp(&b.name));
    match defects.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(twice) => Err(format!("{}: there are two defects of that name", twice[1].entry)),
        None => Ok(defects),
    }
}

/// Returns the defects of one file of the list.
fn parse(path: &str, text: &str) -> Result<Vec<Defect>, String> {
    let mut defects: Vec<Defect> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |what: &str| format!("{path}:{number}: {what}");
        // The sentence about a defect may take several lines.
        let is_comment = line.is_empty() || line.starts_with(['#', ' ']);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let last = defects.last_mut();
        let place = || wrong("there is no place above");
        match word {
            _ if is_comment => {}
            "in" => {
                let (file, item) = rest.split_once(' ').ok_or_else(|| wrong("name an item"))?;
                let [before, after] = [String::new(), String::new()];
                let place = Place { file: file.into(), item: item.into(), before, after };
                last.ok_or_else(|| wrong("there is no defect above"))?.places.push(place);
            }
            "-" | "+" => {
                let places = last.map(|last| &mut last.places);
                let place = places.and_then(|places| places.last_mut()).ok_or_else(place)?;
                let text = if word == "-" { &mut place.before } else { &mut place.after };
                let space = if text.is_empty() { "" } else { "\n" };
                text.extend([space, rest.trim()]);
            }
            _ if word.ends_with(':') => defects.push(Defect {
                name: word.trim_end_matches(':').to_string(),
                entry: format!("{path}:{number}"),
                checks: Vec::new(),
                places: Vec::new(),
            }),
            _ => {
                let build = Build::named(word).ok_or_else(|| wrong("there is no such build"))?;
                if rest.is_empty() || rest.contains(' ') {
                    return Err(wrong("name one test in a line"));
                }
                let last = last.ok_or_else(|| wrong("there is no defect above"))?;
                last.checks.push((build, rest.to_string()));
            }
        }
    }
    Ok(defects)
}

impl Defect {
    /// Returns what is wrong with the statements of a defect, if they cannot be chosen at run time.
    fn misplaced(&self) -> Option<String> {
        let is_always = |place: &Place| place.after.contains(BEFORE);
        let asks = self.places.iter().any(|place| place.after.contains(ASK));
        if self.places.iter().any(is_always) && !asks {
            return Some(format!("`$before` makes the statement stand always; ask `{ASK}...\")`"));
        }
        let is_part = |place: &&Place| !is_always(place) && !is_balanced(&place.before);
        let part = self.places.iter().find(is_part)?;
        Some(format!("`{}` is no whole expression or statement; name one", part.before))
    }
}

/// Returns whether a text has as many closing brackets as opening ones.
fn is_balanced(text: &str) -> bool {
    ["()", "[]", "{}"].iter().all(|pair| {
        let [open, close] = [0, 1].map(|at| text.matches(&pair[at..=at]).count());
        open == close
    })
}

/// Returns the faults of the list.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>, String> {
    let defects = all(root)?;
    let mut problems = Vec::new();
    for defect in &defects {
        if defect.checks.is_empty() || defect.places.is_empty() {
            problems.push(format!("{}: names no test or no place", defect.entry));
        }
        let checks: BTreeSet<_> = defect.checks.iter().collect();
        if checks.len() < defect.checks.len() {
            problems.push(format!("{}: names a test twice", defect.entry));
        }
        problems.extend(defect.misplaced().map(|what| format!("{}: {what}", defect.entry)));
    }
    for file in files(&defects) {
        match fs::read_to_string(root.join(file)) {
            Ok(text) => problems.extend(edit(file, &text, &defects).err().unwrap_or_default()),
            Err(error) => problems.push(format!("{file}: {error}")),
        }
    }
    Ok(problems)
}

/// Returns the files that contain defects.
pub(crate) fn files(defects: &[Defect]) -> BTreeSet<&str> {
    defects.iter().flat_map(|defect| &defect.places).map(|place| place.file.as_str()).collect()
}

/// Returns a file's text with all defects. Returns the problems of the places in it if there are
/// any. All tokens stay in their lines.
pub(crate) fn edit(file: &str, text: &str, defects: &[Defect]) -> Result<String, Vec<String>> {
    let all = tokens(text);
    let (mut edits, mut problems) = (Vec::new(), Vec::new());
    for (number, defect) in (1..).zip(defects) {
        for place in defect.places.iter().filter(|place| place.file == file) {
            let mut wrong = |what: String| {
                let (entry, name) = (&defect.entry, &defect.name);
                problems.push(format!("{entry}: {name}: {file}: {what}"));
            };
            let [item] = items(&all, &place.item)[..] else {
                wrong(format!("`{}` is not there exactly once", place.item));
                continue;
            };
            let before = tokens(&place.before);
            match places(item, &before)[..] {
                [first] if !before.is_empty() => {
                    let end = item[first + before.len() - 1].end();
                    edits.push(Edit { range: item[first].at..end, number, place });
                }
                [] => {
                    let near = nearest(item, &before).expect("an item has tokens");
                    let (at, end) = (near[0].at, near[near.len() - 1].end());
                    let line = text[..at].matches('\n').count() + 1;
                    let near = &text[at..end];
                    let (item, before) = (&place.item, &place.before);
                    wrong(format!("`{item}` has no `{before}`; line {line} is near: `{near}`"));
                }
                _ => wrong(format!("`{}` is not there exactly once", place.before)),
            }
            if let Some(unknown) =
                asked(&place.after).find(|name| !defects.iter().any(|defect| defect.name == *name))
            {
                wrong(format!("there is no defect `{unknown}`"));
            }
        }
    }
    // A range that contains others comes before them; of equal ranges, the first in the list is
    // innermost.
    edits.reverse();
    edits.sort_by_key(|edit| (edit.range.start, usize::MAX - edit.range.end));
    let mut rendered = Rendered { text, edits: &edits, defects, problems };
    let edited = rendered.render(0..text.len(), &mut 0);
    if rendered.problems.is_empty() { Ok(edited) } else { Err(rendered.problems) }
}

/// Returns the names for which a statement asks.
fn asked(after: &str) -> impl Iterator<Item = &str> {
    after.split(ASK).skip(1).filter_map(|rest| rest.split('"').next())
}

/// A text that is being changed.
struct Rendered<'a> {
    text: &'a str,
    edits: &'a [Edit<'a>],
    defects: &'a [Defect],
    problems: Vec<String>,
}

impl Rendered<'_> {
    /// Returns a range of the text with its changes, from the change `next` on.
    fn render(&mut self, range: Range<usize>, next: &mut usize) -> String {
        let (mut rendered, mut at) = (String::new(), range.start);
        while let Some(edit) = self.edits.get(*next).filter(|edit| edit.range.start < range.end) {
            *next += 1;
            if edit.range.end > range.end {
                let name = &self.defects[edit.number - 1].name;
                self.problems.push(format!("{name}: overlaps another defect's place"));
            }
            rendered += &self.text[at..edit.range.start];
            let before = self.render(edit.range.clone(), next);
            rendered += &self.changed(edit, &before);
            at = edit.range.end;
        }
        rendered + &self.text[at.min(range.end)..range.end]
    }

    /// Returns the text that takes the place of `before`. The text of a defect is between marks,
    /// and has no line of its own.
    fn changed(&self, edit: &Edit<'_>, before: &str) -> String {
        let mut after = edit.place.after.replace('\n', " ");
        for (number, defect) in (1..).zip(self.defects) {
            let ask = format!("crate::defects::defect({number})");
            after = after.replace(&format!("{ASK}{}\")", defect.name), &ask);
        }
        let mark = |text: &str| format!("{MARK}{text}{UNMARK}");
        if let Some((head, tail)) = after.split_once(BEFORE) {
            return mark(head) + before + &mark(tail);
        }
        let choice = format!("if crate::defects::defect({})", edit.number);
        // As a part of an expression, the choice needs brackets.
        let [open, close] =
            if edit.place.before.ends_with([';', '}']) { ["", ""] } else { ["(", ")"] };
        format!("{open}{choice} {{{}}} else {{{before}}}{close}", mark(&after))
    }
}

/// Marks around the text that a defect adds. The marks begin with a blank: two marks side by side
/// would otherwise contain the beginning of a line comment.
pub(crate) const MARK: &str = " /*+*/";
pub(crate) const UNMARK: &str = " /*-*/";

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f(a: u8) {\n    if a > 1\n        && g() {\n        h();\n    }\n}";

    fn edited(list: &str) -> Result<String, Vec<String>> {
        edit("f.rs", TEXT, &parse("list", list).expect("a well-formed list"))
    }

    #[test]
    fn a_statement_is_replaced_or_extended_in_its_lines() {
        let whole = edited("one: h.\nusual t\nin f.rs fn f\n- h();\n+ i();").expect("it is there");
        let choice = "if crate::defects::defect(1) { /*+*/i(); /*-*/} else {h();}";
        assert_eq!(whole, TEXT.replace("h();", choice));
        let asks = "one: g.\nusual t\nin f.rs fn f\n- g()\n+ (defect(\"one\") || $before)";
        let choice = " /*+*/(crate::defects::defect(1) ||  /*-*/g() /*+*/) /*-*/";
        assert_eq!(edited(asks).expect("it is there"), TEXT.replace("g()", choice));
    }

    #[test]
    fn defects_may_share_places_and_nest_them() {
        let list = "one: g.\nusual t\nin f.rs fn f\n- g()\n+ true\n\
            two: all.\nusual t\nin f.rs fn f\n- if a > 1 && g() {\n- h();\n- }\n+ h();\n\
            three: g, too.\nusual t\nin f.rs fn f\n- g()\n+ false";
        let text = edited(list).expect("they are there");
        assert_eq!(text.matches('\n').count(), TEXT.matches('\n').count());
        let inner = "(if crate::defects::defect(3) { /*+*/false /*-*/} else \
            {(if crate::defects::defect(1) { /*+*/true /*-*/} else {g()})})";
        assert!(text.contains(inner), "{text}");
        assert!(text.contains("if crate::defects::defect(2) { /*+*/h(); /*-*/} else {if a > 1"));
    }

    #[test]
    fn defects_that_are_not_found_or_cannot_be_combined_are_named() {
        let told = |list: &str, part: &str| {
            let problems = edited(list).expect_err("something is wrong").concat();
            assert!(problems.contains(part), "{problems}");
        };
        told("one: h.\nusual t\nin f.rs fn f\n- h(a);\n+", "list:1: one: f.rs: `fn f` has no");
        told("one: h.\nusual t\nin f.rs fn f\n- h(a);\n+", "line 4 is near: `h();`");
        told("one: h.\nusual t\nin f.rs fn g\n- h();\n+", "`fn g` is not there");
        told("one: a.\nusual t\nin f.rs fn f\n- a\n+ 1", "`a` is not there exactly once");
        told("one: a.\nusual t\nin f.rs fn f\n- h();\n+ defect(\"two\")", "no defect `two`");
        let twice = "one: h.\nusual t\nin f.rs fn f\n- g() {\n+ g() {\n\
            two: h.\nusual t\nin f.rs fn f\n- { h();\n+ {";
        told(twice, "overlaps");
        let misplaced = |list: &str| parse("list", list).unwrap()[0].misplaced();
        assert_eq!(misplaced("one: h.\nusual t\nin f.rs fn f\n- h();\n+ i();"), None);
        assert!(misplaced("one: h.\nusual t\nin f.rs fn f\n- h();\n+ i();\n+ $before").is_some());
        assert!(misplaced("one: h.\nusual t\nin f.rs fn f\n- if a {\n+ if b {").is_some());
        assert!(parse("list", "usual t").is_err());
        assert!(parse("list", "one: h.\nusual t u").is_err());
        assert!(parse("list", "- h();").is_err());
        assert!(parse("list", "one: h.\nodd t").is_err());
    }
}
