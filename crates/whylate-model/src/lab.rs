//! What a private bed of network namespaces looks like.

use serde::{Deserialize, Serialize};

use crate::units::Pid;

/// Version of the format of a status.
pub const LAB_VERSION: u32 = 1;

/// All beds that there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabStatus {
    /// [`LAB_VERSION`] when it was made.
    pub format_version: u32,
    /// The beds, by name.
    pub beds: Vec<BedStatus>,
}

/// One bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BedStatus {
    /// Its name.
    pub name: String,
    /// What it was set up as; none where that was not finished, or its notes cannot be read.
    pub notes: Option<BedNotes>,
    /// Its namespaces, in the order in which packets meet them; one that is gone is left out.
    pub namespaces: Vec<NamespaceStatus>,
}

/// What is noted about a bed when it is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BedNotes {
    /// What lies between client and server.
    pub kind: BedKind,
    /// Who forwards the packets, in a few words.
    pub datapath: String,
    /// Since when it is up, nanoseconds since 1970.
    pub since_ns: u64,
    /// Queues at each end of its links, each mapped to a CPU; none for one that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// The interface of its device where everything between client and server can be seen, both ways;
    /// none in a bed that was not set up for a tap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tap: Option<String>,
}

/// What lies between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BedKind {
    /// Nothing: they are back to back.
    Direct,
    /// A bridge of the kernel.
    Bridge,
    /// Open vSwitch.
    Ovs,
    /// A place for a box: nothing passes until one joins the two links of the device.
    Open,
}

/// One namespace of a bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceStatus {
    /// `client`, `device` or `server`.
    pub role: String,
    /// Its name, as `ip netns` knows it.
    pub name: String,
    /// Its links; none where they could not be read.
    pub links: Option<Vec<LinkStatus>>,
    /// Processes inside.
    pub processes: Vec<ProcessInside>,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkStatus {
    /// Its name.
    pub name: String,
    /// Whether it carries packets: `up`, `no carrier`, `down`.
    pub state: String,
    /// Addresses with the length of their prefix.
    pub addresses: Vec<String>,
}

/// A process inside a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessInside {
    /// Its id.
    pub pid: Pid,
    /// Its name.
    pub name: String,
}

impl BedKind {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Bridge => "bridge",
            Self::Ovs => "ovs",
            Self::Open => "open",
        }
    }
}
