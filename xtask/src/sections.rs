//! A check that the sections of papers that are referred to exist.

/// A paper: the texts that precede "section" in a reference to it, and its sections.
struct Paper {
    names: [&'static str; 2],
    sections: &'static [&'static str],
}

/// The papers whose sections are known here.
const PAPERS: [Paper; 3] = [
    Paper {
        names: ["[HU20], ", "VLDB 2020, "],
        sections: &[
            "1", "2", "2.1", "2.2", "2.3", "3", "3.1", "4", "4.1", "4.2", "4.3", "4.4", "4.5",
            "4.6", "4.7", "5", "5.1", "5.2", "5.3", "6", "6.1", "6.2", "6.3", "7", "7.1", "7.2",
            "8", "9", "9.1", "9.2", "9.3", "9.4", "10",
        ],
    },
    Paper {
        names: ["[HU18], ", "2018, "],
        sections: &["1", "2", "3", "3.1", "3.2", "3.3", "3.4", "4", "4.1", "4.2", "4.3", "5", "6"],
    },
    Paper {
        names: ["[WK16], ", "VLDB 2016, "],
        sections: &[
            "1", "2", "2.1", "2.2", "2.3", "3", "3.1", "3.2", "3.3", "3.3.1", "3.3.2", "3.3.3",
            "3.3.4", "3.4", "4", "4.1", "4.2", "4.3", "5", "5.1", "5.1.1", "5.1.2", "5.2", "5.3",
            "5.4", "5.5", "5.6", "6", "7",
        ],
    },
];

/// Returns the references to sections that do not exist, with the numbers of their lines.
pub(crate) fn missing(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for Paper { names, sections } in &PAPERS {
            for name in names {
                let unknown = |section: &&str| !sections.contains(section);
                let missing = line.split(name).skip(1).flat_map(cited).filter(unknown);
                found.extend(missing.map(|section| {
                    (number, format!("there is no section {section} in {name}look it up"))
                }));
            }
        }
    }
    found
}

/// Returns the sections at the beginning of `text`: of "sections 3.2, 3.4 and 4.", these three.
fn cited(text: &str) -> Vec<&str> {
    let Some(rest) = text.strip_prefix("section") else { return Vec::new() };
    let words = rest.trim_start_matches('s').split_whitespace().filter(|word| *word != "and");
    let numbers = words.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_digit()));
    let is_number =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    numbers.take_while(is_number).collect()
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn references_to_missing_sections_are_reported() {
        let found = |text: &str| missing(text).iter().map(|(line, _)| *line).collect::<Vec<_>>();
        assert_eq!(found("a\n//! MSTO [HU20], section 2.4, after Cicada"), [2]);
        assert_eq!(found("//! MSTO [HU20], section 2.2, after [WK16], section 3.5.\n"), [1]);
        assert_eq!(found("Wang and Kimura, VLDB 2016, sections 3.2, 3.4 and 4.9, and so on"), [1]);
        assert!(found("[HU18], section 3.2, for 2 locks; [WK16], section 5.1.1.").is_empty());
        assert!(found("Huang et al., VLDB 2020, Figure 99").is_empty());
    }
}
