//! The timer slack of the calling thread: set, and read back for the facts.

use whylate_model::Nanos;
use whylate_sys::timerslack;

/// The least a thread can ask for: 0 would mean the default of 50 us.
const LEAST: Nanos = Nanos(1);

/// What the slack was when a timer was prepared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slack(Option<Nanos>);

impl Slack {
    /// Asks for the least. A kernel that refuses leaves what was there; either way the facts say
    /// what it is now.
    pub(super) fn least() -> Self {
        let _ = timerslack::set_ns(LEAST.0);
        Self::as_it_is()
    }

    /// Leaves it alone.
    pub(super) fn as_it_is() -> Self {
        Self(timerslack::get_ns().ok().map(Nanos))
    }

    pub(super) fn read_back(self) -> Option<Nanos> {
        self.0
    }
}
