//! Limits that the scheduler sets, and the jobs beside the measured one.

use whylate_model::doctor::Subject;
use whylate_model::{CpuId, CpuList};

use super::exam::{Check, Exam, Outcome, Tally, listed, quoted};
use super::view::{Look, View, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "other-jobs",
        subject: Subject::Scheduling,
        why: "two jobs on one CPU take turns of milliseconds, and elsewhere they share caches and \
              memory",
        look: other_jobs,
    },
    Check {
        name: "rt-throttling",
        subject: Subject::Scheduling,
        why: "a real-time thread that does not sleep is stopped for the rest of each period, \
              usually 50 ms in every second",
        look: throttling,
    },
    Check {
        name: "rt-group-scheduling",
        subject: Subject::Scheduling,
        why: "with RT_GROUP_SCHED a thread in a group without a real-time share is refused every \
              real-time policy with EPERM and no reason",
        look: group_scheduling,
    },
    Check {
        name: "timer-slack",
        subject: Subject::Scheduling,
        why: "the kernel may make a normal thread's wake-up late by this much, to do several at \
              once; real-time threads have none",
        look: timer_slack,
    },
];

/// A load that is other work: below it lies what a host does for itself.
const LOAD: f64 = 0.5;

/// More tasks than this are not waiting on any host.
const MAX_LOAD: f64 = 1e6;

fn other_jobs(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let load = exam.view.look("/proc/loadavg", |text| {
        let load: f64 = text.split_whitespace().next()?.parse().ok()?;
        (0.0..=MAX_LOAD).contains(&load).then_some(load)
    });
    let load = match load {
        Ok(load) => load,
        Err(missing) => return Outcome::missing("whether other jobs run", &missing),
    };
    let elsewhere = exam.elsewhere();
    // A program that may run on measured CPUs only has been put there.
    let confined = |cpus: &Vec<CpuId>| cpus.iter().all(|cpu| exam.is_measured(*cpu));
    let placed: Vec<String> = exam
        .processes
        .iter()
        .filter(|process| !process.kernel && !elsewhere.is_empty())
        .filter(|process| process.allowed.as_ref().is_some_and(confined))
        .map(|process| format!("{} {}", process.id, process.name))
        .collect();
    if !placed.is_empty() {
        return Outcome::spoils(format!(
            "programs are bound to {}: {}",
            exam.measured(),
            listed(&placed, 6)
        ))
        .seen(seen("/proc/PID/status", "Cpus_allowed_list holds measured CPUs only"))
        .seen(load.evidence)
        .run(format!("taskset -a -p -c {} PID", CpuList(&elsewhere)));
    }
    let level = load.value;
    if level < LOAD {
        return Outcome::fine(format!("{level:.2} tasks ran or waited in the last minute"))
            .seen(load.evidence);
    }
    let isolated = exam
        .topology
        .as_ref()
        .is_some_and(|topology| exam.measured_beside(topology.isolated()).is_empty());
    let finding = format!("{level:.2} tasks ran or waited on average in the last minute");
    let outcome = if level > elsewhere.len() as f64 && !isolated {
        Outcome::spoils(format!(
            "{finding}; {} for other work",
            match elsewhere.len() {
                0 => "there is no CPU".to_owned(),
                1 => "there is 1 CPU".to_owned(),
                n => format!("there are {n} CPUs"),
            }
        ))
    } else {
        Outcome::note(finding)
    };
    outcome.seen(load.evidence).advise("find and stop other jobs:").run("top -b -n 1 | head -20")
}

/// The fair server took the place of throttling with Linux 6.12, except under RT_GROUP_SCHED
/// (kernel/sched/rt.c, "sched/rt: Remove default bandwidth control").
const FAIR_SERVER: (u32, u32) = (6, 12);

fn throttling(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    // Documentation/scheduler/sched-rt-group.rst: -1 is no limit.
    let runtime = exam.view.look(FILE, |text| text.parse::<i64>().ok().filter(|us| *us >= -1));
    let period = exam.view.look("/proc/sys/kernel/sched_rt_period_us", |text| {
        text.parse::<i64>().ok().filter(|us| *us > 0)
    });
    let (runtime, period) = match (runtime, period) {
        (Ok(runtime), Ok(period)) => (runtime, period),
        (Err(missing), _) | (_, Err(missing)) => {
            return Outcome::missing("whether real-time threads are throttled", &missing);
        }
    };
    let limited = runtime.value >= 0 && runtime.value < period.value;
    let stopped = (period.value - runtime.value) / 1000;
    match (exam.release(), exam.option("CONFIG_RT_GROUP_SCHED")) {
        (Some(release), option) if release >= FAIR_SERVER && option != Some("y") => {
            if option.is_none() && limited {
                return Outcome::unknown(
                    "whether real-time threads are throttled is not known: from Linux 6.12 on it \
                     depends on RT_GROUP_SCHED, and the kernel's configuration is not there",
                )
                .all_seen([runtime.evidence, period.evidence]);
            }
            fair_server(exam)
        }
        (None, _) if limited => Outcome::unknown(
            "whether real-time threads are throttled is not known: nor is the kernel's release",
        )
        .all_seen([runtime.evidence, period.evidence]),
        _ if limited => Outcome::note(format!(
            "real-time threads are stopped for {stopped} ms in every {} ms",
            period.value / 1000
        ))
        .all_seen([runtime.evidence, period.evidence])
        .run("sysctl kernel.sched_rt_runtime_us=-1")
        .advise(
            "put it back afterwards; whylate lifts it for no FIFO thread, and a run of one says that \
             it was on",
        ),
        _ => Outcome::fine("real-time threads are not throttled").seen(runtime.evidence),
    }
}

fn fair_server(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let mut tally = Tally::default();
    let mut remedies = Vec::new();
    for &cpu in &exam.cpus {
        let path = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        let Some(ns) = tally.take(exam.view.number(&path)) else { continue };
        if ns > 0 {
            tally.bad.push(format!("CPU {cpu}: {} ms a period", ns / 1_000_000));
            remedies.push(format!("echo 0 > {path}"));
        }
    }
    let what = "how much the fair server takes from real-time threads";
    tally.conclude(what, "real-time threads are not throttled", |bad| {
        let finding =
            format!("the fair server takes time from real-time threads: {}", listed(bad, 4));
        remedies.into_iter().take(4).fold(Outcome::note(finding), Outcome::run)
    })
}

fn group_scheduling(exam: &Exam<'_>) -> Outcome {
    let option = exam.option("CONFIG_RT_GROUP_SCHED");
    if let Some(evidence) = exam.not_built("CONFIG_RT_GROUP_SCHED") {
        return Outcome::fine("the kernel has no real-time groups").seen(evidence);
    }
    // Documentation/admin-guide/kernel-parameters.txt, from Linux 6.16 on.
    let asked = exam.parameter("rt_group_sched");
    let by_default = exam.option("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED") == Some("y");
    if asked == Some("0") || (by_default && asked != Some("1")) {
        return Outcome::fine("real-time groups are disabled at boot").seen(seen(
            "/proc/cmdline",
            &format!("rt_group_sched={}", asked.unwrap_or("(default)")),
        ));
    }
    let Some((group, share)) = own_share(&exam.view) else {
        return Outcome::unknown(
            "the real-time share of the own cgroup is not known: no cpu controller shows it",
        )
        .seen(seen(
            "CONFIG_RT_GROUP_SCHED",
            option.unwrap_or("unknown: the kernel's configuration is not there"),
        ));
    };
    match share {
        Err(missing) => Outcome::missing("the real-time share of the own cgroup", &missing),
        Ok(said) if said.value == 0 => Outcome::spoils(format!(
            "the cgroup {group} has no real-time share: real-time policies are refused in it"
        ))
        .seen(said.evidence.clone())
        .run(format!("echo 950000 > {}", quoted(&said.evidence.source)))
        .advise("or start whylate from the root of the cpu hierarchy"),
        Ok(said) => Outcome::fine(format!(
            "the cgroup {group} may use {} us of real-time a period",
            said.value
        ))
        .seen(said.evidence),
    }
}

/// The own group of the cpu controller of cgroup v1, and its real-time share. The file is there
/// exactly where the kernel has real-time groups.
pub(super) fn own_share(view: &View) -> Option<(String, Look<i64>)> {
    let groups = view.text("/proc/self/cgroup").ok()?.value;
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    })?;
    // A path with dots would lead out of the hierarchy.
    (!group.split('/').any(|part| part == "..")).then_some(())?;
    let mounts = crate::topology::mounts(view.root());
    let mount = mounts.into_iter().find(|(kind, _, options)| {
        kind == "cgroup" && options.split(',').any(|option| option == "cpu")
    })?;
    let path =
        format!("{}/{}/cpu.rt_runtime_us", mount.1, group.trim_matches('/')).replace("//", "/");
    let share = view.look(&path, |text| text.parse::<i64>().ok().filter(|us| *us >= -1));
    Some((group.to_owned(), share))
}

/// Slack that does not show in a microsecond.
const SLACK_NS: u64 = 1_000;

fn timer_slack(exam: &Exam<'_>) -> Outcome {
    const CALL: &str = "prctl(PR_GET_TIMERSLACK)";
    let Some(live) = exam.live else {
        return Outcome::unknown(
            "timer slack is not known: each thread has its own, and only the \
                                 running kernel tells",
        )
        .seen(seen(CALL, "not asked: this is a collected tree"));
    };
    match &live.timer_slack_ns {
        Err(why) => {
            Outcome::unknown(format!("timer slack is not known: {why}")).seen(seen(CALL, why))
        }
        Ok(slack) if *slack > SLACK_NS => Outcome::note(format!(
            "a program started from here has a timer slack of {} us",
            slack / 1000
        ))
        .seen(seen(CALL, &format!("{slack} ns")))
        .advise("set it in the program that is measured: prctl(PR_SET_TIMERSLACK, 1)")
        .advise("or give it a real-time policy: chrt -f 80 PROGRAM"),
        Ok(slack) => Outcome::fine(format!("timer slack is {slack} ns"))
            .seen(seen(CALL, &format!("{slack} ns"))),
    }
}
