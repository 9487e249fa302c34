//! Things the reader of a number must know, each with advice.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::trust::Level;
use crate::units::{CpuId, Nanos};

/// A warning. One arm per fact; [`Warning::advice`] says what to do about it.
///
/// A warning that this version does not know was written by a newer one: it is kept as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Warning"))]
// The forms of the known ones; see the implementations of both traits below.
#[serde(rename_all = "snake_case", tag = "warning", remote = "Self")]
pub enum Warning {
    /// Loop time against the gap-free period is off by more than 1 % of the elapsed time.
    NoiseBelowThreshold {
        /// CPU.
        cpu: CpuId,
        /// Share of elapsed time, signed.
        share: f64,
    },
    /// Ring overflow: gaps were counted in the histogram but not kept one by one.
    RecordsDropped {
        /// CPU.
        cpu: CpuId,
        /// How many.
        dropped: u64,
    },
    /// Ring overflow: what a thread recorded of its jobs or wake-ups found no room.
    JobsUnrecorded {
        /// Which thread.
        thread: String,
        /// How many records.
        records: u64,
    },
    /// The kernel's trace buffer lost events.
    TraceLost {
        /// CPU.
        cpu: CpuId,
        /// How many, where the kernel says.
        events: Option<u64>,
    },
    /// Gaps had to be named before all their events had come, or senders were lost.
    CausesIncomplete {
        /// Gaps taken apart too early.
        gaps_forced: u64,
        /// Sends of interrupts and wake-ups lost: at least so many.
        sends: u64,
    },
    /// Kernel tracing was not available; causes come from evidence B alone.
    NoKernelTrace {
        /// Why.
        reason: String,
        /// What would make it available.
        remedy: String,
    },
    /// Interrupts and wake-ups are recorded, and who sent them is not.
    NoSenders {
        /// Why.
        reason: String,
        /// What would make them available.
        remedy: String,
    },
    /// The rseq trick failed its self-test.
    RseqUnusable {
        /// Why.
        reason: String,
    },
    /// Only one independent source of the counter's frequency.
    FrequencyFromRegressionOnly,
    /// Frequency sources disagree.
    FrequencyDisagreement {
        /// Largest difference in parts per million.
        ppm: f64,
    },
    /// A CPU changed under the measurement: offline, or the affinity was changed from outside.
    HostChanged {
        /// What changed.
        what: String,
    },
    /// No CPU was left for the main thread.
    NoHousekeepingCpu,
    /// Memory could not be locked.
    MemoryNotLocked {
        /// Why and what to do.
        reason: String,
    },
    /// A scheduling policy was refused.
    PolicyRefused {
        /// Why and what to do.
        reason: String,
    },
    /// Threads ask for more CPU time than the CPUs have that they may use.
    Overcommitted {
        /// The CPUs.
        cpus: Vec<CpuId>,
        /// What is asked of them, in CPUs.
        #[serde(rename = "asked_cpus")]
        asked: f64,
        /// When that is so first, from the beginning of the run.
        #[serde(rename = "from_ns")]
        from: Nanos,
        /// Threads that ask for it, the largest shares first.
        most: Vec<Asking>,
        /// Further threads that ask for a part of it.
        others: u64,
        /// Threads of the set of which it is not known what they ask for: not counted.
        unknown: u64,
    },
    /// RT throttling takes the CPU from a FIFO thread.
    RtThrottling {
        /// Runtime the kernel grants per period.
        #[serde(rename = "runtime_ns")]
        runtime: Nanos,
        /// The period.
        #[serde(rename = "period_ns")]
        period: Nanos,
    },
    /// The threshold lies close to the loop's own period.
    ThresholdNearPeriod {
        /// Threshold.
        #[serde(rename = "threshold_ns")]
        threshold: Nanos,
        /// Period.
        #[serde(rename = "period_ns")]
        period: Nanos,
    },
    /// Oldest segments were deleted to stay within the disk bound.
    SegmentsRotated {
        /// How many.
        deleted: u64,
    },
    /// A CPU had no time for anybody but a set of threads, which was ended for it.
    SetStarved {
        /// The CPU.
        cpu: CpuId,
        /// For so long.
        #[serde(rename = "patience_ns")]
        patience: Nanos,
    },
    /// The execution trace has no room for all records; sums and deadlines cover the whole run.
    ExecutionCut {
        /// Records that it holds.
        kept: u64,
        /// Records that found no room.
        lost: u64,
    },
    /// The disk filled up or writing failed during the run; summaries go on.
    WritingFailed {
        /// The error.
        reason: String,
    },
    /// The run did not end by itself.
    Interrupted,
    /// Two runs at once on this machine.
    AnotherRun {
        /// Process id of the other.
        pid: i32,
        /// May a measuring thread of the other run on a CPU that this one measures?
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        same_cpu: bool,
    },
    /// A percentile moves over the run.
    NotStationary {
        /// Series.
        series: String,
        /// Which test says so.
        test: String,
        /// Its p-value.
        p_value: f64,
    },
    /// `/dev/cpu_dma_latency` could not be held.
    IdleStatesNotHeld {
        /// Why.
        reason: String,
    },
    /// Something that was to be done at the first gap above the stop limit was not.
    ActionFailed {
        /// What, and why.
        what: String,
    },
    /// The kernel's own trace was switched off at the first gap above the stop limit, as was asked, and stays off.
    TraceLeftOff,
    /// A part of the recording ended before its time: what it had measured until then is kept.
    PartEndedEarly {
        /// Which part.
        part: String,
        /// Why.
        reason: String,
    },
    /// A part of the recording was left out.
    PartLeftOut {
        /// Which part.
        part: String,
        /// Why.
        reason: String,
    },
    /// A tap between both ends was not passed between the stamps of both, in more than a few requests.
    TapDisagrees {
        /// Which flow.
        flow: String,
        /// In how many requests.
        requests: u64,
        /// Of how many that both told of.
        of: u64,
        /// How far outside at most.
        #[serde(rename = "largest_ns")]
        largest: Nanos,
        /// What resolutions and bounds of both allow.
        #[serde(rename = "within_ns")]
        within: Nanos,
    },
    /// Wake-ups were stamped before the instant they were scheduled for; they count as 0.
    WokeEarly {
        /// How many.
        early: u64,
        /// Of how many.
        of: u64,
        /// The earliest came this much too early.
        #[serde(rename = "earliest_ns")]
        earliest: Nanos,
    },
    /// A guard could not do or undo its change.
    Guard {
        /// What happened.
        what: String,
    },
    /// Load that was asked for ended before it was told to.
    LoadEnded {
        /// Which load.
        load: String,
        /// How it ended.
        how: String,
    },
    /// A flow of requests could not hold the rate that was asked for.
    Saturated {
        /// Which flow.
        flow: String,
        /// Share of the intended requests that left within the measured time.
        share: f64,
    },
    /// Requests of a flow left later than the tolerance, or at other distances than asked for.
    DeparturesDisturbed {
        /// Which flow.
        flow: String,
        /// In what.
        how: String,
    },
    /// The kernel did not take messages of a flow: they never left.
    MessagesRefused {
        /// Which flow.
        flow: String,
        /// How many.
        refused: u64,
        /// Why it did not take the first of them.
        reason: String,
    },
    /// Records of single requests found no room on their way to the log; nothing else lacks them.
    PacketsUnlogged {
        /// How many.
        records: u64,
    },
    /// The counts of a flow do not add up: an error of the tool.
    AccountBroken {
        /// Which flow.
        flow: String,
    },
    /// The other end gave no account of messages that ask for no reply.
    NoAccount {
        /// Which flow.
        flow: String,
    },
    /// Threads of whylate itself ran on the client's or the reflector's CPU while requests were in flight.
    OwnThreadsInTheWay {
        /// Which flow.
        flow: String,
        /// Requests that were left out of the search for causes for that.
        left_out: u64,
        /// Of how many.
        requests: u64,
    },
    /// Something that was asked of a port of whole frames, or left to it, was not to be had.
    NotToBeHad {
        /// Of which flow or server.
        part: String,
        /// What there is instead, and why.
        instead: String,
    },
    /// Messages of another version of whylate came to a reflector, which does not answer them.
    OtherVersion {
        /// Which version of the messages.
        version: u8,
        /// How many.
        messages: u64,
    },
    /// The wall clock was set while something was measured.
    WallClockStepped {
        /// By so many nanoseconds: above zero where it was put forward.
        by_ns: i64,
    },
    /// An interface went down while frames were forwarded by it, and forwarding went on.
    LinkDown {
        /// The interface.
        interface: String,
        /// How often.
        times: u64,
    },
    /// The two interfaces of a forwarder do not take frames of the same length.
    UnequalMtus {
        /// The interface with the larger MTU.
        larger: String,
        /// Its MTU in bytes.
        #[serde(rename = "larger_mtu_bytes")]
        larger_mtu: u32,
        /// The other.
        smaller: String,
        /// Its MTU in bytes.
        #[serde(rename = "smaller_mtu_bytes")]
        smaller_mtu: u32,
    },
    /// The counts of a forwarder's direction do not add up: an error of the tool.
    FramesUncounted {
        /// Which direction.
        direction: String,
    },
    /// An error was planted into the client's stamps on purpose: this calibration is a test of itself.
    Planted {
        /// What was planted.
        what: String,
    },
    /// Frames found no room in a delay line.
    DelayOverflow {
        /// Which direction.
        direction: String,
        /// How many.
        frames: u64,
    },
    /// Frames left a delay line later than it had said of itself.
    DelayLate {
        /// Which direction.
        direction: String,
        /// 99 of 100 left no more than so late.
        #[serde(rename = "late_ns")]
        late: Nanos,
        /// What it had said.
        #[serde(rename = "said_ns")]
        said: Nanos,
    },
    /// Truths of frames were not kept: they found no room on their way to the disk.
    TruthsMissed {
        /// How many.
        missed: u64,
    },
    /// Clients of a proxy found no place.
    ClientsTurnedAway {
        /// Datagrams or connections that were dropped for that.
        dropped: u64,
    },
    /// A warning of one part of a run: of a cell of the matrix.
    Within {
        /// Which part.
        part: String,
        /// What is to be known about it.
        of: Box<Warning>,
    },
    /// One that this version does not know, as it is stored.
    #[serde(skip)]
    Unknown(Map<String, Value>),
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown(stored) => stored.serialize(serializer),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Warning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Map::deserialize(deserializer)?;
        match Self::deserialize(Value::Object(stored.clone())) {
            Ok(known) => Ok(known),
            // Its name, or a word in it: of a known one all else must be as it always was.
            Err(why) if why.to_string().starts_with("unknown variant") => Ok(Self::Unknown(stored)),
            Err(why) => Err(D::Error::custom(why)),
        }
    }
}

/// A thread and what it asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asking {
    /// Its name.
    pub thread: String,
    /// In CPUs.
    #[serde(rename = "share_cpus")]
    pub share: f64,
}

impl Warning {
    /// The process that it is about, by its id: whole reports have that behind the process's name.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        match self {
            Self::AnotherRun { pid, .. } => Some(*pid),
            Self::Within { of, .. } => of.process(),
            _ => None,
        }
    }

    /// Does this warning make the result untrustworthy (exit status 4)?
    #[must_use]
    pub fn spoils_trust(&self) -> bool {
        self.level() == Level::Poor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Warning, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_warning_of_a_newer_version_is_kept_as_it_is_stored_and_shown_as_such() {
        let text = r#"{"warning":"solar_flare","hours":3,"of":{"deep":[1.5,null]}}"#;
        let warning = read(text).unwrap();
        assert!(matches!(&warning, Warning::Unknown(_)), "{warning:?}");
        assert_eq!(
            serde_json::to_value(&warning).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        let told = warning.to_string();
        assert!(told.contains("`solar_flare`") && told.contains("\"hours\":3"), "{told}");
        assert!(warning.advice().contains("newer"), "{}", warning.advice());
        let within = r#"{"warning":"within","part":"a cell","of":{"warning":"solar_flare"}}"#;
        let Warning::Within { of, .. } = read(within).unwrap() else { panic!("{within}") };
        assert!(matches!(*of, Warning::Unknown(_)));
    }

    #[test]
    fn a_known_warning_that_lacks_something_and_what_is_no_warning_are_still_refused() {
        for text in [
            r#"{"warning":"records_dropped","cpu":1}"#,
            r#"{"warning":"records_dropped","cpu":"one","dropped":1}"#,
            r#"{"hours":3}"#,
            r#"{"warning":3}"#,
            r#""interrupted""#,
            "[]",
        ] {
            assert!(read(text).is_err(), "{text} was taken for a warning");
        }
        let known = Warning::RecordsDropped { cpu: CpuId(1), dropped: 7 };
        let stored = serde_json::to_string(&known).unwrap();
        assert_eq!(stored, r#"{"warning":"records_dropped","cpu":1,"dropped":7}"#);
        assert_eq!(read(&stored).unwrap(), known);
    }

    #[test]
    fn nothing_that_an_unknown_warning_holds_reaches_the_terminal_as_control_characters() {
        let text = "{\"warning\":\"\\u001b[2J\",\"x\":\"\\u0007\"}";
        let told = read(text).unwrap().to_string();
        assert!(!told.chars().any(char::is_control), "{told:?}");
    }
}
