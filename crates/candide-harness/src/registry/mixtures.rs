//! Policies with their settings, as a command line gives them: policies of tables by name,
//! `mixed:TABLE=POLICY,TABLE=POLICY`, and options of MOCC and of hybrid concurrency control,
//! `mocc:OPTION=VALUE,OPTION=VALUE`.

use std::sync::{Mutex, PoisonError};

use candide::UnknownName;
use candide::policy::{MoccOptions, Policies, Policy};

/// The policies that were parsed, each once. Reports name them by their text, so they live as long
/// as the process.
static PARSED: Mutex<Vec<&Policies>> = Mutex::new(Vec::new());

/// Returns the elements of a list of protocols. The settings of a policy are separated by the same
/// commas as the elements: an element with `=` and without `:` belongs to the policy before it.
pub(crate) fn elements(list: &str) -> Result<Vec<String>, String> {
    let mut elements: Vec<String> = Vec::new();
    for part in list.split(',') {
        if !part.contains('=') || part.contains(':') {
            elements.push(part.to_string());
            continue;
        }
        match elements.last_mut().filter(|last| Settings::of(last).is_some()) {
            Some(policy) => *policy += &format!(",{part}"),
            None => {
                return Err(format!(
                    "`{part}` is a setting, but the element before it takes none; {MIXTURE}; {OPTIONS}"
                ));
            }
        }
    }
    Ok(elements)
}

/// The form of a mixture, for error messages.
const MIXTURE: &str = "a mixture is `mixed:TABLE=POLICY`, or several such pairs after `mixed:`, with \
                       commas between them";

/// The form of a policy with options, for error messages.
const OPTIONS: &str = "options are `mocc:OPTION=VALUE` or `hybrid:OPTION=VALUE`, or several such pairs \
                       after the colon, with commas between them";

/// The largest temperature from which a row can be hot. No row is hotter.
const HOTTEST: u8 = 31;

/// An element of a list of protocols that has settings.
#[derive(Debug, Clone, Copy)]
enum Settings<'a> {
    /// A mixture, and its pairs.
    Mixture(&'a str),
    /// A policy with options, and the options.
    Options(Policy, &'a str),
}

impl Settings<'_> {
    /// Returns the settings of `element`; `None` if it names a protocol of the list.
    fn of(element: &str) -> Option<Settings<'_>> {
        let (name, pairs) = element.split_once(':')?;
        let with_options = [Policy::Mocc, Policy::Hybrid];
        match with_options.into_iter().find(|policy| policy.name() == name) {
            Some(policy) => Some(Settings::Options(policy, pairs)),
            None => (name == Policies::mixed().name()).then_some(Settings::Mixture(pairs)),
        }
    }
}

/// Returns the policies that `element` gives to tables, which are called by its text; `None` if it
/// names a protocol of the list.
pub(crate) fn parse(element: &str) -> Option<Result<&'static Policies, String>> {
    Settings::of(element).map(|settings| {
        let policies = match settings {
            Settings::Mixture(pairs) => mixture(element, pairs),
            Settings::Options(policy, pairs) => options(element, policy, pairs),
        };
        Ok(keep(element, policies?))
    })
}

/// Returns the policies of a mixture. Tables without a pair have the default policy.
fn mixture(element: &str, pairs: &str) -> Result<Policies, String> {
    let mut policies = Policies::of(Policy::default());
    for pair in pairs.split(',') {
        let (table, policy) = pair
            .split_once('=')
            .filter(|(table, _)| !table.is_empty())
            .ok_or_else(|| format!("`{pair}` names no table and policy; {MIXTURE}"))?;
        if policies.tables().any(|known| known == table) {
            return Err(format!("`{element}` has two policies for the table `{table}`"));
        }
        let policy = policy.parse().map_err(|unknown: UnknownName| unknown.to_string())?;
        policies = policies.with(table, policy);
    }
    Ok(policies)
}

/// Returns `policy` for all tables, with the options in `pairs`.
fn options(element: &str, policy: Policy, pairs: &str) -> Result<Policies, String> {
    let name = policy.name();
    let mut options = MoccOptions::new();
    let mut given = Vec::new();
    for pair in pairs.split(',') {
        let (option, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("`{pair}` names no option and value; {OPTIONS}"))?;
        let wrong =
            |right: &str| format!("`{option}` of `{element}` must be {right}, not `{value}`");
        let choose = |[first, second]: [&str; 2]| match value {
            _ if value == first => Ok(false),
            _ if value == second => Ok(true),
            _ => Err(wrong(&format!("`{first}` or `{second}`"))),
        };
        options = match option {
            "h" | "per" if policy != Policy::Mocc => {
                return Err(format!(
                    "`{option}` has no effect under {name}, which has no temperatures; its options are `lock` and `wait`"
                ));
            }
            "h" => match value.parse() {
                Ok(threshold) if threshold <= HOTTEST => options.threshold(threshold),
                _ => return Err(wrong(&format!("a whole number from 0 to {HOTTEST}"))),
            },
            "per" => options.per_page(choose(["row", "page"])?),
            "lock" => options.queue_locks(choose(["parked", "queue"])?),
            "wait" => options.paper_waiting(choose(["short", "paper"])?),
            _ => {
                return Err(format!(
                    "{name} has no option `{option}`; there are `h`, `per`, `lock` and `wait` of mocc, and `lock` and `wait` of hybrid"
                ));
            }
        };
        if given.contains(&option) {
            return Err(format!("`{element}` has the option `{option}` twice"));
        }
        given.push(option);
    }
    Ok(Policies::of(policy).mocc(options))
}

/// Names `policies` by `text`, and keeps them.
fn keep(text: &str, policies: Policies) -> &'static Policies {
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = parsed.iter().find(|known| known.name() == text) {
        return known;
    }
    let name = Box::leak(text.to_string().into_boxed_str());
    let kept = &*Box::leak(Box::new(policies.named(name)));
    parsed.push(kept);
    kept
}

/// Returns the number of policies that were parsed before the policies called `name`; `None` if
/// none are called `name`.
pub(crate) fn place(name: &str) -> Option<usize> {
    let parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    parsed.iter().position(|known| known.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_table_and_policy_belong_to_the_mixture_before_them() {
        let list = "occ,mixed:a=swiss,b=pcc,mixed:c=occ,mixed,tictoc";
        let expected = ["occ", "mixed:a=swiss,b=pcc", "mixed:c=occ", "mixed", "tictoc"];
        assert_eq!(elements(list).expect("a list"), expected);
        for (list, part) in
            [("a=swiss", "a"), ("mixed,a=swiss", "a"), ("mixed:a=occ,occ,b=occ", "b")]
        {
            let refused = elements(list).expect_err("no mixture before it");
            assert!(refused.contains(&format!("`{part}=")), "{refused}");
        }
    }

    #[test]
    fn the_name_of_a_mixture_is_its_text() {
        let parsed = |text| parse(text).expect("a mixture").expect("well formed");
        let mixture = parsed("mixed:first=swiss,second=2pl-wait-die");
        let alike = Policies::of(Policy::Optimistic)
            .with("first", Policy::Swiss)
            .with("second", Policy::WaitDie);
        assert_eq!(*mixture, alike.named("mixed:first=swiss,second=2pl-wait-die"));
        assert!(std::ptr::eq(parsed(mixture.name()), mixture), "kept once");
        let other = parsed("mixed:first=pcc");
        assert!(place(mixture.name()) < place(other.name()) && place("mixed:never=occ").is_none());
        assert!(parse("mixed").is_none() && parse("2pl-wait-die").is_none());
    }

    #[test]
    fn options_belong_to_the_policy_before_them_and_are_part_of_its_name() {
        let list =
            "mocc,mocc:h=20,lock=queue,occ,hybrid:lock=parked,mixed:a=mocc,b=hybrid,mocc:per=page";
        let expected = [
            "mocc",
            "mocc:h=20,lock=queue",
            "occ",
            "hybrid:lock=parked",
            "mixed:a=mocc,b=hybrid",
            "mocc:per=page",
        ];
        assert_eq!(elements(list).expect("a list"), expected);
        let refused = elements("mocc,h=20").expect_err("no options before it");
        assert!(refused.starts_with("`h=20` is a setting, but the element before it takes none"));
        for (text, policy, options) in [
            ("mocc:h=0", Policy::Mocc, MoccOptions::new().threshold(0)),
            ("mocc:h=31,per=row", Policy::Mocc, MoccOptions::new().threshold(31)),
            ("mocc:per=page", Policy::Mocc, MoccOptions::new().per_page(true)),
            ("mocc:lock=queue", Policy::Mocc, MoccOptions::new().queue_locks(true)),
            ("hybrid:lock=queue", Policy::Hybrid, MoccOptions::new().queue_locks(true)),
            ("hybrid:lock=parked", Policy::Hybrid, MoccOptions::new()),
            ("mocc:wait=paper", Policy::Mocc, MoccOptions::new().paper_waiting(true)),
            ("hybrid:wait=short", Policy::Hybrid, MoccOptions::new()),
        ] {
            let parsed = parse(text).expect("options").expect("well formed");
            assert_eq!(*parsed, Policies::of(policy).mocc(options).named(text), "{text}");
        }
    }

    #[test]
    fn invalid_policy_options_are_refused_with_a_list_of_valid_ones() {
        for (text, words) in [
            ("mocc:", "`` names no option and value; options are `mocc:OPTION=VALUE` or"),
            ("mocc:h", "`h` names no option and value; options are"),
            ("mocc:h=5,", "`` names no option and value; options are"),
            ("mocc:heat=5", "no option `heat`; there are `h`, `per`, `lock` and `wait` of mocc"),
            ("hybrid:=5", "hybrid has no option ``; there are"),
            ("mocc:h=32", "`h` of `mocc:h=32` must be a whole number from 0 to 31, not `32`"),
            ("mocc:h=-1", "must be a whole number from 0 to 31, not `-1`"),
            ("mocc:h=hot", "must be a whole number from 0 to 31, not `hot`"),
            ("mocc:h=", "must be a whole number from 0 to 31, not ``"),
            ("mocc:per=table", "must be `row` or `page`, not `table`"),
            ("mocc:wait=long", "must be `short` or `paper`, not `long`"),
            ("hybrid:lock=spin", "must be `parked` or `queue`, not `spin`"),
            ("mocc:h=5,lock=queue,h=5", "`mocc:h=5,lock=queue,h=5` has the option `h` twice"),
            ("hybrid:h=5", "`h` has no effect under hybrid, which has no temperatures"),
            ("hybrid:per=page", "`per` has no effect under hybrid"),
        ] {
            let refused = parse(text).expect("options").expect_err("not well formed");
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    #[test]
    fn malformed_mixtures_are_refused_with_the_form_of_a_mixture() {
        for (text, words) in [
            ("mixed:", "`` names no table and policy; a mixture is"),
            ("mixed:first", "`first` names no table and policy; a mixture is"),
            ("mixed:=swiss", "`=swiss` names no table and policy; a mixture is"),
            ("mixed:a=swiss,a=pcc", "has two policies for the table `a`"),
            ("mixed:a=magic", "no policy is called \"magic\"; there are occ, 2pl-no-wait,"),
        ] {
            let refused = parse(text).expect("a mixture").expect_err("not well formed");
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
