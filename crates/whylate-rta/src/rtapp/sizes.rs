//! Hostile sizes: files that are as large as they may be in one way or another.

use proptest::prelude::*;

use super::tasks::MOST_STEPS_OF_ALL;
use super::*;
use crate::task_set::{LONGEST_NAME, MOST_RESOURCES, MOST_THREADS};

/// A file of tasks, of which each is as large as the others.
#[derive(Debug, Clone)]
struct Sizes {
    tasks: usize,
    instances: String,
    phases: usize,
    events: usize,
    name: usize,
    /// Of every key that takes one.
    number: String,
    /// Each forks the next.
    chain: bool,
    /// Each event has names of its own.
    apart: bool,
}

impl Sizes {
    fn text(&self) -> String {
        let tasks: Vec<String> = (0..self.tasks).map(|task| self.task(task)).collect();
        format!("{{\"tasks\":{{{}}}}}", tasks.join(","))
    }

    fn task(&self, task: usize) -> String {
        let number = &self.number;
        let phase = |phase: usize| {
            let events = (0..self.events).map(|event| {
                let own =
                    if self.apart { format!("{task}-{phase}-{event}") } else { String::new() };
                match event % 5 {
                    0 => "\"run\":1".to_owned(),
                    1 => format!("\"sleep\":{number}"),
                    2 => format!("\"signal\":\"c{own}\""),
                    3 => format!("\"sem_post\":\"s{own}\""),
                    _ => format!("\"timer\":{{\"ref\":\"unique{own}\",\"period\":{number}}}"),
                }
            });
            let events: Vec<String> = events.collect();
            format!("\"p{phase}\":{{\"loop\":{number},{}}}", events.join(","))
        };
        let mut phases: Vec<String> = (0..self.phases).map(phase).collect();
        if self.chain && task + 1 < self.tasks {
            phases.push(format!("\"f\":{{\"fork\":\"{}\"}}", self.name_of(task + 1)));
        }
        format!(
            "\"{}\":{{\"loop\":1,\"instance\":{},\"phases\":{{{}}}}}",
            self.name_of(task),
            self.instances,
            phases.join(",")
        )
    }

    fn name_of(&self, task: usize) -> String {
        format!("{task:n$}", n = self.name).replace(' ', "t")
    }
}

fn hostile() -> impl Strategy<Value = Sizes> {
    let number = prop_oneof![
        Just("0".to_owned()),
        Just("1".to_owned()),
        Just("-1".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("1e308".to_owned()),
        Just("9".repeat(400)),
        (0..3_600_000_001_i64).prop_map(|number| number.to_string()),
    ];
    let instances = prop_oneof![
        Just("1".to_owned()),
        (0..1_026_u32).prop_map(|count| count.to_string()),
        any::<i64>().prop_map(|count| count.to_string()),
    ];
    // One dimension at a time is large, so that many a file is within the limits.
    let shape = prop_oneof![
        (1..1_300_usize, 1..3_usize, 1..4_usize),
        (1..4_usize, 1..300_usize, 1..6_usize),
        (1..4_usize, 1..4_usize, 1..300_usize),
        (1..3_usize, 100..260_usize, 100..260_usize),
    ];
    let name = prop_oneof![0..50_usize, Just(10_000)];
    (shape, instances, name, number, any::<bool>(), any::<bool>()).prop_map(
        |((tasks, phases, events), instances, name, number, chain, apart)| Sizes {
            tasks,
            instances,
            phases,
            events,
            name,
            number,
            chain,
            apart,
        },
    )
}

fn judged(text: &str) -> Result<RtApp, RtAppError> {
    let read = parse(text);
    match &read {
        Ok(read) => {
            let set = &read.set;
            assert!(set.threads.len() <= MOST_THREADS && set.resources.len() <= MOST_RESOURCES);
            assert!(set.threads.iter().all(|thread| thread.name.len() <= LONGEST_NAME));
            let programs = set.threads.iter().filter_map(|thread| thread.program.as_ref());
            let phases = programs.flat_map(|program| &program.phases);
            let steps: usize = phases.map(|phase| phase.steps.len()).sum();
            assert!(steps <= MOST_STEPS_OF_ALL, "{steps}");
        }
        Err(error) => {
            let told = error.to_string();
            assert!(!told.is_empty() && told.len() < 20_000, "a message of {}", told.len());
        }
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_sizes_are_within_the_limits_or_refused(sizes in hostile()) {
        let _ = judged(&sizes.text());
    }
}

/// Small in every way.
fn small() -> Sizes {
    Sizes {
        tasks: 1,
        instances: "1".to_owned(),
        phases: 1,
        events: 1,
        name: 4,
        number: "1".to_owned(),
        chain: false,
        apart: false,
    }
}

#[test]
fn copies_of_a_long_task_are_refused_before_they_are_made() {
    let long = Sizes { phases: 200, events: 200, instances: "1024".to_owned(), ..small() };
    let told = judged(&long.text()).unwrap_err().to_string();
    assert!(told.contains("40960000 events"), "{told}");
    let fewer = Sizes { instances: "6".to_owned(), ..long };
    assert_eq!(judged(&fewer.text()).unwrap().set.threads.len(), 6);
}

#[test]
fn a_chain_of_as_many_forks_as_fit_into_a_file_is_soon_refused_and_one_that_may_be_is_read() {
    let chain = Sizes { tasks: 5_000, chain: true, ..small() };
    let told = judged(&chain.text()).unwrap_err().to_string();
    assert!(told.contains("more tasks than 1024"), "{told}");
    let fits = Sizes { tasks: 500, ..chain.clone() };
    assert_eq!(judged(&fits.text()).unwrap().set.threads.len(), 500 + 499);
    let mut ring = Sizes { tasks: 1_000, ..chain }.text();
    let last = ring.rfind("\"run\":1").unwrap();
    ring.replace_range(last.., "\"fork\":\"ttt0\"}}}}}");
    let told = judged(&ring).unwrap_err().to_string();
    assert!(told.contains("task `ttt0` forks itself by way of `ttt1`"), "{told}");
}
