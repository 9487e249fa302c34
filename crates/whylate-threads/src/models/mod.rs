//! The thread models: one file each, and the table of them.

mod action;
mod cpu;
mod cpu_periodic;
mod cpu_scan;
mod cpu_scan_yield;
mod cpu_yield;
mod hand_off;
mod job;
mod lat;
mod lat_abs;
mod periodic;
mod program;
mod program_load;
#[cfg(test)]
mod proofs;

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use crate::error::ThreadsError;
use crate::model::{Model, Setting};

const PERIOD: &str = "period";
const LEAST_PERIOD: Nanos = Nanos(1_000);

/// A model in the table.
pub struct Entry<C> {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it does.
    pub about: &'static str,
    read: Reader<C>,
}

type Reader<C> = fn(&Call, &Setting<'_>) -> Result<Box<dyn Model<C>>, CallError>;

/// Every model, in the order of the paper, the new ones behind.
#[must_use]
pub fn known<C: Counter>() -> Vec<Entry<C>> {
    vec![
        entry::<C, cpu::Cpu>(),
        entry::<C, cpu_scan::CpuScan>(),
        entry::<C, cpu_yield::CpuYield>(),
        entry::<C, cpu_scan_yield::CpuScanYield>(),
        entry::<C, periodic::Periodic>(),
        entry::<C, cpu_periodic::CpuPeriodic>(),
        entry::<C, lat::Lat>(),
        entry::<C, lat_abs::LatAbs>(),
        entry::<C, hand_off::HandOff>(),
    ]
}

/// The model that `call` asks for.
pub fn named<C: Counter>(
    call: &Call,
    setting: &Setting<'_>,
) -> Result<Box<dyn Model<C>>, ThreadsError> {
    let known = known::<C>();
    // Not for anybody to choose: its phases come from a file.
    let unlisted = entry::<C, program::RunProgram>();
    let mut all = known.iter().chain(std::iter::once(&unlisted));
    let Some(entry) = all.find(|entry| call.is(entry.name)) else {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        let known = names.join(", ");
        return Err(ThreadsError::UnknownModel { name: call.name.clone(), known });
    };
    Ok((entry.read)(call, setting)?)
}

/// The period of a call: what is released more often is released by no timer, and a second of it
/// would be more jobs than a run is able to hold.
fn period(call: &Call, at: usize, usage: &'static str) -> Result<Nanos, CallError> {
    let period = call.time(at, PERIOD, usage)?;
    if period < LEAST_PERIOD {
        let reason = format!("{period} is shorter than any timer: the least is {LEAST_PERIOD}");
        return Err(call.refused(PERIOD, reason));
    }
    Ok(period)
}

fn entry<C: Counter, M: Model<C> + 'static>() -> Entry<C> {
    Entry {
        name: M::name(),
        usage: M::usage(),
        about: M::about(),
        read: |call, setting| Ok(Box::new(M::read(call, setting)?)),
    }
}
