//! `candide check` says yes to what the engine does, no to bad histories, and what would be right
//! to bad arguments.

use std::process::Command;

use crate::common::file;

/// Runs `candide check` with these arguments: exit status, results, errors.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_candide"))
        .arg("check")
        .args(arguments)
        .output()
        .expect("starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Runs `candide check` for longer and longer, until every protocol has committed something. On a
/// busy machine that may take a while; the longest time is more than a minute.
fn check_for_a_while(arguments: &[&str]) -> (Option<i32>, String, String) {
    let millis = if std::env::var_os("CANDIDE_FULL").is_none() { 50 } else { 200 };
    check_from(millis, arguments)
}

/// As [`check_for_a_while`], at first for this many milliseconds.
fn check_from(millis: u64, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut durations = (0..12).map(|doubled| format!("{}ms", millis << doubled));
    let checked = durations.find_map(|duration| {
        let (status, results, message) = check(&[arguments, &["--duration", &duration]].concat());
        (!results.contains("no thread committed a transaction"))
            .then_some((status, results, message))
    });
    checked.expect("it does not come so far")
}

fn assert_refused(arguments: &[&str], words: &str) {
    let (status, results, message) = check(arguments);
    assert_eq!(status, Some(2), "{arguments:?}: {message}");
    assert!(message.contains(words), "{arguments:?}: no {words:?} in {message:?}");
    assert!(results.is_empty(), "{arguments:?}: results in spite of the error: {results}");
}

fn kept(name: &str, contents: &str) -> String {
    let path = file(name);
    std::fs::write(&path, contents).expect("writable");
    path.display().to_string()
}

#[test]
fn checks_of_a_database_without_opacity_do_not_claim_opacity() {
    let protocols = ["random", "--protocol", "occ,mvto", "--opaque", "on,off", "--seed", "3"];
    let (status, results, message) = check_for_a_while(&protocols);
    assert_eq!(status, Some(0), "{results}{message}");
    let claims = results.lines().filter(|line| line.contains(": yes")).map(str::trim);
    let strict = "serializable in the order of real time";
    assert_eq!(
        claims.collect::<Vec<_>>(),
        [
            format!("{strict}, aborted attempts included: yes"),
            format!("{strict}: yes"),
            format!("{strict}: yes")
        ]
    );
    assert!(results.contains("\nocc not opaque: random"), "{results}");
    assert!(message.contains("note: --opaque has no effect under mvto"), "{message}");
}

#[test]
fn every_workload_is_serializable_under_every_protocol() {
    let strict = "serializable in the order of real time";
    for workload in ["random", "ycsb", "smallbank", "rubis", "wikipedia"] {
        let (status, results, message) = check_for_a_while(&[workload, "--seed", "3"]);
        assert_eq!(status, Some(0), "{workload}: {results}{message}");
        // As they promise: mvto; tictoc; occ, with its policies, mvcc, serial and global-lock.
        assert_eq!(results.matches(&format!("{strict}: yes")).count(), 1, "{results}");
        assert_eq!(results.matches("serializable: yes").count(), 1, "{results}");
        assert_eq!(
            results.matches(&format!("{strict}, aborted attempts included: yes")).count(),
            6,
            "{results}"
        );
        assert_eq!(results.matches("seed 3:").count(), 8, "{results}");
        assert_locks_told(&results);
    }
    for workload in ["lists", "registers"] {
        let (status, results, message) = check_for_a_while(&[workload, "--mode", "black"]);
        assert_eq!(status, Some(0), "{workload}: {results}{message}");
        assert_eq!(results.matches(&format!("{strict}: yes")).count(), 7, "{results}");
        assert_eq!(results.matches("serializable: yes").count(), 1, "{results}");
        assert_locks_told(&results);
    }
}

/// Asserts that locks by policy are told of the two usual policies that take some, and of no other
/// protocol.
fn assert_locks_told(results: &str) {
    let mut told = Vec::new();
    let mut protocol = "";
    for line in results.lines() {
        match line.strip_prefix("  locks by policy: ") {
            Some(counts) => told.push((protocol, counts)),
            None if !line.starts_with(' ') => protocol = line.split(':').next().unwrap_or(line),
            None => {}
        }
    }
    let [(first, counts), (second, _)] = told[..] else { panic!("{told:?} in {results}") };
    assert_eq!([first, second], ["2pl-wait-die", "mixed"]);
    let (numbers, names): (Vec<&str>, Vec<&str>) =
        counts.split(", ").filter_map(|count| count.split_once(' ')).unzip();
    let of_all = ["taken", "waited", "died", "killed", "forgone"];
    let of_mocc = ["retrospective", "restored", "heated", "cooled"];
    assert_eq!(names, [&of_all[..], &of_mocc].concat());
    assert!(numbers[0].parse::<u64>().is_ok_and(|taken| taken > 0), "{counts}");
}

#[test]
fn checks_of_policies_with_settings_have_the_given_name() {
    for arguments in [
        ["random", "--protocol", "mixed:items=swiss,pieces=2pl-wait-die"].as_slice(),
        &["lists", "--mode", "black", "--protocol", "mixed:lists=2pl-dreadlock"],
        &["random", "--protocol", "mocc:h=0,lock=queue"],
    ] {
        let (status, results, message) = check_for_a_while(arguments);
        assert_eq!(status, Some(0), "{results}{message}");
        let name = arguments.last().expect("the name");
        assert!(results.starts_with(&format!("{name}: ")), "{results}");
    }
}

/// What was counted, without where it came from, and without dependencies: those between
/// transactions that were never held at once are not counted.
fn counts(results: &str) -> Vec<&str> {
    let line =
        results.lines().find(|line| line.contains(" transactions ")).expect("a line of counts");
    let (_, counts) = line.split_once(" transactions ").expect("it contains that");
    counts.split(", ").take(4).collect()
}

#[test]
fn a_kept_history_has_the_counts_of_its_check() {
    let (lines, edn) = (file("kept.jsonl"), file("kept.edn"));
    let (lines, edn) = (lines.to_str().expect("text"), edn.to_str().expect("text"));
    let common = ["--protocol", "occ", "--history", lines];
    let (status, made, message) = check_for_a_while(&common);
    assert_eq!(status, Some(0), "{made}{message}");
    assert_eq!(counts(&made).len(), 4, "{made}");
    // As `occ` promises: aborted attempts are judged, too, and what they read is counted.
    let (status, read, message) = check(&["--file", lines, "--opacity"]);
    assert_eq!(status, Some(0), "{read}{message}");
    assert_eq!(counts(&made), counts(&read));
    let black: Vec<&str> =
        common.iter().copied().chain(["--mode", "black", "--edn", edn]).collect();
    let (_, made, _) = check_for_a_while(&black);
    for path in [lines, edn] {
        let (status, read, message) = check(&["--file", path]);
        assert_eq!(status, Some(0), "{read}{message}");
        assert_eq!(counts(&made), counts(&read));
    }
}

/// The check of the tables after a run is recorded, too. It reads each row a few times, however
/// many rows there are.
#[test]
fn the_check_of_the_tables_records_reads_in_proportion_to_the_rows() {
    let arguments =
        ["random", "--keys", "3000", "--operations", "1", "--threads", "1", "--protocol", "occ"];
    let (status, results, message) = check_from(1, &arguments);
    assert_eq!(status, Some(0), "{results}{message}");
    let reads = counts(&results)[1].strip_suffix(" reads").and_then(|count| count.parse().ok());
    // At most some fifty transactions run, each of which reads all rows at most.
    assert!(reads.is_some_and(|reads: u64| reads < 1_000_000), "{results}");
}

const HEADER: &str = r#"{"format":"candide-history","version":1,"kind":"versions","protocol":"none","seed":0,"text":"by hand"}"#;

/// A line for a transaction that read group 0 of two rows in their first version, and wrote one of
/// them.
fn line(session: u64, begun: u64, wrote: u64, version: u64) -> String {
    let access = |key, version| {
        format!(r#"{{"table":0,"key":[{key}],"group":0,"version":{version},"present":true}}"#)
    };
    format!(
        r#"{{"transaction":{{"session":{session},"begun":{begun},"ended":{},"committed":true,"reads":[{},{}],"scans":[],"writes":[{}]}}}}"#,
        begun + 10,
        access(1, 1),
        access(2, 1),
        access(wrote, version)
    )
}

#[test]
fn check_of_a_bad_history_exits_with_status_1_and_prints_the_cycle() {
    let first = r#"{"transaction":{"session":1,"begun":1,"ended":2,"committed":true,"reads":[],"scans":[],"writes":[{"table":0,"key":[1],"group":0,"version":1,"present":true},{"table":0,"key":[2],"group":0,"version":1,"present":true}]}}"#;
    let skew = [HEADER, first, &line(2, 10, 1, 2), &line(3, 11, 2, 2)]
        .map(|line| format!("{line}\n"))
        .concat();
    let (status, results, _) = check(&["--file", &kept("skew.jsonl", &skew)]);
    assert_eq!(status, Some(1), "{results}");
    assert!(results.contains("serializable: NO") && results.contains("write skew"), "{results}");
    assert!(results.contains("session 2") && results.contains("session 3"), "{results}");

    let honest = [HEADER, first, &line(2, 10, 1, 2)].map(|line| format!("{line}\n")).concat();
    let (status, results, _) = check(&["--file", &kept("honest.jsonl", &honest)]);
    assert_eq!(status, Some(0), "{results}");

    let circle = "
        {:time 1, :type :invoke, :process 0, :f :txn, :value [[:append 1 1] [:r 2 nil]]}
        {:time 2, :type :invoke, :process 1, :f :txn, :value [[:append 2 1] [:r 1 nil]]}
        {:time 3, :type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 2 [1]]]}
        {:time 4, :type :ok, :process 1, :f :txn, :value [[:append 2 1] [:r 1 [1]]]}";
    let (status, results, _) = check(&["--file", &kept("circle.edn", circle)]);
    assert_eq!(status, Some(1), "{results}");
    assert!(results.contains("G1c"), "{results}");
}

/// One transaction, long after another one that it should have come before: it reads what that one
/// replaced.
#[test]
fn an_undecidable_history_is_reported_as_unknown() {
    let transaction = |begun: u64, reads: &str, version: u64| {
        format!(
            r#"{{"transaction":{{"session":1,"begun":{begun},"ended":{},"committed":true,"reads":[{reads}],"scans":[],"writes":[{{"table":0,"key":[1],"group":0,"version":{version},"present":true}}]}}}}"#,
            begun + 1
        )
    };
    let mut lines = vec![HEADER.to_string()];
    // In several windows, of which the last is below the others.
    lines.extend((1..25_000).rev().map(|number| transaction(10 * number, "", number)));
    let kept_as = |name, lines: &[String]| {
        kept(name, &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    };
    let (status, results, message) =
        check(&["--file", &kept_as("backwards.jsonl", &lines), "--horizon", "10"]);
    assert_eq!(status, Some(0), "{results}{message}");
    assert!(
        results.contains("24999 transactions") && results.contains("serializable: yes"),
        "{results}"
    );

    lines.push(transaction(
        1_000_000,
        r#"{"table":0,"key":[1],"group":0,"version":1,"present":true}"#,
        30_000,
    ));
    let path = kept_as("late.jsonl", &lines);
    let (status, results, _) = check(&["--file", &path, "--horizon", "10"]);
    assert_eq!(status, Some(3), "{results}");
    assert!(results.contains("serializable: unknown\n  inconclusive: version 1 of"), "{results}");
    let (status, results, _) = check(&["--file", &path, "--horizon", "2000000"]);
    assert_eq!(status, Some(1), "{results}");
    assert!(results.contains("serializable: NO") && results.contains("lost update"), "{results}");
}

/// Two readers see the writes of two others in opposite orders.
#[test]
fn a_history_with_a_long_fork_is_refused() {
    let transaction = |(session, operations): (u64, &str)| {
        format!(
            "{{\"session\":{session},\"invoked\":0,\"completed\":9,\"outcome\":\"committed\",\"operations\":[{operations}]}}\n"
        )
    };
    let write = |key: u64, value: u64| format!("{{\"write\":{{\"key\":{key},\"value\":{value}}}}}");
    let read = |key: u64, value: u64| format!("{{\"read\":{{\"key\":{key},\"value\":{value}}}}}");
    let all = [
        format!("{},{}", write(1, 1), write(2, 1)),
        write(1, 2),
        write(2, 2),
        format!("{},{}", read(1, 2), read(2, 1)),
        format!("{},{}", read(1, 1), read(2, 2)),
    ];
    let header = HEADER.replace("versions", "registers") + "\n";
    let file = |count: usize| {
        let lines = (0..).zip(&all[..count]).map(|(session, it)| transaction((session, it)));
        header.clone() + &lines.collect::<String>()
    };
    let (status, results, message) = check(&["--file", &kept("fork.jsonl", &file(5))]);
    assert_eq!(status, Some(1), "{results}{message}");
    assert!(results.contains("serializable: NO\n  G2-item"), "{results}");
    let (status, results, message) = check(&["--file", &kept("no-fork.jsonl", &file(4))]);
    assert_eq!(status, Some(0), "{results}{message}");
}

/// Keys that are no numbers are called by their names, in a history without processes.
#[test]
fn keys_in_a_report_have_the_names_of_the_file() {
    let skew = "({:type :ok :value [[:r :x nil] [:append \"y\" 1]]} {:type :ok :value [[:r \"y\" nil] [:append :x 1]]}
                 {:type :ok :value [[:r :x [1]] [:r \"y\" [1]]]})";
    let (status, results, message) = check(&["--file", &kept("named.edn", skew)]);
    assert_eq!(status, Some(1), "{results}{message}");
    assert!(results.contains("write skew"), "{results}");
    assert!(results.contains("of key :x and") && results.contains("of key \"y\" and"), "{results}");
}

#[test]
fn invalid_arguments_of_check_are_refused() {
    assert_refused(&["lists"], "add --mode black");
    assert_refused(&["random", "--mode", "black"], "`lists` or `registers`");
    assert_refused(&["--mode", "black", "--opacity"], "--opacity needs --mode white");
    assert_refused(&["--edn", "x.edn"], "--edn needs --mode black");
    assert_refused(&["--history", "x.jsonl"], "name one --protocol");
    assert_refused(&["--file", "/no/such/file"], "/no/such/file");
    assert_refused(&["--file", "x", "--seed", "1"], "cannot be used with");
    assert_refused(
        &["--protocol", "magic"],
        "tictoc, mvcc, mvto, serial, global-lock, or all, or usual",
    );
    assert_refused(&["--operations", "0"], "operations must be from 1");
    assert_refused(&["--protocol", "mvcc", "--past", "500us"], "in whole milliseconds");
    assert_refused(&["--protocol", "mvcc", "--past", "5ms", "--strict"], "leave out --strict");
    assert_refused(&["--file", env!("CARGO_TARGET_TMPDIR")], "is a folder");
    for kind in ["lists", "registers"] {
        let of_clients = kept(&format!("{kind}.jsonl"), &(HEADER.replace("versions", kind) + "\n"));
        assert_refused(&["--file", &of_clients, "--opacity"], "leave out --opacity");
    }
    assert_refused(&["--file", &kept("circle-too.edn", ""), "--opacity"], "leave out --opacity");
    let twice = file("twice");
    let (one, other) =
        (twice.display().to_string(), format!("{}/./twice", env!("CARGO_TARGET_TMPDIR")));
    for other in [&one, &other] {
        let both = ["--history", &one, "--edn", other, "--mode", "black", "--protocol", "occ"];
        assert_refused(&both, "--history and --edn name the same file");
    }
    let output = std::fs::File::create(&twice).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candide"));
    command.args(["check", "--protocol", "occ", "--history", &one]).stdout(output);
    let refused = command.output().expect("starts");
    let message = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("standard output and --history name the same file"), "{message}");
    assert_refused(
        &["--history", "/no/such/folder/file", "--protocol", "occ"],
        "/no/such/folder/file",
    );
}

#[test]
fn check_of_a_damaged_file_exits_with_status_1_and_names_the_line() {
    for (name, contents, words) in [
        ("damaged.jsonl", format!("{HEADER}\n{{\n"), "damaged.jsonl: line 2: EOF"),
        ("other.jsonl", "{}\n".to_string(), "other.jsonl: line 1: missing field `format`"),
        (
            "twice.edn",
            "{:type :invoke :process 0 :value [[:w 1 1]]}\n{:type :ok :process 0 :type :ok}"
                .to_string(),
            "twice.edn: line 2: a map has :type twice, the second at column 23",
        ),
        ("end.edn", "{:type".to_string(), "end.edn: line 1: the file ends within a form"),
        (
            "word.edn",
            "{:type :invoke\n 7a}".to_string(),
            "word.edn: line 2: 7a is no number of EDN",
        ),
        (
            "neither.edn",
            "{:type :invoke :process 0 :value [[:inc 1 1]]}".to_string(),
            "neither.edn: neither lists (line 1: an operation on a list is :inc",
        ),
    ] {
        let (status, results, message) = check(&["--file", &kept(name, &contents)]);
        assert_eq!((status, results.as_str()), (Some(1), ""), "{message}");
        assert!(message.contains(words), "no {words:?} in {message:?}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn check_of_a_history_without_commits_exits_with_status_3() {
    let event = |kind: &str, time: u64, value: u64| {
        format!(
            "{{:time {time}, :type :{kind}, :process 5, :f :txn, :value [[:append 2 {value}] [:r 3 nil]]}}\n"
        )
    };
    let aborted = r#"{"transaction":{"session":1,"begun":1,"ended":2,"committed":false,"reads":[],"scans":[],"writes":[]}}"#;
    for (name, contents) in [
        ("empty.edn", String::new()),
        ("empty.jsonl", String::new()),
        (
            "no-commit.edn",
            event("invoke", 3, 1)
                + &event("fail", 4, 1)
                + &event("invoke", 5, 2)
                + &event("info", 9, 2),
        ),
        ("no-end.edn", event("invoke", 3, 1)),
        ("only-header.jsonl", format!("{HEADER}\n")),
        ("only-lists.jsonl", HEADER.replace("versions", "lists") + "\n"),
        ("only-registers.jsonl", HEADER.replace("versions", "registers") + "\n"),
        ("no-commit.jsonl", format!("{HEADER}\n{aborted}\n")),
    ] {
        let (status, results, message) = check(&["--file", &kept(name, &contents)]);
        assert_eq!(status, Some(3), "{name}: {results}{message}");
        let told = "serializable: unknown\n  inconclusive: no transaction committed, so there is nothing to judge\n";
        assert!(results.ends_with(told), "{name}: {results}");
    }
    let committed = event("invoke", 3, 1) + &event("ok", 4, 1);
    let (status, results, _) = check(&["--file", &kept("a-commit.edn", &committed)]);
    assert_eq!(status, Some(0), "{results}");
}
