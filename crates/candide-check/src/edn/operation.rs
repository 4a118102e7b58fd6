//! The operations within a transaction: `[:append 3 1]`, `[:w 3 1]`, `[:r 3 nil]`.

use super::form::Form;
use crate::black::{ListOp, RegisterOp};
use std::fmt::Write;

pub trait Micro {
    /// Parses `[name key value]`. `done` is whether the transaction committed. Only then does the
    /// result of a read count.
    fn parse(name: &Form, key: u64, value: &Form, done: bool) -> Result<Self, String>
    where
        Self: Sized;

    /// Prints the operation as [`parse`](Self::parse) reads it.
    fn print(&self, done: bool, out: &mut String);

    /// Returns whether this operation equals `asked`, except that this one may have the result of a
    /// read.
    fn answers(&self, asked: &Self) -> bool;
}

impl Micro for ListOp {
    fn parse(name: &Form, key: u64, value: &Form, done: bool) -> Result<ListOp, String> {
        match (called(name), value) {
            (Some("append"), value) => Ok(ListOp::Append { key, value: value.number("a value")? }),
            (Some("r"), value) if done => match value {
                Form::Nil => Ok(ListOp::Read { key, values: Vec::new() }),
                Form::Sequence(values) => {
                    let values = values.iter().map(|value| value.number("a value in a list"));
                    Ok(ListOp::Read { key, values: values.collect::<Result<_, _>>()? })
                }
                other => Err(format!(
                    "the list {key} was read as {}, should be a vector or nil",
                    other.shown()
                )),
            },
            (Some("r"), _) => Ok(ListOp::Read { key, values: Vec::new() }),
            _ => {
                Err(format!("an operation on a list is {}, should be :append or :r", name.shown()))
            }
        }
    }

    fn print(&self, done: bool, out: &mut String) {
        match self {
            ListOp::Append { key, value } => write!(out, "[:append {key} {value}]"),
            ListOp::Read { key, values } if done => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                write!(out, "[:r {key} [{}]]", values.join(" "))
            }
            ListOp::Read { key, .. } => write!(out, "[:r {key} nil]"),
        }
        .expect("a string takes all");
    }

    fn answers(&self, asked: &ListOp) -> bool {
        match (self, asked) {
            (ListOp::Read { key, .. }, ListOp::Read { key: asked, .. }) => key == asked,
            _ => self == asked,
        }
    }
}

impl Micro for RegisterOp {
    fn parse(name: &Form, key: u64, value: &Form, done: bool) -> Result<RegisterOp, String> {
        match (called(name), value) {
            (Some("w"), value) => Ok(RegisterOp::Write { key, value: value.number("a value")? }),
            (Some("r"), value) if done && *value != Form::Nil => {
                Ok(RegisterOp::Read { key, value: Some(value.number("a value")?) })
            }
            (Some("r"), _) => Ok(RegisterOp::Read { key, value: None }),
            _ => Err(format!("an operation on a register is {}, should be :w or :r", name.shown())),
        }
    }

    fn print(&self, done: bool, out: &mut String) {
        match self {
            RegisterOp::Write { key, value } => write!(out, "[:w {key} {value}]"),
            RegisterOp::Read { key, value: Some(value) } if done => {
                write!(out, "[:r {key} {value}]")
            }
            RegisterOp::Read { key, .. } => write!(out, "[:r {key} nil]"),
        }
        .expect("a string takes all");
    }

    fn answers(&self, asked: &RegisterOp) -> bool {
        match (self, asked) {
            (RegisterOp::Read { key, .. }, RegisterOp::Read { key: asked, .. }) => key == asked,
            _ => self == asked,
        }
    }
}

fn called(name: &Form) -> Option<&str> {
    match name {
        Form::Keyword(name) => Some(name),
        _ => None,
    }
}
