//! The choices that the programs have in common.

use std::str::FromStr;

use serde::Serialize;

/// The way in which a program's transactions change rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Transactions read what they change, and write it back.
    Eager,
    /// Transactions leave changes to the commit wherever they do not need the old values.
    Deferred,
}

impl FromStr for Form {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "eager" => Ok(Form::Eager),
            "deferred" => Ok(Form::Deferred),
            _ => Err("expected eager or deferred"),
        }
    }
}

/// The published configurations. `Drp` and `DrpHi` are those of the paper on deferred
/// runtime pipelining (MU19 in `docs/references.md`); the others are STAMP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Low contention.
    Low,
    /// High contention.
    High,
    /// Low contention, at the size for simulators.
    LowSim,
    /// High contention, at the size for simulators.
    HighSim,
    /// The study's configuration.
    Drp,
    /// The study's configuration with high contention.
    DrpHi,
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "low" => Ok(Mode::Low),
            "high" => Ok(Mode::High),
            "low-sim" => Ok(Mode::LowSim),
            "high-sim" => Ok(Mode::HighSim),
            "drp" => Ok(Mode::Drp),
            "drp-hi" => Ok(Mode::DrpHi),
            _ => Err("expected low, high, low-sim, high-sim, drp or drp-hi"),
        }
    }
}

/// The published configurations of programs that STAMP has in two sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The size for simulators.
    Sim,
    /// The size for machines.
    Real,
}

impl FromStr for Scale {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "sim" => Ok(Scale::Sim),
            "real" => Ok(Scale::Real),
            _ => Err("expected sim or real"),
        }
    }
}
