//! `candide reach drill`: a primary and two standbys, processes of their own, which are killed,
//! paused and promoted, and whose place fails, while the primary runs transactions and says which
//! the place has acknowledged.

// Layers, lowest first: tables, faults, lines, ledger, node, process, play.
mod faults;
mod ledger;
mod lines;
mod node;
mod play;
mod process;
mod tables;

use std::sync::Arc;

use candide_harness::check::Finding;
use candide_harness::results::grouped;
use candide_harness::{Failure, interrupt, output};
use candide_reach::tools::{self, Verified};
use candide_reach::{Directory, Patience, Place};

use super::paths;
use crate::cli::DrillArgs;
use crate::ending::Ending;
use faults::Present;
use node::Node;
use play::Play;
use process::Setting;

/// Runs the drill, or is one of its processes.
pub(super) fn run(args: DrillArgs) -> Result<Ending, Failure> {
    if let Some(dir) = args.node {
        node::run(&Node {
            place: args.place,
            dir,
            leads: args.leads,
            promote_after: args.promote_after,
            workers: args.threads,
            seed: args.seed.unwrap_or(0),
            present: Present::default(),
        })?;
        return Ok(Ending { finding: Finding::Good, early: false });
    }
    if cfg!(not(unix)) {
        let what = "the drill pauses processes by the signals of Unix; run it there";
        return Err(Failure::Usage(what.to_string()));
    }
    paths::check_new(&args.place)?;
    let (dir, is_own) = match &args.dir {
        Some(dir) => (dir.clone(), false),
        None => {
            let name = format!("candide-drill-{}", std::process::id());
            (std::env::temp_dir().join(name), true)
        }
    };
    paths::check_apart(&args.place, &dir)?;
    if dir.exists() {
        let shown = dir.display();
        return Err(Failure::Usage(format!(
            "{shown} is there already; name a directory that does not exist"
        )));
    }
    let place = Directory::new(&args.place);
    let place: Arc<dyn Place> =
        Arc::new(place.map_err(|error| paths::failed(&args.place, &error.into()))?);
    std::fs::create_dir_all(&dir)?;
    interrupt::listen()?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let seconds = args.seconds.as_secs_f64();
    output::print(|out| writeln!(out, "seed {seed}, {seconds} s"))?;
    let setting = Setting {
        place: args.place.clone(),
        promote_after: args.promote_after,
        workers: args.threads,
    };
    let mut play = Play::new(setting, dir.clone(), Arc::clone(&place), seed);
    let played = play.run(args.seconds, args.pause);
    let (lost, mut wrong) = match &played {
        Ok(end) => play.ledger.lost(end),
        Err(what) => (0, vec![what.clone()]),
    };
    if played.is_ok() {
        match tools::verify(place, Patience::default()) {
            Ok(Verified { faults, .. }) => {
                wrong.extend(faults.iter().map(|(name, what)| format!("{name}: {what}")));
            }
            Err(error) => wrong.push(error.to_string()),
        }
    }
    let (ledger, counts) = (&play.ledger, &play.counts);
    output::print(|out| {
        writeln!(
            out,
            "{} kills, {} pauses, {} faults of the place, {} promotions, {} generations, {} reads \
             acknowledged",
            counts.kills,
            counts.pauses,
            counts.faults,
            counts.promotions,
            counts.generations,
            ledger.reads
        )?;
        if played.is_ok() {
            writeln!(
                out,
                "lost {lost} acknowledged of {}, longest gap {:.2} s",
                grouped(ledger.acknowledged as f64),
                ledger.gap.as_secs_f64()
            )?;
        }
        Ok(())
    })?;
    drop(play);
    if wrong.is_empty() {
        if is_own {
            std::fs::remove_dir_all(&dir)?;
        }
        return Ok(Ending { finding: Finding::Good, early: interrupt::is_pressed() });
    }
    for what in wrong {
        output::say(&format!("FAILED: {what}"));
    }
    output::say(&format!(
        "the databases are in {}, the place is {}, the seed was {seed}",
        dir.display(),
        args.place.display()
    ));
    Ok(Ending { finding: Finding::Bad, early: false })
}
