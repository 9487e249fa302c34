//! Why a program could not be loaded, attached or read.

use whylate_sys::SysError;

use crate::bpf::asm::AsmError;
use crate::bpf::attach::Mode;

/// Why a program on an interface could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BpfError {
    /// The kernel refused a call.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The instructions are no program.
    #[error("cannot put a program together: {0}")]
    Assembly(#[from] AsmError),
    /// What the program is to look for cannot be looked for.
    #[error("cannot make a program for {what}: {why}")]
    Unfit {
        /// Of what.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else's program is there.
    #[error(
        "the interface `{interface}` runs a program already: {}; whylate takes none away: choose \
         another interface, or end whoever attached it (`ip link set dev {interface} xdp off` where \
         nobody needs it)",
        called(*id, program.as_deref())
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The program's number; 0 where the kernel tells none.
        id: u32,
        /// Its name, where it has one that may be asked for.
        program: Option<String>,
    },
    /// Driver or kernel cannot run it.
    #[error("the interface `{interface}` does not take a program in {mode} mode: {reason}")]
    Refused {
        /// The interface.
        interface: String,
        /// The mode that was tried last.
        mode: Mode,
        /// Why not.
        reason: String,
    },
    /// The interface is not there any more.
    #[error("the interface `{interface}` is gone: was it deleted, or moved elsewhere?")]
    Gone {
        /// The interface.
        interface: String,
    },
    /// The right is missing.
    #[error("cannot attach a program to the interface `{interface}`: {advice}")]
    Denied {
        /// The interface.
        interface: String,
        /// What to do.
        advice: String,
    },
}

fn called(id: u32, program: Option<&str>) -> String {
    let number = if id == 0 { "of an unknown number".to_owned() } else { format!("number {id}") };
    match program {
        Some(name) if !name.is_empty() => format!("`{name}`, {number}"),
        _ => format!("{number} (`bpftool net` may tell more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_taken_is_told_with_number_and_name() {
        let told = |id, program: Option<&str>| {
            let program = program.map(ToOwned::to_owned);
            BpfError::Occupied { interface: "eth0".to_owned(), id, program }.to_string()
        };
        assert!(told(77, Some("xdp_fw")).contains("`xdp_fw`, number 77"));
        assert!(told(77, Some("")).contains("number 77"));
        assert!(told(0, None).contains("unknown number"));
        assert!(told(77, None).contains("ip link set dev eth0 xdp off"));
    }
}
