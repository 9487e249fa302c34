//! `whylate reflect-stdin`: the other end of the check-up's messages.

use anyhow::Result;
use whylate_model::CpuId;
use whylate_net::{Reflector, StdinReflector, reflect_stdin};

use super::Exit;
use crate::cli::ReflectStdin;

pub(super) fn run(options: &ReflectStdin) -> Result<Exit> {
    let settings = StdinReflector {
        cpu: Some(CpuId(options.cpu)),
        fifo: None,
        wait: options.wait,
        reflector: Reflector::default(),
    };
    reflect_stdin(settings)?;
    Ok(Exit::Done)
}
