//! Where the memory of a box lies: what it took before a configuration came into force is brought to the node of
//! that, and what lies where afterwards is read back.
//!
//! A cpuset says where new memory comes from, and may bring the old along or not; a box that runs has its
//! rings and its tables by then, and a `remote` without them would be none. Counted is the memory of the box
//! itself: files that are mapped, as programs and libraries are, lie where who read them first had them. What is
//! pinned, as rings that a card writes to are, cannot move, and that is said.

use std::collections::BTreeMap;

use whylate_sys::numa;

use super::work::Work;
use crate::files::{text, under};

const KNOB: &str = "numa.pages";
/// KiB of a page where a line does not say.
const PAGE_KIB: u64 = 4;

/// KiB by node.
type Placed = BTreeMap<u32, u64>;

/// Brings what the box has to this node.
pub(super) fn bring(work: &mut Work<'_>, node: u32) {
    let subject = work.subject;
    if subject.pids.is_empty() {
        return work.lacks(KNOB, "the box has no process: the kernel keeps its frames");
    }
    let before = match placed_of(work) {
        Ok(before) => before,
        Err(why) => return work.lacks(KNOB, why),
    };
    // A planted host has no memory to move.
    if work.ground.is_here() {
        let others: Vec<u32> = before.keys().copied().filter(|other| *other != node).collect();
        for pid in &subject.pids {
            if let Err(refusal) = numa::move_pages(*pid, &others, node) {
                return work.lacks(KNOB, refusal.to_string());
            }
        }
    }
    let after = match placed_of(work) {
        Ok(after) => after,
        Err(why) => return work.lacks(KNOB, why),
    };
    work.read(KNOB, in_words(&before), Some(&format!("node {node}")), in_words(&after));
    let (here, all) = (after.get(&node).copied().unwrap_or(0), after.values().sum::<u64>());
    if here < all {
        let stays = all - here;
        work.lacks(
            KNOB,
            format!(
                "{stays} of {all} KiB of the box are on other nodes than {node}: what is pinned, as rings that \
                 a card writes to, cannot move"
            ),
        );
    }
}

/// Of all processes of the box.
fn placed_of(work: &Work<'_>) -> Result<Placed, String> {
    let mut all = Placed::new();
    for pid in &work.subject.pids {
        let path = under(&work.ground.root, &format!("/proc/{pid}/numa_maps"));
        let said = text(&path).map_err(|why| {
            format!("where its memory lies is not known: {}: {why}", path.display())
        })?;
        for (node, kib) in placed(&said) {
            *all.entry(node).or_insert(0) += kib;
        }
    }
    Ok(all)
}

/// What `numa_maps` of a process says of memory that no file is behind.
fn placed(said: &str) -> Placed {
    let mut all = Placed::new();
    for line in said.lines() {
        let fields = || line.split_whitespace();
        if fields().any(|field| field.starts_with("file=")) {
            continue;
        }
        let size =
            fields().find_map(|field| field.strip_prefix("kernelpagesize_kB=")?.parse().ok());
        let each: u64 = size.unwrap_or(PAGE_KIB);
        for field in fields() {
            let of_node = || {
                let (node, pages) = field.strip_prefix('N')?.split_once('=')?;
                Some((node.parse::<u32>().ok()?, pages.parse::<u64>().ok()?))
            };
            if let Some((node, pages)) = of_node() {
                let kib = all.entry(node).or_insert(0);
                *kib = kib.saturating_add(pages.saturating_mul(each));
            }
        }
    }
    all.retain(|_, kib| *kib > 0);
    all
}

/// `node 1`, or `8 KiB on node 0, 12 KiB on node 1`.
fn in_words(placed: &Placed) -> String {
    let mut all = placed.iter();
    match (all.next(), all.next()) {
        (None, _) => "none".to_owned(),
        (Some((node, _)), None) => format!("node {node}"),
        _ => {
            let each = placed.iter().map(|(node, kib)| format!("{kib} KiB on node {node}"));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_box_itself_is_counted_by_node_in_pages_of_their_size() {
        let said = "55d0 default file=/usr/bin/cat mapped=6 N0=6 kernelpagesize_kB=4\n\
                    55f0 default heap anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4\n\
                    7f00 bind:1 huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n\
                    7f10 default\n\
                    7ffd default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n";
        assert_eq!(placed(said), Placed::from([(0, 20), (1, 4_100)]));
        assert_eq!(in_words(&placed(said)), "20 KiB on node 0, 4100 KiB on node 1");
        assert_eq!(in_words(&Placed::from([(1, 8)])), "node 1");
        assert_eq!(in_words(&Placed::new()), "none");
        for hostile in ["", "N", "x N=1 N1= Nx=2 N1=-3", "a N0=0", "a anon=1 N1=y"] {
            assert_eq!(placed(hostile), Placed::new(), "{hostile:?}");
        }
        let most = u64::MAX;
        assert_eq!(
            placed(&format!("a N0={most} N0={most} kernelpagesize_kB=4")),
            Placed::from([(0, most)])
        );
    }
}
