//! Loads in words: `net,disk:files=5000,bytes=4096,cpu:50%`.

use crate::error::LoadError;
use crate::kind::{FILE_BYTES, FILES, Kind, MEM, Net, PER_SECOND, PPS, TREE_BYTES, UDP_BYTES};

/// Kinds in one list: more would be the same again.
const MOST_KINDS: usize = 8;

/// Reads a list of loads: kinds apart by commas, each with parameters after a colon; a word with
/// `=` behind a comma is another parameter of the kind before it.
pub fn parse(words: &str) -> Result<Vec<Kind>, LoadError> {
    let wrong = |why: String| LoadError::NotALoad { words: words.to_owned(), why };
    let mut kinds: Vec<Kind> = Vec::new();
    for word in words.split(',').map(str::trim) {
        let goes_on = word.contains('=') && !word.contains(':');
        if let (true, Some(last)) = (goes_on, kinds.last_mut()) {
            parameter(last, word).map_err(wrong)?;
            continue;
        }
        let (name, parameters) = word.split_once(':').map_or((word, None), |(a, b)| (a, Some(b)));
        let mut kind = plain(name).map_err(wrong)?;
        if let Some(parameters) = parameters {
            parameter(&mut kind, parameters.trim()).map_err(wrong)?;
        }
        if kinds.iter().any(|known| known.name() == kind.name()) {
            return Err(wrong(format!("{} is asked for twice", kind.name())));
        }
        kinds.push(kind);
        if kinds.len() > MOST_KINDS {
            return Err(wrong(format!("more than {MOST_KINDS} loads")));
        }
    }
    for kind in &kinds {
        sound(kind).map_err(wrong)?;
    }
    Ok(kinds)
}

fn plain(name: &str) -> Result<Kind, String> {
    match name {
        "net" => Ok(Kind::NET),
        "disk" => Ok(Kind::DISK),
        "ipi" => Ok(Kind::IPI),
        "cpu" => Ok(Kind::CPU),
        "mem" => Ok(Kind::MEM),
        "" => Err("a word is missing".to_owned()),
        other => Err(format!("`{other}` is not a load")),
    }
}

/// Sets what one parameter says.
fn parameter(kind: &mut Kind, text: &str) -> Result<(), String> {
    let (key, value) = text.split_once('=').map_or((text, ""), |(a, b)| (a.trim(), b.trim()));
    match (kind, key) {
        (Kind::Net(net), "tcp") if value.is_empty() => *net = Net::TcpBulk,
        (Kind::Net(net), "udp") if value.is_empty() => *net = Net::UDP,
        (Kind::Net(net), "udp") => {
            let Net::Udp { bytes, .. } = Net::UDP else { return Err("no UDP".to_owned()) };
            *net = Net::Udp { pps: whole(value, &["pps"], PPS)?, bytes };
        }
        (Kind::Net(Net::Udp { pps, .. }), "pps") => *pps = whole(value, &["pps"], PPS)?,
        (Kind::Net(Net::Udp { bytes, .. }), "bytes") => {
            *bytes = whole(value, &["B"], UDP_BYTES)?;
        }
        (Kind::Disk { files, .. }, "files") => *files = whole(value, &[], FILES)?,
        (Kind::Disk { bytes, .. }, "bytes") => {
            let (least, most) = FILE_BYTES;
            *bytes = size(value, (u64::from(least), u64::from(most)))? as u32;
        }
        (Kind::Ipi { per_second }, "rate") => {
            *per_second = whole(value, &["/s", "ps"], PER_SECOND)?;
        }
        (Kind::Cpu { share }, "share") => *share = percent(value)?,
        (Kind::Cpu { share }, bare) if value.is_empty() => *share = percent(bare)?,
        (Kind::Mem { bytes }, "bytes") => *bytes = size(value, MEM)?,
        (Kind::Mem { bytes }, bare) if value.is_empty() => *bytes = size(bare, MEM)?,
        (kind, _) => return Err(format!("{} has no parameter `{text}`", kind.name())),
    }
    Ok(())
}

/// Bounds of what several parameters make together.
fn sound(kind: &Kind) -> Result<(), String> {
    match kind {
        Kind::Disk { files, bytes } if u64::from(*files) * u64::from(*bytes) > TREE_BYTES => {
            Err(format!("{files} files of {bytes} bytes are more than {TREE_BYTES} bytes"))
        }
        _ => Ok(()),
    }
}

fn whole(text: &str, units: &[&str], (least, most): (u32, u32)) -> Result<u32, String> {
    let number = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    let number: u32 = number.trim().parse().map_err(|_| format!("`{text}` is no whole number"))?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is outside {least} to {most}"))
    }
}

fn size(text: &str, (least, most): (u64, u64)) -> Result<u64, String> {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1_u64));
    let number: u64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no size such as 64MiB"))?;
    match number.checked_mul(factor).filter(|bytes| (least..=most).contains(bytes)) {
        Some(bytes) => Ok(bytes),
        None => Err(format!("{text} is outside {least} to {most} bytes")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or_else(|| format!("`{text}` is no share as 50%"))?;
    let percent: f64 = number.trim().parse().map_err(|_| format!("`{text}` is no share as 50%"))?;
    if (1.0..=100.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err(format!("{text} is outside 1% to 100%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_with_their_parameters() {
        let udp = |pps, bytes| Kind::Net(Net::Udp { pps, bytes });
        for (words, kinds) in [
            ("net", vec![Kind::NET]),
            ("net:udp=20000pps", vec![udp(20_000, 64)]),
            ("net:udp", vec![Kind::Net(Net::UDP)]),
            ("net:udp=5,bytes=1000", vec![udp(5, 1000)]),
            ("disk:files=5000", vec![Kind::Disk { files: 5000, bytes: 4096 }]),
            ("disk:bytes=2KiB,files=7", vec![Kind::Disk { files: 7, bytes: 2048 }]),
            ("ipi", vec![Kind::IPI]),
            ("ipi:rate=500/s", vec![Kind::Ipi { per_second: 500 }]),
            ("cpu:50%", vec![Kind::Cpu { share: 0.5 }]),
            ("mem:64MiB", vec![Kind::MEM]),
            ("net, disk", vec![Kind::NET, Kind::DISK]),
            ("net,net:udp", vec![Kind::NET, Kind::Net(Net::UDP)]),
        ] {
            assert_eq!(parse(words).unwrap(), kinds, "{words}");
        }
    }

    #[test]
    fn what_a_load_is_called_asks_for_it_again() {
        for words in ["net", "net:udp=3,bytes=9", "disk:files=3,bytes=8", "cpu:12.5%", "mem:2MiB"] {
            let kinds = parse(words).unwrap();
            assert_eq!(parse(&kinds[0].to_string()).unwrap(), kinds, "{words}");
        }
    }

    #[test]
    fn what_is_no_load_is_refused_with_what_is_wrong() {
        for (words, why) in [
            ("", "missing"),
            ("net,", "missing"),
            ("nett", "`nett` is not a load"),
            ("net:sctp", "no parameter"),
            ("net:udp=0", "outside 1"),
            ("net:udp=x", "no whole number"),
            ("net:udp=-1", "no whole number"),
            ("net:bytes=9", "no parameter"),
            ("net:udp,bytes=9000", "outside 8"),
            ("files=3", "`files=3` is not a load"),
            ("disk:files=99999999", "outside"),
            ("disk:files=200000,bytes=1MiB", "more than"),
            ("ipi:rate=1000000", "outside"),
            ("cpu:0%", "outside 1%"),
            ("cpu:150%", "outside 1%"),
            ("cpu:NaN%", "outside"),
            ("cpu:50", "no share"),
            ("mem:1TiB", "no size"),
            ("mem:99999999999999GiB", "outside"),
            ("ipi,ipi", "twice"),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(why), "{words}: {error}");
        }
    }
}
