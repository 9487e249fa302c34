//! Comparing backends in words: `udp, packet, xdp spin`.

use std::str::FromStr;

use clap::Args;
use whylate_port::Wait;
use whylate_port::open::Transport;
use whylate_record::rtt::backends::Backend;

/// Stands for all backends of this machine.
const ALL: &str = "all";

/// The same requests over several backends in turns.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Comparing backends")]
pub(crate) struct RttBackends {
    /// Send the same requests over several backends in turns, and report what each saves against
    /// the first: udp, packet and xdp, each with a way to wait (`xdp spin`, `udp:block`) or in all
    /// ways that fit it; without LIST all of them. --duration and --warmup are for all together
    #[arg(
        help = "Compare udp, packet and xdp [all of them]",
        long_help,
        long,
        value_name = "LIST",
        num_args = 0..=1,
        default_missing_value = ALL,
        conflicts_with_all = ["transport", "wait", "runs", "one_way", "flows", "log_packets", "slow"],
        group = "in_rounds"
    )]
    pub(crate) compare_backends: Option<BackendList>,
    /// Rounds of a comparison of backends, or of --breakdown-cost: each measures everything once,
    /// and the reference twice
    #[arg(
        help = "Rounds of --compare-backends or --breakdown-cost",
        long_help,
        long,
        value_name = "N",
        default_value_t = 10,
        requires = "in_rounds",
        value_parser = clap::value_parser!(u32).range(2..=1000)
    )]
    pub(crate) rounds: u32,
    /// In a comparison of backends, let the reflector that whylate starts use the same backend as
    /// the client, instead of spinning over udp for all
    #[arg(
        help = "Use the same backend at the reflector",
        long_help,
        long,
        requires = "compare_backends",
        conflicts_with = "target"
    )]
    pub(crate) both_ends: bool,
}

/// Backends in the order in which they were named, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendList(pub(crate) Vec<Backend>);

impl FromStr for BackendList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == ALL {
            return Ok(Self(Backend::all()));
        }
        let mut list = Vec::new();
        for words in text.split(',').map(str::trim) {
            for backend in backends(words)? {
                if list.contains(&backend) {
                    return Err(format!("`{backend}` is there twice"));
                }
                list.push(backend);
            }
        }
        Ok(Self(list))
    }
}

/// `udp` is all ways to wait that fit it, `udp spin` and `udp:spin` the one.
fn backends(words: &str) -> Result<Vec<Backend>, String> {
    let (transport, wait) = match words.split_once([' ', ':']) {
        Some((transport, wait)) => (transport, Some(wait.trim())),
        None => (words, None),
    };
    let known = transport.parse().ok().filter(|transport| Backend::carries(*transport));
    let Some(transport) = known else {
        return Err(format!(
            "`{words}` is not a backend to compare: use {}, each alone or with a way to wait, such as \
             `udp spin`; an address goes before --compare-backends",
            names()
        ));
    };
    let fitting = Backend::ways(transport);
    let of = |wait| Backend { transport, wait };
    match wait {
        None => Ok(fitting.iter().copied().map(of).collect()),
        Some("sleep") => match fitting.iter().copied().find(|wait| wait.sleeps()) {
            Some(wait) => Ok(vec![of(wait)]),
            None => Err(format!(
                "{transport} cannot be divided among a thread that sends and one that sleeps for \
                 replies: write `{transport} spin`"
            )),
        },
        Some(wait) => {
            let wait: Wait =
                wait.parse().map_err(|error: whylate_port::PortError| error.to_string())?;
            Ok(vec![of(wait)])
        }
    }
}

/// The transports that messages of a comparison can go by.
fn names() -> String {
    let carry = Transport::ALL.into_iter().filter(|transport| Backend::carries(*transport));
    carry.map(Transport::name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let list: BackendList = text.parse()?;
        Ok(list.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_backend_is_a_transport_with_a_way_to_wait_or_all_that_fit_it() {
        assert_eq!(read("udp spin,xdp:spin").unwrap(), ["udp spin", "xdp spin"]);
        assert_eq!(read(" udp sleep , packet sleep ").unwrap(), ["udp block", "packet poll"]);
        assert_eq!(read("udp:busy-poll").unwrap(), ["udp busy-poll"]);
        let all = ["udp spin", "udp block", "packet spin", "packet poll", "xdp spin"];
        assert_eq!(read("udp,packet,xdp").unwrap(), all);
        assert_eq!(read("all").unwrap(), all);
    }

    #[test]
    fn what_is_no_backend_is_refused_by_name() {
        for (text, part) in [
            ("", "`` is not a backend"),
            ("udp,,xdp", "`` is not a backend"),
            ("tcp", "`tcp` is not a backend to compare: use udp, packet, xdp"),
            ("unix spin", "`unix spin` is not a backend"),
            ("127.0.0.1:4021", "an address goes before --compare-backends"),
            ("udp nap", "nap"),
            ("xdp sleep", "write `xdp spin`"),
            ("udp,udp spin", "`udp spin` is there twice"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
