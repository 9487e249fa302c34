//! Why a frame carries no message for anybody here.

/// What is wrong with a frame, or that it is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Defect {
    /// It ends within a header.
    #[error("it ends within the header of {0}")]
    Truncated(&'static str),
    /// More than two tags.
    #[error("it has more than two VLAN tags")]
    TooManyTags,
    /// It carries something else.
    #[error("it carries neither IP nor address resolution (EtherType {0:#06x})")]
    OtherKind(u16),
    /// A version of IP that does not go with the frame.
    #[error("its packet is of version {0} of IP, which its EtherType denies")]
    Version(u8),
    /// A length that cannot be.
    #[error("the length of {0} cannot be right")]
    Length(&'static str),
    /// The checksum of IPv4's header.
    #[error("the checksum of its IPv4 header is wrong")]
    HeaderChecksum,
    /// A part of a packet: nobody here puts them together.
    #[error("it is a fragment of a packet; fragments are not put together")]
    Fragment,
    /// More headers of IPv6 than anybody sends.
    #[error("it has more extension headers than {0}")]
    TooManyHeaders(usize),
    /// Neither UDP nor neighbour discovery.
    #[error("it carries protocol {0} of IP")]
    OtherProtocol(u8),
    /// A message of ICMPv6 other than neighbour discovery.
    #[error("it is a message of ICMPv6 of type {0}")]
    OtherIcmp(u8),
    /// UDP over IPv6 has to have a checksum.
    #[error("it is UDP over IPv6 without a checksum")]
    ChecksumMissing,
    /// The checksum over the message.
    #[error("the checksum of {0} is wrong")]
    Checksum(&'static str),
    /// Address resolution of another sort than Ethernet and IPv4.
    #[error("its address resolution is not of Ethernet and IPv4")]
    OtherArp,
    /// Neighbour discovery that came over a router, or is otherwise against the rules.
    #[error("its neighbour discovery breaks the rules: {0}")]
    Neighbour(&'static str),
}

impl Defect {
    /// Is it damaged, rather than sound and for somebody else?
    #[must_use]
    pub fn is_damage(self) -> bool {
        !matches!(
            self,
            Self::OtherKind(_)
                | Self::OtherProtocol(_)
                | Self::OtherIcmp(_)
                | Self::OtherArp
                | Self::Fragment
        )
    }
}
