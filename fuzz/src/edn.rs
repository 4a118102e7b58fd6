//! Histories in EDN with every form that EDN permits between the words are read unchanged. Bytes of
//! any kind are read or refused; a history that was read is unchanged by writing and reading.

use crate::Choices;
use candide_check::black::{ListOp, Outcome, Transaction};
use candide_check::edn;
use std::fmt::Write;
use std::io::BufReader;

/// Reads the bytes as a history, and a history drawn by the bytes.
pub fn run(bytes: &[u8]) {
    again(bytes);
    let choices = &mut Choices::new(bytes);
    let history = history(choices);
    let mut plain = Vec::new();
    edn::write(&history, &mut plain).expect("memory takes all");
    let plain = String::from_utf8(plain).expect("text");
    let mut dresser = Dresser { choices, names: 0 };
    let dressed = dresser.dress(&plain);
    let read = edn::read::<ListOp>(dressed.as_bytes());
    let read = read.unwrap_or_else(|error| panic!("{error} in:\n{dressed}"));
    assert_eq!(read, history, "read from:\n{dressed}");
    let pieces = BufReader::with_capacity(1, dressed.as_bytes());
    assert_eq!(edn::read::<ListOp>(pieces).expect("whole, it was read"), history);
    twice(dresser.choices, &dressed);
    broken(dresser.choices);
}

/// Reads bytes. If they are a history, writes the history and reads it again.
fn again(bytes: &[u8]) {
    let Ok(mut history) = edn::read::<ListOp>(bytes) else { return };
    let mut written = Vec::new();
    // A session that begins a transaction when its last one ends is not written.
    if edn::write(&history, &mut written).is_ok() {
        history.sort_by_key(|transaction| (transaction.invoked, transaction.session));
        assert_eq!(edn::read::<ListOp>(written.as_slice()).expect("as it was written"), history);
    }
}

/// Draws a history in which no two invocations have the same time.
fn history(choices: &mut Choices<'_>) -> Vec<Transaction<ListOp>> {
    let mut free = [0; 3];
    (0..choices.below(4) as u64)
        .map(|number| {
            let session = choices.below(3);
            let invoked = free[session].max(100 * number) + choices.below(9) as u64;
            let completed = invoked + choices.below(99) as u64;
            free[session] = completed + 1;
            let outcome =
                [Outcome::Committed, Outcome::Aborted, Outcome::Unknown][choices.below(3)];
            let told = outcome == Outcome::Committed;
            let operations = (0..choices.below(3)).map(|_| operation(choices, told)).collect();
            Transaction { session: session as u64, invoked, completed, outcome, operations }
        })
        .collect()
}

fn operation(choices: &mut Choices<'_>, told: bool) -> ListOp {
    let key = choices.below(4) as u64;
    if choices.below(2) == 0 {
        return ListOp::Append { key, value: choices.word() };
    }
    let count = if told { choices.below(4) } else { 0 };
    ListOp::Read { key, values: (0..count).map(|_| choices.byte().into()).collect() }
}

/// A writer of the same history in other forms.
struct Dresser<'c, 'a> {
    choices: &'c mut Choices<'a>,
    /// The names given so far, all different.
    names: u64,
}

impl Dresser<'_, '_> {
    /// Writes a history with forms before each word, unlike [`edn::write`].
    fn dress(&mut self, plain: &str) -> String {
        let is_enclosed = self.choices.below(4) == 0;
        let mut dressed = String::from(if is_enclosed { "^:all [" } else { "" });
        // The brackets that close the open ones.
        let mut open = Vec::new();
        for word in words(plain) {
            self.space(&mut dressed, 2);
            match word {
                "[" | "{" => {
                    self.prefix(&mut dressed);
                    let (opening, closing) = match (word, self.choices.below(3)) {
                        ("{", _) => ('{', '}'),
                        (_, 0) => ('(', ')'),
                        _ => ('[', ']'),
                    };
                    dressed.push(opening);
                    open.push(closing);
                }
                "]" | "}" => {
                    if word == "}" && self.choices.below(3) == 0 {
                        let name = self.name();
                        write!(dressed, " :{name} ").expect("a string takes all");
                        self.form(&mut dressed, 2);
                    }
                    dressed.push(open.pop().expect("it was opened"));
                }
                keyword if keyword.starts_with(':') => dressed.push_str(keyword),
                "nil" => {
                    self.prefix(&mut dressed);
                    dressed.push_str("nil");
                }
                number => {
                    self.prefix(&mut dressed);
                    let value: u64 = number.parse().expect("the rest are numbers");
                    match self.choices.below(5) {
                        0 => write!(dressed, "{value}N"),
                        1 => write!(dressed, "+{value}"),
                        2 => write!(dressed, "{value:#x}"),
                        _ => write!(dressed, "{value}"),
                    }
                    .expect("a string takes all");
                }
            }
            dressed.push(' ');
        }
        self.space(&mut dressed, 2);
        dressed.push_str(if is_enclosed { "] #_ nil" } else { "" });
        dressed
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("name{}", self.names)
    }

    /// Writes a separator of two words: spaces, comments, forms that are discarded.
    fn space(&mut self, out: &mut String, depth: usize) {
        match self.choices.below(8) {
            0 => out.push_str(" , \n"),
            1 => out.push_str("; } ] #_ \"\n"),
            2 => {
                out.push_str(" #_ ");
                self.form(out, depth);
                out.push(' ');
            }
            3 => {
                out.push_str(" #_#_ ");
                self.form(out, depth);
                out.push(' ');
                self.space(out, 0);
                self.form(out, depth);
                out.push(' ');
            }
            _ => {}
        }
    }

    /// Writes the prefix of a form that is no key of a map: tags and metadata.
    fn prefix(&mut self, out: &mut String) {
        match self.choices.below(12) {
            0 => out.push_str("^:kept "),
            1 => out.push_str("^{:type :fail, :value #_ 1 []} ^\"text\" "),
            2 => out.push_str("#jepsen.history/Op "),
            3 => out.push_str("#a #_ b ^c "),
            _ => {}
        }
    }

    /// Writes a form of any kind, with forms nested in it down to a depth.
    fn form(&mut self, out: &mut String, depth: usize) {
        const PLAIN: [&str; 22] = [
            "nil",
            "true",
            "sym/bol",
            ":key/word",
            ":type",
            ":value",
            "-7",
            "1.5e3",
            "2M",
            "1/3",
            "##Inf",
            "\\[",
            "\\\"",
            "\\;",
            "\\newline",
            "\\u0041",
            "\\\\",
            "\"te]xt\\\" ;\"",
            "\"\\u00e9\\n\"",
            "\"\"",
            "[]",
            "é",
        ];
        let kinds = if depth == 0 { 1 } else { 6 };
        match self.choices.below(kinds) {
            0 => out.push_str(PLAIN[self.choices.below(PLAIN.len())]),
            1 => self.forms(out, "[", "]", depth - 1),
            2 => self.forms(out, "(", ")", depth - 1),
            3 => {
                // No two of them the same.
                let (first, second) = (self.name(), self.name());
                write!(out, "#{{{first} :{second} [{second}]}}").expect("a string takes all");
            }
            4 => {
                let (first, second) = (self.name(), self.name());
                write!(out, "{{:{first} ").expect("a string takes all");
                self.form(out, depth - 1);
                write!(out, " #_ :{second} \"{second}\" ").expect("a string takes all");
                self.form(out, depth - 1);
                out.push('}');
            }
            _ => {
                self.prefix(out);
                self.form(out, depth - 1);
            }
        }
    }

    fn forms(&mut self, out: &mut String, opening: &str, closing: &str, depth: usize) {
        out.push_str(opening);
        for _ in 0..self.choices.below(3) {
            self.space(out, depth);
            out.push(' ');
            self.form(out, depth);
        }
        out.push_str(" #_ \\]");
        out.push_str(closing);
    }
}

/// Splits the text that [`edn::write`] writes into words.
fn words(plain: &str) -> impl Iterator<Item = &str> {
    plain
        .split_inclusive(['[', ']', '{', '}', ' ', ',', '\n'])
        .flat_map(|piece| {
            let word = piece.trim_end_matches(['[', ']', '{', '}', ' ', ',', '\n']);
            [word, piece[word.len()..].trim_matches([' ', ',', '\n'])]
        })
        .filter(|word| !word.is_empty())
}

/// Adds a key that the first map has already, and checks that the text is refused.
fn twice(choices: &mut Choices<'_>, dressed: &str) {
    let Some(index) = dressed.find(":index") else { return };
    let key = ["#_ 1 :index", ":index", "^:a :index"][choices.below(3)];
    let file =
        format!("{} :index 0 {key} {}", &dressed[..index], &dressed[index + ":index".len()..]);
    let error = edn::read::<ListOp>(file.as_bytes()).expect_err("a key twice");
    assert!(error.to_string().contains(" has :index twice"), "{error} in:\n{file}");
}

/// Reads words in a random order.
fn broken(choices: &mut Choices<'_>) {
    const WORDS: [&str; 28] = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "#{",
        "#_",
        "#a",
        "^",
        "^:a",
        "\\",
        "\\[",
        "\"",
        "\"text\"",
        ";",
        "\n",
        " ",
        ",",
        ":type",
        ":invoke",
        ":ok",
        ":process",
        "0",
        ":value",
        "[[:append 1 2]]",
        "##",
        "#:a",
    ];
    let mut file = String::new();
    while !choices.is_over() && file.len() < 400 {
        file.push_str(WORDS[choices.below(WORDS.len())]);
        file.push_str(["", " "][choices.below(2)]);
    }
    again(file.as_bytes());
}
