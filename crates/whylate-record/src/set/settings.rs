//! Settings of a set, as its run tells them.

use whylate_gap::Threshold;
use whylate_model::CpuId;
use whylate_model::settings::{Setting, Settings};

use super::Request;

/// Settings as used, while these CPUs keep house.
pub(super) fn of(request: &Request, housekeeping: &[CpuId]) -> Settings {
    let threshold = match request.threshold {
        Threshold::Fixed(threshold) => Setting::from(threshold),
        rule @ (Threshold::Automatic | Threshold::TwiceMedian) => rule.rule().into(),
    };
    let entries: [(_, Setting); 7] = [
        ("duration", request.duration.into()),
        ("threads", request.set.threads.len().into()),
        ("threshold", threshold),
        ("records", request.records.into()),
        ("lock memory", request.lock_memory.into()),
        ("hold idle states", request.hold_idle_states.into()),
        ("housekeeping", housekeeping.to_vec().into()),
    ];
    let mut settings: Settings =
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if !request.load.is_empty() {
        let loads: Vec<String> = request.load.iter().map(ToString::to_string).collect();
        let bed = request.bed.as_ref();
        let through = bed.map_or(String::new(), |bed| format!(", through the bed {}", bed.name()));
        settings.insert("load".to_owned(), format!("{}{through}", loads.join(", ")).into());
    }
    if !request.notes.is_empty() {
        settings.insert("notes".to_owned(), request.notes.join("; ").into());
    }
    settings
}

#[cfg(test)]
mod tests {
    use whylate_model::{Nanos, settings};
    use whylate_rta::task_set::TaskSet;

    use super::*;
    use crate::storage::Limits;

    #[test]
    fn settings_of_a_set_are_values_and_words_only_where_nothing_else_says_them() {
        let mut request = Request {
            set: TaskSet::default(),
            tables_in: None,
            cpus: vec![CpuId(1)],
            duration: Nanos::SECOND,
            warmup: None,
            threshold: Threshold::Automatic,
            housekeeping: None,
            lock_memory: true,
            hold_idle_states: false,
            trace: false,
            validate: false,
            worst: 5,
            records: 300,
            passes: 0,
            storage: Limits::default(),
            seed: 1,
            command_line: Vec::new(),
            question: String::new(),
            load: Vec::new(),
            bed: None,
            notes: vec!["100 events are not known".to_owned()],
        };
        let told = of(&request, &[CpuId(0)]);
        assert_eq!(settings::unfit(&told), [""; 0]);
        assert_eq!(told["threshold"], Threshold::Automatic.rule().into());
        assert_eq!(told["threads"], 0_u64.into());
        request.threshold = Threshold::Fixed(Nanos(1_234_567));
        assert_eq!(of(&request, &[])["threshold"], Nanos(1_234_567).into());
    }
}
