//! Interrupts from one CPU to others, by taking rights from a page that both may use.
//!
//! They reach a CPU only while a thread of this process runs there: so one is kept busy on each, at
//! ordinary priority. While a real-time thread has the CPU, none comes.

use std::sync::Mutex;
use std::sync::PoisonError;

use whylate_model::CpuId;
use whylate_sys::membarrier;
use whylate_sys::protection::RevokedPage;

use super::failed;
use super::pace::Pace;
use crate::child::{self, Meter};
use crate::error::LoadError;

/// Interrupts all targets `per_second` times a second: every other time by a barrier, which reaches
/// also processors that flush translations without interrupting.
pub(super) fn interrupt(
    targets: &[CpuId],
    per_second: u32,
    meter: &Meter,
) -> Result<(), LoadError> {
    let mut page = RevokedPage::new()?;
    let barriers = membarrier::register_private_expedited().is_ok();
    let refused = Mutex::new(None);
    std::thread::scope(|scope| {
        for cpu in targets {
            let busy = || {
                if let Err(error) = child::place(&[*cpu]) {
                    *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                while !meter.stopped() {
                    std::hint::spin_loop();
                }
            };
            std::thread::Builder::new()
                .name("load/busy".to_owned())
                .spawn_scoped(scope, busy)
                .inspect_err(|_| meter.give_up())
                .map_err(failed("start a thread"))?;
        }
        let mut rate = Pace::new(u64::from(per_second));
        let mut by_barrier = false;
        while !meter.stopped() {
            if let Some(error) = refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
                meter.give_up();
                return Err(error);
            }
            for _ in 0..rate.next()? {
                by_barrier = barriers && !by_barrier;
                let sent = if by_barrier { membarrier::private_expedited() } else { page.revoke() };
                if let Err(error) = sent {
                    meter.give_up();
                    return Err(error.into());
                }
                meter.add(1);
            }
        }
        Ok(())
    })
}
