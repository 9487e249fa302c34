//! Version 1 of `run.json`, read for ever: what it calls otherwise, and holds otherwise, than version 2.
//!
//! Names of version 1 lack their units. A name is looked up by the object that it stands in, and where two
//! objects of one name differ, by the one around that, too.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::in_words;
use crate::cause::{CauseTotal, stored};
use crate::run::FORMAT_VERSION;

/// An object, and names of fields that stand in it.
type Fields = (&'static str, &'static [&'static str]);

/// Names that have their unit behind them now, by unit and by the object that they stand in.
#[rustfmt::skip]
const UNITS: &[(&str, &[Fields])] = &[
    ("ticks", &[
        ("all", &["receive", "transmit", "work"]),
        ("by_burst", &["receive", "transmit", "work"]),
        ("clock", &["epoch"]),
        ("counting", &["period_with", "period_without"]),
        ("cross_cpu", &["bound"]),
        ("first", &["deadline", "done", "release"]),
        ("flows", &["began", "ended"]),
        ("gap", &["start"]),
        ("gaps", &["end", "start", "threshold"]),
        ("latest", &["intended"]),
        ("over_first", &["release"]),
        ("parts", &["length", "start"]),
        ("passed", &["at"]),
        ("segments", &["from", "to"]),
        ("threads", &["end", "start", "threshold"]),
        ("worst", &["release", "start"]),
    ]),
    ("ns", &[
        ("activations", &["last_late", "put_off_by"]),
        ("agreements", &["within"]),
        ("asides", &["bound", "median", "most", "p99", "resolution"]),
        ("asked", &["repeats_after", "timeout"]),
        ("backends", &["base", "length", "warmup"]),
        ("base", &["at", "base", "error", "error_max", "error_median", "resolution"]),
        ("between", &["largest", "within"]),
        ("between line", &["delay"]),
        ("by", &["took"]),
        ("calibration", &["tolerance"]),
        ("causes", &["latest", "longest", "took"]),
        ("censored", &["above"]),
        ("changes", &["at"]),
        ("clients", &["max", "median"]),
        ("comparison", &["by"]),
        ("course", &["time"]),
        ("cpu_time", &["around_switches", "host", "kernel", "unswitched"]),
        ("delay", &["lasted"]),
        ("demand", &["busy", "demand", "window"]),
        ("emulators", &["delay"]),
        ("evidence", &["counted_over"]),
        ("forward", &["lasted", "work"]),
        ("gap", &["length"]),
        ("gaps", &["lost", "value"]),
        ("kernel", &["base_slice", "round_robin"]),
        ("kernel_residence", &["max", "min"]),
        ("lateness", &["max", "min"]),
        ("later", &["than"]),
        ("latest", &["late"]),
        ("line", &["base", "error"]),
        ("loads", &["time"]),
        ("look", &["time"]),
        ("measured", &["after", "high", "low", "max", "value"]),
        ("netem", &["delay"]),
        ("of", &["earliest", "from", "largest", "late", "patience", "period", "runtime", "said", "threshold", "within"]),
        ("other_end", &["residence_max", "residence_median", "residence_min"]),
        ("outcome measured", &["over"]),
        ("over_first", &["by", "response"]),
        ("overheads", &["switch", "tick", "tick_period"]),
        ("pacing", &["looking", "sending", "took"]),
        ("part_agreements", &["within"]),
        ("parts", &["measured_p50", "truth_p50"]),
        ("percentiles", &["value"]),
        ("phases", &["length_asked", "period_asked", "run_asked"]),
        ("points", &["bound", "resolution"]),
        ("probes", &["read_cost", "step"]),
        ("process", &["lateness_p999", "tolerance"]),
        ("quantiles", &["high", "low", "value"]),
        ("quantum", &["interval", "median"]),
        ("rate", &["at_least"]),
        ("rates", &["at_least"]),
        ("readings", &["delay", "truth"]),
        ("receive", &["time"]),
        ("receptions", &["gap_max", "gap_median", "gap_min", "gap_p99"]),
        ("reflected", &["lasted"]),
        ("releases", &["jitter", "least", "p999"]),
        ("repetitions", &["interval", "medians"]),
        ("residence", &["max", "min"]),
        ("response", &["actual", "nominal"]),
        ("rounds", &["p50", "p99"]),
        ("runtime", &["asked", "longest_over"]),
        ("schedule", &["end", "start"]),
        ("send", &["time"]),
        ("series", &["class_by", "elapsed", "max", "min", "p50", "p99", "p999", "threshold"]),
        ("sides", &["largest"]),
        ("sizes", &["min"]),
        ("slow", &["from"]),
        ("split", &["most"]),
        ("stationarity", &["p50", "p99"]),
        ("steps", &["other", "run", "runtime"]),
        ("tail", &["median", "slow_from", "strike"]),
        ("tap", &["resolution"]),
        ("tasks", &["blocking", "deadline", "delay", "execution", "jitter", "period", "simulated"]),
        ("threads", &["drift", "lost", "received", "timer_slack", "waited"]),
        ("tick", &["cost", "period"]),
        ("time_shares", &["at_least"]),
        ("time_weighted", &["value"]),
        ("times", &["cluster_interval", "cluster_median", "max", "p50", "p99", "shortest"]),
        ("trials", &["length", "longest_break", "quantum", "tick"]),
        ("trust", &["age", "base", "tolerance"]),
        ("truth", &["high", "low", "value"]),
        ("turns", &["looking", "sending"]),
        ("wakes", &["period"]),
        ("warnings", &["earliest", "from", "largest", "late", "patience", "period", "runtime", "said", "threshold", "within"]),
        ("way", &["resolved_in"]),
        ("ways", &["median"]),
        ("worst", &["length", "response"]),
    ]),
    ("bytes", &[
        ("bed", &["kept"]),
        ("ends", &["mtu"]),
        ("frames", &["buffer", "mtu", "room"]),
        ("growth", &["inside"]),
        ("kind", &["length"]),
        ("of", &["larger_mtu", "smaller_mtu"]),
        ("ports", &["mtu"]),
        ("socket", &["mtu", "receive_buffer", "send_buffer"]),
        ("warnings", &["larger_mtu", "smaller_mtu"]),
    ]),
    ("percent", &[
        ("limit_compensated", &["fails_at"]),
        ("limit_raw", &["fails_at"]),
        ("limit_with", &["fails_at"]),
        ("limit_without", &["fails_at"]),
    ]),
    ("share", &[
        ("admission", &["limit", "reserved"]),
        ("causes", &["by_chance", "of_ordinary", "of_slow"]),
        ("coverage", &["by_events", "by_nothing", "by_residuals"]),
        ("gaps", &["noise_below_threshold"]),
        ("lost_share_difference", &["interval", "mean"]),
        ("prediction", &["utilisation"]),
        ("refill", &["reached"]),
        ("sources", &["high", "low"]),
        ("threads", &["busy"]),
        ("throughput", &["tolerated"]),
        ("time_shares", &["of_elapsed", "of_inside"]),
        ("trials", &["breaks_apart"]),
        ("with_measured_jitter", &["utilisation"]),
    ]),
    ("ratio", &[
        ("cpu_time", &["residual"]),
        ("lift", &["high", "low"]),
        ("over_chance", &["high", "low"]),
        ("snr", &["by_count", "by_time"]),
        ("tail", &["lift_least"]),
    ]),
    ("per_s", &[
        ("rates", &["interval"]),
    ]),
    ("cpus", &[
        ("most", &["share"]),
        ("of", &["asked"]),
        ("warnings", &["asked"]),
    ]),
    ("p_value", &[
        ("stationarity", &["blocks_differ", "trend_p50", "trend_p99"]),
    ]),
];

/// Names that became others: the object that they stand in, what they were, what they are.
const OTHERS: &[(&str, &str, &str)] = &[
    ("asked", "per_second", "per_s"),
    ("cross_cpu", "offset_ticks_at_end", "offset_at_end_ticks"),
    ("deadlines", "miss_share_interval", "miss_interval_share"),
    ("departures", "per_second", "per_s"),
    ("gaps", "lost_share_interval", "lost_interval_share"),
    ("quantum", "per_second", "per_s"),
    ("rates", "per_second", "per_s"),
    ("receptions", "per_second", "per_s"),
    ("rounds", "per_second", "per_s"),
    ("saved", "ratio_interval", "interval_ratio"),
    ("series", "lost_share_interval", "lost_interval_share"),
    ("trace", "lost_share_with", "lost_with_share"),
    ("trace", "lost_share_without", "lost_without_share"),
];

/// Accounts inside a run that have a version of their own. The words are those of version 1; so is the
/// number in its file.
const ACCOUNTS: [&str; 3] = ["reflected", "forward", "delay"];

/// What a name became.
struct Now {
    /// Around the object that it stands in, where another has the same name.
    within: Option<&'static str>,
    name: String,
}

/// By the object that a field stands in, and by what it was called.
static NAMES: LazyLock<HashMap<&str, HashMap<&str, Now>>> = LazyLock::new(|| {
    let mut names: HashMap<&str, HashMap<&str, Now>> = HashMap::new();
    for (unit, objects) in UNITS {
        for (object, fields) in *objects {
            let (within, object) = match object.split_once(' ') {
                Some((within, object)) => (Some(within), object),
                None => (None, *object),
            };
            for field in *fields {
                let name = format!("{field}_{unit}");
                names.entry(object).or_default().insert(field, Now { within, name });
            }
        }
    }
    for (object, before, now) in OTHERS {
        let now = Now { within: None, name: (*now).to_owned() };
        names.entry(object).or_default().insert(before, now);
    }
    names
});

/// The content of a `run.json` of version 1 as version 2 holds it. What is not known of either stays.
#[must_use]
pub fn upgraded(mut run: Value) -> Value {
    rename(&mut run, &mut Vec::new());
    let Some(fields) = run.as_object_mut() else { return run };
    fields.insert("format_version".to_owned(), FORMAT_VERSION.into());
    if let Some(causes) = fields.get_mut("causes") {
        fold(causes);
    }
    let origins = fields.get_mut("origins").and_then(Value::as_array_mut);
    let origins = origins.into_iter().flatten().filter_map(Value::as_object_mut);
    origins.for_each(in_words::upgrade);
    in_words::upgrade(fields);
    for name in ACCOUNTS {
        let account = fields.get_mut(name).and_then(Value::as_object_mut);
        if let Some(version) = account.and_then(|account| account.get_mut("format_version")) {
            *version = FORMAT_VERSION.into();
        }
    }
    run
}

/// What version 2 calls a field that stands in this object, which stands in that.
#[must_use]
pub fn name_now<'a>(around: &str, object: &str, field: &'a str) -> &'a str {
    let now = NAMES.get(object).and_then(|fields| fields.get(field));
    let now = now.filter(|now| now.within.is_none_or(|of| of == around));
    now.map_or(field, |now| now.name.as_str())
}

/// Renames what stands in `value`, to which these names lead. (They are one list because rustc 1.95 at
/// `opt-level = 1` hands two borrowed words that take turns over to the same function wrongly.)
fn rename(value: &mut Value, path: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, path)),
        Value::Object(fields) => {
            for (name, mut value) in std::mem::take(fields) {
                path.push(name);
                rename(&mut value, path);
                let name = path.pop().unwrap_or_default();
                let last = |back: usize| path.iter().rev().nth(back).map_or("", String::as_str);
                fields.insert(name_now(last(1), last(0), &name).to_owned(), value);
            }
        }
        _ => {}
    }
}

/// Each cause of lost time stood there once for all CPUs and once for each of them.
fn fold(causes: &mut Value) {
    // What cannot be read is named when the run is.
    let totals = Vec::<CauseTotal>::deserialize(&*causes).ok();
    let folded = totals.and_then(|totals| serde_json::to_value(stored::folded(&totals)).ok());
    if let Some(folded) = folded {
        *causes = folded;
    }
}
