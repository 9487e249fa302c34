//! Interruptions that a self-test made, one by one: the truth that its gaps are judged by.

use crate::units::{Ticks, TicksDelta};

/// An interruption of a measuring thread that was made on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Its kind, as in [`SelfTestKind::kind`](crate::run::SelfTestKind::kind).
    pub kind: String,
    /// When the injector began to act for it.
    pub since: Ticks,
    /// First instant known to belong to it, or the sender's stamp before sending.
    pub start: Ticks,
    /// Last instant known to belong to it, or the sender's stamp after it was served.
    pub end: Ticks,
    /// What the interrupting code had to spin, where it spun.
    pub asked: TicksDelta,
}
