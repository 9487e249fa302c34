//! What was asked of backends that were measured in turns.

use super::recording::Recordings;
use super::{Component, Value};
use crate::run::Run;
use crate::series::{Definition, Series};
use crate::settings::Setting;

/// Size, arrivals and rate of the requests of each backend: the run says them itself, and newer ones in their settings,
/// too, which a sum has of each of its recordings.
pub(super) fn asked(
    run: &Run,
    of: &Series,
    recordings: &Recordings<'_>,
) -> Vec<(Component, Value)> {
    let is_request = matches!(of.definition, Definition::RoundTrip | Definition::Response);
    if !is_request || (run.backends.is_none() && recordings.setting("way").is_none()) {
        return Vec::new();
    }
    let asked = run.backends.as_ref().map(|of| &of.asked);
    let [size, arrivals, rate] = ["size", "arrivals", "rate"].map(|name| recordings.setting(name));
    let own = |said: Option<String>, setting: Option<Setting>| {
        said.or_else(|| setting.map(|of| of.to_string())).map(Value::Text)
    };
    let size = own(size, asked.map(|of| Setting::SizeBytes(u64::from(of.bytes))));
    let arrivals = own(arrivals, asked.map(|of| of.arrivals.clone().into()));
    let rate = own(rate, asked.and_then(|of| of.per_second).map(Setting::RatePerS));
    let parts = [(Component::Size, size), (Component::Arrivals, arrivals), (Component::Rate, rate)];
    parts.into_iter().filter_map(|(part, value)| Some((part, value?))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::directory::parse_run;
    use crate::identity::Identity;

    use super::*;

    fn kept() -> Run {
        let text = include_str!("../../../../tests/runs/backends/run.json");
        parse_run(Path::new("run.json"), text.as_bytes()).unwrap()
    }

    fn differing(one: &Run, other: &Run) -> Vec<(Component, String, String)> {
        let of = |run| Identity::of(run, "udp-spin-response").unwrap();
        let found = of(one).differences(&of(other));
        found.into_iter().map(|(part, of)| (part, of.left, of.right)).collect()
    }

    #[test]
    fn requests_of_backends_at_another_rate_or_of_another_size_are_other_requests() {
        let run = kept();
        let mut other = run.clone();
        let asked = &mut other.backends.as_mut().unwrap().asked;
        (asked.per_second, asked.bytes) = (Some(1_000.0), 1_400);
        "poisson".clone_into(&mut asked.arrivals);
        let expected = [
            (Component::Size, "64 bytes".to_owned(), "1400 bytes".to_owned()),
            (Component::Arrivals, "constant".to_owned(), "poisson".to_owned()),
            (Component::Rate, "2000/s".to_owned(), "1000/s".to_owned()),
        ];
        assert_eq!(differing(&run, &other), expected);
        other.backends.as_mut().unwrap().asked = run.backends.as_ref().unwrap().asked.clone();
        assert!(differing(&run, &other).is_empty());
        // As a sum has it, and as a recording says it in its settings.
        let asked = [
            ("size", Setting::SizeBytes(64)),
            ("arrivals", "constant".into()),
            ("rate", Setting::RatePerS(2_000.0)),
        ];
        other.backends = None;
        other.settings.extend(asked.map(|(name, setting)| (name.to_owned(), setting)));
        assert!(differing(&run, &other).is_empty());
        other.settings.insert("rate".to_owned(), Setting::RatePerS(500.0));
        let told = (Component::Rate, "2000/s".to_owned(), "500/s".to_owned());
        assert_eq!(differing(&run, &other), [told]);
    }
}
