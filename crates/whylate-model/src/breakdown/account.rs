//! What looking at requests changed on the host.

use serde::{Deserialize, Serialize};

/// What a network card was told to stamp while requests were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardTold {
    /// In words: the card's interface, and what it stamps; where that was changed, before and since.
    pub told: String,
    /// It was changed for the measurement.
    pub changed: bool,
    /// What was changed was put back in the end; if not, a warning says why.
    pub put_back: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_card_was_told_is_read_back_as_it_was_written() {
        let told = CardTold { told: "card of eth0".to_owned(), changed: true, put_back: false };
        let json = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<CardTold>(&json).unwrap(), told);
    }
}
