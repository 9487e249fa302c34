//! The tools that measure: ways of this program to send and receive, and sockperf.

use crate::PaperError;

/// A way of this program to send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    /// Its word on the command line, also in the names of its parts.
    pub(super) word: &'static str,
    /// What it is called in figures.
    pub(super) label: &'static str,
    /// Its words for `whylate rtt`.
    pub(super) words: &'static str,
    /// Column "Characteristics" of the paper's table.
    pub(super) characteristics: &'static str,
    /// Can it send by one port of a bed and receive by the other?
    pub(super) across: bool,
    /// Is it measured where nothing is named?
    usual: bool,
}

/// Past the kernel's stack, with stamps by the CPU: the kind of the paper's TRex.
pub(super) const XDP: Tool = Tool {
    word: "xdp",
    label: "xdp spin",
    words: "--transport xdp --wait spin",
    characteristics: "frames by rings of AF_XDP, past the kernel's stack; spins",
    across: true,
    usual: true,
};

/// Blocking sockets and the kernel's stack: the kind of the paper's netperf.
pub(super) const UDP_BLOCK: Tool = Tool {
    word: "udp-block",
    label: "udp block",
    words: "--transport udp --wait block",
    characteristics: "datagrams by a socket; sleeps in the kernel for each",
    across: true,
    usual: true,
};

/// All of them, those past the kernel first.
pub(super) const TOOLS: [Tool; 5] = [
    XDP,
    Tool {
        word: "packet",
        label: "packet spin",
        words: "--transport packet --wait spin",
        characteristics: "frames by rings of a packet socket, beside the kernel's stack; spins",
        across: true,
        usual: true,
    },
    Tool {
        word: "udp",
        label: "udp spin",
        words: "--transport udp --wait spin",
        characteristics: "datagrams by a socket through the kernel's stack; spins",
        across: true,
        usual: true,
    },
    UDP_BLOCK,
    Tool {
        word: "dpdk",
        label: "dpdk spin",
        words: "--transport dpdk --wait spin --vdev net_af_packet0,iface=client0",
        characteristics: "frames by a device of DPDK, past the kernel; spins",
        across: false,
        usual: false,
    },
];

/// The word of sockperf, which is no way of this program.
pub(super) const SOCKPERF: &str = "sockperf";

/// What is measured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) tools: Vec<Tool>,
    pub(super) sockperf: bool,
}

impl Chosen {
    /// Those that can measure through a device in a bed.
    pub(super) fn across(&self) -> Vec<Tool> {
        self.tools.iter().copied().filter(|tool| tool.across).collect()
    }
}

/// The named ones, or the usual ones.
pub(super) fn chosen(named: Option<&[String]>) -> Result<Chosen, PaperError> {
    let Some(named) = named else {
        let usual = TOOLS.into_iter().filter(|tool| tool.usual);
        return Ok(Chosen { tools: usual.collect(), sockperf: true });
    };
    for word in named {
        if word != SOCKPERF && !TOOLS.iter().any(|tool| tool.word == word) {
            let words = TOOLS.iter().map(|tool| tool.word).chain([SOCKPERF]);
            let words: Vec<&str> = words.collect();
            return Err(PaperError::NoSuchTool(word.clone(), words.join(", ")));
        }
    }
    let is_named = |tool: &Tool| named.iter().any(|word| word == tool.word);
    Ok(Chosen {
        tools: TOOLS.into_iter().filter(is_named).collect(),
        sockperf: named.iter().any(|word| word == SOCKPERF),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tools_leave_out_what_must_be_named() {
        let usual = chosen(None).unwrap();
        let words: Vec<&str> = usual.tools.iter().map(|tool| tool.word).collect();
        assert_eq!((words, usual.sockperf), (vec!["xdp", "packet", "udp", "udp-block"], true));
        let named = chosen(Some(&["dpdk".to_owned(), "udp".to_owned()])).unwrap();
        let words: Vec<&str> = named.tools.iter().map(|tool| tool.word).collect();
        assert_eq!((words, named.sockperf), (vec!["udp", "dpdk"], false));
        assert_eq!(named.across().len(), 1, "both ends of a device are in two namespaces");
    }
}
