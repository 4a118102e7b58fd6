use super::*;
use candide_log::TableSchema;
use candide_log::schema::TableState;

/// The number of scripts in which each deliberate defect is found.
const SEEDS: u64 = 20;

fn plan() -> Plan {
    Plan::new(TableSchema {
        number: 0,
        name: String::new(),
        row_type: "tests::Row".to_string(),
        schema: 7,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("cold".to_string(), 1), ("hot".to_string(), 3)],
        ordered: true,
        splitting: None,
        policy: None,
        indexes: Vec::new(),
        fields: Vec::new(),
        state: TableState::InUse,
    })
}

#[test]
fn a_thousand_drawn_crash_states_recover_correctly() {
    let mut counts = Counts::default();
    for seed in 0.. {
        counts += examine(seed, &plan(), None).unwrap_or_else(|finding| panic!("{finding}"));
        if counts.states() > 1000 && counts.kills > 100 && counts.recoveries > 100 {
            break;
        }
    }
    assert!(counts.scripts < 20, "{counts:?}");
}

/// Looks for a finding, and judges the same state again. Without a deliberate defect there is no
/// finding; with a defect the test fails if the finding is found again.
fn look_twice(plan: &Plan) {
    let Some(finding) = (0..SEEDS).find_map(|seed| examine(seed, plan, None).err()) else { return };
    let again = finding.place.map(|place| replay(finding.seed, place, plan, None));
    let is_found_again = again.is_none_or(|again| matches!(again, Err(ReplayError::Found(_))));
    assert!(!is_found_again, "{finding}");
}

#[test]
fn findings_in_recovery_are_reproduced_from_their_places() {
    look_twice(&Plan { recovery_share: 0.05, ..plan() });
}

#[test]
fn findings_of_faults_are_reproduced_from_their_places() {
    look_twice(&Plan { faults_percent: 100, ..plan() });
}

#[test]
fn an_identity_without_a_crash_state_is_refused() {
    let place = "100000:512:nothing".parse().unwrap();
    let refused = replay(1, place, &plan(), None);
    assert!(matches!(refused, Err(ReplayError::NoState { last }) if last > 20), "{refused:?}");
}
