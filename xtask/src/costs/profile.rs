//! A parser of callgrind's output. The output has one part for each dump, with events by address.
//!
//! Valgrind's manual describes the format. Here all parts are in one file.

use std::collections::{BTreeMap, HashMap};

/// The events between two dumps.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Part {
    pub(super) totals: Counts,
    /// Instructions by the place of the code, if callgrind kept addresses.
    pub(super) places: BTreeMap<Place, u64>,
}

/// A place in the code: the file of the program or library, and the address in that file.
pub(super) type Place = (String, u64);

/// Counts of events. Events that were not emulated count as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) instructions: f64,
    /// Loads and stores.
    pub(super) references: f64,
    /// `d1_misses` is the number of loads and stores that missed the first cache. `ll_misses` is
    /// the number that missed the last cache.
    pub(super) d1_misses: f64,
    pub(super) ll_misses: f64,
}

impl Counts {
    /// Joins two `Counts`. Each count of the result is `join` of the two counts of the same event.
    pub(super) fn zip(self, other: Counts, join: impl Fn(f64, f64) -> f64) -> Counts {
        Counts {
            instructions: join(self.instructions, other.instructions),
            references: join(self.references, other.references),
            d1_misses: join(self.d1_misses, other.d1_misses),
            ll_misses: join(self.ll_misses, other.ll_misses),
        }
    }

    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Counts {
        self.zip(self, |count, _| change(count))
    }

    /// Parses the counts of a line. `events` are the names of the events, from the head of the
    /// part.
    fn of(events: &[String], figures: &str) -> Result<Counts, String> {
        let mut counts = Counts::default();
        // Callgrind omits zeros at the end of a line.
        for (event, figure) in events.iter().zip(figures.split_whitespace()) {
            let figure: f64 = figure.parse().map_err(|_| format!("`{figure}` is no count"))?;
            match event.as_str() {
                "Ir" => counts.instructions += figure,
                "Dr" | "Dw" => counts.references += figure,
                "D1mr" | "D1mw" => counts.d1_misses += figure,
                "DLmr" | "DLmw" => counts.ll_misses += figure,
                _ => {}
            }
        }
        Ok(counts)
    }
}

/// Returns the parts that were written because a function was entered or left, in the order of the
/// output.
pub(super) fn parts(profile: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut part, mut wanted) = (Vec::new(), Part::default(), false);
    let (mut events, mut has_addresses, mut names) = (Vec::new(), false, HashMap::new());
    let (mut object, mut address, mut called) = (String::new(), 0, false);
    for line in profile.lines() {
        if let Some(list) = line.strip_prefix("events: ") {
            events = list.split_whitespace().map(str::to_string).collect();
        } else if let Some(list) = line.strip_prefix("positions: ") {
            has_addresses = list == "instr line";
        } else if let Some(trigger) = line.strip_prefix("desc: Trigger: ") {
            wanted = trigger.starts_with("--dump");
        } else if let Some(figures) = line.strip_prefix("totals: ") {
            // This is the last line of a part.
            part.totals = Counts::of(&events, figures)?;
            let done = std::mem::take(&mut part);
            parts.extend(wanted.then_some(done));
        } else if let Some(name) = line.strip_prefix("ob=") {
            object = named(&mut names, name)?;
        } else if let Some(name) = line.strip_prefix("cob=") {
            named(&mut names, name)?;
        } else if line.starts_with("calls=") {
            called = true;
        } else if has_addresses
            && line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
        {
            let mut fields = line.splitn(3, ' ');
            address = moved(address, fields.next().unwrap_or_default())?;
            // The line after a call counts the called function, which also has lines of its own. So
            // that line is skipped.
            let own = !std::mem::take(&mut called);
            if let Some(figures) = fields.nth(1).filter(|_| own) {
                let count = Counts::of(&events, figures)?.instructions as u64;
                *part.places.entry((object.clone(), address)).or_default() += count;
            }
        }
    }
    Ok(parts)
}

/// Returns the next address. `text` is the address itself or its difference from `address`.
fn moved(address: u64, text: &str) -> Result<u64, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let moved = match text.split_at_checked(1) {
        Some(("*", "")) => Some(address),
        Some(("+", more)) => number(more).map(|more| address + more),
        Some(("-", less)) => number(less).and_then(|less| address.checked_sub(less)),
        _ => number(text),
    };
    moved.ok_or_else(|| format!("`{text}` is no address"))
}

/// Returns the name of an object. In the output the object is written as `(number) name` the first
/// time, and as `(number)` later.
fn named(names: &mut HashMap<String, String>, text: &str) -> Result<String, String> {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(number.to_string(), name.to_string());
    }
    names.get(number).cloned().ok_or_else(|| format!("callgrind names no object {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
part: 1
desc: Trigger: --dump-after=costs::measured
positions: instr line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
summary: 19 5 3 1 1 1

ob=(1) a
fl=(1) a.rs
fn=(1) one
0x10 10 5 2 1
+3 +1 4
-3 * 2
cob=(2) b
cfn=(2) two
calls=1 0x20 20
+3 +3 8 3 2 1 1 1

ob=(2)
fl=(3)
fn=(2)
0x20 20 8 3 2 1 1 1
totals: 19 5 3 1 1 1

part: 2
desc: Trigger: Program termination
events: Ir
totals: 99
";

    #[test]
    fn events_are_counted_once_and_where_they_happened() {
        let totals = Counts { instructions: 19.0, references: 8.0, d1_misses: 2.0, ll_misses: 0.0 };
        let places = [(("a", 0x10), 7), (("a", 0x13), 4), (("b", 0x20), 8)];
        let places =
            places.map(|((object, address), count)| ((object.to_string(), address), count)).into();
        assert_eq!(parts(PROFILE), Ok(vec![Part { totals, places }]));
    }

    #[test]
    fn a_profile_without_addresses_has_totals() {
        let parts = parts(&PROFILE.replace("instr line", "line")).expect("a profile");
        assert_eq!((parts[0].totals.instructions, parts[0].places.len()), (19.0, 0));
    }
}
