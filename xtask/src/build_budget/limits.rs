//! The limits that a build of the command must keep.

use super::sizes::Sizes;
use std::collections::BTreeSet;
use std::fmt;

/// The file of the limits.
pub(super) const FILE: &str = "docs/build-budget.csv";
/// The profile that the task builds from nothing by default. Only this profile has a limit of CPU
/// time.
pub(super) const RELEASE: &str = "release";

const HEAD: &str = "profile,limit,most,reason";

/// How strictly limits are taken. Copies and bytes depend on inlining and on the distribution of
/// functions over units of code, which change with every renaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// A count above a limit fails.
    Exact,
    /// A count more than 15 % above a limit fails. A count less far above a limit is printed, and
    /// so is a family of functions that is missing.
    Coarse,
}

/// The factor up to which a limit may be exceeded if the tolerance is coarse.
const COARSE: f64 = 1.15;

/// The quantity that is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Quantity {
    CpuSeconds,
    TextBytes,
    FileBytes,
    /// The number of functions of a family.
    Copies(String),
}

impl Quantity {
    fn parse(name: &str) -> Option<Quantity> {
        match name {
            "CPU seconds" => Some(Quantity::CpuSeconds),
            "text bytes" => Some(Quantity::TextBytes),
            "file bytes" => Some(Quantity::FileBytes),
            _ => name.strip_prefix("copies of ").map(|family| Quantity::Copies(family.to_string())),
        }
    }

    /// Returns, as a text for messages, the most by which one change may raise the limit.
    fn raise(&self) -> &'static str {
        match self {
            Quantity::CpuSeconds => " by at most 4",
            Quantity::TextBytes => " by at most 300000",
            Quantity::FileBytes | Quantity::Copies(_) => "",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::CpuSeconds => f.write_str("CPU seconds"),
            Quantity::TextBytes => f.write_str("text bytes"),
            Quantity::FileBytes => f.write_str("file bytes"),
            Quantity::Copies(family) => write!(f, "copies of {family}"),
        }
    }
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    profile: String,
    quantity: Quantity,
    most: u64,
}

impl Limit {
    fn parse(line: &str) -> Result<Limit, String> {
        let form = || format!("`{line}` is not of the form PROFILE,\"LIMIT\",MOST,REASON");
        // Names of families have commas.
        let (profile, rest) = line.split_once(",\"").ok_or_else(form)?;
        let (name, rest) = rest.split_once("\",").ok_or_else(form)?;
        let (most, reason) = rest.split_once(',').ok_or_else(form)?;
        let known = "CPU seconds, text bytes, file bytes, copies of FAMILY";
        let unknown = || format!("`{name}` is none of: {known}");
        let quantity = Quantity::parse(name).ok_or_else(unknown)?;
        let most = most.parse().map_err(|_| format!("`{most}` is no whole number"))?;
        if reason.trim().is_empty() {
            return Err(format!("the limit of {name} has no reason"));
        }
        if quantity == Quantity::CpuSeconds && profile != RELEASE {
            return Err(format!("CPU time is measured for {RELEASE} only, not for {profile}"));
        }
        Ok(Limit { profile: profile.to_string(), quantity, most })
    }
}

/// All limits of all profiles.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Budget(Vec<Limit>);

/// The measurements of a build.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    pub(super) sizes: &'a Sizes,
    /// The CPU time of the build; `None` if the command was not built for this check.
    pub(super) cpu_seconds: Option<f64>,
}

/// The result of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// A line for each limit that was checked.
    pub(super) checked: Vec<String>,
    /// Limits that were not checked.
    pub(super) unchecked: Vec<String>,
    /// Limits that were exceeded within the tolerance.
    pub(super) tolerated: Vec<String>,
    /// The reasons to fail.
    pub(super) failures: Vec<String>,
}

impl Budget {
    /// Parses the file's text. Empty lines and lines that begin with `#` are skipped.
    pub(super) fn parse(text: &str) -> Result<Budget, String> {
        let lines = (1..).zip(text.lines());
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        if lines.next().is_none_or(|(_, line)| line != HEAD) {
            return Err(format!("the first line that is no comment must be `{HEAD}`"));
        }
        let mut limits: Vec<Limit> = Vec::new();
        for (number, line) in lines {
            let limit =
                Limit::parse(line).map_err(|problem| format!("line {number}: {problem}"))?;
            let mut of_profile = limits.iter().filter(|known| known.profile == limit.profile);
            if of_profile.any(|known| known.quantity == limit.quantity) {
                let (quantity, profile) = (&limit.quantity, &limit.profile);
                return Err(format!("line {number}: {quantity} of {profile} has a limit already"));
            }
            limits.push(limit);
        }
        Ok(Budget(limits))
    }

    /// Returns an error if the budget has no limits for `profile`. The error names the known
    /// profiles.
    pub(super) fn demand(&self, profile: &str) -> Result<(), String> {
        if self.0.iter().any(|limit| limit.profile == profile) {
            return Ok(());
        }
        let known: BTreeSet<_> = self.0.iter().map(|limit| limit.profile.as_str()).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!("{FILE} has no limits of the profile `{profile}`; it has those of: {known}"))
    }

    /// Compares a build with the limits of its profile.
    pub(super) fn check(
        &self,
        profile: &str,
        measured: &Measured,
        tolerance: Tolerance,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for Limit { quantity, most, .. } in self.0.iter().filter(|limit| limit.profile == profile) {
            let value = match quantity {
                Quantity::CpuSeconds => measured.cpu_seconds,
                Quantity::TextBytes => Some(measured.sizes.text as f64),
                Quantity::FileBytes => Some(measured.sizes.file as f64),
                Quantity::Copies(family) => Some(measured.sizes.copies(family) as f64),
            };
            let Some(value) = value else {
                verdict.unchecked.push(format!("{quantity}: NOT CHECKED, since nothing was built"));
                continue;
            };
            let digits = if *quantity == Quantity::CpuSeconds { 1 } else { 0 };
            let is = format!("{quantity}: {value:.digits$}");
            verdict.checked.push(format!("{is}, at most {most}"));
            let exceeded = if value > *most as f64 {
                format!(
                    "{is}, and the limit of {profile} is {most}; make it less (`nm --size-sort \
                     --demangle` lists functions), or raise the limit in {FILE}{} and say why in its line",
                    quantity.raise()
                )
            } else if matches!(quantity, Quantity::Copies(_)) && value == 0.0 && *most > 0 {
                format!(
                    "{is}: the command has no function of that name; if it has got another \
                     name, write that into {FILE}, and if there must be none, a limit of 0"
                )
            } else {
                continue;
            };
            let is_tolerated = match tolerance {
                Tolerance::Exact => false,
                Tolerance::Coarse => value <= *most as f64 * COARSE,
            };
            let kind = if is_tolerated { &mut verdict.tolerated } else { &mut verdict.failures };
            kind.push(exceeded);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns the sizes of a command of three functions.
    fn sizes() -> Sizes {
        let symbols = "\
            10 1e t _ZN7candide5epoch3pin17h0123456789abcdefE\n\
            40 28 t _ZN7candide5epoch3pin17hfedcba9876543210E\n\
            80 50 t _ZN7candide4load17h0123456789abcdefE\n";
        Sizes::of(1000, ".text 150 10\n", symbols)
    }

    fn parsed(lines: &str) -> Result<Budget, String> {
        Budget::parse(&format!("# about it\n\n{HEAD}\n{lines}"))
    }

    /// Checks a command that was built in ten and a half seconds.
    fn checked(lines: &str, profile: &str) -> Verdict {
        let sizes = sizes();
        let measured = Measured { sizes: &sizes, cpu_seconds: Some(10.5) };
        parsed(lines).expect("limits").check(profile, &measured, Tolerance::Exact)
    }

    fn problem(lines: &str) -> String {
        parsed(lines).expect_err("a mistake")
    }

    #[test]
    fn limits_of_the_build_budget_are_parsed() {
        let lines = "release,\"CPU seconds\",170,first, and for now\n\
                     # families\n\
                     debug,\"copies of <(A, B) as c::D>::e\",3,measured\n";
        let family = Quantity::Copies("<(A, B) as c::D>::e".to_string());
        let limits = vec![
            Limit { profile: "release".to_string(), quantity: Quantity::CpuSeconds, most: 170 },
            Limit { profile: "debug".to_string(), quantity: family, most: 3 },
        ];
        assert_eq!(parsed(lines), Ok(Budget(limits)));
    }

    #[test]
    fn mistakes_in_the_limits_are_refused_with_their_line() {
        for text in ["", "release,\"text bytes\",1,why\n"] {
            assert!(Budget::parse(text).expect_err("no head").contains(HEAD), "{text}");
        }
        let form = "line 4: `a,text bytes,1,why` is not of the form PROFILE,\"LIMIT\",MOST,REASON";
        assert_eq!(problem("a,text bytes,1,why\n"), form);
        let unknown = problem("release,\"text\",1,why\n");
        assert!(unknown.starts_with("line 4: `text` is none of: CPU"), "{unknown}");
        assert_eq!(problem("release,\"text bytes\",1.5,why\n"), "line 4: `1.5` is no whole number");
        let no_reason = "line 4: the limit of text bytes has no reason";
        assert_eq!(problem("release,\"text bytes\",1, \n"), no_reason);
        assert!(problem("release,\"text bytes\",1\n").contains("is not of the form"));
        let time = problem("debug,\"CPU seconds\",1,why\n");
        assert!(time.contains("for release only, not for debug"), "{time}");
        let twice = "release,\"text bytes\",1,why\nrelease,\"text bytes\",2,why\n";
        assert_eq!(problem(twice), "line 5: text bytes of release has a limit already");
    }

    #[test]
    fn a_count_at_its_limit_passes() {
        let lines = "release,\"CPU seconds\",11,why\n\
                     release,\"text bytes\",150,why\n\
                     release,\"file bytes\",1000,why\n\
                     release,\"copies of candide::epoch::pin\",2,why\n\
                     release,\"copies of candide::gone\",0,why\n";
        let verdict = checked(lines, "release");
        assert_eq!(verdict.failures, [""; 0]);
        let passed = [
            "CPU seconds: 10.5, at most 11",
            "text bytes: 150, at most 150",
            "file bytes: 1000, at most 1000",
            "copies of candide::epoch::pin: 2, at most 2",
            "copies of candide::gone: 0, at most 0",
        ];
        assert_eq!(verdict.checked, passed);
    }

    #[test]
    fn a_count_above_its_limit_fails_with_instructions() {
        let fails = |line: &str, beginning: &str, advice: &str| {
            let failures = checked(line, "release").failures;
            assert_eq!(failures.len(), 1, "{line}");
            assert!(failures[0].starts_with(beginning), "{}", failures[0]);
            assert!(failures[0].contains(advice), "{}", failures[0]);
        };
        let is = |value: &str| format!("{value}, and the limit of release is ");
        let user = is("CPU seconds: 10.5") + "10; ";
        fails("release,\"CPU seconds\",10,why", &user, "build-budget.csv by at most 4 ");
        let text = is("text bytes: 150") + "149; ";
        fails("release,\"text bytes\",149,why", &text, "build-budget.csv by at most 300000 ");
        let file = is("file bytes: 1000") + "999; ";
        fails("release,\"file bytes\",999,why", &file, "make it less");
        let copies = is("copies of candide::epoch::pin: 2") + "1; ";
        fails("release,\"copies of candide::epoch::pin\",1,why", &copies, "say why in its line");
    }

    #[test]
    fn a_family_that_is_missing_does_not_escape_its_limit() {
        let failures = checked("release,\"copies of candide::renamed\",5,why", "release").failures;
        assert_eq!(failures.len(), 1);
        assert!(failures[0].contains("no function of that name"), "{}", failures[0]);
    }

    #[test]
    fn counts_slightly_above_a_limit_are_printed_with_the_option() {
        let sizes = sizes();
        let coarse = |line: &str| {
            let measured = Measured { sizes: &sizes, cpu_seconds: None };
            parsed(line).expect("a limit").check("dev", &measured, Tolerance::Coarse)
        };
        // 150 bytes are 14.5 % above 131, and 15.4 % above 130.
        let tolerated = coarse("dev,\"text bytes\",131,why");
        assert_eq!((tolerated.failures.len(), tolerated.tolerated.len()), (0, 1));
        assert!(
            tolerated.tolerated[0].starts_with("text bytes: 150, and the limit of dev is 131;")
        );
        let fails = coarse("dev,\"text bytes\",130,why");
        assert_eq!((fails.failures.len(), fails.tolerated.len()), (1, 0));
        let inlined = coarse("dev,\"copies of candide::inlined\",5,why");
        assert_eq!((inlined.failures.len(), inlined.tolerated.len()), (0, 1));
        let copies = coarse("dev,\"copies of candide::epoch::pin\",0,why");
        assert_eq!(copies.failures.len(), 1, "what must have no copy has none");
    }

    #[test]
    fn other_profiles_have_limits_of_their_own() {
        let lines = "release,\"text bytes\",1,why\ndebug,\"text bytes\",150,why\n";
        assert_eq!(checked(lines, "release").failures.len(), 1);
        assert_eq!(checked(lines, "debug").failures, [""; 0]);
        let budget = parsed(lines).expect("limits");
        assert_eq!(budget.demand("debug"), Ok(()));
        let unknown = budget.demand("bench").expect_err("no such profile");
        assert!(unknown.contains("`bench`"), "{unknown}");
        assert!(unknown.ends_with("it has those of: debug, release"), "{unknown}");
    }

    #[test]
    fn time_is_not_checked_where_nothing_was_built() {
        let sizes = sizes();
        let budget = parsed("release,\"CPU seconds\",10,why").expect("limits");
        let verdict = budget.check(
            "release",
            &Measured { sizes: &sizes, cpu_seconds: None },
            Tolerance::Exact,
        );
        assert_eq!((verdict.checked.len(), verdict.failures.len()), (0, 0));
        let unchecked = "CPU seconds: NOT CHECKED, since nothing was built";
        assert_eq!(verdict.unchecked, [unchecked]);
    }

    #[test]
    fn the_committed_limits_are_complete() {
        let text = fs::read_to_string(crate::root().join(FILE)).expect("the limits");
        let Budget(limits) = Budget::parse(&text).expect("no mistake");
        for wanted in [Quantity::CpuSeconds, Quantity::TextBytes, Quantity::FileBytes] {
            let is_there = |limit: &Limit| limit.profile == RELEASE && limit.quantity == wanted;
            assert!(limits.iter().any(is_there), "{wanted} has no limit");
        }
    }
}
