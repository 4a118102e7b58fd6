//! Bad arguments end with status 2, before anything is loaded, and with a message that says what
//! would be right.

use std::process::Command;

use crate::common::file;
use candide::experiments::Factor;

/// Asserts that `arguments` are refused in `words`.
fn assert_refused(arguments: &str, words: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_candide"))
        .args(arguments.split(' '))
        .output()
        .expect("starts");
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
    assert!(message.contains(words), "{arguments}: no {words:?} in {message:?}");
    assert!(output.stdout.is_empty(), "{arguments}: results in spite of the error");
}

macro_rules! names {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        [$($(<$protocol as candide::Protocol>::properties(&$policy).name),+),+]
    };
}

#[test]
fn errors_of_unknown_names_list_known_names() {
    assert_refused("bench tpcd", "ycsb");
    let names = candide::for_each_protocol!(names).join(", ");
    assert_refused(
        "bench ycsb --protocol magic",
        &format!("use a list of {names}, or all, or usual"),
    );
    assert_refused("bench ycsb --mode d", "expected a, b or c");
    assert_refused("bench ycsb-narrow --contention low", "expected high, medium or read-only");
    assert_refused(
        "bench key-value --preset magic",
        "[possible values: index, counter, cicada, dbx1000, ccbench, silo]",
    );
    assert_refused("bench ycsb --verify maybe", "expected counts, values, increment or tag");
    assert_refused("bench ycsb --profile loose", "[possible values: strict, paper]");
    assert_refused("bench tpcc --mix half", "expected full, three, two, even or new-order");
    assert_refused("bench tpcc --order-ids here", "[possible values: per-attempt, once, district]");
    assert_refused("bench ycsb --cu maybe", "[possible values: on, off]");
    for command in ["bench ycsb --opaque", "check --opaque", "reproduce delivery --opaque"] {
        assert_refused(&format!("{command} maybe"), "[possible values: on, off]");
    }
    for workload in ["ycsb-hot", "shifting", "long-scan"] {
        assert_refused(
            &format!("bench {workload} --for-update maybe"),
            "[possible values: on, off]",
        );
    }
    assert_refused("bench ycsb --factor luck", "no-backoff");
    assert_refused("bench ycsb --protocol mvto --timestamps sundial", "there are counter, clock");
    assert_refused(
        "reproduce figure-4",
        "[possible values: factors, delivery, protocols, high-contention, separate-effects, set-sizes, reordering, three-timestamps, indexes, machinery, granularity, mocc, drp]",
    );
}

#[test]
fn errors_of_invalid_mixtures_say_which_are_valid() {
    let policies = "there are occ, 2pl-no-wait, 2pl-blind-die, 2pl-wait-die, 2pl-dreadlock, adaptive, swiss, pcc";
    for command in ["bench smallbank", "check smallbank"] {
        let refused = |protocols: &str, words: &str| {
            assert_refused(&format!("{command} --protocol {protocols}"), words);
        };
        refused("occ,mixed:savings=swiss,checking=magic", policies);
        refused(
            "occ,mixed:savings=swiss,branches=pcc",
            "smallbank has no table `branches`, which `mixed:savings=swiss,branches=pcc` names; its tables are \
             accounts, customers, savings, checking",
        );
        refused(
            "mixed:savings",
            "`savings` names no table and policy; a mixture is `mixed:TABLE=POLICY`",
        );
        refused(
            "occ,savings=swiss",
            "`savings=swiss` is a setting, but the element before it takes none",
        );
        refused("mixed:savings=swiss,savings=pcc", "has two policies for the table `savings`");
    }
    assert_refused(
        "bench tpcb --protocol occ,h=5",
        "`h=5` is a setting, but the element before it takes none",
    );
    assert_refused(
        "check lists --mode black --protocol mixed:registers=swiss",
        "lists has no table `registers`, which `mixed:registers=swiss` names; its tables are lists",
    );
    assert_refused(
        "check --protocol mixed:rows=swiss",
        "random has no table `rows`, which `mixed:rows=swiss` names; its tables are items, pieces",
    );
}

#[test]
fn errors_of_invalid_policy_options_list_valid_ones() {
    for command in ["bench ycsb-hot", "check smallbank"] {
        for (protocols, words) in [
            (
                "occ,mocc:heat=5",
                "mocc has no option `heat`; there are `h`, `per`, `lock` and `wait` of mocc",
            ),
            ("mocc:h=32", "`h` of `mocc:h=32` must be a whole number from 0 to 31, not `32`"),
            ("mocc:lock=queue,h=hot", "must be a whole number from 0 to 31, not `hot`"),
            ("mocc:per=table,occ", "must be `row` or `page`, not `table`"),
            ("hybrid:lock=spin", "must be `parked` or `queue`, not `spin`"),
            ("mocc:h=5,h=6", "`mocc:h=5,h=6` has the option `h` twice"),
            ("hybrid:h=5", "`h` has no effect under hybrid"),
            ("occ,mocc:", "`` names no option and value; options are `mocc:OPTION=VALUE` or"),
        ] {
            assert_refused(&format!("{command} --protocol {protocols}"), words);
        }
    }
}

#[test]
fn one_allocator_of_the_build_is_chosen_for_a_run() {
    assert_refused(
        "bench ycsb --factor mimalloc,sorted-locks,system-allocator",
        "a database has one allocator, not both system-allocator and mimalloc; choose one of them",
    );
    if !Factor::Jemalloc.is_available() {
        assert_refused(
            "bench ycsb --factor jemalloc",
            "this build has no jemalloc; build with the cargo feature `jemalloc`",
        );
    }
}

#[test]
fn errors_of_numbers_out_of_range_give_the_range() {
    for threads in ["0", "-1", "1025", "1,-2", "two"] {
        assert_refused(
            &format!("bench ycsb --threads {threads}"),
            "expected a whole number from 1 to 1024",
        );
        assert_refused(
            &format!("reproduce delivery --threads {threads}"),
            "expected a whole number from 1 to 1024",
        );
    }
    assert_refused("check --threads -1", "expected a whole number from 1 to 1024");
    for duration in ["0", "0s", "5", "-5s", "-5", "366d"] {
        let words = "expected a time above 0s and up to 365d, with its unit, such as 5s or 200ms";
        assert_refused(&format!("bench ycsb --duration {duration}"), words);
    }
    assert_refused("bench ycsb --warmup -1s", "expected a time from 0s to 365d, with its unit");
    for rate in ["0", "-5", "inf", "nan", "1e10", "many"] {
        assert_refused(
            &format!("bench ycsb --rate {rate}"),
            "expected a number above 0 and up to a billion",
        );
    }
    assert_refused("bench ycsb --slice 0s", "expected a time above 0s");
    assert_refused("bench ycsb --slice 1ms", "a run of 3s has at most 1000 slices, so not of 1ms");
    assert_refused("bench ycsb --theta 3", "from 0 (uniform) to 2");
    assert_refused("bench ycsb --operations 65", "from 1 to 64");
    assert_refused("bench ycsb --rows 15", "from 16");
    assert_refused(
        "bench ycsb-hot --rmws 11",
        "operations that write must be from 0 to 10, not 11",
    );
    assert_refused("bench ycsb-hot --rows 9", "from 10");
    assert_refused("bench long-scan --rows 500", "rows to scan must be from 1 to 500, not 1000");
    assert_refused("bench shifting --reads 65", "from 1 to 64");
    assert_refused("bench shifting --phase 1ms --slice 2ms", "no longer than the phase of 1ms");
    assert_refused("bench key-value --read-only 2", "from 0 to 1");
    assert_refused("bench range-scan --scan 0", "rows to scan must be from 1 to 1000000, not 0");
    assert_refused("bench predicate --rows 0", "rows must be from 1");
    assert_refused("bench smallbank --accounts 1", "at least 2");
    assert_refused("bench smallbank --hotspot 1000000", "smaller than the 1000000 accounts");
    assert_refused("bench smallbank --weights 1,2,3", "6 whole numbers separated by commas");
    assert_refused("bench rubis --items 0", "items must be from 1 to");
    assert_refused("bench rubis --stock 0", "stock of each item must be from 1 to");
    assert_refused("bench rubis --theta-items 2.5", "from 0 (uniform) to 2");
    assert_refused("bench rubis --weights 0,0,0", "place-bid, buy-now, view-item");
    assert_refused("bench rubis --weights 1,2", "3 whole numbers separated by commas");
    assert_refused("bench wikipedia --pages 0", "pages must be from 1 to");
    assert_refused("bench wikipedia --users 0", "users must be from 1 to");
    assert_refused("bench wikipedia --weights 1,2,3,4,5", "6 whole numbers separated by commas");
    assert_refused("bench tpcb --branches 0", "at least one branch");
    assert_refused("bench tpcb --accounts 15", "a multiple of its 10 tellers, not 15");
    assert_refused("bench tpcb --remote 101", "from 0 to 100");
    assert_refused("bench kmeans --dimensions 33", "dimensions must be from 1 to 32, not 33");
    assert_refused(
        "bench kmeans --mode middle",
        "expected low, high, low-sim, high-sim, drp or drp-hi",
    );
    assert_refused("bench vacation --queries 17", "queries must be from 1 to 16, not 17");
    assert_refused("bench vacation --form lazy", "expected eager or deferred");
    assert_refused("bench labyrinth --mode drp", "expected sim or real");
    assert_refused("bench labyrinth --sides 3,3", "3 whole numbers separated by commas");
    assert_refused("bench labyrinth --paths 2000", "from 1 to 1536, half of the cells, not 2000");
    assert_refused("bench intruder --attack 101", "from 0 to 100");
    assert_refused("bench intruder --length 5000", "from 1 to 4096, not 5000");
    assert_refused("bench genome --segment 5", "from 8 to 64, not 5");
    assert_refused("bench bayes --variables 33", "from 2 to 32, not 33");
    assert_refused("bench tpcc --warehouses 0", "at least one warehouse");
    assert_refused("bench tpcc --warehouses 70000", "expected a whole number from 0 to 65535");
    assert_refused("bench ycsb --seed x", "expected a whole number from 0 to 18446744073709551615");
    assert_refused("bench ycsb --theta x", "expected a number, such as 0.5");
    assert_refused("check --keys 0", "keys must be from 1 to 1048576, not 0");
    assert_refused("bench smallbank --weights -1,2,3", "6 whole numbers separated by commas");
    assert_refused("reproduce delivery --scale 0", "above 0 and up to 1");
    assert_refused("reproduce delivery --scale 1.5", "above 0 and up to 1");
    assert_refused("reproduce delivery --runs 0", "expected a whole number from 1 to");
    assert_refused("bench tpcc --customers 5", "from 10 to 3000");
    assert_refused("bench tpcc --rollbacks 101", "from 0 to 100");
}

#[test]
fn errors_of_think_times_out_of_range_give_the_range() {
    for workload in ["ycsb-hot", "long-scan", "shifting"] {
        for think in ["1001us", "500", "-1us", "soon"] {
            assert_refused(
                &format!("bench {workload} --think {think}"),
                "expected 0, or a time up to 1ms with its unit, such as 500ns or 2us",
            );
        }
    }
}

#[test]
fn options_that_contradict_one_another_are_refused_with_the_reason() {
    assert_refused(
        "bench ycsb --protocol serial --threads 2",
        "serial runs one transaction at a time",
    );
    assert_refused(
        "bench ycsb --protocol occ,mvcc --timestamps clock",
        "--timestamps has no effect under occ, mvcc; it is for mvto",
    );
    for command in ["bench ycsb", "check ycsb"] {
        assert_refused(
            &format!("{command} --protocol tictoc,mvcc --opaque off"),
            "--opaque has no effect under tictoc, mvcc; it is for occ, 2pl-no-wait,",
        );
    }
    assert_refused("check --file history.jsonl --opaque on", "cannot be used with");
    assert_refused(
        "check --protocol occ --opaque on,off --history history.jsonl",
        "a file holds one history: name one --protocol, and one value of --opaque",
    );
    assert_refused(
        "bench ycsb --ack durable",
        "the following required arguments were not provided:\n  --durable <DIR>",
    );
    assert_refused("bench ycsb --keep", "--durable <DIR>");
    assert_refused(
        "bench ycsb --durable x --ack soon",
        "[possible values: memory, written, durable]",
    );
    assert_refused(
        "bench ycsb --durable Cargo.toml",
        "Cargo.toml cannot be used: Not a directory (os error 20); name an empty directory",
    );
    assert_refused(
        "bench tpcc --like dbx1000 --mix full",
        "the mix must be two, even or new-order",
    );
    assert_refused(
        "bench tpcc --like dbx1000 --order-ids once",
        "the numbers of orders the district's",
    );
    assert_refused("bench smallbank --theta 0.5 --hotspot 10", "cannot be used with");
    assert_refused("bench smallbank --hottest", "smallbank has no hottest row with these knobs");
    assert_refused("bench ycsb --mode a,c --hottest", "ycsb-c has no hottest row with these knobs");
}

#[test]
fn an_unwritable_output_file_is_refused_before_the_run() {
    assert_refused(
        "bench ycsb --json /no/such/folder/results.json",
        "cannot write to /no/such/folder/results.json",
    );
    assert_refused(
        "reproduce delivery --report /no/such/folder/page.html",
        "cannot write to /no/such/folder/page.html",
    );
}

#[test]
fn refused_arguments_leave_no_file_behind() {
    let path = file("refused.json");
    assert_refused(
        &format!("bench ycsb --theta 3 --json {}", path.display()),
        "from 0 (uniform) to 2",
    );
    assert!(!path.exists());
}

#[test]
fn errors_of_knobs_name_the_help_of_the_subcommand() {
    assert_refused(
        "bench tpcc --warehouses 0",
        "For more information, try 'candide bench tpcc --help'.",
    );
    assert_refused(
        "bench ycsb --theta 3",
        "For more information, try 'candide bench ycsb --help'.",
    );
    assert_refused("check lists", "For more information, try 'candide check --help'.");
}

// Elsewhere nothing tells how much is free.
#[cfg(target_os = "linux")]
#[test]
fn tables_and_inputs_larger_than_free_memory_are_refused() {
    // 13 TB.
    let words = "of memory with these options, and";
    assert_refused("bench tpcc --warehouses 65535", words);
    assert_refused(
        "bench tpcc --warehouses 65535",
        "ask for fewer warehouses, or add --force to go on all the same",
    );
    assert_refused("bench ycsb --rows 4294967295", "ask for fewer rows");
    assert_refused(
        "bench ycsb --transactions 100000000 --threads 1024",
        "ask for fewer --transactions or --threads",
    );
    assert_refused("bench rubis --items 4294967295", "ask for fewer items");
    assert_refused("bench wikipedia --pages 4294967295", "ask for fewer pages");
}
