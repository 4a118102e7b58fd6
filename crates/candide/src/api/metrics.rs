//! Counts and gauges for the facade `metrics`, under the feature of that name.
//!
//! The engine's counts are words of the sessions, which a facade would make shared: a recorder's
//! counter is one atomic word that all threads increment. So transactions know nothing of the
//! facade. A snapshot of the counts is given to the recorder when the program asks.

#![forbid(unsafe_code)]

use super::database::{Database, MemoryUse};
use super::health::{Health, TableUse};
use super::open::Durability;
use crate::engine::Protocol;
#[cfg(feature = "histograms")]
use crate::stats::{Latency, NamedAborts};
use crate::stats::{LockStats, NamedStats, Stats};
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use std::sync::PoisonError;

impl<P: Protocol> Database<P> {
    /// Gives the present counts and gauges of the database to the recorder of the crate `metrics`:
    /// the thread's local one, or else the global one; without a recorder, to none. Call this from
    /// the loop of the exporter, before it renders, or every few seconds. With the cargo feature
    /// `metrics`.
    ///
    /// `database` becomes the label `database` of each metric, so that several databases can be
    /// told apart; if it is empty, there is no such label, and one database may be published. The
    /// metrics of a table that has been dropped keep their last values.
    ///
    /// Transactions neither know of the recorder nor pay for it: the counts are those of
    /// [`Database::stats`], which sessions keep for themselves. This call reads them, and takes the
    /// locks of [`Database::health`]. So a counter is as old as the last call, and a recorder hears
    /// of `absolute` values only. The latencies of transactions, which need the feature
    /// `histograms` too, are quantiles since the database was made.
    ///
    /// Counters end in `_total`; times are in seconds.
    ///
    #[doc = include_str!("metrics.txt")]
    ///
    /// ```
    /// use candide::{Database, RunOptions};
    /// use metrics_exporter_prometheus::PrometheusBuilder;
    ///
    /// let recorder = PrometheusBuilder::new().build_recorder();
    /// let exporter = recorder.handle();
    /// metrics::set_global_recorder(recorder).expect("the only one");
    ///
    /// let db = Database::new();
    /// db.with(RunOptions::new().named("look")).run(|_| Ok(()))?;
    /// db.publish_metrics("bank");
    /// let page = exporter.render();
    /// assert!(page.contains("candide_commits_total{database=\"bank\"} 1\n"));
    /// # Ok::<(), candide::Error>(())
    /// ```
    pub fn publish_metrics(&self, database: &str) {
        let tables = self.tables();
        let rows: Vec<u64> = {
            let cores = self.inner.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
            let in_use = cores.iter().filter(|core| !core.owner.is_none());
            in_use.map(|core| core.linked.sum()).collect()
        };
        let report = Report {
            stats: self.stats(),
            named: self.named_stats(),
            health: self.health(),
            memory: self.memory(),
            tables: tables.into_iter().zip(rows).collect(),
            durability: self.durability(),
            log_has_failed: self.log_failure().is_some(),
            #[cfg(feature = "histograms")]
            latencies: self.latencies(),
            #[cfg(feature = "histograms")]
            aborts: self.named_aborts(),
        };
        metrics::with_recorder(|recorder| {
            let label = (!database.is_empty()).then(|| Label::new("database", database.to_owned()));
            Publisher { recorder, label }.publish(&report);
        });
    }
}

/// The values that are published at one time.
struct Report {
    stats: Stats,
    named: Vec<NamedStats>,
    health: Health,
    memory: MemoryUse,
    /// The use of memory by each table, and the number of its rows.
    tables: Vec<(TableUse, u64)>,
    durability: Option<Durability>,
    log_has_failed: bool,
    #[cfg(feature = "histograms")]
    latencies: Vec<Latency>,
    #[cfg(feature = "histograms")]
    aborts: Vec<NamedAborts>,
}

/// The kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// The description of a metric: its name, its kind, its unit, its labels, and what it counts.
type Description = (&'static str, Kind, Unit, &'static str, &'static str);

/// All metrics. The documentation has the same list.
const DESCRIPTIONS: &[Description] = {
    use Kind::{Counter, Gauge};
    use Unit::{Bytes, Count, Seconds};
    &[
        ("candide_commits_total", Counter, Count, "", "transactions that committed"),
        (
            "candide_errors_total",
            Counter,
            Count,
            "",
            "transactions that ended in an error or a panic of their closure",
        ),
        ("candide_retries_total", Counter, Count, "", "attempts after a conflict"),
        (
            "candide_aborts_total",
            Counter,
            Count,
            "reason",
            "attempts that ended in a conflict, an outcome or a refusal",
        ),
        (
            "candide_read_set_total",
            Counter,
            Count,
            "",
            "entries in the read sets of committed transactions",
        ),
        (
            "candide_write_set_total",
            Counter,
            Count,
            "",
            "entries in the write sets of committed transactions",
        ),
        ("candide_locks_total", Counter, Count, "event", "locks on rows by the policies of tables"),
        (
            "candide_epochs_used_up_total",
            Counter,
            Count,
            "",
            "epochs of the process that ended because their commit numbers were used up",
        ),
        (
            "candide_epochs_asked_total",
            Counter,
            Count,
            "",
            "epochs of the process that ended because an attempt had read too many young rows",
        ),
        (
            "candide_epoch_lag_seconds",
            Gauge,
            Seconds,
            "",
            "time by which the reclamation bound is behind the epoch",
        ),
        (
            "candide_oldest_transaction_seconds",
            Gauge,
            Seconds,
            "",
            "age of the oldest running attempt, 0 if none runs",
        ),
        (
            "candide_oldest_snapshot_seconds",
            Gauge,
            Seconds,
            "",
            "age of the oldest open snapshot, 0 if none is open",
        ),
        ("candide_sessions", Gauge, Count, "", "sessions, those that threads keep included"),
        ("candide_garbage", Gauge, Count, "", "records and blocks that wait to be freed"),
        (
            "candide_memory_reserved_bytes",
            Gauge,
            Bytes,
            "",
            "memory that tables and indexes have taken",
        ),
        (
            "candide_memory_ready_bytes",
            Gauge,
            Bytes,
            "",
            "memory that they can take without a wait",
        ),
        (
            "candide_memory_fresh_bytes_total",
            Counter,
            Bytes,
            "",
            "memory that was not ready when it was taken",
        ),
        (
            "candide_table_rows",
            Gauge,
            Count,
            "table",
            "keys in the index of a table, about as many as rows",
        ),
        (
            "candide_table_bytes",
            Gauge,
            Bytes,
            "table, part",
            "memory of a table: `records`, `versions`, `index`",
        ),
        (
            "candide_log_recorded_bytes_total",
            Counter,
            Bytes,
            "",
            "commit records since the database was opened",
        ),
        ("candide_log_bytes", Gauge, Bytes, "", "log that a recovery would read"),
        ("candide_log_full", Gauge, Count, "", "1 if the disk has no room for the log, else 0"),
        ("candide_log_failed", Gauge, Count, "", "1 if the log has failed, else 0"),
        (
            "candide_checkpoint_failed",
            Gauge,
            Count,
            "",
            "1 if the last checkpoint that began by itself has failed, else 0",
        ),
        (
            "candide_remote_checkpoint_failed",
            Gauge,
            Count,
            "",
            "1 if the copy of the log elsewhere has not got the last checkpoint, else 0",
        ),
        (
            "candide_transactions_total",
            Counter,
            Count,
            "transaction, outcome",
            "transactions with a name: `commit`, `error`",
        ),
        (
            "candide_transaction_retries_total",
            Counter,
            Count,
            "transaction",
            "their attempts after a conflict",
        ),
        (
            "candide_transaction_aborts_total",
            Counter,
            Count,
            "transaction, table, reason",
            "their aborts (feature `histograms`)",
        ),
        (
            "candide_transaction_seconds",
            Gauge,
            Seconds,
            "transaction, quantile",
            "their latencies (feature `histograms`): `0.5`, `0.9`, `0.99`, `1`",
        ),
    ]
};

static METADATA: Metadata<'static> = Metadata::new("candide", Level::INFO, Some("candide"));

/// A recorder, and the label of the database.
struct Publisher<'a> {
    recorder: &'a dyn Recorder,
    label: Option<Label>,
}

impl Publisher<'_> {
    fn key(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let own = labels.iter().map(|&(label, value)| Label::new(label, value.to_owned()));
        Key::from_parts(name, self.label.iter().cloned().chain(own).collect::<Vec<_>>())
    }

    fn count(&self, name: &'static str, labels: &[(&'static str, &str)], value: u64) {
        self.recorder.register_counter(&self.key(name, labels), &METADATA).absolute(value);
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        self.recorder.register_gauge(&self.key(name, labels), &METADATA).set(value);
    }

    fn publish(&self, report: &Report) {
        for &(name, kind, unit, _, text) in DESCRIPTIONS {
            let (name, unit) = (KeyName::from_const_str(name), Some(unit));
            match kind {
                Kind::Counter => self.recorder.describe_counter(name, unit, text.into()),
                Kind::Gauge => self.recorder.describe_gauge(name, unit, text.into()),
            }
        }
        self.stats(&report.stats);
        self.health(&report.health, &report.memory);
        self.tables(&report.tables);
        if let Some(durability) = &report.durability {
            self.durability(durability, report.log_has_failed);
        }
        self.named(&report.named);
        #[cfg(feature = "histograms")]
        self.observed(&report.latencies, &report.aborts);
    }

    fn stats(&self, stats: &Stats) {
        self.count("candide_commits_total", &[], stats.commits);
        self.count("candide_errors_total", &[], stats.user_errors);
        self.count("candide_retries_total", &[], stats.retries);
        for (reason, count) in stats.abort_reasons() {
            self.count("candide_aborts_total", &[("reason", reason)], count);
        }
        self.count("candide_read_set_total", &[], stats.read_set);
        self.count("candide_write_set_total", &[], stats.write_set);
        let LockStats {
            taken,
            waited,
            died,
            killed,
            forgone,
            retrospective,
            restored,
            heated,
            cooled,
            taken_over,
            gated,
            nullified,
            wild_reads,
            wild_keys,
            wild_others,
            unchained_holds,
            unchained_late,
            unchained_others,
        } = stats.locks;
        for (event, count) in [
            ("taken", taken),
            ("waited", waited),
            ("died", died),
            ("killed", killed),
            ("forgone", forgone),
            ("retrospective", retrospective),
            ("restored", restored),
            ("heated", heated),
            ("cooled", cooled),
            ("taken_over", taken_over),
            ("gated", gated),
            ("nullified", nullified),
            ("wild_reads", wild_reads),
            ("wild_keys", wild_keys),
            ("wild_others", wild_others),
            ("unchained_holds", unchained_holds),
            ("unchained_late", unchained_late),
            ("unchained_others", unchained_others),
        ] {
            self.count("candide_locks_total", &[("event", event)], count);
        }
    }

    fn health(&self, health: &Health, memory: &MemoryUse) {
        self.count("candide_epochs_used_up_total", &[], health.epochs_used_up);
        self.count("candide_epochs_asked_total", &[], health.epochs_asked);
        self.gauge("candide_epoch_lag_seconds", &[], seconds(health.epoch_lag_ms));
        let pin_ms = health.oldest_pin.map_or(0, |pin| pin.age_ms);
        self.gauge("candide_oldest_transaction_seconds", &[], seconds(pin_ms));
        let snapshot_ms = health.oldest_snapshot.map_or(0, |snapshot| snapshot.age_ms);
        self.gauge("candide_oldest_snapshot_seconds", &[], seconds(snapshot_ms));
        self.gauge("candide_sessions", &[], health.sessions as f64);
        self.gauge("candide_garbage", &[], health.garbage as f64);
        self.gauge("candide_memory_reserved_bytes", &[], memory.reserved_bytes as f64);
        self.gauge("candide_memory_ready_bytes", &[], memory.ready_bytes as f64);
        self.count("candide_memory_fresh_bytes_total", &[], memory.fresh_bytes as u64);
    }

    fn tables(&self, tables: &[(TableUse, u64)]) {
        for (TableUse { name, record_bytes, version_bytes, index_bytes }, rows) in tables {
            self.gauge("candide_table_rows", &[("table", name)], *rows as f64);
            for (part, bytes) in
                [("records", record_bytes), ("versions", version_bytes), ("index", index_bytes)]
            {
                let labels = [("table", &**name), ("part", part)];
                self.gauge("candide_table_bytes", &labels, *bytes as f64);
            }
        }
    }

    fn durability(&self, durability: &Durability, log_has_failed: bool) {
        self.count("candide_log_recorded_bytes_total", &[], durability.recorded_bytes);
        self.gauge("candide_log_bytes", &[], durability.log_bytes as f64);
        let flag = |is_so: bool| f64::from(u8::from(is_so));
        self.gauge("candide_log_full", &[], flag(durability.is_full));
        self.gauge("candide_log_failed", &[], flag(log_has_failed));
        let checkpoint_has_failed = durability.checkpoint_failure.is_some();
        self.gauge("candide_checkpoint_failed", &[], flag(checkpoint_has_failed));
        let remote_has_failed = durability.remote_checkpoint_failure.is_some();
        self.gauge("candide_remote_checkpoint_failed", &[], flag(remote_has_failed));
    }

    fn named(&self, named: &[NamedStats]) {
        for &NamedStats { name, commits, retries, errors } in named {
            for (outcome, count) in [("commit", commits), ("error", errors)] {
                let labels = [("transaction", name), ("outcome", outcome)];
                self.count("candide_transactions_total", &labels, count);
            }
            let labels = [("transaction", name)];
            self.count("candide_transaction_retries_total", &labels, retries);
        }
    }

    #[cfg(feature = "histograms")]
    fn observed(&self, latencies: &[Latency], aborts: &[NamedAborts]) {
        for latency in latencies {
            for (quantile, time) in [
                ("0.5", latency.p50()),
                ("0.9", latency.p90()),
                ("0.99", latency.p99()),
                ("1", latency.max()),
            ] {
                let labels = [("transaction", latency.name()), ("quantile", quantile)];
                self.gauge("candide_transaction_seconds", &labels, time.as_secs_f64());
            }
        }
        for NamedAborts { name, table, reason, count } in aborts {
            let table = table.as_deref().unwrap_or_default();
            let labels = [("transaction", *name), ("table", table), ("reason", reason.name())];
            self.count("candide_transaction_aborts_total", &labels, *count);
        }
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_the_metrics_as_they_are_described() {
        let rows = DESCRIPTIONS.iter().map(|(name, kind, _, labels, text)| {
            let kind = if *kind == Kind::Counter { "counter" } else { "gauge" };
            let labels: Vec<String> =
                labels.split_terminator(", ").map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {kind} | {} | {text} |\n", labels.join(", "))
        });
        let table: String = rows.collect();
        let expected = format!("| metric | kind | labels | what |\n|---|---|---|---|\n{table}");
        assert_eq!(include_str!("metrics.txt"), expected, "metrics.txt should be:\n{expected}");
    }

    #[test]
    fn the_kind_and_the_unit_of_a_metric_are_in_its_name() {
        for &(name, kind, unit, ..) in DESCRIPTIONS {
            let stem = name.strip_suffix("_total");
            assert_eq!(stem.is_some(), kind == Kind::Counter, "{name}");
            let stem = stem.unwrap_or(name);
            assert_eq!(stem.ends_with("_bytes"), unit == Unit::Bytes, "{name}");
            assert_eq!(stem.ends_with("_seconds"), unit == Unit::Seconds, "{name}");
        }
    }
}
