//! Tokens of Rust source, and the items that they declare, by their places in the text.

/// A token of a text, and the place at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl Token<'_> {
    pub(crate) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Returns the tokens of a text, without comments. A comma before a closing bracket is left out:
/// it depends on the format. A punctuation mark of several characters is several tokens.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            continue;
        } else {
            length(rest, first)
        };
        let token = Token { text: &rest[..length], at };
        if [")", "]", "}"].contains(&token.text) {
            tokens.pop_if(|last| last.text == ",");
        }
        tokens.push(token);
        at += length;
    }
    tokens
}

/// Returns the length of the token with which a text begins. `first` is its first character.
fn length(text: &str, first: char) -> usize {
    let word = |text: &str| text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    match first {
        '"' => quoted(text, 1),
        '\'' => match text[1..].chars().next() {
            Some('\\') => 3 + text[3..].find('\'').map_or(0, |end| end + 1),
            Some(c) if text[1 + c.len_utf8()..].starts_with('\'') => 2 + c.len_utf8(),
            _ => 1 + word(&text[1..]),
        },
        c if is_of_word(c) => {
            let end = word(text);
            let marks = text[end..].bytes().take_while(|byte| *byte == b'#').count();
            match (&text[..end], text[end + marks..].starts_with('"')) {
                ("b" | "c", true) if marks == 0 => quoted(text, end + 1),
                ("r" | "br" | "cr", true) => {
                    let close = format!("\"{}", "#".repeat(marks));
                    let inside = end + marks + 1;
                    text[inside..].find(&close).map_or(text.len(), |at| inside + at + close.len())
                }
                _ => end,
            }
        }
        c => c.len_utf8(),
    }
}

/// Returns the end of a string whose contents begin at `at`.
fn quoted(text: &str, mut at: usize) -> usize {
    loop {
        match text.as_bytes().get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') | None => return (at + 1).min(text.len()),
            Some(_) => at += 1,
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the items of a file that `item` means, as ranges of `tokens`: `fn f`, `fn Type::f` for a
/// method, `struct Type`, and so on. The tests at the end of the file do not count.
pub(crate) fn items<'t, 'a>(tokens: &'t [Token<'a>], item: &str) -> Vec<&'t [Token<'a>]> {
    let (kind, path) = item.split_once(' ').unwrap_or(("fn", item));
    let (owner, name) = path.rsplit_once("::").map_or((None, path), |(o, name)| (Some(o), name));
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let mut owners: Vec<(usize, &str)> = Vec::new();
    let (mut depth, mut found) = (0, Vec::new());
    for index in 0..tokens.len() {
        match text(index) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                owners.pop_if(|(outside, _)| *outside == depth);
            }
            "mod" if text(index + 1) == "tests" && text(index + 2) == "{" => break,
            "trait" => owners.push((depth, text(index + 1))),
            "impl" if index == 0 || ["{", "}", ";", "]", "unsafe"].contains(&text(index - 1)) => {
                owners.push((depth, self_type(&tokens[index + 1..])));
            }
            _ => {}
        }
        let owned_by = owners.last().map(|last| last.1);
        if text(index) == kind && text(index + 1) == name && owned_by == owner {
            found.push(&tokens[index..index + length_of_item(&tokens[index..])]);
        }
    }
    found
}

/// Returns the name of the type of an `impl` block, from the tokens behind `impl`.
fn self_type<'a>(header: &[Token<'a>]) -> &'a str {
    let end = header.iter().position(|token| ["{", "where"].contains(&token.text));
    let header = &header[..end.unwrap_or(header.len())];
    let is_for = |pair: &[Token<'_>]| pair[0].text == "for" && pair[1].text != "<";
    let begin = header.windows(2).position(is_for).map_or(0, |at| at + 1);
    let (mut nested, mut name) = (0, "");
    for (index, token) in header[begin..].iter().enumerate() {
        match token.text {
            "<" | "(" | "[" => nested += 1,
            // The second half of an arrow closes nothing.
            ">" if header[begin + index - 1].text == "-" => {}
            ">" | ")" | "]" => nested -= 1,
            text if nested == 0 && text.starts_with(char::is_alphabetic) => name = text,
            _ => {}
        }
    }
    name
}

/// Returns the number of tokens of the item with which `tokens` begins.
pub(crate) fn length_of_item(tokens: &[Token<'_>]) -> usize {
    let (mut open, mut nested) = (0, 0);
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" => nested += 1,
            ")" | "]" => nested -= 1,
            "{" => open += 1,
            "}" => open -= 1,
            _ => {}
        }
        if open == 0 && nested == 0 && [";", "}"].contains(&token.text) {
            return index + 1;
        }
    }
    tokens.len()
}

/// Returns the index of each place of `tokens` where the tokens of `part` begin.
pub(crate) fn places(tokens: &[Token<'_>], part: &[Token<'_>]) -> Vec<usize> {
    let is_it = |window: &[Token<'_>]| window.iter().zip(part).all(|(a, b)| a.text == b.text);
    let windows = tokens.windows(part.len().max(1)).enumerate();
    windows.filter(|(_, window)| is_it(window)).map(|(index, _)| index).collect()
}

/// Returns the statement, as a range of `tokens`, that has most in common with `part`.
pub(crate) fn nearest<'t, 'a>(
    tokens: &'t [Token<'a>],
    part: &[Token<'_>],
) -> Option<&'t [Token<'a>]> {
    let score = |statement: &[Token<'_>]| {
        let mut rest: Vec<&str> = statement.iter().map(|token| token.text).collect();
        let is_met = |token: &&Token<'_>| {
            let place = rest.iter().position(|text| *text == token.text);
            place.map(|place| rest.swap_remove(place)).is_some()
        };
        let common = part.iter().filter(is_met).count();
        1000 * common / statement.len().max(part.len())
    };
    let statements = tokens.split_inclusive(|token| [";", "{", "}"].contains(&token.text));
    statements.max_by_key(|statement| score(statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn statements_are_compared_without_formatting_and_comments() {
        let narrow = "call(\n    one, // first\n    \"two // \\\" 2\",\n);";
        assert_eq!(words(narrow), words("call(one, /* x */ \"two // \\\" 2\");"));
        assert_eq!(words("'a' 'b '\\'' x"), ["'a'", "'b", "'\\''", "x"]);
        assert_eq!(words("r#\"a\"b\"#.c"), ["r#\"a\"b\"#", ".", "c"]);
        assert_eq!(words("a->b1_0"), ["a", "-", ">", "b1_0"]);
    }

    #[test]
    fn items_are_found_by_their_names_and_types() {
        let text = "fn f() {}\nimpl<T: Fn() -> u8> Cell<T> { fn f(&self, a: [u8; 2]) { g() } }\n\
            unsafe impl<'a> Way for &'a other::Reader<u8> where u8: Copy { fn f() { h() } }\n\
            struct Pair { f: fn(u8) }\nmod tests { fn f() {} fn h() {} }";
        let tokens = tokens(text);
        let found = |item: &str| -> Vec<usize> {
            items(&tokens, item).into_iter().map(<[_]>::len).collect()
        };
        assert_eq!(found("fn f"), [6]);
        assert_eq!(found("fn Cell::f"), [19]);
        assert_eq!(found("fn Reader::f"), [9]);
        assert_eq!(found("struct Pair"), [10]);
        assert!(found("fn h").is_empty());
        let function = items(&tokens, "fn Cell::f")[0];
        let part = super::tokens("g()");
        assert_eq!(places(function, &part), [15]);
        let near = nearest(function, &super::tokens("g(1)")).expect("there are statements");
        assert_eq!(near[0].text, "g");
    }
}
