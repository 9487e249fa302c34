//! VLAN tags that a driver would hand over beside frames, where who takes frames from the driver itself does
//! not see them: kept in the frames for as long as these are forwarded, or held back by a delay line.

use whylate_host::guard::TagsInFrames;
use whylate_host::journal::Journal;
use whylate_net::forward::taken_from_driver;
use whylate_port::Transport;
use whylate_port::frames::FramesFacts;
use whylate_sys::ethtool;

/// What was switched off at the two ports, until this goes.
pub(crate) struct Tags {
    _guards: Vec<TagsInFrames>,
    /// Of each port, what a reader has to know.
    said: [Option<String>; 2],
}

impl Tags {
    /// Has the drivers of both ports leave tags in frames, where the ports take frames from the driver. It
    /// has to be in the ports' network namespace. What cannot be done is said, and the ports are warned of
    /// where that matters.
    pub(crate) fn keep(
        transport: Transport,
        interfaces: &[String; 2],
        journal: Option<&Journal>,
    ) -> Self {
        let (mut guards, mut said) = (Vec::new(), [None, None]);
        for (name, said) in interfaces.iter().zip(&mut said) {
            let Some((interface, journal)) = taken_from_driver(transport, name).zip(journal) else {
                continue;
            };
            // One that is not there is refused by name where it is opened.
            match TagsInFrames::of(journal, &interface) {
                Ok(guard) if guard.is_changed() => {
                    *said = Some(format!(
                        "VLAN tags stay in the frames that `{interface}` receives: its rx-vlan-offload \
                         was on, and is off until this ends"
                    ));
                    guards.push(guard);
                }
                Ok(_) => {}
                Err(error) => {
                    *said = Some(format!(
                        "VLAN tags that `{interface}` keeps beside frames are lost: {error}"
                    ));
                }
            }
        }
        Self { _guards: guards, said }
    }

    /// Adds what was done to what is known of the ports.
    pub(crate) fn tell(&self, facts: &mut [FramesFacts; 2]) {
        for (of, said) in facts.iter_mut().zip(&self.said) {
            of.instead.extend(said.iter().cloned());
        }
    }
}

/// What a reader has to know of a port by which more than a frame may come in one piece, or a checksum that
/// nobody has made; none where neither is known of it.
pub(crate) fn uncut(transport: Transport, name: &str) -> Option<String> {
    if !matches!(transport, Transport::Packet | Transport::Xdp) {
        return None;
    }
    if ethtool::driver(name).is_ok_and(|driver| driver == "veth") {
        return Some(format!(
            "`{name}` is an end of a virtual link: what a sender at its other end leaves uncut is longer than a \
             frame and is dropped, and checksums that it leaves to the link nobody makes (`ethtool -K NAME tx \
             off tso off` there)"
        ));
    }
    // AF_XDP takes frames before the kernel merges them.
    let is_merged = |of: ethtool::Offloads| of.gro == Some(true) || of.lro == Some(true);
    let merges = transport == Transport::Packet && ethtool::offloads(name).is_ok_and(is_merged);
    merges.then(|| {
        format!(
            "`{name}` merges segments that it receives: they are longer than a frame then, and are dropped \
             (`ethtool -K {name} gro off lro off`)"
        )
    })
}

/// Does one of the ports take frames from the kernel's driver? Else nothing is changed.
pub(crate) fn concern(transport: Transport, interfaces: &[String; 2]) -> bool {
    interfaces.iter().any(|name| taken_from_driver(transport, name).is_some())
}
