//! What a forwarder carries of a flood, for the tests of what else lies between two hosts; and huge pages for
//! those of boxes.

use std::time::Duration;

use whylate_host::guard::Settings;
use whylate_model::CpuId;

use crate::between::Bed;
pub(crate) use crate::flood::{Carried, SETTLED, flooded, passes};
use crate::needs;
use crate::pairs::{Against, Claim, say};

/// Rounds are added so long, unless a number of them is asked for.
const BUDGET: Duration = Duration::from_secs(5);

/// Huge pages for testpmd, given back with this.
pub(crate) fn huge_pages() -> Option<Settings> {
    crate::huge_pages::reserve().map_err(|why| needs::missing(&why)).ok()
}

/// The bed, the CPU of the sender and that of the forwarder, where `programs` are there as well.
pub(crate) fn site(programs: &[&str]) -> Option<(Bed, [CpuId; 2])> {
    let cpus = needs::cpus(2)?;
    if !programs.iter().all(|name| needs::program(name).is_some()) {
        return None;
    }
    Some((Bed::new()?, [cpus[0], cpus[cpus.len() - 1]]))
}

/// Rounds of both, and what they allow to say of the second over the first.
pub(crate) fn beside(
    (peer, what): (&str, &str),
    cpus: &[CpuId],
    theirs: impl Fn() -> Carried,
    ours: impl Fn() -> Carried,
) -> Option<Claim> {
    say(&format!("{what}, 64 bytes as fast as trafgen sends them:"));
    let of = Against { peer, names: ["frames a second"], budget: BUDGET, least: 1, cpus };
    let [claim] = of.claims(|_| [theirs(), ours(), theirs()].map(|of| [of.rate]));
    claim.map(|claim| Claim { said: format!("{what}: {}", claim.said), ..claim })
}
