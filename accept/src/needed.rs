//! What many figures need of a machine, by name; each says which programs beside.

use crate::needs;

/// Root, and these programs.
pub(crate) fn as_root(programs: &[&str]) -> Result<(), String> {
    needs::can_be_root()?;
    programs.iter().try_for_each(|name| needs::can_run(name))
}

/// A CPU for each of two ends.
pub(crate) fn two_ends(programs: &[&str]) -> Result<(), String> {
    needs::can_use(2)?;
    as_root(programs)
}

/// Two ends, and the kernel's tracing.
pub(crate) fn traced(programs: &[&str]) -> Result<(), String> {
    two_ends(programs)?;
    needs::can_trace()
}
