//! The tap of a bed as a third vantage point: what it sees lies between the stamps of both ends' kernels.
//! So does what somebody else's tap writes into a file while the requests go by: pcap with nanoseconds and
//! ERF, whole and cut.

use std::path::Path;

use whylate_model::Nanos;
use whylate_model::breakdown::{Breakdown, Point, Source, Station};
use whylate_model::tap::{TapBetween, TapClock, TapFacts, TapFrom};
use whylate_model::warning::Warning;

use crate::elsewhere::{Elsewhere, Format};
use crate::needs;
use crate::program::{self, Recorded, recorded, recorded_but_for, said};
use crate::requests::{self, Bed, flow};

/// A short run through a bed with a tap, stamped at both ends.
fn tapped(bed: &Bed, words: &str) -> Recorded {
    recorded(&format!(
        "rtt --bed {} --rate 1kpps --duration 300ms --warmup 100ms --wait block --no-trace \
         --breakdown=stamps,told,tap {words}",
        bed.0
    ))
}

fn breakdown(recorded: &Recorded) -> &Breakdown {
    flow(&recorded.run).breakdown.as_deref().expect("requests were taken apart")
}

fn facts(recorded: &Recorded) -> &TapFacts {
    breakdown(recorded).tap.as_deref().expect("a tap was read")
}

/// Each request is one that agrees, one that does not or one that is not compared, and no side has more
/// than there are.
fn closes(recorded: &Recorded) -> &TapBetween {
    let (of, tap) = (breakdown(recorded), facts(recorded));
    let between = tap.between.as_ref().expect("a tap and stamps");
    let compared = between.agree + between.disagree;
    assert_eq!(compared + between.not_compared, of.requests, "{between:#?}");
    assert_eq!(between.sides.len(), 4, "{between:#?}");
    for side in &between.sides {
        assert!(side.agree <= side.compared && side.compared <= compared, "{between:#?}");
        assert!(side.compared - side.agree <= between.disagree, "{between:#?}");
        assert!(side.largest <= between.largest, "{between:#?}");
    }
    // Each message passed once, and what nobody answered is told.
    assert_eq!(tap.clock, TapClock::System);
    assert_eq!(tap.counts.requests, tap.counts.paired + tap.counts.unanswered, "{tap:#?}");
    assert_eq!(tap.counts.replies, tap.counts.paired + tap.counts.unasked, "{tap:#?}");
    between
}

/// Some are compared on every side, the reports say so, and more than one of a hundred that disagree are
/// warned of, and no fewer.
fn is_told(recorded: &Recorded, what: &str) {
    let (of, between) = (breakdown(recorded), closes(recorded));
    for side in &between.sides {
        assert!(side.compared > 0, "{what}: {between:#?} {:#?}", of.points);
    }
    let disagrees = |warning: &Warning| matches!(warning, Warning::TapDisagrees { .. });
    let warned = recorded.run.warnings.iter().any(disagrees);
    assert_eq!(warned, between.is_contradiction(), "{what}: {between:#?}");
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    for told in [&text, &page] {
        assert!(told.contains("The tap between the stamps of both ends"), "{what}: {told}");
        assert!(told.contains("passed it between the stamps of both ends"), "{what}: {told}");
    }
}

#[test]
fn what_the_tap_of_a_bed_sees_is_set_between_the_stamps_of_both_ends_and_counts_close() {
    let _alone = program::alone();
    if needs::program("tc").is_none() {
        return;
    }
    for kind in ["direct", "bridge"] {
        let Some(bed) = Bed::up_as(&format!("tap-{kind}"), &format!("{kind} --tap")) else {
            return;
        };
        for port in ["udp", "tcp"] {
            is_told(&tapped(&bed, &format!("--port {port}")), &format!("{kind} {port}"));
        }
    }
}

#[test]
fn the_tap_of_a_bed_with_a_switch_is_set_between_the_stamps_too() {
    let _alone = program::alone();
    if needs::program("ovs-vswitchd").is_none() {
        return;
    }
    let Some(bed) = Bed::up_as("tap-ovs", "ovs --tap") else { return };
    for port in ["udp", "tcp"] {
        is_told(&tapped(&bed, &format!("--port {port}")), &format!("ovs {port}"));
    }
}

#[test]
fn where_one_sending_in_ten_is_stamped_the_others_are_set_against_what_came_of_them() {
    let _alone = program::alone();
    let Some(bed) = Bed::up_as("tap-some", "bridge --tap") else { return };
    let recorded = tapped(&bed, "--stamp-every 10");
    let (of, between) = (breakdown(&recorded), closes(&recorded));
    let [driver, arrived, ..] = &between.sides[..] else { panic!("{between:#?}") };
    assert_eq!((driver.stamp, arrived.stamp), (Station::Driver, Station::Arrived));
    // What was received is stamped whoever asks; of what was sent, a tenth.
    assert!(arrived.compared > 0, "{between:#?}");
    let stamped = of.points.iter().find(|facts| {
        facts.point == Point::there(Station::Driver) && facts.source == Source::Software
    });
    let stamped = stamped.expect("it was asked for");
    assert!(driver.compared > 0 && driver.compared <= stamped.came, "{between:#?} {stamped:?}");
    assert!(stamped.not_asked > 0, "{stamped:?}");
}

/// A run whose tap writes in this format; bytes of the file's end are not there when it is read, which are reasons
/// for poor trust.
fn against_a_file(
    bed: &Bed,
    (format, held_back): (Format, usize),
    words: &str,
    planted: &[&str],
) -> Recorded {
    let home = tempfile::tempdir().unwrap();
    let path = format.file(home.path());
    let _tap = Elsewhere::start(bed, format, &path, held_back);
    let words = format!(
        "rtt --bed {} --rate 1kpps --duration 300ms --warmup 100ms --wait block --no-trace \
         --breakdown=stamps,told --tap {} {words}",
        bed.0,
        path.display()
    );
    recorded_but_for(&words, planted)
}

/// What was read is that file, to the nanosecond, and requests and replies were in it.
fn is_of_the_file(recorded: &Recorded, format: Format) {
    let tap = facts(recorded);
    let TapFrom::File { name, format: read } = &tap.from else { panic!("{tap:?}") };
    assert_eq!((Path::new(name), &**read), (&*format.file(Path::new("")), format.name()));
    assert_eq!((tap.resolution, tap.lost, tap.skipped), (Nanos(1), 0, 0), "{tap:?}");
    assert!(tap.counts.paired > 0, "{tap:?}");
    assert!(tap.packets >= 2 * tap.counts.paired, "{tap:?}");
}

#[test]
fn what_a_tap_writes_into_a_file_is_set_between_the_stamps_of_both_ends() {
    let _alone = program::alone();
    let Some(bed) = Bed::up_as("tap-file", "bridge --tap") else { return };
    for (format, port) in [(Format::Pcap, "udp"), (Format::Erf, "udp"), (Format::Pcap, "tcp")] {
        let words = format!("--port {port} --tap-clock system");
        let recorded = against_a_file(&bed, (format, 0), &words, &[]);
        is_of_the_file(&recorded, format);
        is_told(&recorded, &format!("{} {port}", format.name()));
    }
}

#[test]
fn by_a_clock_of_its_own_a_tap_gives_distances_and_no_instants() {
    let _alone = program::alone();
    let Some(bed) = Bed::up_as("tap-own", "bridge --tap") else { return };
    let recorded = against_a_file(&bed, (Format::Erf, 0), "", &[]);
    is_of_the_file(&recorded, Format::Erf);
    let (of, tap) = (breakdown(&recorded), facts(&recorded));
    assert_eq!((tap.clock, &tap.between), (TapClock::Own, &None));
    assert!(of.points.iter().all(|facts| facts.source != Source::Tap), "{:#?}", of.points);
    let series = tap.series.as_ref().expect("distances from request to reply");
    let distances = requests::series(&recorded.run, series).expect("it is among the series");
    assert_eq!(distances.n, tap.counts.paired - tap.counts.backwards, "{tap:?}");
}

#[test]
fn a_tap_whose_file_is_cut_is_taken_up_to_there_and_says_how_much_was_not() {
    let _alone = program::alone();
    let Some(bed) = Bed::up_as("tap-cut", "bridge --tap") else { return };
    for format in [Format::Pcap, Format::Erf] {
        let words = "--tap-clock system";
        // The test cuts it.
        let cut = "ends in the middle of a packet";
        let recorded = against_a_file(&bed, (format, 10), words, &[cut]);
        assert_eq!(recorded.output.status.code(), Some(4), "{}", said(&recorded.output));
        is_of_the_file(&recorded, format);
        let told = recorded.run.warnings.iter().find_map(|warning| match warning {
            Warning::PartEndedEarly { part, reason } if part.contains("tap.") => Some(reason),
            _ => None,
        });
        let told = told.unwrap_or_else(|| panic!("{:#?}", recorded.run.warnings));
        let packets = facts(&recorded).packets;
        for words in [cut, &format!("its {packets} whole packets were taken"), "bytes were not"] {
            assert!(told.contains(words), "no `{words}` in {told}");
        }
        // Less than a whole record of a message of the run, and more than none.
        assert!(!told.contains("last 0 bytes"), "{told}");
        let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("whole packets were taken"), "{text}");
    }
}
