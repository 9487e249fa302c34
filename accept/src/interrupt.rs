//! Who interrupts the driver ends the round that is being taken: SIGHUP, SIGINT and SIGTERM.
//!
//! They are listened to also where whoever started it left them ignored, as a shell does behind `&`.

use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::process::News;

/// What the program ends with then, as a shell has it.
pub(crate) const STATUS: u8 = 130;

/// A round was interrupted, and is not set down.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// What has been asked of this process, and who is to be told of it.
static STATE: Mutex<State> = Mutex::new(State { asked: false, waits: None });

struct State {
    asked: bool,
    waits: Option<Sender<News>>,
}

/// From here on signals are taken.
pub(crate) fn listen() -> Result<()> {
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.context("signals cannot be taken")?;
    std::thread::spawn(move || {
        for _ in &mut signals {
            change(|state| {
                state.asked = true;
                if let Some(waits) = state.waits.take() {
                    let _ = waits.send(News::Interrupted);
                }
            });
        }
    });
    Ok(())
}

/// Tells of it by this from now on, at once where it was asked before.
pub(crate) fn tell(waits: Sender<News>) {
    change(|state| {
        if state.asked {
            let _ = waits.send(News::Interrupted);
        } else {
            state.waits = Some(waits);
        }
    });
}

fn change(by: impl FnOnce(&mut State)) {
    by(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner));
}
