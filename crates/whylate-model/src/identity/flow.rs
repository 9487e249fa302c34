//! What a flow of requests is, whatever series it has.

use super::{Identity, messages};
use crate::flow::Flow;

impl Identity {
    /// That of a flow alone: of a series of requests the part that says what was sent, how and how often.
    #[must_use]
    pub fn of_flow(flow: &Flow) -> Self {
        Self { parts: messages(&[flow]) }
    }
}
