//! The object `global`: what holds for the whole workload.

use whylate_model::Nanos;

use super::error::RtAppError;
use super::json::{Entry, Value};
use super::tasks::Policy;
use super::{Notes, fields};
use crate::task_set::Protocol;

/// A year in seconds.
const LONGEST_S: i64 = 366 * 86_400;
/// Two of them fit into a small machine's memory.
pub(super) const LARGEST_BUFFER: i64 = 1 << 30;

/// What holds for the whole workload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Global {
    /// None: until all threads have ended, or for ever.
    pub(super) duration: Option<Nanos>,
    pub(super) policy: Policy,
    pub(super) protocol: Protocol,
    /// Where `iorun` writes.
    pub(super) device: String,
    /// Bytes that `mem` and `iorun` work on.
    pub(super) buffer: u64,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration: None,
            policy: Policy::Other,
            protocol: Protocol::None,
            device: "/dev/null".to_owned(),
            buffer: 4 << 20,
        }
    }
}

impl Global {
    pub(super) fn read(entry: &Entry, notes: &mut Notes) -> Result<Self, RtAppError> {
        let mut global = Self::default();
        for entry in fields::object(&entry.node, "`global`")? {
            global.take(entry, notes)?;
        }
        Ok(global)
    }

    fn take(&mut self, entry: &Entry, notes: &mut Notes) -> Result<(), RtAppError> {
        let (key, node) = (entry.key.as_str(), &entry.node);
        match key {
            "duration" => match fields::integer(node, key, -1..=LONGEST_S)? {
                -1 => {}
                0 => return Err(RtAppError::value(node, "`duration` is 0: write seconds, or -1")),
                s => self.duration = Some(Nanos(s.unsigned_abs() * Nanos::SECOND.0)),
            },
            "default_policy" => self.policy = Policy::read(node, key)?,
            "pi_enabled" => {
                let inherits = fields::flag(node, key)?;
                self.protocol = if inherits { Protocol::Inherit } else { Protocol::None };
            }
            "io_device" => fields::text(node, key)?.clone_into(&mut self.device),
            "mem_buffer_size" => {
                self.buffer = fields::integer(node, key, 1..=LARGEST_BUFFER)?.unsigned_abs();
            }
            "calibration" => {
                if !matches!(node.value, Value::Text(_) | Value::Integer(_)) {
                    return Err(RtAppError::kind(node, "`calibration`", "text or a whole number"));
                }
                notes.add(
                    entry.at,
                    "`calibration` is not used: execution time is counted, not calibrated",
                );
            }
            "lock_pages" => {
                fields::flag(node, key)?;
                notes.add(
                    entry.at,
                    "`lock_pages` is not used: memory is locked unless --no-mlock is given",
                );
            }
            "logdir" | "log_basename" | "log_size" | "logstats" | "ftrace" | "gnuplot" | "frag"
            | "cumulative_slack" => {
                notes.add(entry.at, format!("`{key}` has no effect on what is measured"));
            }
            _ => {
                return Err(RtAppError::unknown(
                    entry,
                    "`global` has duration, default_policy, pi_enabled, lock_pages, calibration, \
                     io_device, mem_buffer_size, logdir, log_basename, log_size, ftrace, gnuplot \
                     and cumulative_slack",
                ));
            }
        }
        Ok(())
    }
}
