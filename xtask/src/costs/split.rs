//! A split of the instructions by the engine's functions. The split does not depend on the
//! compiler's inlining.
//!
//! If an instruction was inlined through several functions, the instruction belongs to the
//! innermost of these functions that is part of the engine. So the standard library's iterators in
//! a loop of `validate` count for `validate`. The command `addr2line` of binutils names the
//! functions.

use super::profile::Place;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// A source file of the engine, relative to the engine's folder, and a function in that file. For
/// other code, a label such as `the workload`, and a function's name or `all of it`.
pub(super) type Function = (String, String);

/// The folder of the engine's source.
const ENGINE: &str = "/crates/candide/src/";

/// Returns the counts of a program's places, summed by function.
pub(super) fn by_function(
    program: &Path,
    places: &BTreeMap<Place, f64>,
) -> Result<BTreeMap<Function, f64>, String> {
    let is_own = |object: &str| Path::new(object) == program;
    let addresses: Vec<u64> =
        places.keys().filter(|(object, _)| is_own(object)).map(|(_, address)| *address).collect();
    let mut functions: BTreeMap<Function, f64> = BTreeMap::new();
    let mut own = frames(program, &addresses)?.into_iter();
    for ((object, _), count) in places {
        let function = if is_own(object) {
            let frames = own.next().ok_or("addr2line has not answered for all addresses")?;
            function(&frames)
        } else {
            (object.rsplit('/').next().unwrap_or(object).to_string(), "all of it".to_string())
        };
        *functions.entry(function).or_default() += count;
    }
    Ok(functions)
}

/// A function through which an instruction was inlined, and the function's source file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    name: String,
    file: String,
}

/// Returns the frames of each address, innermost first.
fn frames(program: &Path, addresses: &[u64]) -> Result<Vec<Vec<Frame>>, String> {
    let mut addr2line = Command::new("addr2line");
    addr2line.args(["--addresses", "--functions", "--inlines", "--demangle", "--exe"]).arg(program);
    let child = addr2line.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child =
        child.map_err(|error| format!("addr2line (of binutils) does not start: {error}"))?;
    let mut input = child.stdin.take().expect("it is piped");
    let questions: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    // Another thread writes the questions, since `addr2line` already answers while it is still
    // reading.
    let asking = thread::spawn(move || input.write_all(questions.as_bytes()));
    let answers = child.wait_with_output().map_err(|error| format!("addr2line: {error}"))?;
    asking
        .join()
        .expect("writing does not panic")
        .map_err(|error| format!("addr2line: {error}"))?;
    Ok(answered(&String::from_utf8_lossy(&answers.stdout)))
}

/// Parses the output of `addr2line`. For each address, the output has a line with the address, and
/// then two lines for each frame: the name and the place in the source.
fn answered(answers: &str) -> Vec<Vec<Frame>> {
    let mut frames: Vec<Vec<Frame>> = Vec::new();
    let mut lines = answers.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            frames.push(Vec::new());
        } else if let (Some(frames), Some(place)) = (frames.last_mut(), lines.next()) {
            let file = place.split_once(':').map_or(place, |(file, _)| file);
            frames.push(Frame { name: line.to_string(), file: file.to_string() });
        }
    }
    frames
}

/// Returns the function to which an instruction belongs.
fn function(frames: &[Frame]) -> Function {
    let engine = |frame: &Frame| frame.file.split_once(ENGINE).map(|(_, file)| file.to_string());
    let own: Vec<(&Frame, String)> =
        frames.iter().filter_map(|frame| Some((frame, engine(frame)?))).collect();
    // A frame with a function's name is preferred to the frame of a closure in that function.
    let named = own.iter().find(|(frame, _)| !frame.name.contains("{{closure}}")).or(own.first());
    if let Some((frame, file)) = named {
        return (file.clone(), short(&frame.name));
    }
    let others = |name: &str| frames.iter().any(|frame| frame.file.contains(name));
    if others("candide-workloads") || others("fastrand") {
        return ("the workload".to_string(), "all of it".to_string());
    }
    let Some(last) = frames.last() else { return ("unknown".to_string(), "all of it".to_string()) };
    // Without a source line, the symbol's path gives the file.
    let file = match last.name.strip_prefix("candide::") {
        Some(path) => {
            let parts: Vec<&str> = path.split("::").filter(|part| !is_hash(part)).collect();
            let modules = parts[..parts.len() - 1]
                .iter()
                .take_while(|part| part.starts_with(char::is_lowercase));
            format!("{}.rs", modules.copied().collect::<Vec<_>>().join("/"))
        }
        None => "outside the engine".to_string(),
    };
    (file, short(&last.name))
}

/// Returns a function's name without its path and types.
fn short(name: &str) -> String {
    let mut depth = 0;
    let plain: String = name
        .chars()
        .filter(|character| {
            depth += i32::from(*character == '<');
            let is_outside = depth == 0;
            depth -= i32::from(*character == '>');
            is_outside
        })
        .collect();
    let parts = plain
        .split("::")
        .filter(|part| !part.is_empty() && *part != "{{closure}}" && !is_hash(part));
    parts.last().unwrap_or(name).to_string()
}

/// Returns whether a part of a symbol is the hash that the compiler adds.
fn is_hash(part: &str) -> bool {
    part.len() == 17
        && part.starts_with('h')
        && part[1..].chars().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: &str = "\
0x0000000000027248
next<u8>
/rustc/0/library/core/src/slice/iter.rs:58
{{closure}}
/x/crates/candide/src/access/write_set.rs:12
evaluate
/x/crates/candide/src/access/write_set.rs:9
candide::txn::State<P>::commit::h0123456789abcdef
/x/crates/candide/src/txn/state.rs:40
0x0000000000027249
hashbrown::raw::RawTable<T,A>::reserve_rehash::h0123456789abcdef
/rust/deps/hashbrown/src/raw/mod.rs:1 (discriminator 2)
0x000000000002724a
candide::access::write_set::WriteSet::index_items::h0123456789abcdef
??:?
";

    #[test]
    fn an_instruction_is_attributed_to_the_innermost_function_of_the_engine() {
        let functions: Vec<_> = answered(ANSWERS).iter().map(|frames| function(frames)).collect();
        let expected = [
            ("access/write_set.rs", "evaluate"),
            ("outside the engine", "reserve_rehash"),
            ("access/write_set.rs", "index_items"),
        ];
        assert_eq!(functions, expected.map(|(file, name)| (file.to_string(), name.to_string())));
    }
}
