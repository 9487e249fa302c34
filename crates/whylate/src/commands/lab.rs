//! `whylate lab`.

use std::num::NonZeroU32;

use anyhow::{Context, Result};
use whylate_host::journal::Journal;
use whylate_model::lab::{BedKind, LAB_VERSION, LabStatus};
use whylate_net::lab::Tap;
use whylate_net::{NetError, lab};

use super::Exit;
use crate::cli::{Action, Findings, Kind, Lab};
use crate::out::{self, say};

pub(super) fn run(options: &Lab) -> Result<Exit> {
    match &options.action {
        Action::Up { kind, name, queues, tap } => {
            let tap = if *tap { Tap::Between } else { Tap::None };
            up(*kind, name, *queues, tap)
        }
        Action::Down { name } => down(name),
        Action::Status { name, format, full } => status(name.as_deref(), *format, *full),
    }
}

fn up(kind: Kind, name: &str, queues: NonZeroU32, tap: Tap) -> Result<Exit> {
    mend();
    let kind = match kind {
        Kind::Direct => BedKind::Direct,
        Kind::Bridge => BedKind::Bridge,
        Kind::Ovs => BedKind::Ovs,
        Kind::Open => BedKind::Open,
    };
    let bed = lab::up(&Journal::open()?, name, kind, queues, tap)?;
    let all = LabStatus { format_version: LAB_VERSION, beds: vec![bed] };
    out::print(whylate_report::first_of_lab(&all, super::style()))?;
    Ok(Exit::Done)
}

fn down(name: &str) -> Result<Exit> {
    mend();
    for left in lab::down(name)? {
        say!(
            "process {} ({}) is still inside: its namespace has no name any more, and goes with it",
            left.pid,
            whylate_model::Printable(&left.name),
        );
    }
    out::print(format_args!("The bed {name} is down.\n"))?;
    Ok(Exit::Done)
}

fn status(name: Option<&str>, format: Findings, full: bool) -> Result<Exit> {
    let all = match name {
        None => lab::of_all(),
        Some(name) => {
            let bed = lab::of(name).ok_or_else(|| NetError::NoBed(name.to_owned()))?;
            LabStatus { format_version: LAB_VERSION, beds: vec![bed] }
        }
    };
    match format {
        Findings::Text if full => out::print(whylate_report::full_of_lab(&all, super::style()))?,
        Findings::Text => out::print(whylate_report::first_of_lab(&all, super::style()))?,
        Findings::Json => {
            let text =
                serde_json::to_string_pretty(&all).context("cannot write the beds as JSON")?;
            out::print(text + "\n")?;
        }
    }
    Ok(Exit::Done)
}

fn mend() {
    for line in whylate_record::mend_what_dead_runs_left() {
        say!("{line}");
    }
}
