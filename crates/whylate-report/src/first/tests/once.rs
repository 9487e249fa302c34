//! Each reason is told once: no two sentences of a screen say the same, in whatever words.

use whylate_model::flow::ProcessVerdict;
use whylate_model::run::{Run, Verdict};
use whylate_model::trust::Trust;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};

use super::{shown, style};
use crate::kept::{kept, kinds};

/// Words that say nothing about what a sentence is of.
const COMMON: [&str; 14] = [
    "and", "are", "been", "from", "have", "more", "than", "that", "the", "their", "was", "were",
    "with", "within",
];

/// What a sentence says, as far as two can be compared.
#[derive(Debug)]
struct Said<'a> {
    text: &'a str,
    /// What stands before a colon, such as a flow or a part of a self-test, and behind it.
    subject: Option<(&'a str, &'a str)>,
    numbers: Vec<&'a str>,
    words: Vec<String>,
}

impl<'a> Said<'a> {
    fn of(text: &'a str) -> Self {
        let around = |letter: char| !letter.is_alphanumeric() && letter != '%';
        let bare = text.split_whitespace().map(|word| word.trim_matches(around));
        let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
        let (mut numbers, words): (Vec<&str>, Vec<&str>) = bare.partition(is_number);
        // How sure two things are may be the same by their counts alone.
        numbers.retain(|number| *number != "95%" && !number.contains('–'));
        numbers.sort_unstable();
        numbers.dedup();
        let says = |word: &&str| word.len() > 2 && !COMMON.contains(word);
        let words = words.into_iter().filter(says).map(str::to_lowercase);
        Self { text, subject: text.split_once(": "), numbers, words: words.collect() }
    }

    /// Do both say the same? Two numbers are seldom the same by chance, and most words never are. The same of two
    /// subjects is not the same.
    fn is_as(&self, other: &Self) -> bool {
        if let (Some((one, said)), Some((other, of_other))) = (self.subject, other.subject)
            && one != other
            && said == of_other
        {
            return false;
        }
        let same = |one: &[&str], other: &[&str]| one.iter().all(|of| other.contains(of));
        let (one, two) = (&self.numbers, &other.numbers);
        let by_numbers = one.len().min(two.len()) > 1 && (same(one, two) || same(two, one));
        let shared = self.words.iter().filter(|word| other.words.contains(word)).count();
        let least = self.words.len().min(other.words.len());
        let by_words = least > 4 && shared * 4 >= least * 3;
        by_numbers || (by_words && (one.is_empty() || two.is_empty()))
    }
}

/// The sentences of the answer, the notes and the trust of a screen.
fn sentences(screen: &str) -> Vec<String> {
    let (own, _) = screen.split_once("More:").unwrap();
    let (above, trust) = own.split_once("Trust: ").unwrap_or((own, ""));
    let is_made = |line: &str| line.starts_with("Recorded ") || line.starts_with("Merged ");
    let in_table = |line: &str| line.contains("  ") || line.ends_with(": --full");
    let above = above.lines().filter(|line| !is_made(line) && !in_table(line));
    let flat = |of: &str| of.split_whitespace().collect::<Vec<_>>().join(" ");
    let above = flat(&above.collect::<Vec<_>>().join(" "));
    let trust = flat(trust);
    let ends = above.split(". ").chain(trust.split(". ").flat_map(|of| of.split("; ")));
    ends.map(|of| of.trim_end_matches('.').to_owned()).filter(|of| of.contains(' ')).collect()
}

/// Pairs of them that say the same.
fn repeated(all: &[String]) -> Vec<String> {
    let said: Vec<Said> = all.iter().map(|text| Said::of(text)).collect();
    let pairs = said.iter().enumerate().flat_map(|(at, one)| {
        said[at + 1..].iter().filter(|other| one.is_as(other)).map(|other| (one.text, other.text))
    });
    pairs.map(|(one, other)| format!("{one:?}\nand {other:?}")).collect()
}

#[test]
fn no_two_sentences_of_a_kept_run_tell_the_same_reason() {
    for kind in kinds() {
        let run = kept(&kind).1;
        let screen = shown(&run, style());
        let twice = repeated(&sentences(&screen));
        assert!(twice.is_empty(), "{kind}: {}\nin\n{screen}", twice.join("\n"));
        // Those that have no room on the screen are counted on it.
        let reasons: Vec<String> =
            Trust::of(&run).reasons.into_iter().map(|reason| reason.what).collect();
        let twice = repeated(&reasons);
        assert!(twice.is_empty(), "{kind}: {}", twice.join("\n"));
    }
}

#[test]
fn sentences_that_say_the_same_in_other_words_are_found() {
    let found = |all: [&str; 2]| !repeated(&all.map(str::to_owned)).is_empty();
    for same in [
        [
            "The client fell behind: 86 of 2,000 requests left more than 50 µs late",
            "requests were sent late: 86 of 2,000 left later than the tolerance of 50 µs, or never",
        ],
        [
            "requests of rtt left later (p90 346 µs) than they were in flight (p90 111 µs)",
            "the send delay of rtt (p90 346 µs) exceeds its service time (p90 111 µs)",
        ],
        [
            "self-test, ipi: 1 of 79 gaps attributed to the injector had another cause",
            "self-test, ipi: 1 of 79 stalls attributed to the injector had another cause",
        ],
        [
            "Another whylate was running on this machine",
            "another whylate process was running on the machine",
        ],
    ] {
        assert!(found(same), "{same:?}");
    }
    for other in [
        [
            "self-test, ipi: 2 of 28 stalls attributed to the injector had another cause",
            "self-test, cpu hog: 2 of 28 stalls attributed to the injector had another cause",
        ],
        [
            "Of that, 58% has no kernel event",
            "24% of the lost time is IRQ entry/exit, which no event covers",
        ],
        [
            "Each of them lost 52%",
            "two runs give no useful interval for their mean: merge five or more",
        ],
    ] {
        assert!(!found(other), "{other:?}");
    }
}

#[test]
fn a_reason_that_the_answer_gives_leaves_its_advice_beside_the_trust() {
    let mut run = kept("slow").1;
    let told = |run: &Run| {
        let screen = shown(run, style());
        let (_, trust) = screen.split_once("Trust: ").unwrap();
        let (trust, _) = trust.split_once("More:").unwrap();
        trust.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let advice = "Give the client a CPU of its own, and --sched fifo:50.";
    // The commands below have it.
    let trust = told(&run);
    assert!(!trust.contains("sent late") && !trust.contains(advice), "{trust}");
    // Where nothing else limits trust, what to do is all that is left to say.
    run.warnings.retain(|warning| matches!(warning, Warning::DeparturesDisturbed { .. }));
    run.flows[0].trust = None;
    assert_eq!(told(&run), format!("limited. {advice}"));
}

#[test]
fn lost_time_that_the_answer_names_is_no_second_reason_beside_the_trust() {
    let screen = shown(&kept("after").1, style());
    let (answer, trust) = screen.split_once("Trust: ").unwrap();
    assert!(answer.contains("58% has no kernel event"), "planted: {screen}");
    assert!(!trust.contains("58%") && !trust.contains("24%"), "{screen}");
    // What to do about the reason that is left goes before what to do about those.
    assert!(trust.contains("--warmup") && !trust.contains("hwlatdetect"), "{screen}");
    let screen = shown(&kept("gaps-2").1, style());
    assert!(screen.contains("Trust: limited. For time with no kernel event check"), "{screen}");
}

#[test]
fn own_threads_that_had_no_cpu_are_one_reason_about_which_something_can_be_done() {
    let mut run = kept("slow").1;
    let (own, none) = ("whylate's own threads ran on", "No CPU was left for whylate's own work");
    let told = |run: &Run| shown(run, style()).split_whitespace().collect::<Vec<_>>().join(" ");
    let screen = told(&run);
    assert!(!screen.contains(own) && screen.contains(none), "{screen}");
    let whole = crate::render(&run, crate::Style::default());
    assert!(whole.contains("whylate's own threads ran on"), "{whole}");
    // What is told there is counted here, but for what the answer says.
    let told_there = Trust::of(&run).reasons.len() - 1;
    assert!(screen.contains("The client fell behind"), "planted: {screen}");
    let here = screen.split_once("Trust: ").unwrap().1.split_once(" More:").unwrap().0;
    let counted: usize = here
        .split_once("; and ")
        .map_or(0, |(_, rest)| rest.split(' ').next().unwrap().parse().unwrap());
    assert_eq!(
        here.split_once("; and ").unwrap().0.split("; ").count() + counted,
        told_there,
        "{here}"
    );
    // By itself each is told.
    run.warnings.retain(|of| *of != Warning::NoHousekeepingCpu);
    let screen = told(&run);
    assert!(screen.contains(own) && !screen.contains(none), "{screen}");
}

/// Of a client that sent less than was asked the answer says so, and lesser reasons are no reasons for poor trust.
#[test]
fn what_made_trust_poor_is_told_before_lesser_reasons_also_where_the_answer_says_it() {
    let mut run = kept("rtt").1;
    run.flows[0].departures.process.verdict = ProcessVerdict::Saturated;
    // The step below advises.
    run.host.cpus_online = (0..4).map(CpuId).collect();
    // It sent in time what it sent.
    for series in run.series.iter_mut().filter(|of| of.name.contains("lateness")) {
        series.quantiles.iter_mut().for_each(|of| of.value = Some(Nanos(1)));
    }
    let (flow, warnings) = (run.flows[0].name.clone(), &mut run.warnings);
    let how = "saturated: 90% of the intended requests left in the measured time".to_owned();
    let saturated = Warning::DeparturesDisturbed { flow, how };
    run.verdict = Verdict::Untrustworthy { reasons: vec![saturated.to_string()] };
    warnings.push(saturated);
    warnings.push(Warning::NoHousekeepingCpu);
    let poor = Trust::of(&run).poor();
    let screen = shown(&run, style());
    let trust = screen.split_once("Trust: ").unwrap().1.split_whitespace().collect::<Vec<_>>();
    let trust = trust.join(" ");
    let first = poor.first().map(|reason| reason.split(' ').take(2).collect::<Vec<_>>().join(" "));
    assert!(trust.starts_with(&format!("poor. {}", first.unwrap())), "{poor:?} {screen}");
}

#[test]
fn a_reason_without_room_is_cut_before_the_number_of_the_others() {
    let mut run = kept("gaps").1;
    run.coverage = None;
    let load = "hog with a long command line ".repeat(12);
    run.warnings.push(Warning::LoadEnded { load, how: "killed".to_owned() });
    run.warnings.push(Warning::NoHousekeepingCpu);
    let screen = shown(&run, style());
    let trust = screen.split_once("Trust: ").unwrap().1.split_once("More:").unwrap().0;
    let trust = trust.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(trust.starts_with("poor. The load `hog with a long"), "{screen}");
    assert!(trust.ends_with("...; and 1 more: --full."), "{screen}");
}
