//! Policies of tables by name, as a command line gives them: `mixed:TABLE=POLICY,TABLE=POLICY`.

use std::sync::{Mutex, PoisonError};

use candide::{Policies, Policy};

/// The mixtures that were parsed, each once. Reports name a mixture by its text, so they live as
/// long as the process.
static PARSED: Mutex<Vec<&Policies>> = Mutex::new(Vec::new());

/// Returns the elements of a list of protocols. The pairs of a mixture are separated by the same
/// commas as the elements: an element with `=` and without `:` belongs to the mixture before it.
pub(crate) fn elements(list: &str) -> Result<Vec<String>, String> {
    let mut elements: Vec<String> = Vec::new();
    for part in list.split(',') {
        if !part.contains('=') || part.contains(':') {
            elements.push(part.to_string());
            continue;
        }
        match elements.last_mut().filter(|last| pairs(last).is_some()) {
            Some(mixture) => *mixture += &format!(",{part}"),
            None => return Err(format!("`{part}` does not follow a mixture; {FORM}")),
        }
    }
    Ok(elements)
}

/// The form of a mixture, for error messages.
const FORM: &str = "a mixture is `mixed:TABLE=POLICY`, or several such pairs after `mixed:`, with \
                    commas between them";

/// Returns the pairs of a mixture; `None` if `element` names a protocol of the list.
fn pairs(element: &str) -> Option<&str> {
    element.strip_prefix(Policies::mixed().name())?.strip_prefix(':')
}

/// Returns the policies of a mixture, whose name is `element`; `None` if `element` names a protocol
/// of the list. Tables without a pair have the default policy.
pub(crate) fn parse(element: &str) -> Option<Result<&'static Policies, String>> {
    pairs(element).map(|pairs| {
        let mut policies = Policies::of(Policy::default());
        for pair in pairs.split(',') {
            let (table, policy) = pair
                .split_once('=')
                .filter(|(table, _)| !table.is_empty())
                .ok_or_else(|| format!("`{pair}` names no table and policy; {FORM}"))?;
            if policies.tables().any(|known| known == table) {
                return Err(format!("`{element}` has two policies for the table `{table}`"));
            }
            policies = policies.with(table, policy.parse()?);
        }
        Ok(keep(element, policies))
    })
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

/// Returns the number of mixtures that were parsed before the one called `name`; `None` if there is
/// no such mixture.
pub(crate) fn place(name: &str) -> Option<usize> {
    let parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    parsed.iter().position(|known| known.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_belong_to_the_mixture_before_them() {
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
    fn a_mixture_is_known_by_its_text() {
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
    fn what_is_no_mixture_is_refused_with_its_form() {
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
