//! Histories in EDN are read as EDN and Jepsen have them.

use candide_check::Anomaly;
use candide_check::black::{ListOp, Options, Outcome, RegisterOp, Transaction, check_lists};
use candide_check::edn::{read, read_named};

fn lists(file: &str) -> Vec<Transaction<ListOp>> {
    read(file.as_bytes()).unwrap_or_else(|error| panic!("{error} in {file}"))
}

fn registers(file: &str) -> Vec<Transaction<RegisterOp>> {
    read(file.as_bytes()).unwrap_or_else(|error| panic!("{error} in {file}"))
}

/// Returns why a file is refused.
fn refused(file: &str) -> String {
    match read::<RegisterOp>(file.as_bytes()) {
        Ok(history) => panic!("{file} is read as {history:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns a file of one transaction, whose two maps end with `more`.
fn with(more: &str) -> String {
    format!(
        "{{:type :invoke :process 3 :value [[:r 1 nil]] {more}}}\n{{:type :ok :process 3 :value [[:r 1 5]] {more}}}"
    )
}

/// Demands that a file is read as `with` something that tells nothing.
fn is_passed_over(more: &str) {
    assert_eq!(registers(&with(more)), registers(&with("")), "{more}");
}

#[test]
fn edn_discards_are_no_elements() {
    for more in [
        "#_ :error",
        "#_:error",
        "#_ #_ :error :none",
        "#_#_:error[:none]",
        "#_ #_ :type #_ :value :process",
        "#_ [#_ 1 {:type #_ :fail :ok}]",
        "#_ {:process #_ 4 5}",
        "#_ ; to the end of the line\n :error",
        "#_ #tag #_ 7 {:a 1}",
        "#_ ^:hidden ^{:a 1} [8]",
        "#_ \\] #_ \"]\" #_ #{1}",
        ":error #_ :none :some",
        "#_ :type :error #_ 1 #_ 2 [3 #_ 4]",
        &("#_ ".repeat(300) + &"1 ".repeat(300)),
    ] {
        is_passed_over(more);
    }
    for (front, between, back) in [
        ("#_ {:type :invoke}", "#_ 5 #_ #_ {:type :ok} 6", "#_ nil"),
        ("#_ [1] [", "#_ {}", "#_ 1 ] #_ 2"),
        ("[ #_ [2]", "", "] #_ #_ 1 2 ; and so on"),
    ] {
        let file = format!("{front} {} {back}", with("").replace('\n', &format!(" {between} ")));
        assert_eq!(registers(&file), registers(&with("")), "{file}");
    }
    for (file, message) in [
        ("#_", "line 1: a #_ should have a form after it, which it discards"),
        ("[ #_ ]", "line 1: a #_ should have a form after it, which it discards"),
        ("{:type #_ :ok}", "line 1: the key :type of a map has no value"),
        (
            "{:type :ok\n#_ #_ :process}",
            "line 2: a #_ should have a form after it, which it discards",
        ),
        (
            "#_ {:type :ok :type :ok}",
            "line 1: a map has :type twice, the second at column 15; it should have it once",
        ),
    ] {
        assert_eq!(refused(file), message, "{file}");
    }
}

/// What a read returned is in one form and discarded in another: each tells of another history.
#[test]
fn edn_discards_leave_the_forms_around_them_unchanged() {
    let file = |read: &str| {
        format!(
            "{{:type :invoke, :process 0, :value [[:append 4 11]]}}
             {{:type :ok, :process 0, :value [[:append 4 11]]}}
             {{:type :invoke, :process 1, :value [[:r 4 nil]]}}
             {{:type :ok, :process 1, :value [[:r 4 {read}]]}}"
        )
    };
    let judged =
        |read| check_lists(&lists(&file(read)), Options { sessions: true, real_time: true });
    assert_eq!(judged("[11]"), Ok(()));
    assert_eq!(judged("#_ [12] [11 #_ 12]"), Ok(()));
    assert_eq!(judged("[12 #_ 11] #_ [11]").unwrap_err().anomaly, Anomaly::UnknownValue);
    assert_eq!(judged("[11 12] #_ #_ [11] [11]").unwrap_err().anomaly, Anomaly::UnknownValue);
    assert_eq!(judged("[#_ 11]").unwrap_err().anomaly, Anomaly::RealTime);
}

#[test]
fn a_repeated_key_of_an_edn_map_is_refused() {
    let value = |line, column| {
        format!(
            "line {line}: a map has :value twice, the second at column {column}; it should have it once"
        )
    };
    assert_eq!(refused("{:value [] :type :ok :value [[:r 1 2]]}"), value(1, 22));
    assert_eq!(refused("{:value []\n :type :ok,\n  :value []}"), value(3, 3));
    assert_eq!(refused("{:é \"ü\" :value 1 :value 1}"), value(1, 18));
    for (twice, shown) in [
        ("{1 :a, 1N :b}", "1"),
        ("{+7 :a, 0x7 :b}", "7"),
        ("{[1 [2]] :a, (1 (2)) :b}", "[1 [2]]"),
        ("{#{1 2} :a #{2, 1} :b}", "#{1 2}"),
        ("{{:a 1 :b 2} 3 {:b 2 :a 1} 4}", "{:a 1 :b 2}"),
        (r#"{"a\tb" 1 "a	b" 2}"#, r#""a\tb""#),
        (r#"{"é" 1 "\u00e9" 2}"#, r#""é""#),
        (r"{\A 1 \u0041 2}", r"\A"),
        ("{1.5 1, 1.50 2}", "1.5"),
        ("{nil 1 ^:a nil 2}", "nil"),
        ("{#id 1 1 #id 1 2}", "#id 1"),
        ("#:a{:b 1 :a/b 2}", ":a/b"),
        ("{sym 1 sym 2}", "sym"),
    ] {
        let message = refused(&with(&format!(":error {twice}")));
        assert!(
            message.starts_with(&format!("line 1: a map has {shown} twice")),
            "{twice}: {message}"
        );
    }
    let message = refused(&with(":nodes #{:n1 :n2 :n1}"));
    assert!(message.starts_with("line 1: a set has :n1 twice"), "{message}");
    for once in [
        "{1 :a, 1.0 :b, \"1\" :c, \\1 :d, :1 :e, [1] :f, #{1} :g, {1 1} :h}",
        "{#id 1 :a, 1 :b, #it 1 :c}",
        "{a 1 :a 2 \"a\" 3 \\a 4 #{a} 5 #{:a} 6}",
        "#:a{:b 1 :c/b 2 :_/b 3}",
        "{1/2 1 1/3 2 1M 3 1.0M 4}",
    ] {
        is_passed_over(&format!(":error {once}"));
    }
}

#[test]
fn operations_without_times_have_the_order_of_the_file() {
    let of = |times: [&str; 4]| {
        let [a, b, c, d] = times;
        format!(
            "{{:type :invoke, :process 0, :value [[:w 1 1]], {a}}}
             {{:type :info, :process :nemesis, :f :start}}
             {{:type :invoke, :process 1, :value [[:w 1 2]], {b}}}
             {{:type :info, :process :nemesis, :f :stop, :time -1}}
             {{:type :ok, :process 1, :value [[:w 1 2]], {c}}}
             {{:type :ok, :process 0, :value [[:w 1 1]], {d}}}
             {{:type :info, :process :nemesis, :f :stop, :time :late}}"
        )
    };
    let times = |file: &str| -> Vec<(u64, u64)> {
        registers(file)
            .iter()
            .map(|transaction| (transaction.invoked, transaction.completed))
            .collect()
    };
    assert_eq!(times(&of([":time 10", ":time 15", ":time 15", ":time 40"])), [(10, 40), (15, 15)]);
    let places = [(1, 6), (3, 5)];
    assert_eq!(times(&of([""; 4])), places);
    assert_eq!(times(&of([":time -1"; 4])), places);
    assert_eq!(times(&of([":time nil"; 4])), places);
    assert_eq!(times(&of([":time -1", ":time 15", ":time 15", ":time 40"])), places);
    assert_eq!(times(&of([":time 10", "", ":time nil", ":time 40"])), places);
    assert_eq!(times(&of([":time 10", ":time 10", ":time 20", ":time -1N"])), places);

    let goes_back = "has no :time, so that the order of lines should be that of times, but line";
    let message = refused(&of([":time 10", ":time 9", ":time -1", ":time 40"]));
    assert_eq!(message, format!("line 5: {goes_back} 3 goes back from 10 to 9"));
    let message = refused(&of(["", ":time 20", ":time 25", ":time 24"]));
    assert_eq!(message, format!("line 1: {goes_back} 6 goes back from 25 to 24"));
    let message = refused(&of([":time 10", ":time 9", ":time 8", ":time 40"]));
    assert_eq!(
        message,
        "line 5: completes at 8 a transaction invoked at 9; times should not decrease"
    );
    for (time, shown) in [("-2", "-2"), (":late", ":late"), ("1.5", "1.5"), ("[1]", "[1]")] {
        let message = refused(&of([&format!(":time {time}"), "", "", ""]));
        assert_eq!(
            message,
            format!(
                "line 1: :time is {shown}, should be a whole number from 0, or -1 if it is not known"
            )
        );
    }
}

/// Where no time is known, the order of the file is that of real time.
#[test]
fn real_time_is_judged_by_lines_in_a_history_without_times() {
    let file = |time: &str| {
        format!(
            "{{{time} :type :invoke :process 0 :value [[:append 6 1]]}}
             {{{time} :type :ok :process 0 :value [[:append 6 1]]}}
             {{{time} :type :invoke :process 1 :value [[:r 6 nil]]}}
             {{{time} :type :ok :process 1 :value [[:r 6 []]]}}"
        )
    };
    for time in ["", ":time -1", ":time nil"] {
        let history = lists(&file(time));
        assert_eq!(check_lists(&history, Options::default()), Ok(()));
        let real_time = Options { real_time: true, sessions: true };
        assert_eq!(check_lists(&history, real_time).unwrap_err().anomaly, Anomaly::RealTime);
    }
}

#[test]
fn characters_are_read() {
    for character in [
        r"\[",
        r"\]",
        r"\(",
        r"\)",
        r"\{",
        r"\}",
        r#"\""#,
        r"\;",
        r"\\",
        r"\#",
        r"\,",
        r"\a",
        r"\é",
        r"\^",
        r"\:",
        r"\_",
        r"\newline",
        r"\return",
        r"\space",
        r"\tab",
        r"\backspace",
        r"\formfeed",
        r"\u0041",
        r"\u20AC",
        r"\u",
    ] {
        is_passed_over(&format!(":separator {character}"));
        is_passed_over(&format!(":separators [{character} {character}] ; {character}\n"));
        is_passed_over(&format!("{character} {character}"));
    }
    is_passed_over(r":separators [\a\b\[\]]");
    for (word, message) in [
        (r"\abc", r"line 1: \abc is no character; those are as in \a, \newline or \u0041"),
        (r"\ud800", r"line 1: \ud800 is no character; those are as in \a, \newline or \u0041"),
        (r"\u+041", r"line 1: \u+041 is no character; those are as in \a, \newline or \u0041"),
        (r"\ a", r"line 1: a backslash should be followed by a character, as in \a or \space"),
    ] {
        assert_eq!(refused(&with(&format!(":separator {word}"))), message);
    }
    assert_eq!(refused("{:separator \\"), "line 1: the file ends within a character");
}

#[test]
fn metadata_of_edn_forms_is_ignored() {
    for more in [
        ":error ^:hidden []",
        ":error ^{:line 7, :type :fail} [1]",
        ":error ^{:line 7} ^:hidden ^Tag ^\"Tag\" #{1}",
        ":error #^{:line 7} [1]",
        "^:hidden :error 5",
        ":error [^{:type :fail} {:type :invoke} ^:a^:b{}]",
        ":error ^#_ 5 :hidden #_ 6 []",
    ] {
        is_passed_over(more);
    }
    let bare =
        "{:type :invoke :process 3 :value [[:r 1 nil]]} {:type :ok :process 3 :value [[:r 1 5]]}";
    for dressed in [
        "^:op {:type :invoke :process ^:a 3 :value ^{:b 1} [^:c [:r 1 nil]]} ^{} {:type ^:d :ok :process 3 :value [[:r 1 5]]}",
        "^{:test 1} [{:type :invoke :process 3 :value [[:r 1 nil]]} ^:op {:type :ok :process 3 :value [[:r ^:e 1 5]]}]",
        "{^:a :type :invoke :process 3 :value ((:r 1 nil))} #op {:type #x :ok :process #x 3 :value #x [#x [:r 1 #x 5]]}",
    ] {
        assert_eq!(registers(dressed), registers(bare), "{dressed}");
    }
    for (file, message) in [
        ("^", "line 1: a ^ should have a form after it"),
        ("^:a", "line 1: metadata should have a form after it"),
        ("^:a #_ {}", "line 1: metadata should have a form after it"),
        ("{:a ^:b}", "line 1: metadata should have a form after it"),
        ("{:a ^}", "line 1: a ^ should have a form after it"),
        ("{:a ^7 []}", "line 1: metadata is 7, should be a map or a keyword"),
        (
            "{:a ^{:b 1 :b 2} []}",
            "line 1: a map has :b twice, the second at column 12; it should have it once",
        ),
    ] {
        assert_eq!(refused(file), message, "{file}");
    }
}

#[test]
fn all_forms_of_edn_are_accepted_in_unused_keys() {
    for more in [
        r#":error "a \"text\", ; [ \\ \t\r\n\b\f \u00e9 \ud83d\ude00 {""#,
        ":error [nil true false sym a.b/c-d ->x <=> % & $ = | / -. +a .b é]",
        ":error [0 -0 +5 17N -3N 0x1F 1/2 -1/2 1.5 -1e9 1E+9 2.5e-3 1M 1.50M 5. 99999999999999999999999999999999999999999N]",
        ":error [##Inf ##-Inf ##NaN]",
        ":error [:a :a/b :1 :a.b/c? :é :-]",
        ":error #error{:cause \"x\" :via [{:type clojure.lang.ExceptionInfo :at [a.b$fn__1 invoke \"f.clj\" 5]}]}",
        ":error #object[jepsen.x 0x4d1f \"jepsen.x@4d1f\"]",
        ":error #inst \"1985-04-12T23:20:50.52Z\" :id #uuid \"f81d4fae\"",
        ":error #:jepsen{:type :fail :value 5}",
        ":error #jepsen/tag #other ()",
        ", ,\u{b}\u{c},",
    ] {
        is_passed_over(more);
    }
    // Of a namespace is not the key that is looked for.
    assert_eq!(
        refused("#:a{:process 1 :type :ok}"),
        "line 1: :type is missing, should be :invoke, :ok, :fail or :info"
    );
    let unqualified = with("")
        .replace("{:", "#:a{:_/")
        .replace(":process", ":_/process")
        .replace(":value", ":_/value");
    assert_eq!(registers(&unqualified), registers(&with("")));
}

#[test]
fn forms_outside_the_syntax_of_edn_are_refused() {
    for (form, message) in [
        ("007", "007 is no number of EDN"),
        ("1a", "1a is no number of EDN"),
        ("0xg", "0xg is no number of EDN"),
        ("-1/-2", "-1/-2 is no number of EDN"),
        ("1.5N", "1.5N is no number of EDN"),
        (":", ": is no keyword of EDN"),
        ("::a", "::a is no keyword of EDN"),
        ("'a", "'a means nothing in EDN"),
        ("@a", "@a means nothing in EDN"),
        ("a~b", "a~b means nothing in EDN"),
        ("#<x>", "#<x> means nothing in EDN; a tag begins with a letter"),
        ("#(a)", "# means nothing in EDN; a tag begins with a letter"),
        ("# a 1", "# means nothing in EDN; a tag begins with a letter"),
        ("##Infinity", "##Infinity is not a number; ##Inf, ##-Inf and ##NaN are numbers"),
        ("#:a [1]", "#:a should be a namespace and have a map after it"),
        ("#a", "the tag #a should have a form after it"),
        (
            r#""\q""#,
            r#"a text has an escape that EDN has not; it has \t, \r, \n, \\, \" and \u0041"#,
        ),
        (r#""\u12""#, r"the escape \u of a text should have four hexadecimal digits"),
        ("(1]", "has a ']' that closes nothing"),
    ] {
        assert_eq!(
            refused(&with(&format!(":error {form}"))),
            format!("line 1: {message}"),
            "{form}"
        );
    }
    let mut bytes = b"{:error \"".to_vec();
    bytes.extend([0xff, b'"', b'}']);
    assert_eq!(
        read::<ListOp>(bytes.as_slice()).unwrap_err().to_string(),
        "line 1: is not text in UTF-8"
    );
    assert_eq!(
        refused(&format!("{{:error {}", "#_ [".repeat(99))),
        "line 1: forms are nested deeper than in any history"
    );
    assert_eq!(
        refused(&format!("{{:error {}", "^".repeat(99))),
        "line 1: forms are nested deeper than in any history"
    );
    let long = refused(&with(&format!(":type {:?}", "x".repeat(99))));
    assert!(long.starts_with("line 1: a map has :type twice"), "{long}");
    let long = refused(&format!("{{:process 1 :type {:?}}}", "x".repeat(99)));
    assert_eq!(
        long,
        format!("line 1: :type is \"{}…, should be :invoke, :ok, :fail or :info", "x".repeat(59))
    );
}

#[test]
fn an_empty_file_has_no_transactions() {
    for file in ["", "\n", "[]", "#_ {}", "; nothing", "{:type :info :process :nemesis :time -1}"] {
        assert_eq!(lists(file), [], "{file}");
    }
    let unknown = lists("{:type :invoke :process 0 :value []}");
    assert_eq!(unknown[0].outcome, Outcome::Unknown);
}

#[test]
fn keys_in_edn_may_be_any_form() {
    let file = r#"{:type :invoke :process 0 :value [[:w :x 1] [:w "x" 2] [:w 0 3] [:w -1 4] [:w :a/x 5]]}
        {:type :ok :process 0 :value [[:w #key :x 1] [:w "\u0078" 2] [:w 0N 3] [:w -1 4] [:w :a/x 5]]}"#;
    let (history, names) = read_named::<RegisterOp>(file.as_bytes()).expect("a history");
    let written = history[0].operations.iter().map(|operation| match operation {
        RegisterOp::Write { key, .. } => names.get(key).cloned().unwrap_or_else(|| key.to_string()),
        RegisterOp::Read { .. } => panic!("nothing is read"),
    });
    assert_eq!(written.collect::<Vec<_>>(), [":x", "\"x\"", "0", "-1", ":a/x"]);
    assert_eq!(history[0].outcome, Outcome::Committed);
    // The keys :x and "x" are two.
    let skewed = |other: &str| {
        let file = format!(
            "{{:type :invoke :process 0 :value [[:append :x 1]]}} {{:type :ok :process 0 :value [[:append :x 1]]}}
             {{:type :invoke :process 1 :value [[:r {other} nil]]}} {{:type :ok :process 1 :value [[:r {other} [1]]]}}"
        );
        check_lists(&lists(&file), Options::default()).map_err(|violation| violation.anomaly)
    };
    assert_eq!(skewed(":x"), Ok(()));
    assert_eq!(skewed("\"x\""), Err(Anomaly::UnknownValue));
    for (key, words) in [
        ("nil", "a key is nil, should be a whole number, a keyword or a text"),
        ("1.5", "a key is 1.5, should be"),
        ("[1]", "a key is [1], should be"),
        (r#""\ud800""#, "should be a whole number, a keyword or a text without"),
        (":y 1] [:w 18446744073709551615", "it should be less than 18446744073709551615"),
    ] {
        let file = format!("{{:type :invoke :process 0 :value [[:w {key} 1]]}}");
        let message = refused(&file);
        assert!(message.contains(words), "{key}: {message}");
    }
}

#[test]
fn operations_in_one_edn_list_or_vector_are_read() {
    let plain = with("");
    for (opening, closing) in [("(", ")"), ("[", "]"), (" ^:all ( #_ 1 ", " #_ 2 ) ; end")] {
        assert_eq!(registers(&format!("{opening}{plain}{closing}")), registers(&plain));
    }
    assert_eq!(registers("()"), []);
    for file in
        [format!("({plain}"), format!("({plain}]"), format!("[{plain})"), format!("({plain}) nil")]
    {
        refused(&file);
    }
}

#[test]
fn edn_operations_without_process_are_read_if_unambiguous() {
    let summary = |file: &str| {
        let of = |transaction: Transaction<ListOp>| {
            let Transaction { session, invoked, completed, outcome, .. } = transaction;
            (session, invoked, completed, outcome)
        };
        lists(file).into_iter().map(of).collect::<Vec<_>>()
    };
    let (append, read) = ("[[:append 1 1]]", "[[:r 1 nil]]");
    // One after another.
    let file = format!(
        "{{:time 3 :type :invoke :value {append}}} {{:type :info :process :nemesis}} {{:time 4 :type :info}}
         {{:time 5 :type :invoke :value {read}}} {{:time 9 :type :ok :value [[:r 1 [1]]]}}
         {{:time 10 :type :invoke :value {read}}}"
    );
    let expected =
        [(0, 3, 4, Outcome::Unknown), (1, 5, 9, Outcome::Committed), (2, 10, 10, Outcome::Unknown)];
    assert_eq!(summary(&file), expected);
    // Completions alone: they may all have been invoked before anything.
    let file = format!(
        "[{{:type :ok :value [[:r 1 []]]}} {{:type :fail :value {append}}} {{:type :info :value [[:append 1 2]]}}]"
    );
    let expected =
        [(0, 0, 1, Outcome::Committed), (1, 0, 2, Outcome::Aborted), (2, 0, 3, Outcome::Unknown)];
    assert_eq!(summary(&file), expected);
    let stale = "{:type :ok :value [[:append 1 1]]} {:type :ok :value [[:r 1 [1]]]} {:type :ok :value [[:r 1 nil]]}";
    let strict = Options { sessions: true, real_time: true };
    assert_eq!(check_lists(&lists(stale), strict), Ok(()), "nothing is known of their times");
    let invoke = |process: &str| format!("{{:type :invoke {process} :value [[:w 1 1]]}}");
    let ok = |process: &str| format!("{{:type :ok {process} :value [[:w 1 1]]}}");
    for (file, words) in [
        (invoke("") + &invoke(""), "invokes a transaction while it has one"),
        (invoke("") + &ok("") + &ok(""), "completes a transaction that it did not invoke"),
        (ok("") + &invoke(""), "is an invocation, and maps before it completed what was not"),
        (invoke(":process 1") + &ok(""), "has no :process, which maps before it have"),
        (invoke("") + &ok(":process 1"), "has a :process, which maps before it have not"),
        (ok(":process 1"), "process 1 completes a transaction that it did not invoke"),
    ] {
        let message = refused(&file);
        assert!(message.contains(words), "{file}: {message}");
    }
}
