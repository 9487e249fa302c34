//! A box by two captures of the same traffic, in words and a table.

use whylate_model::device::{CapturedWay, Device, PacketPoint, TwoCaptures};

use super::in_words;
use crate::doc::Table;
use crate::numbers::{Value, count};

/// Frames that are in both captures, those that went in and did not come out, and the share of these.
pub(crate) fn came_and_lost(of: &TwoCaptures) -> (u64, u64, Value) {
    let lost = of.ways.iter().map(|way| way.lost).fold(0, u64::saturating_add);
    let came = of.matched.saturating_add(of.ambiguous);
    let share = Value::Share(lost as f64 / lost.saturating_add(came).max(1) as f64);
    (came, lost, share)
}

/// What two captures of the same traffic hold of each other.
pub(super) fn captures(of: &TwoCaptures) -> String {
    let (came, lost, share) = came_and_lost(of);
    let left_out = if of.left_out.is_empty() {
        String::new()
    } else {
        format!(" Not compared, for the box changes it: {}.", of.left_out.join(", "))
    };
    format!(
        "By two captures: {} frames are in both {} and {}, {} of them with a latency; {} only before the box, \
         {} only behind it, {} could not be told from others, and {} came while the other side did not capture; \
         {} went in and did not come out ({share}). Stamps in steps of {}; clocks: {}. {}.{left_out}",
        count(came),
        of.before,
        of.behind,
        count(of.matched),
        count(of.only_before),
        count(of.only_behind),
        count(of.ambiguous),
        count(of.unjudged),
        count(lost),
        crate::svg::resolution_label(of.resolution_ns),
        of.clocks,
        stamped(&of.ways)
    )
}

/// Which points of a packet the latencies are between, as it was told.
fn stamped(ways: &[CapturedWay]) -> String {
    const NOT_TOLD: &str = "Which point of a packet the stamps are of was not told (--stamped), and no \
         format says it";
    match ways {
        [] => NOT_TOLD.to_owned(),
        [first, rest @ ..] if rest.iter().all(|way| way.point == first.point) => {
            if first.point == PacketPoint::Unknown {
                return NOT_TOLD.to_owned();
            }
            format!("Stamps, as it was told: {}", in_words(first.point))
        }
        _ => {
            let of =
                |way: &CapturedWay| format!("{} {}", way.direction.name(), in_words(way.point));
            let all: Vec<String> = ways.iter().map(of).collect();
            format!("Stamps, as it was told: {}", all.join("; "))
        }
    }
}

/// Each way through the box; none without captures.
pub(super) fn captured_ways(of: &Device) -> Option<Table> {
    let ways = &of.captures.as_ref()?.ways;
    let head =
        ["", "with a latency", "lost", "doubled", "new", "ambiguous", "backwards", "reordered"];
    let row = |one: &CapturedWay| {
        let counts = [
            one.matched,
            one.lost,
            one.duplicates,
            one.only_out,
            one.ambiguous,
            one.backwards,
            one.reordered,
        ];
        std::iter::once(one.direction.name().to_owned()).chain(counts.map(count))
    };
    Table::new("Frames by way, by both captures", &head).with(ways.iter().map(row)).filled()
}

#[cfg(test)]
mod tests {
    use whylate_model::flow::Direction;

    use super::*;

    fn answer(of: &TwoCaptures) -> String {
        let of = Device { captures: Some(of.clone()), ..crate::device::tests::device() };
        crate::answer(&whylate_model::run::Run {
            device: Some(Box::new(of)),
            gaps: Vec::new(),
            ..crate::timeline::tests::recorded()
        })
    }

    #[test]
    fn what_became_of_frames_between_captures_is_answered_in_a_sentence() {
        let way = |direction, matched, lost| CapturedWay {
            direction,
            point: PacketPoint::Unknown,
            series: None,
            matched,
            lost,
            duplicates: 7,
            only_out: 1,
            ambiguous: 0,
            backwards: 0,
            reordered: 0,
        };
        let mut of = TwoCaptures {
            before: "in.pcap".to_owned(),
            behind: "out.pcap".to_owned(),
            matched: 1_700,
            only_before: 100,
            only_behind: 208,
            ambiguous: 100,
            unjudged: 0,
            left_out: Vec::new(),
            ways: vec![way(Direction::There, 900, 100), way(Direction::Back, 800, 100)],
            resolution_ns: 1.0,
            clocks: "one".to_owned(),
        };
        assert_eq!(
            answer(&of),
            "1,800 frames are in both captures; 200 went in and did not come out (10%). It is \
             store-and-forward."
        );
        assert!(captures(&of).contains("was not told (--stamped), and no format says it."));
        for way in &mut of.ways {
            way.point = PacketPoint::EndToEnd;
        }
        assert!(captures(&of).contains("Stamps, as it was told: end of the packet to its end"));
        of.ways[1].point = PacketPoint::StartToEnd;
        let said = captures(&of);
        assert!(said.contains("inbound start of the packet in to its end out"), "{said}");
    }
}
