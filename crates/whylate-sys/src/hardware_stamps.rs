//! What an interface stamps, and what its card is told to stamp.
//!
//! [timestamping](https://docs.kernel.org/networking/timestamping.html): `ETHTOOL_GET_TS_INFO` says what
//! driver and card can, `SIOCGHWTSTAMP` and `SIOCSHWTSTAMP` read and set what the card does. Capability:
//! none to ask, `CAP_NET_ADMIN` to set. What is set stays until somebody sets it again: whoever sets it
//! keeps what was before.
//!
//! That a driver says it can is no promise: only a stamp that came is one.

use std::fmt;

use rustix::io::Errno;

use crate::error::SysError;
use crate::ethtool;

const GET_STAMPS: u32 = 0x41;
const GET_CONFIGURATION: libc::Ioctl = 0x89b1;
const SET_CONFIGURATION: libc::Ioctl = 0x89b0;

// `SOF_TIMESTAMPING_*` of `linux/net_tstamp.h`.
const SENT_BY_HARDWARE: u32 = 1 << 0;
const SENT_BY_SOFTWARE: u32 = 1 << 1;
const RECEIVED_BY_HARDWARE: u32 = 1 << 2;
const RECEIVED_BY_SOFTWARE: u32 = 1 << 3;
const OF_HARDWARE: u32 = 1 << 6;

/// Kinds of sending, in the order of `enum hwtstamp_tx_types`.
const SENDING: [&str; 4] = ["off", "on", "one-step-sync", "one-step-p2p"];
/// Filters of reception, in the order of `enum hwtstamp_rx_filters`.
const FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];
const SENDING_ON: u32 = 1;
const FILTER_ALL: u32 = 1;

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct RawStamps {
    command: u32,
    flags: u32,
    clock: i32,
    sending: u32,
    sending_reserved: [u32; 3],
    filters: u32,
    filters_reserved: [u32; 3],
}

const _: () = assert!(size_of::<RawStamps>() == 44, "the kernel's structure has 11 words");

/// `struct hwtstamp_config`.
#[repr(C)]
#[derive(Default)]
struct RawConfiguration {
    flags: i32,
    sending: u32,
    filter: u32,
}

const _: () = assert!(size_of::<RawConfiguration>() == 12, "the kernel's structure has 3 words");

/// What a card stamps of what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Receives {
    /// Everything: ordinary messages as well.
    Everything,
    /// Messages of PTP (or NTP) alone, as an X710 does: none of ours.
    PtpOnly,
    /// Nothing.
    Nothing,
}

/// What an interface can stamp, as its driver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stampable {
    /// Its name.
    pub interface: String,
    /// The driver stamps what it hands to the card (`TX_SOFTWARE`).
    pub software_sent: bool,
    /// The kernel stamps what the driver hands up: any interface can.
    pub software_received: bool,
    /// The card stamps what leaves.
    pub hardware_sent: bool,
    /// The card stamps of what arrives.
    pub hardware_received: Receives,
    /// The number of the card's clock (`/dev/ptpN`).
    pub clock: Option<u32>,
    /// The kernel's names of the kinds of sending it knows.
    pub sending: Vec<&'static str>,
    /// The kernel's names of the filters of reception it knows.
    pub filters: Vec<&'static str>,
}

impl Stampable {
    /// Has it any hardware that stamps ordinary messages?
    #[must_use]
    pub fn has_hardware(&self) -> bool {
        self.hardware_sent || self.hardware_received == Receives::Everything
    }
}

impl fmt::Display for Stampable {
    /// `eth0 stamps in software what is sent and received; hardware: not present`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let software = match (self.software_sent, self.software_received) {
            (true, true) => "what is sent and received",
            (true, false) => "what is sent alone",
            (false, true) => "what is received alone: its driver stamps nothing that it sends",
            (false, false) => "nothing",
        };
        write!(f, "{} stamps in software {software}; hardware: ", self.interface)?;
        let Some(clock) = self.clock else { return f.write_str("not present") };
        write!(f, "clock /dev/ptp{clock}, ")?;
        f.write_str(if self.hardware_sent { "stamps what is sent" } else { "nothing sent" })?;
        f.write_str(match self.hardware_received {
            Receives::Everything => ", and everything received",
            Receives::PtpOnly => ", and of what is received PTP alone: no stamp of other messages",
            Receives::Nothing => ", and nothing received",
        })
    }
}

/// What a card is told to stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// A number of `enum hwtstamp_tx_types`: 0 nothing, 1 what asks for it.
    pub sending: u32,
    /// A number of `enum hwtstamp_rx_filters`: 0 nothing, 1 everything.
    pub filter: u32,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |names: &[&'static str], number: u32| {
            names.get(number as usize).map_or_else(|| number.to_string(), ToString::to_string)
        };
        write!(
            f,
            "sent: {}, received: {}",
            name(&SENDING, self.sending),
            name(&FILTERS, self.filter)
        )
    }
}

impl Configuration {
    /// What ordinary messages need of a card that can this, from what it does now: sending on, and all
    /// that is received where it can. A filter that no ordinary message passes is left as it is, for
    /// whoever set it.
    #[must_use]
    pub fn for_messages(can: &Stampable, now: Self) -> Self {
        let sending = if can.hardware_sent && now.sending == 0 { SENDING_ON } else { now.sending };
        let everything = can.hardware_received == Receives::Everything;
        Self { sending, filter: if everything { FILTER_ALL } else { now.filter } }
    }
}

/// What the interface `name` of the calling thread's namespace can stamp.
pub fn stampable(name: &str) -> Result<Stampable, SysError> {
    let socket = ethtool::socket(name)?;
    let mut raw = RawStamps { command: GET_STAMPS, ..RawStamps::default() };
    ethtool::ask(&socket, name, (&raw mut raw).cast(), "stamps")?;
    Ok(told(name, &raw))
}

fn told(name: &str, raw: &RawStamps) -> Stampable {
    let has = |flag| raw.flags & flag == flag;
    let clock = u32::try_from(raw.clock).ok();
    // Without a clock that can be read nobody knows what a card's stamps mean.
    let hardware = clock.is_some() && has(OF_HARDWARE);
    let receives = hardware && has(RECEIVED_BY_HARDWARE);
    let hardware_received = match raw.filters {
        filters if receives && filters & (1 << FILTER_ALL) != 0 => Receives::Everything,
        filters if receives && filters >> (FILTER_ALL + 1) != 0 => Receives::PtpOnly,
        _ => Receives::Nothing,
    };
    let sends = hardware && has(SENT_BY_HARDWARE);
    Stampable {
        interface: name.to_owned(),
        software_sent: has(SENT_BY_SOFTWARE),
        software_received: has(RECEIVED_BY_SOFTWARE),
        hardware_sent: sends && raw.sending & (1 << SENDING_ON) != 0,
        hardware_received,
        clock,
        sending: names(&SENDING, raw.sending),
        filters: names(&FILTERS, raw.filters),
    }
}

fn names(all: &[&'static str], bits: u32) -> Vec<&'static str> {
    let known = (0..).zip(all).filter(|(bit, _)| bits & (1_u32 << bit) != 0);
    known.map(|(_, name)| *name).collect()
}

/// What the card of the interface `name` is told to stamp; none where it has nothing to be told.
pub fn configuration(name: &str) -> Result<Option<Configuration>, SysError> {
    let socket = ethtool::socket(name)?;
    let mut raw = RawConfiguration::default();
    let what = || format!("read what the card of {name} stamps");
    match ethtool::request(&socket, name, GET_CONFIGURATION, (&raw mut raw).cast(), what) {
        Ok(()) => Ok(Some(Configuration { sending: raw.sending, filter: raw.filter })),
        Err(refusal) if refusal.errno() == Some(Errno::OPNOTSUPP) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Tells the card of the interface `name` what to stamp. It may do more than it was told: what it does
/// comes back. Needs `CAP_NET_ADMIN`.
pub fn configure(name: &str, wanted: Configuration) -> Result<Configuration, SysError> {
    let socket = ethtool::socket(name)?;
    let (sending, filter) = (wanted.sending, wanted.filter);
    let mut raw = RawConfiguration { flags: 0, sending, filter };
    let what = || format!("have the card of {name} stamp ({wanted})");
    ethtool::request(&socket, name, SET_CONFIGURATION, (&raw mut raw).cast(), what)?;
    Ok(Configuration { sending: raw.sending, filter: raw.filter })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(flags: u32, clock: i32, sending: u32, filters: u32) -> Stampable {
        told("eth0", &RawStamps { flags, clock, sending, filters, ..RawStamps::default() })
    }

    #[test]
    fn what_a_driver_says_is_told_in_words() {
        // A virtual card; an i210; an X710; one that says hardware and has no clock.
        let none = card(0x1a, -1, 0, 0);
        assert!(!none.has_hardware());
        assert_eq!(
            none.to_string(),
            "eth0 stamps in software what is sent and received; hardware: not present"
        );
        let all = card(0x5f, 0, 0b11, 0b1_0000_0000_0011);
        assert!(all.has_hardware() && all.hardware_received == Receives::Everything);
        assert_eq!(
            (all.sending, all.filters),
            (vec!["off", "on"], vec!["none", "all", "ptpv2-event"])
        );
        let ptp = card(0x5f, 2, 0b11, 0b1_0001_0000_0001);
        assert_eq!(ptp.hardware_received, Receives::PtpOnly);
        let said = ptp.to_string();
        assert!(said.contains("/dev/ptp2") && said.contains("PTP alone"), "{said}");
        let clockless = card(0x5f, -1, 0b11, 0b11);
        assert!(!clockless.has_hardware(), "{clockless}");
        assert!(card(0x18, -1, 0, 0).to_string().contains("nothing that it sends"));
    }

    #[test]
    fn ordinary_messages_need_everything_or_leave_the_filter_alone() {
        let all = card(0x5f, 0, 0b11, 0b11);
        let ptp = card(0x5f, 0, 0b11, 0b1_0000_0000_0001);
        let none = card(0x1a, -1, 0, 0);
        let now = Configuration { sending: 0, filter: 12 };
        let on = |filter| Configuration { sending: 1, filter };
        assert_eq!(Configuration::for_messages(&all, now), on(1));
        assert_eq!(Configuration::for_messages(&ptp, now), on(12));
        assert_eq!(Configuration::for_messages(&none, now), now);
        // Somebody's one-step clock stays one.
        let one_step = Configuration { sending: 2, filter: 12 };
        assert_eq!(Configuration::for_messages(&ptp, one_step), one_step);
        assert_eq!(one_step.to_string(), "sent: one-step-sync, received: ptpv2-event");
    }

    #[test]
    fn loopback_stamps_in_software_and_has_no_card() {
        match stampable("lo") {
            Ok(lo) => {
                assert!(lo.software_received && !lo.has_hardware(), "{lo:?}");
                assert_eq!(lo.clock, None);
            }
            Err(refusal) => return crate::tests::skip(&refusal),
        }
        assert_eq!(configuration("lo").unwrap(), None);
        let refusal = configure("lo", Configuration { sending: 0, filter: 0 }).unwrap_err();
        assert!(matches!(refusal.errno(), Some(Errno::OPNOTSUPP | Errno::PERM)), "{refusal}");
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for refusal in [stampable("nosuchport").err(), configuration("nosuchport").err()] {
            let refusal = refusal.unwrap();
            if refusal.errno() == Some(Errno::NOSYS) {
                return crate::tests::skip(&refusal);
            }
            assert_eq!(refusal.errno(), Some(Errno::NODEV), "{refusal}");
            assert!(refusal.to_string().contains("nosuchport"), "{refusal}");
        }
    }
}
