//! Files say what the histories said, and damaged files are refused with the line and the reason.

use candide_check::black::{self, ListOp, Outcome, RegisterOp};
use candide_check::json::{AnyReader, Header, Line, Reader, Writer};
use candide_check::{
    Access, Checker, Event, Forgotten, FormatError, Key, Options, Scan, Transaction, Verdict, edn,
};
use fastrand::Rng;
use std::fmt::Debug;
use std::io;
use std::ops::Bound;

const DOCUMENT: &str = include_str!("../../../../docs/history-format.md");

fn key(rng: &mut Rng) -> Key {
    (0..rng.usize(1..4)).map(|_| if rng.bool() { rng.u64(0..9) } else { rng.u64(..) }).collect()
}

fn bound(rng: &mut Rng) -> Bound<Key> {
    match rng.u8(0..3) {
        0 => Bound::Included(key(rng)),
        1 => Bound::Excluded(key(rng)),
        _ => Bound::Unbounded,
    }
}

fn event(rng: &mut Rng) -> Event {
    if rng.u8(0..5) == 0 {
        return Event::Forgotten(Forgotten {
            table: rng.u16(..),
            key: key(rng),
            version: rng.u64(1..),
            at: rng.u64(..),
        });
    }
    let read = |rng: &mut Rng| {
        let version = rng.bool().then(|| rng.u64(1..));
        Access {
            table: rng.u16(..),
            key: key(rng),
            group: rng.u8(..),
            version,
            present: version.is_some() && rng.bool(),
        }
    };
    let write = |rng: &mut Rng, group: u8| Access {
        table: rng.u16(..),
        key: key(rng),
        group,
        version: Some(rng.u64(1..)),
        present: rng.bool(),
    };
    let begun = rng.u64(..u64::MAX - 1);
    let committed = rng.bool();
    Event::Transaction(Transaction {
        session: rng.u64(..),
        begun,
        ended: rng.u64(begun + 1..u64::MAX),
        committed,
        reads: (0..rng.usize(0..4)).map(|_| read(rng)).collect(),
        scans: (0..rng.usize(0..3))
            .map(|_| Scan { table: rng.u16(..), from: bound(rng), to: bound(rng) })
            .collect(),
        writes: (0..if committed { rng.u8(0..4) } else { 0 })
            .map(|group| write(rng, group))
            .collect(),
        as_of: rng.bool().then(|| rng.u64(..)),
    })
}

/// Transactions of one session one after another, with reads only where a client was told their
/// result.
fn transactions<O>(
    rng: &mut Rng,
    operation: fn(&mut Rng, bool) -> O,
) -> Vec<black::Transaction<O>> {
    let mut free = [0; 4];
    let mut history: Vec<black::Transaction<O>> = (0..rng.usize(0..20))
        .map(|_| {
            let session = rng.usize(0..4);
            let invoked = free[session] + rng.u64(0..10);
            let completed = invoked + rng.u64(0..20);
            free[session] = completed + 1;
            let outcome = *rng
                .choice(&[Outcome::Committed, Outcome::Aborted, Outcome::Unknown])
                .expect("not empty");
            let operations = (0..rng.usize(0..5))
                .map(|_| operation(rng, outcome == Outcome::Committed))
                .collect();
            black::Transaction { session: session as u64, invoked, completed, outcome, operations }
        })
        .collect();
    history.sort_by_key(|transaction| transaction.invoked);
    history
}

fn list_op(rng: &mut Rng, told: bool) -> ListOp {
    let key = rng.u64(0..5);
    if rng.bool() {
        return ListOp::Append { key, value: rng.u64(..) };
    }
    let length = if told { rng.usize(0..4) } else { 0 };
    ListOp::Read { key, values: (0..length).map(|_| rng.u64(..)).collect() }
}

fn register_op(rng: &mut Rng, told: bool) -> RegisterOp {
    let key = rng.u64(0..5);
    if rng.bool() {
        return RegisterOp::Write { key, value: rng.u64(..) };
    }
    RegisterOp::Read { key, value: (told && rng.bool()).then(|| rng.u64(..)) }
}

fn header() -> Header {
    Header { protocol: "a \"quoted\"\nname".into(), seed: u64::MAX, text: "Übermut\u{0}\\".into() }
}

fn written<L: Line>(lines: &[L]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory takes all");
    for line in lines {
        writer.write(line).expect("a line as it should be");
    }
    writer.finish().expect("memory takes all")
}

fn json_round_trip<L: Line + PartialEq + Debug>(lines: &[L]) {
    let file = written(lines);
    assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), lines.len() + 1);
    let reader = Reader::<_, L>::new(file.as_slice()).expect("its own header");
    assert_eq!(reader.header(), &header());
    let read: Vec<L> = reader.collect::<Result<_, _>>().expect("its own lines");
    assert_eq!(read, lines);
}

#[test]
fn a_history_is_unchanged_by_writing_and_reading_json() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let events: Vec<Event> = (0..rng.usize(0..20)).map(|_| event(&mut rng)).collect();
        json_round_trip(&events);
        json_round_trip(&transactions(&mut rng, list_op));
        json_round_trip(&transactions(&mut rng, register_op));
    }
}

#[test]
fn a_history_is_unchanged_by_writing_and_reading_edn() {
    fn round_trip<O: edn::Operation + PartialEq + Debug>(
        history: &[black::Transaction<O>],
        seed: u64,
    ) {
        let mut file = Vec::new();
        edn::write(history, &mut file).expect("memory takes all");
        let mut again = edn::read::<O>(file.as_slice()).expect("its own lines");
        // Invocations at one time come in any order.
        again.sort_by_key(|transaction| (transaction.invoked, transaction.session));
        let mut history: Vec<_> = history.iter().collect();
        history.sort_by_key(|transaction| (transaction.invoked, transaction.session));
        assert_eq!(again.iter().collect::<Vec<_>>(), history, "seed {seed}");
    }
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        round_trip(&transactions(&mut rng, list_op), seed);
        round_trip(&transactions(&mut rng, register_op), seed);
    }
}

/// Files may come in pieces as small as a byte.
#[test]
fn a_file_that_arrives_byte_by_byte_is_read() {
    let mut rng = Rng::with_seed(1);
    let history = transactions(&mut rng, list_op);
    let file = written(&history);
    let reader = Reader::<_, black::Transaction<ListOp>>::new(io::BufReader::with_capacity(
        1,
        file.as_slice(),
    ));
    let read: Vec<_> =
        reader.expect("its own header").collect::<Result<_, _>>().expect("its own lines");
    assert_eq!(read, history);

    let mut file = Vec::new();
    edn::write(&history, &mut file).expect("memory takes all");
    let whole = edn::read::<ListOp>(file.as_slice()).expect("its own lines");
    let pieces = edn::read::<ListOp>(io::BufReader::with_capacity(1, file.as_slice()))
        .expect("its own lines");
    assert_eq!(whole, pieces);
}

/// The fenced blocks of the document in that language.
fn examples(language: &str) -> Vec<&'static str> {
    let mut blocks = Vec::new();
    for block in DOCUMENT.split("\n```").skip(1).step_by(2) {
        if let Some(block) = block.strip_prefix(language) {
            blocks.push(block.trim_start_matches('\n'));
        }
    }
    blocks
}

#[test]
fn documented_examples_are_read() {
    let files: Vec<String> =
        examples("json").into_iter().map(|block| format!("{block}\n")).collect();
    let [versions, lists, registers] = files.as_slice() else { panic!("{files:?}") };

    let AnyReader::Versions(reader) = AnyReader::new(versions.as_bytes()).expect("a header") else {
        panic!("kind")
    };
    assert_eq!(reader.header().protocol, "occ");
    let events: Vec<Event> = reader.collect::<Result<_, _>>().expect("events");
    let Event::Transaction(deleting) = &events[1] else { panic!("{events:?}") };
    assert_eq!(
        deleting.scans,
        [Scan { table: 0, from: Bound::Included([3].into()), to: Bound::Unbounded }]
    );
    assert_eq!(
        events[2],
        Event::Forgotten(Forgotten { table: 0, key: [7].into(), version: 19, at: 9 })
    );

    let AnyReader::Lists(reader) = AnyReader::new(lists.as_bytes()).expect("a header") else {
        panic!("kind")
    };
    let transactions: Vec<_> = reader.collect::<Result<_, _>>().expect("transactions");
    assert_eq!(transactions[0].operations[1], ListOp::Read { key: 4, values: vec![9] });
    assert_eq!(transactions[1].outcome, Outcome::Unknown);

    let AnyReader::Registers(reader) = AnyReader::new(registers.as_bytes()).expect("a header")
    else {
        panic!("kind")
    };
    let registers: Vec<_> = reader.collect::<Result<_, _>>().expect("transactions");
    assert_eq!(registers[0].operations[1], RegisterOp::Read { key: 4, value: None });

    let [file] = examples("clojure")[..] else { panic!("one example for Elle") };
    assert_eq!(edn::read::<ListOp>(file.as_bytes()).expect("a history"), transactions);

    // They are not only well formed.
    let strict = black::Options { sessions: true, real_time: true };
    assert_eq!(black::check_lists(&transactions, strict), Ok(()));
    assert_eq!(black::check_registers(&registers, strict), Verdict::Serializable);
    let mut checker = Checker::new(Options { strict: true, ..Options::default() });
    events.iter().for_each(|event| checker.feed(event));
    assert_eq!(checker.finish().verdict, Verdict::Serializable);
}

/// The message for a file of events after a good header and a good line.
fn refused(line: &str) -> String {
    let good = r#"{"forgotten":{"table":0,"key":[7],"version":19,"at":9}}"#;
    let head = examples("json")[0].lines().next().expect("a header");
    let file = format!("{head}\n{good}\n{line}");
    let mut reader = Reader::<_, Event>::new(file.as_bytes()).expect("the header is good");
    reader.next().expect("the first line").expect("is good");
    let error = reader.next().expect("the second line").expect_err(line);
    assert!(reader.next().is_none(), "goes on after damage");
    error.to_string()
}

#[test]
fn damaged_events_are_refused_with_line_and_reason() {
    let transaction = |fields: &str| {
        format!(
            r#"{{"transaction":{{"session":0,"begun":1,"ended":4,"committed":true,"scans":[],{fields}}}}}"#
        ) + "\n"
    };
    let access = |fields: &str| format!(r#"{{"table":0,"key":[7],"group":1,{fields}}}"#);
    let write = access(r#""version":3,"present":true"#);
    for (line, message) in [
        ("\n".to_string(), "line 3: EOF while parsing a value, at column 0"),
        ("{\"forgotten\":{\"table\":0,\"ke".to_string(), "line 3: the file ends within this line"),
        ("{\"forgotten\":{\"table\":0,\"ke\n".to_string(), "line 3: EOF while parsing a string, at column 27"),
        ("{\"forgot\":{}}\n".to_string(), "line 3: unknown variant `forgot`, expected `transaction` or `forgotten`"),
        ("{\"forgotten\":{\"table\":0,\"key\":[7],\"at\":9}}\n".to_string(), "line 3: missing field `version`"),
        ("{\"forgotten\":{\"table\":-1}}\n".to_string(), "line 3: invalid value: integer `-1`, expected u16, at column 24"),
        (
            "{\"forgotten\":{\"table\":0,\"key\":[7],\"version\":0,\"at\":9}}\n".to_string(),
            "line 3: forgets version 0 of table 0 key [7]; versions count from 1",
        ),
        (transaction(r#""reads":[]"#), "line 3: missing field `writes`"),
        (transaction(r#""reads":[],"reads":[],"writes":[]"#), "line 3: duplicate field `reads`"),
        (transaction(r#""reads":[],"writes":[],"note":1"#), "line 3: unknown field `note`, expected one of"),
        (
            transaction(&format!(r#""reads":[{}],"writes":[]"#, access(r#""version":null,"present":true"#))),
            "line 3: reads table 0 key [7] group 1 without a version but with a row; a row has a version",
        ),
        (
            transaction(&format!(r#""reads":[{}],"writes":[]"#, access(r#""version":0,"present":true"#))),
            "line 3: reads table 0 key [7] group 1 in version 0; versions count from 1",
        ),
        (
            transaction(&format!(r#""reads":[],"writes":[{}]"#, access(r#""version":null,"present":true"#))),
            "line 3: writes table 0 key [7] group 1 without a version; a write has one, from 1",
        ),
        (
            transaction(&format!(r#""reads":[],"writes":[{write},{write}]"#)),
            "line 3: writes table 0 key [7] group 1 twice; only the last write should be there",
        ),
        (
            r#"{"transaction":{"session":0,"begun":4,"ended":4,"committed":true,"reads":[],"scans":[],"writes":[]}}"#
                .to_string()
                + "\n",
            "line 3: begun at 4, ended at 4; it should end after it began",
        ),
        (
            r#"{"transaction":{"session":0,"begun":4,"ended":18446744073709551615,"committed":true,"reads":[],"scans":[],"writes":[]}}"#
                .to_string()
                + "\n",
            "line 3: ended at 18446744073709551615; a transaction should end before that",
        ),
        (
            format!(
                r#"{{"transaction":{{"session":0,"begun":1,"ended":4,"committed":false,"reads":[],"scans":[],"writes":[{write}]}}}}"#
            ) + "\n",
            "line 3: has writes but did not commit; the writes of such a transaction should be left out",
        ),
        (
            r#"{"transaction":{"session":0,"begun":1,"ended":4,"committed":true,"reads":[],"scans":[{"table":0,"from":"start","to":"unbounded"}],"writes":[]}}"#
                .to_string()
                + "\n",
            "line 3: unknown variant `start`, expected one of `included`, `excluded`, `unbounded`",
        ),
    ] {
        let error = refused(&line);
        assert!(error.starts_with(message), "{line}{error}");
    }
}

#[test]
fn invalid_headers_are_refused() {
    let header = |format: &str, version: u64, kind: &str| {
        format!(
            r#"{{"format":"{format}","version":{version},"kind":"{kind}","protocol":"occ","seed":7,"text":""}}"#
        ) + "\n"
    };
    for (file, message) in [
        (String::new(), "line 1: the file is empty; the first line should be a header"),
        (
            header("other", 1, "lists"),
            "line 1: the format is \"other\", should be \"candide-history\"",
        ),
        (
            header("candide-history", 2, "lists"),
            "line 1: the format's version is 2, this program reads version 1",
        ),
        (
            header("candide-history", 1, "graphs"),
            "line 1: holds a history of kind \"graphs\"; known are \"versions\", \"lists\" and \"registers\"",
        ),
        (
            "{\"format\":\"candide-history\"}\n".into(),
            "line 1: missing field `version`, at column 28",
        ),
        ("\u{1}\n".into(), "line 1: expected value, at column 1"),
    ] {
        let error = AnyReader::new(file.as_bytes()).expect_err(&file);
        assert_eq!(error.to_string(), message);
    }
    let lists = header("candide-history", 1, "lists");
    let error = Reader::<_, Event>::new(lists.as_bytes()).expect_err("of another kind");
    assert_eq!(
        error.to_string(),
        "line 1: holds a history of kind \"lists\", wanted is \"versions\""
    );
    let error = AnyReader::new([0xff, b'\n'].as_slice()).expect_err("no text");
    assert_eq!(error.to_string(), "line 1: is not text in UTF-8");
}

/// Whatever byte of a file is lost, the file is refused or, where the byte was within a text or a
/// number, read otherwise.
#[test]
fn a_file_that_lacks_a_byte_is_refused_or_read_differently() {
    let mut rng = Rng::with_seed(3);
    let events: Vec<Event> = (0..6).map(|_| event(&mut rng)).collect();
    let file = written(&events);
    let read = |file: &[u8]| -> Result<(Header, Vec<Event>), FormatError> {
        let reader = Reader::<_, Event>::new(file)?;
        Ok((reader.header().clone(), reader.collect::<Result<_, _>>()?))
    };
    let whole = read(&file).expect("nothing is lost");
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged.remove(at);
        if let Ok(other) = read(&damaged) {
            assert_ne!(other, whole, "byte {at}");
        }
    }
}

#[test]
fn histories_that_a_reader_would_refuse_are_not_written() {
    let mut writer = Writer::new(Vec::new(), &Header::default()).expect("memory takes all");
    let bad = Event::Forgotten(Forgotten { table: 0, key: [1].into(), version: 0, at: 1 });
    let error = writer.write(&bad).expect_err("version 0");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let file = writer.finish().expect("memory takes all");
    assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn edn_with_tags_commas_and_unknown_keys_is_read() {
    let file = "
        ; as a vector, with tags, a nemesis, and more keys than needed
        [#jepsen.history.Op{:index 0 :type :invoke :process 0 :value [[:r 1 nil], [:w 1 2]] :error nil}
         {:type :info, :process :nemesis, :f :start, :value #{:n1 \"a \\\" ] text\" 1.5 (1 2)}}
         {:process 0, :value [[:r 1 5N] [:w 1 2]], :f :txn, :type :ok}
         {:process 1, :value [[:w 1 3]], :f :txn, :type :invoke}]";
    let history = edn::read::<RegisterOp>(file.as_bytes()).expect("a history");
    assert_eq!(
        history[0].operations,
        [RegisterOp::Read { key: 1, value: Some(5) }, RegisterOp::Write { key: 1, value: 2 }]
    );
    assert_eq!((history[0].invoked, history[0].completed), (1, 3));
    assert_eq!((history[1].outcome, history[1].completed), (Outcome::Unknown, 4));
}

#[test]
fn damaged_edn_is_refused_with_line_and_reason() {
    let invoked =
        "{:time 5, :type :invoke, :process 0, :f :txn, :value [[:append 3 1] [:r 4 nil]]}\n";
    for (rest, message) in [
        ("{:time 6, :type :ok", "line 2: the file ends within a form"),
        ("{:time 6, :type}", "line 2: the key :type of a map has no value"),
        ("\n)", "line 3: has a ')' that closes nothing"),
        ("7", "line 2: should be a map like {:type :invoke, :process 0, …}, is 7"),
        ("{:type :ok}", "line 2: has no :process, which maps before it have; all or none should"),
        (
            "{:time 6 :type :done :process 0}",
            "line 2: :type is :done, should be :invoke, :ok, :fail or :info",
        ),
        (
            "{:time 6 :process 0}",
            "line 2: :type is missing, should be :invoke, :ok, :fail or :info",
        ),
        (
            "{:time 6 :type :ok :process 1.5}",
            "line 2: :process is 1.5, should be a whole number from 0",
        ),
        (
            "{:time 6 :type :ok :process 1}",
            "line 2: process 1 completes a transaction that it did not invoke",
        ),
        (
            "{:time 4 :type :info :process 0}",
            "line 2: completes at 4 a transaction invoked at 5; times should not decrease",
        ),
        (
            "{:time 6 :type :invoke :process 0 :value []}",
            "line 2: process 0 invokes a transaction while it has one; it should complete it",
        ),
        (
            "{:time 6 :type :ok :process 0}",
            "line 2: :value is nil, should be a vector of operations",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:append 3 1]]}",
            "line 2: completes other operations than were invoked",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:append 3 2] [:r 4 [7]]]}",
            "line 2: completes other operations than were invoked",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:append 3] [:r 4 [7]]]}",
            "line 2: an operation is [:append 3], should be a vector like [:r 3 nil]",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:w 3 1] [:r 4 [7]]]}",
            "line 2: an operation on a list is :w, should be :append or :r",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:append 3 1] [:r 4 7]]}",
            "line 2: the list 4 was read as 7, should be a vector or nil",
        ),
        (
            "{:time 6 :type :ok :process 0 :value [[:append 3 1] [:r 4 [:a]]]}",
            "line 2: a value in a list is :a, should be a whole number from 0",
        ),
        (&"[".repeat(100), "line 2: forms are nested deeper than in any history"),
    ] {
        let error = edn::read::<ListOp>(format!("{invoked}{rest}").as_bytes()).expect_err(rest);
        assert_eq!(error.to_string(), message, "{rest}");
    }
    let error = edn::read::<RegisterOp>(invoked.as_bytes()).expect_err("lists are no registers");
    assert_eq!(
        error.to_string(),
        "line 1: an operation on a register is :append, should be :w or :r"
    );
}

#[test]
fn sessions_with_overlapping_transactions_are_not_written_as_edn() {
    let transaction = |invoked, completed| black::Transaction::<ListOp> {
        session: 3,
        invoked,
        completed,
        outcome: Outcome::Committed,
        operations: Vec::new(),
    };
    let error =
        edn::write(&[transaction(1, 4), transaction(4, 6)], Vec::new()).expect_err("both run at 4");
    assert_eq!(
        error.to_string(),
        "session 3 begins a transaction at 4, before or when its last one completes"
    );
}
