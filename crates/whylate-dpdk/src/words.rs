//! What words mean: devices, and how DPDK is to be started. Pure.

use std::fmt;

use whylate_port::device::{Device, DeviceName, Pages};
use whylate_sys::capability::Cap;

use crate::error::DpdkError;

/// Megabytes that DPDK takes where nothing else was asked for: buffers of six devices with usual rings.
pub const USUAL_MEMORY_MB: u32 = 256;
/// Below this not even its own bookkeeping fits; above, it is a mistake.
const MEMORY_MB: std::ops::RangeInclusive<u32> = 32..=65_536;

/// How DPDK is started, once in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Megabytes of memory.
    pub memory_mb: u32,
    /// Of huge pages?
    pub huge: bool,
    /// Cards that it may drive. Without any it does not look at the bus.
    pub cards: Vec<String>,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = if self.huge { "huge" } else { "ordinary" };
        write!(f, "{} MB of {pages} pages and ", self.memory_mb)?;
        match &self.cards[..] {
            [] => f.write_str("without cards"),
            cards => write!(f, "the cards {}", cards.join(", ")),
        }
    }
}

impl Start {
    /// What all of these devices need together, and the pages that one of them wants; whether those are
    /// huge is decided elsewhere. Each card is named once, however it is written.
    pub fn of(devices: &[&Device]) -> Result<(Self, Pages), DpdkError> {
        let mut all = Self { memory_mb: 0, huge: false, cards: Vec::new() };
        let mut pages = Pages::Auto;
        for device in devices {
            all.memory_mb = all.memory_mb.max(memory_mb(device)?);
            if let Some(named) = device.name.as_ref().map(Named::of).transpose()?
                && named.is_card
                && !all.cards.contains(&named.name)
            {
                all.cards.push(named.name);
            }
            if device.pages != Pages::Auto {
                pages = device.pages;
            }
        }
        Ok((all, pages))
    }

    /// The words for it. `cpus` are those that the caller may use: DPDK pins threads, and is not to
    /// move any. `number` keeps processes apart.
    #[must_use]
    pub fn arguments(&self, cpus: &[u32], number: u32) -> Vec<String> {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let mut words = vec![
            "whylate".to_owned(),
            format!("--lcores=0@({})", cpus.join(",")),
            // No files that stay, no sockets for other processes. DPDK knows two words for it.
            if self.huge { "--in-memory" } else { "--no-shconf" }.to_owned(),
            "--no-telemetry".to_owned(),
            format!("--file-prefix=whylate-{number}"),
            "-m".to_owned(),
            self.memory_mb.to_string(),
        ];
        if !self.huge {
            words.push("--no-huge".to_owned());
        }
        if self.cards.is_empty() {
            words.extend(["--no-pci".to_owned(), "--iova-mode=va".to_owned()]);
        }
        for card in &self.cards {
            words.extend(["-a".to_owned(), card.clone()]);
        }
        words
    }

    /// Can a device that asks for `other` be used where this runs?
    #[must_use]
    pub fn serves(&self, other: &Self) -> bool {
        let cards = other.cards.iter().all(|card| self.cards.contains(card));
        self.memory_mb >= other.memory_mb && self.huge == other.huge && cards
    }
}

/// A device, its words checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name as DPDK has it: `net_memif0`, `0000:03:00.0`.
    pub name: String,
    /// The name and its arguments.
    pub words: String,
    /// Is it a card on the bus?
    pub is_card: bool,
}

impl Named {
    /// Checks the words.
    pub fn of(device: &DeviceName) -> Result<Self, DpdkError> {
        let words = device.words().to_owned();
        let name = words.split(',').next().unwrap_or_default().to_owned();
        let refused = |why| Err(DpdkError::NoDevice { words: words.clone(), why });
        if words.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
            return refused("it has spaces in it");
        }
        let is_card = matches!(device, DeviceName::Pci(_));
        if is_card {
            return match card(&name) {
                Some(name) => {
                    let arguments = words.split_once(',').map(|(_, rest)| format!(",{rest}"));
                    let words = format!("{name}{}", arguments.unwrap_or_default());
                    Ok(Self { name, words, is_card })
                }
                None => refused("a card is named by its place on the bus, such as 0000:03:00.0"),
            };
        }
        let kind = name.strip_prefix("net_").or_else(|| name.strip_prefix("virtio_user"));
        let numbered = name.ends_with(|sign: char| sign.is_ascii_digit());
        if kind.is_none() || !numbered || name.len() > 32 {
            return refused(
                "a virtual device is named by its driver and a number, such as net_null0, net_ring0, \
                 net_memif0, net_af_xdp0, net_af_packet0, net_tap0, net_vhost0 or net_virtio_user0",
            );
        }
        Ok(Self { name, words, is_card })
    }

    /// The value of an argument.
    #[must_use]
    pub fn argument(&self, key: &str) -> Option<&str> {
        self.words.split(',').skip(1).find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// Does the other end come to it, so that nobody is there at first?
    #[must_use]
    pub fn is_visited(&self) -> bool {
        // Without the word a memif is the client.
        let serves = self.argument("role").is_some_and(|role| matches!(role, "server" | "master"));
        serves || self.name.starts_with("net_vhost")
    }

    /// The driver: the name without its number.
    fn driver(&self) -> &str {
        self.name.trim_end_matches(|sign: char| sign.is_ascii_digit())
    }

    /// The interface of the kernel that it takes its frames from. One of a tap is made with the device.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        let of_the_kernel = matches!(self.driver(), "net_af_packet" | "net_af_xdp" | "net_pcap");
        self.argument("iface").filter(|_| of_the_kernel)
    }

    /// What opening it needs: of each list one capability.
    #[must_use]
    pub fn needs(&self) -> &'static [&'static [Cap]] {
        const RAW: &[Cap] = &[Cap::NetRaw];
        const ADMIN: &[Cap] = &[Cap::NetAdmin];
        const PROGRAMS: &[Cap] = &[Cap::Bpf, Cap::SysAdmin];
        match self.driver() {
            "net_af_packet" => &[RAW],
            "net_af_xdp" => &[RAW, PROGRAMS, ADMIN],
            "net_tap" => &[ADMIN],
            _ => &[],
        }
    }

    /// Does it take a queue of an interface of the kernel, which only one socket can have?
    #[must_use]
    pub fn takes_a_queue(&self) -> bool {
        self.name.starts_with("net_af_xdp")
    }
}

/// `03:00.0` and `0000:03:00.0` in the longer form; none where it is neither.
fn card(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split(':').collect();
    let (domain, bus, rest) = match parts[..] {
        [bus, rest] => ("0000", bus, rest),
        [domain, bus, rest] => (domain, bus, rest),
        _ => return None,
    };
    let (slot, function) = rest.split_once('.')?;
    let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.chars().all(|sign| sign.is_ascii_hexdigit())
    };
    let sound = hex(domain, 4..=8) && hex(bus, 2..=2) && hex(slot, 2..=2) && hex(function, 1..=1);
    sound.then(|| format!("{domain}:{bus}:{slot}.{function}").to_ascii_lowercase())
}

/// Megabytes that a device asks for.
pub fn memory_mb(device: &Device) -> Result<u32, DpdkError> {
    let asked = device.memory_mb.unwrap_or(USUAL_MEMORY_MB);
    if MEMORY_MB.contains(&asked) {
        return Ok(asked);
    }
    let words = device.name.as_ref().map(ToString::to_string).unwrap_or_default();
    Err(DpdkError::NoDevice { words, why: "its memory has to be from 32 to 65536 MB" })
}

/// The last `lines` lines of what DPDK said, on one line.
#[must_use]
pub fn last_of(said: &str, lines: usize) -> String {
    let sound = |line: &&str| !line.trim().is_empty();
    let all: Vec<&str> = said.lines().map(str::trim).filter(sound).collect();
    let last = &all[all.len().saturating_sub(lines)..];
    last.join(" | ").chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtual_one(words: &str) -> Result<Named, DpdkError> {
        Named::of(&DeviceName::Virtual(words.to_owned()))
    }

    fn on_bus(words: &str) -> Result<Named, DpdkError> {
        Named::of(&DeviceName::Pci(words.to_owned()))
    }

    #[test]
    fn devices_are_named_by_driver_and_number_or_by_their_place_on_the_bus() {
        let memif = virtual_one("net_memif3,role=server,socket=/tmp/m.sock").unwrap();
        assert_eq!(
            (memif.name.as_str(), memif.argument("socket")),
            ("net_memif3", Some("/tmp/m.sock"))
        );
        assert!(memif.is_visited() && !virtual_one("net_memif3").unwrap().is_visited());
        assert!(virtual_one("net_vhost0,iface=/tmp/v").unwrap().is_visited());
        assert!(virtual_one("net_af_xdp1,iface=near").unwrap().takes_a_queue());
        assert!(!memif.takes_a_queue());
        for words in ["net_null0", "net_af_xdp1,iface=near", "virtio_user0,path=/tmp/v"] {
            assert_eq!(virtual_one(words).unwrap().words, words);
        }
        for words in ["", "null0", "net_null", "net_null0, x", "net_null0\u{1b}[1m", "eth0"] {
            let error = virtual_one(words).unwrap_err();
            assert!(matches!(error, DpdkError::NoDevice { .. }), "{words}: {error}");
        }
        let card = on_bus("03:00.0,mac=x").unwrap();
        assert_eq!(
            (card.name.as_str(), card.words.as_str()),
            ("0000:03:00.0", "0000:03:00.0,mac=x")
        );
        assert!(card.is_card);
        assert_eq!(on_bus("0000:AF:1f.7").unwrap().name, "0000:af:1f.7");
        for words in ["", "3:0.0", "0000:03:00", "eth0", "00:00:00:00.0", "0000:03:0g.0"] {
            assert!(on_bus(words).is_err(), "{words}");
        }
    }

    #[test]
    fn what_a_device_takes_of_the_kernel_is_known_by_its_driver() {
        let of = |words: &str| {
            let named = virtual_one(words).unwrap();
            (named.interface().map(str::to_owned), named.needs().len())
        };
        let near = || Some("near".to_owned());
        assert_eq!(of("net_af_packet0,iface=near,qdisc_bypass=1"), (near(), 1));
        assert_eq!(of("net_af_xdp12,force_copy=1,iface=near"), (near(), 3));
        assert_eq!(of("net_tap0,iface=near"), (None, 1));
        for words in ["net_vhost0,iface=/tmp/v", "net_memif0,role=server", "net_null0"] {
            assert_eq!(of(words), (None, 0), "{words}");
        }
    }

    #[test]
    fn dpdk_is_started_so_that_it_leaves_nothing_and_moves_nobody() {
        let plain = Start { memory_mb: 64, huge: false, cards: Vec::new() };
        let words = plain.arguments(&[0, 3], 77);
        let has = |words: &[String], word: &str| words.iter().any(|one| one == word);
        for word in [
            "--lcores=0@(0,3)",
            "--no-shconf",
            "--no-telemetry",
            "--file-prefix=whylate-77",
            "--no-huge",
            "--no-pci",
            "--iova-mode=va",
            "64",
        ] {
            assert!(has(&words, word), "{word}: {words:?}");
        }
        let cards = Start { huge: true, cards: vec!["0000:03:00.0".to_owned()], ..plain.clone() };
        let words = cards.arguments(&[0], 77);
        assert!(!has(&words, "--no-huge") && !has(&words, "--no-pci"), "{words:?}");
        assert!(has(&words, "--in-memory") && !has(&words, "--no-shconf"), "{words:?}");
        assert!(!has(&words, "--iova-mode=va") && has(&words, "0000:03:00.0"), "{words:?}");
    }

    #[test]
    fn dpdk_is_started_for_all_cards_of_a_run_at_once() {
        let of = |words: &str, memory_mb, pages| {
            let name = Some(DeviceName::of(words));
            Device { name, memory_mb, pages }
        };
        let near = of("0000:03:00.0", Some(64), Pages::Auto);
        let far = of("04:00.1,arg=1", Some(128), Pages::Ordinary);
        let again = of("03:00.0", None, Pages::Auto);
        let beside = of("net_null0", None, Pages::Auto);
        let (start, pages) = Start::of(&[&near, &far]).unwrap();
        assert_eq!((start.memory_mb, pages), (128, Pages::Ordinary));
        let words = start.arguments(&[0, 1], 77);
        let allowed: Vec<&str> =
            words.windows(2).filter(|pair| pair[0] == "-a").map(|pair| pair[1].as_str()).collect();
        assert_eq!(allowed, ["0000:03:00.0", "0000:04:00.1"]);
        assert!(!words.iter().any(|word| word == "--no-pci"), "{words:?}");
        // What was started for both serves each of them; what was started for one serves not the other.
        let one = |device: &Device| Start::of(&[device]).unwrap().0;
        assert!(start.serves(&one(&near)) && start.serves(&one(&far)));
        assert!(!one(&near).serves(&one(&far)));
        // A card that is written twice is one, and a virtual device is no card.
        let (start, _) = Start::of(&[&near, &again, &beside]).unwrap();
        assert_eq!((start.cards.len(), start.memory_mb), (1, USUAL_MEMORY_MB));
    }

    #[test]
    fn what_runs_serves_who_asks_for_no_more_and_the_same_pages() {
        let runs = Start { memory_mb: 64, huge: false, cards: vec!["a".to_owned()] };
        assert!(runs.serves(&runs));
        assert!(runs.serves(&Start { memory_mb: 32, cards: Vec::new(), ..runs.clone() }));
        assert!(!runs.serves(&Start { memory_mb: 65, ..runs.clone() }));
        assert!(!runs.serves(&Start { huge: true, ..runs.clone() }));
        assert!(!runs.serves(&Start { cards: vec!["b".to_owned()], ..runs.clone() }));
        assert_eq!(runs.to_string(), "64 MB of ordinary pages and the cards a");
    }

    #[test]
    fn memory_that_cannot_be_is_refused() {
        let of = |asked| memory_mb(&Device { memory_mb: asked, ..Device::default() });
        assert_eq!(of(None), Ok(USUAL_MEMORY_MB));
        assert_eq!(of(Some(32)), Ok(32));
        assert!(of(Some(31)).is_err() && of(Some(65_537)).is_err());
    }

    #[test]
    fn the_last_words_are_one_line_without_control_characters() {
        assert_eq!(last_of("a\nb\n\n c \x1b[1m\n", 2), "b | c ?[1m");
        assert_eq!(last_of("", 3), "");
    }
}
