//! A program on an interface, and nobody else's taken away.
//!
//! In the driver first (native), in the network stack where the driver cannot (generic). It is held by
//! a link of the kernel, which lets go when this process ends, however it ends. Kernels before 5.9 have
//! no such link: there it is attached by rtnetlink and taken away on drop, and a process that is
//! killed leaves it behind; [`ProgramFacts::held_by`] tells.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;

use whylate_sys::Errno;
use whylate_sys::bpf;
use whylate_sys::capability::{self, Cap};
use whylate_sys::interface::Interface;
use whylate_sys::xdp::{GENERIC_MODE, Interfaces, NATIVE_MODE, Refusal};

use crate::bpf::error::BpfError;

/// An interface of the calling thread's namespace, as far as a program needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceRef<'a> {
    /// Its name, for what is said of it.
    pub name: &'a str,
    /// Its index, which is what counts.
    pub index: u32,
}

impl<'a> From<&'a Interface> for InterfaceRef<'a> {
    fn from(interface: &'a Interface) -> Self {
        Self { name: &interface.name, index: interface.index }
    }
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// In the driver, before the kernel has made anything of the frame.
    Native,
    /// In the network stack, after it has; on any interface.
    Generic,
}

impl Mode {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    fn flag(self) -> u32 {
        match self {
            Self::Native => NATIVE_MODE,
            Self::Generic => GENERIC_MODE,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a program is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wanted {
    /// In the driver; where that cannot, in the network stack.
    #[default]
    Any,
    /// There, or not at all.
    Only(Mode),
}

impl Wanted {
    fn modes(self) -> &'static [Mode] {
        match self {
            Self::Any => &[Mode::Native, Mode::Generic],
            Self::Only(Mode::Native) => &[Mode::Native],
            Self::Only(Mode::Generic) => &[Mode::Generic],
        }
    }
}

impl FromStr for Wanted {
    type Err = BpfError;

    fn from_str(text: &str) -> Result<Self, BpfError> {
        match text {
            "any" => Ok(Self::Any),
            "native" => Ok(Self::Only(Mode::Native)),
            "generic" => Ok(Self::Only(Mode::Generic)),
            _ => {
                let why = format!("`{text}` is none: choose `any`, `native` or `generic`");
                Err(BpfError::Unfit { what: "a mode", why })
            }
        }
    }
}

/// What keeps a program attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldBy {
    /// A link, which ends with this process.
    Link,
    /// The interface itself: a process that is killed leaves it behind.
    Interface,
}

/// What is known of an attached program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFacts {
    /// The interface, as it was called then.
    pub interface: String,
    /// Where it runs.
    pub mode: Mode,
    /// Why the driver does not run it, where it was asked and does not.
    pub native_refused: Option<String>,
    /// What keeps it.
    pub held_by: HeldBy,
    /// Its number in the kernel.
    pub id: u32,
    /// Its name in the kernel.
    pub name: String,
}

/// A program on an interface, until it is dropped.
#[derive(Debug)]
pub struct Attached<P: AsFd> {
    program: P,
    index: u32,
    /// None where the interface itself holds the program.
    link: Option<OwnedFd>,
    interfaces: Interfaces,
    facts: ProgramFacts,
}

impl<P: AsFd> Attached<P> {
    /// The program and its maps.
    #[must_use]
    pub fn program(&self) -> &P {
        &self.program
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &ProgramFacts {
        &self.facts
    }

    /// Is it still there? It is not when its interface was deleted, or somebody took it away.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        match &self.link {
            Some(link) => bpf::linked_interface(link).is_ok_and(|index| index.is_some()),
            None => self.interfaces.attached(self.index) == Ok(Some(self.facts.id)),
        }
    }
}

impl<P: AsFd> Drop for Attached<P> {
    fn drop(&mut self) {
        if self.link.is_none() {
            let (id, mode) = (self.facts.id, self.facts.mode.flag());
            // An interface that is gone has taken the program along.
            let _ = self.interfaces.detach(self.index, &self.program, id, mode);
        }
    }
}

/// Attaches what `load` makes for a mode, in the first of the modes that can be had.
pub(super) fn attach<P: AsFd>(
    interface: InterfaceRef<'_>,
    wanted: Wanted,
    mut load: impl FnMut(Mode) -> Result<P, BpfError>,
) -> Result<Attached<P>, BpfError> {
    let interfaces = Interfaces::open()?;
    if let Some(occupied) = occupied(&interfaces, interface) {
        return Err(occupied);
    }
    let mut refused: Option<(Mode, String)> = None;
    for &mode in wanted.modes() {
        let program = load(mode)?;
        let info = bpf::program_info(&program)?;
        match hold(&interfaces, interface, &program, mode) {
            Ok(link) => {
                let held_by = if link.is_some() { HeldBy::Link } else { HeldBy::Interface };
                let facts = ProgramFacts {
                    interface: interface.name.to_owned(),
                    mode,
                    native_refused: refused.map(|(_, reason)| reason),
                    held_by,
                    id: info.id,
                    name: info.name,
                };
                return Ok(Attached { program, index: interface.index, link, interfaces, facts });
            }
            Err(Failure::Mode(reason)) => refused = Some((mode, reason)),
            Err(Failure::All(error)) => return Err(error),
        }
    }
    let (mode, reason) = refused.expect("invariant: no choice of modes is empty");
    Err(BpfError::Refused { interface: interface.name.to_owned(), mode, reason })
}

/// Why a program is not attached.
enum Failure {
    /// Not in this mode.
    Mode(String),
    /// Nor in any other.
    All(BpfError),
}

/// Attaches a program: by a link, or else by rtnetlink, which gives reasons where it refuses, too.
fn hold(
    interfaces: &Interfaces,
    interface: InterfaceRef<'_>,
    program: impl AsFd,
    mode: Mode,
) -> Result<Option<OwnedFd>, Failure> {
    let program = program.as_fd();
    let errno = match bpf::link_xdp(program, interface.index, mode.flag()) {
        Ok(link) => return Ok(Some(link)),
        Err(errno) => errno,
    };
    if let Some(error) = hopeless(interfaces, interface, errno) {
        return Err(Failure::All(error));
    }
    match interfaces.attach(interface.index, program, mode.flag()) {
        Ok(()) => Ok(None),
        Err(Refusal { errno, words }) => {
            let hopeless = hopeless(interfaces, interface, errno);
            let reason = Refusal { errno, words }.to_string();
            Err(hopeless.map_or(Failure::Mode(reason), Failure::All))
        }
    }
}

/// What no other mode mends.
fn hopeless(
    interfaces: &Interfaces,
    interface: InterfaceRef<'_>,
    errno: Errno,
) -> Option<BpfError> {
    let name = || interface.name.to_owned();
    match errno {
        Errno::NODEV => Some(BpfError::Gone { interface: name() }),
        Errno::PERM => {
            let advice = if capability::effective().has(Cap::NetAdmin) {
                "the kernel forbids it (EPERM): is it locked down, or this a container?".to_owned()
            } else {
                capability::explain(Cap::NetAdmin)
            };
            Some(BpfError::Denied { interface: name(), advice })
        }
        Errno::BUSY | Errno::EXIST => occupied(interfaces, interface),
        _ => None,
    }
}

/// Whose program is there, if any is.
fn occupied(interfaces: &Interfaces, interface: InterfaceRef<'_>) -> Option<BpfError> {
    let id = interfaces.attached(interface.index).ok().flatten()?;
    let program = bpf::program_by_id(id).and_then(bpf::program_info).ok().map(|info| info.name);
    Some(BpfError::Occupied { interface: interface.name.to_owned(), id, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_comes_first_and_a_mode_that_is_asked_for_alone_stays_alone() {
        assert_eq!(Wanted::default().modes(), [Mode::Native, Mode::Generic]);
        for mode in [Mode::Native, Mode::Generic] {
            assert_eq!(Wanted::Only(mode).modes(), [mode]);
            assert_eq!(mode.name().parse::<Wanted>().unwrap(), Wanted::Only(mode));
        }
        assert_eq!("any".parse::<Wanted>().unwrap(), Wanted::Any);
        let told = "offload".parse::<Wanted>().unwrap_err().to_string();
        assert!(told.contains("offload") && told.contains("generic"), "{told}");
    }
}
