//! A macro that turns a generic function into one named test for each protocol.

/// The policies that tests of the short run share, by the names of their tests.
const SHARED: [&str; 12] = [
    "no_wait",
    "blind_die",
    "wait_die",
    "dreadlock",
    "adaptive",
    "swiss",
    "pcc",
    "mocc",
    "hybrid",
    "deferred_2pl",
    "pipelined",
    "mixed",
];

/// Returns whether the short run leaves out the test of a module under a policy.
pub(crate) fn is_left_out(module: &str, policy: &str) -> bool {
    let Some(place) = SHARED.iter().position(|name| *name == policy) else { return false };
    let sum: usize = module.bytes().map(usize::from).sum();
    std::env::var_os("CANDIDE_FULL").is_none() && !(place + sum).is_multiple_of(SHARED.len())
}

/// Returns whether a test is compiled: whether its name contains one of the words, separated by
/// commas, in the environment variable `CANDIDE_TESTS` of the compiler. Without that variable all
/// tests are compiled. Most of the time of a build goes into functions that only one test calls.
/// Behind a branch on this constant, the compiler leaves them out.
pub(crate) const fn is_compiled(test: &str) -> bool {
    let Some(words) = option_env!("CANDIDE_TESTS") else { return true };
    let (test, words) = (test.as_bytes(), words.as_bytes());
    let mut from = 0;
    while from <= words.len() {
        let mut to = from;
        while to < words.len() && words[to] != b',' {
            to += 1;
        }
        if to > from && contains(test, words, from, to) {
            return true;
        }
        from = to + 1;
    }
    false
}

/// Returns whether `text` contains the part of `words` from `from` to `to`.
const fn contains(text: &[u8], words: &[u8], from: usize, to: usize) -> bool {
    let mut start = 0;
    while start + (to - from) <= text.len() {
        let mut same = 0;
        while same < to - from && text[start + same] == words[from + same] {
            same += 1;
        }
        if same == to - from {
            return true;
        }
        start += 1;
    }
    false
}

/// Makes a module of tests that run a function under each protocol, one test by protocol:
/// `protocol_tests!(overlapping: no_skew)` makes `no_skew::occ`, `no_skew::tictoc` and so on, from
/// a function `no_skew<P: Protocol>()`. The function may have parameters. Then the call is given
/// behind the name of the tests: `protocol_tests!(all: no_skew_in_trees = no_skew(true))`.
///
/// The word before the colon selects the protocols. `all` selects all protocols. `concurrent`
/// selects those that allow several sessions, `overlapping` those whose transactions can overlap,
/// and `versioned` those that keep versions. `erased` selects all protocols, called through the
/// table of functions of `Erased`. `concurrent` and `overlapping` also run with timestamps from the
/// clock; `by_the_clock` runs only with these. Unless `CANDIDE_FULL` is set, a test runs under one
/// of the twelve locking policies of `Occ`, chosen by the test's name. A test that is not compiled
/// ([`is_compiled`]) fails.
macro_rules! protocol_tests {
    ($(#[$attribute:meta])* $protocols:ident: $test:ident) => {
        protocol_tests!($(#[$attribute])* $protocols: $test = $test());
    };
    ($(#[$attribute:meta])* $protocols:ident: $test:ident = $body:ident($($given:expr),*)) => {
        mod $test {
            $crate::for_each_protocol!(
                tests_of_protocols,
                $protocols ($(#[$attribute])*) $body($($given),*);
            );
            protocol_test!(
                $protocols clock ($(#[$attribute])*) $body($($given),*);
                mvto_by_the_clock
            );
        }
    };
}

/// Makes the tests of the protocols in a list.
macro_rules! tests_of_protocols {
    ($protocols:ident $attributes:tt $body:ident $given:tt;
     $($protocol:ty: $($kind:ident $name:ident = $policy:expr),+;)+) => {
        $($(protocol_test!(
            $protocols $kind $attributes $body $given;
            $name: $protocol = $policy
        );)+)+
    };
}

/// Panics if a test is not compiled.
macro_rules! demand_compiled {
    ($name:ident) => {
        if !const {
            $crate::protocol_tests::is_compiled(concat!(module_path!(), "::", stringify!($name)))
        } {
            panic!("this test is not compiled, since CANDIDE_TESTS does not name it");
        }
    };
}

/// Makes one test, if its protocol is selected.
macro_rules! protocol_test {
    (concurrent one_session $($rest:tt)+) => {};
    (overlapping one_session $($rest:tt)+) => {};
    (overlapping exclusive $($rest:tt)+) => {};
    (all clock $($rest:tt)+) => {};
    (erased clock $($rest:tt)+) => {};
    (versioned clock $($rest:tt)+) => {};
    ($protocols:ident clock ($($attribute:tt)*) $body:ident ($($given:expr),*); $name:ident) => {
        #[test]
        $($attribute)*
        fn $name() {
            demand_compiled!($name);
            let test: fn() = || super::$body::<$crate::Mvto>($($given),*);
            $crate::tests::by_the_clock(test);
        }
    };
    (by_the_clock $($rest:tt)+) => {};
    (versioned overlapping $($rest:tt)+) => {};
    (versioned exclusive $($rest:tt)+) => {};
    (versioned one_session $($rest:tt)+) => {};
    (erased $kind:ident ($($attribute:tt)*) $body:ident ($($given:expr),*);
     $name:ident: $protocol:ty = $policy:expr) => {
        #[test]
        $($attribute)*
        fn $name() {
            demand_compiled!($name);
            if $crate::protocol_tests::is_left_out(module_path!(), stringify!($name)) {
                return;
            }
            $crate::tests::under_erased::<$protocol, _>(
                $policy,
                || super::$body::<$crate::any::Erased>($($given),*),
            );
        }
    };
    ($protocols:ident $kind:ident ($($attribute:tt)*) $body:ident ($($given:expr),*);
     $name:ident: $protocol:ty = $policy:expr) => {
        #[test]
        $($attribute)*
        fn $name() {
            demand_compiled!($name);
            if $crate::protocol_tests::is_left_out(module_path!(), stringify!($name)) {
                return;
            }
            $crate::tests::under::<$protocol, _>(
                $policy,
                || super::$body::<$protocol>($($given),*),
            );
        }
    };
}
