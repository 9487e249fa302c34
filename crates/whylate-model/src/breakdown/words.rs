//! How points, parts and sources read in a report, and what series of parts are called.

use std::fmt;

use super::{Leg, Part, Point, Source, Station};

/// What lies between two stations of one way. Of those that begin at a station the longest that still
/// fits is said.
const STRETCHES: [(Station, Station, &str); 19] = [
    (Station::Intended, Station::Sent, "send delay"),
    (Station::Sent, Station::Queued, "send path"),
    (Station::Queued, Station::Driver, "qdisc"),
    (Station::Driver, Station::Arrived, "driver to driver"),
    (Station::Driver, Station::WireIn, "card, wire"),
    (Station::Driver, Station::Tap, "driver to tap"),
    (Station::Driver, Station::WireOut, "sending card"),
    (Station::WireOut, Station::Arrived, "wire, card"),
    (Station::WireOut, Station::WireIn, "wire"),
    (Station::WireOut, Station::Tap, "wire to the tap"),
    (Station::Tap, Station::Arrived, "tap to driver"),
    (Station::Tap, Station::WireIn, "wire from the tap"),
    (Station::WireIn, Station::Arrived, "receiving card"),
    (Station::Arrived, Station::Delivered, "receive path"),
    (Station::Delivered, Station::Running, "wake-up"),
    (Station::Delivered, Station::Woken, "wake-up call"),
    (Station::Woken, Station::Running, "waiting for a CPU"),
    (Station::Running, Station::Read, "read"),
    (Station::Read, Station::Intended, "the server"),
];

/// The same of a reader that nobody woke: it was awake and looked.
const AWAKE: &str = "read without a wake-up";

/// What steps were called once, and are in the labels of older runs.
const OLDER: [(&str, &str); 7] = [
    ("send lateness", "send delay"),
    ("send call and protocols", "send path"),
    ("queueing discipline", "qdisc"),
    ("sending card and wire", "card, wire"),
    ("wire and receiving card", "wire, card"),
    ("receiving stack", "receive path"),
    ("return from the read", "read"),
];

/// The label of a part's series with its steps as they are called now: `send path, qdisc, request of rtt`.
/// `None` where one of them is no step, so that what somebody named stays as it is named.
pub(crate) fn shown_steps(label: &str) -> Option<String> {
    let whose = [", request of ", ", reply of ", ", between "];
    let end = whose.iter().find_map(|of| label.rfind(of))?;
    let (steps, whose) = label.split_at(end);
    let steps = OLDER.iter().fold(steps.to_owned(), |of, (old, now)| of.replace(old, now));
    let steps = steps.replace(" and ", ", ");
    are_steps(&steps).then(|| format!("{steps}{whose}"))
}

/// Is that a list of known steps? Some of them have a comma of their own.
fn are_steps(list: &str) -> bool {
    let mut known = STRETCHES.iter().map(|(.., name)| *name).chain([AWAKE]);
    known.any(|name| {
        let rest = list.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(", ").is_some_and(are_steps))
    })
}

impl Leg {
    /// Its word: `request`, `reply`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Reply => "reply",
        }
    }
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Own,
        Self::Told,
        Self::Software,
        Self::Hardware,
        Self::Trace,
        Self::Tap,
        Self::Metadata,
    ];

    /// Its word: `own`, `told`, `stamp`, ...
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Told => "told",
            Self::Software => "stamp",
            Self::Hardware => "card",
            Self::Trace => "trace",
            Self::Tap => "tap",
            Self::Metadata => "metadata",
        }
    }

    /// Whose clock that is, in a few words.
    #[must_use]
    pub fn clock(self) -> &'static str {
        match self {
            Self::Own => "the counter, read by the client",
            Self::Told => "the counter, read by the other end",
            Self::Software => "stamps of the kernel",
            Self::Hardware => "stamps of the card",
            Self::Trace => "tracepoints of the kernel",
            Self::Tap => "stamps of the tap",
            Self::Metadata => "metadata of frames",
        }
    }
}

impl Part {
    /// What it consists of, in plain words and in the order of the way.
    #[must_use]
    pub fn steps(self) -> Vec<&'static str> {
        if self.is_reading_awake() {
            return vec![AWAKE];
        }
        let mut steps = Vec::new();
        let mut at = self.from;
        while at < self.to {
            let Some((step, next)) = step(at, self.to) else { break };
            steps.push(step);
            at = next;
        }
        steps
    }

    /// Does it end with a message that its reader was there for? Nobody wakes a reader that is awake,
    /// so that nothing is missing between the two points.
    #[must_use]
    pub fn is_reading_awake(self) -> bool {
        self.from.leg == self.to.leg
            && (self.from.station, self.to.station) == (Station::Delivered, Station::Read)
    }

    /// What it is called: its steps as a list.
    #[must_use]
    pub fn words(self) -> String {
        let steps = self.steps();
        if steps.is_empty() { "no time".to_owned() } else { steps.join(", ") }
    }

    /// Name of the series of it in a flow: `rtt-part-request-sent-queued`.
    #[must_use]
    pub fn series(self, flow: &str) -> String {
        let Self { from, to } = self;
        let crossing = if from.leg == to.leg { "" } else { "reply-" };
        let name = format!(
            "{flow}-part-{}-{}-{crossing}{}",
            from.leg.word(),
            from.station.word(),
            to.station.word()
        );
        name.replace(' ', "-")
    }
}

/// The longest step from a point that does not go beyond `to`, and where it ends.
fn step(at: Point, to: Point) -> Option<(&'static str, Point)> {
    let mut of_station = STRETCHES.iter().filter(|(from, ..)| *from == at.station);
    of_station.find_map(|(_, end, words)| {
        let end = match (at.station, at.leg) {
            (Station::Read, Leg::Request) => Point::back(Station::Sent),
            (Station::Read, Leg::Reply) => return None,
            (_, leg) => Point { leg, station: *end },
        };
        (end <= to).then_some((*words, end))
    })
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.leg.word(), self.station.word()))
    }
}

impl fmt::Display for Part {
    /// From where to where: `request sent -> queued`, `request read -> reply sent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        if from.leg == to.leg {
            f.pad(&format!("{from} -> {}", to.station.word()))
        } else {
            f.pad(&format!("{from} -> {to}"))
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(from: Station, to: Station) -> Part {
        Part { from: Point::there(from), to: Point::there(to) }
    }

    #[test]
    fn parts_read_as_what_they_hold() {
        let server = Part { from: Point::there(Station::Read), to: Point::back(Station::Sent) };
        for (part, words) in [
            (there(Station::Sent, Station::Queued), "send path"),
            (there(Station::Driver, Station::Arrived), "driver to driver"),
            (there(Station::Driver, Station::WireOut), "sending card"),
            (there(Station::Delivered, Station::Read), "read without a wake-up"),
            (there(Station::Woken, Station::Running), "waiting for a CPU"),
            (server, "the server"),
            (there(Station::Sent, Station::Arrived), "send path, qdisc, driver to driver"),
            (there(Station::Arrived, Station::Read), "receive path, wake-up, read"),
        ] {
            assert_eq!(part.words(), words, "{part}");
        }
        assert_eq!(server.to_string(), "request read -> reply sent");
        assert_eq!(server.series("rtt"), "rtt-part-request-read-reply-sent");
        let wire = there(Station::WireOut, Station::WireIn);
        assert_eq!(wire.series("rtt"), "rtt-part-request-wire-out-wire-in");
        assert_eq!(wire.to_string(), "request wire out -> wire in");
    }

    /// No reply is intended: its way begins with what is sent.
    #[test]
    fn every_part_of_the_way_has_words_and_a_series_of_its_own() {
        let points: Vec<Point> = (0..Point::COUNT)
            .filter_map(Point::at)
            .filter(|point| *point != Point::back(Station::Intended))
            .collect();
        let mut names = Vec::new();
        for (at, from) in points.iter().enumerate() {
            for to in &points[at + 1..] {
                let part = Part { from: *from, to: *to };
                let steps = part.steps();
                assert!(!steps.is_empty(), "{part}");
                names.push(part.series("a"));
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| !name.contains([' ', ','])));
    }

    #[test]
    fn the_words_of_a_part_are_those_of_its_neighbouring_steps() {
        let whole = Part { from: Point::there(Station::Intended), to: Point::back(Station::Read) };
        let steps = whole.steps();
        assert_eq!((steps[0], steps.len()), ("send delay", 14), "{steps:?}");
        assert_eq!(steps.iter().filter(|step| **step == "the server").count(), 1);
    }
}
