//! The settings of a host that move latency, read back one by one.
//!
//! A knob whose file is absent or cannot be read is `Unknown`, never `off`: a guest without
//! `cpufreq` says nothing about the frequency of its CPU. Names are stable, runs are compared by
//! them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use whylate_model::CpuId;
use whylate_model::host::Knob;

use crate::cpufreq::Policies;
use crate::cpus;
use crate::files::{text, trimmed, under};
use crate::topology::Topology;

/// What was read already and the knobs are derived from.
pub(crate) struct Basis<'a> {
    pub(crate) topology: Option<&'a Topology>,
    pub(crate) command_line: Option<&'a str>,
    pub(crate) kernel_release: &'a str,
    pub(crate) kernel_build: &'a str,
    pub(crate) cpu_flags: Option<&'a str>,
}

/// Knobs that are the whole text of one file.
const PLAIN: [(&str, &str); 24] = [
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("clocksource.available", "/sys/devices/system/clocksource/clocksource0/available_clocksource"),
    ("cpufreq.boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("idle.driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("intel_pstate.no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("intel_pstate.status", "/sys/devices/system/cpu/intel_pstate/status"),
    ("amd_pstate.status", "/sys/devices/system/cpu/amd_pstate/status"),
    ("ksm", "/sys/kernel/mm/ksm/run"),
    ("numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
    ("nohz_full", "/sys/devices/system/cpu/nohz_full"),
    ("rt.runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("rt.period_us", "/proc/sys/kernel/sched_rt_period_us"),
    ("rt.kernel", "/sys/kernel/realtime"),
    ("sched.autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    ("thp.khugepaged_defrag", "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag"),
    ("timer_migration", "/proc/sys/kernel/timer_migration"),
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("watchdog", "/proc/sys/kernel/watchdog"),
    ("watchdog.nmi", "/proc/sys/kernel/nmi_watchdog"),
    ("watchdog.cpus", "/proc/sys/kernel/watchdog_cpumask"),
    ("workqueue.cpus", "/sys/devices/virtual/workqueue/cpumask"),
];

/// Knobs whose file lists the choices with the one in force in brackets.
const CHOICES: [(&str, &str, char, char); 3] = [
    ("thp", "/sys/kernel/mm/transparent_hugepage/enabled", '[', ']'),
    ("thp.defrag", "/sys/kernel/mm/transparent_hugepage/defrag", '[', ']'),
    ("lockdown", "/sys/kernel/security/lockdown", '[', ']'),
];

/// Knobs of each CPU, by the file of its frequency policy.
const POLICY: [(&str, &str); 5] = [
    ("cpufreq.driver", "scaling_driver"),
    ("cpufreq.governor", "scaling_governor"),
    ("cpufreq.min_khz", "scaling_min_freq"),
    ("cpufreq.max_khz", "scaling_max_freq"),
    ("cpufreq.epp", "energy_performance_preference"),
];

/// Knobs of the command line: absent there means not set, and that is known.
const COMMAND_LINE: [(&str, &str); 8] = [
    ("cmdline.isolcpus", "isolcpus"),
    ("cmdline.nohz_full", "nohz_full"),
    ("cmdline.rcu_nocbs", "rcu_nocbs"),
    ("cmdline.irqaffinity", "irqaffinity"),
    ("cmdline.idle", "idle"),
    ("cmdline.mitigations", "mitigations"),
    ("cmdline.skew_tick", "skew_tick"),
    ("cmdline.tsc", "tsc"),
];

/// Largest kernel configuration that is read, unpacked: real ones stay below 400 KiB.
const MAX_CONFIG: u64 = 4 << 20;

/// Reads every knob below `root`.
pub(crate) fn read(root: &Path, basis: &Basis<'_>) -> BTreeMap<String, Knob> {
    let mut knobs = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        knobs.insert(name.to_owned(), value.map_or(Knob::Unknown, Knob::Value));
    };
    for (name, path) in PLAIN {
        put(name, trimmed(&under(root, path)).map(null_is_none));
    }
    for (name, path, open, close) in CHOICES {
        put(name, trimmed(&under(root, path)).map(|text| chosen(&text, open, close)));
    }
    let policies = Policies::read(root);
    for (name, file) in POLICY {
        let read = |cpu| trimmed(&under(root, &format!("{}/{file}", policies.directory(cpu))));
        put(name, per_cpu(basis.topology, read));
    }
    for (name, parameter) in COMMAND_LINE {
        put(name, basis.command_line.map(|line| parameter_of(line, parameter)));
    }
    put("idle.governor", idle_governor(root));
    put("idle.states", per_cpu(basis.topology, |cpu| idle_states(root, cpu)));
    // 0 is no limit there, and `n/a` the limit of 0.
    let wake_up = |cpu: CpuId| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
        trimmed(&under(root, &file))
    };
    put("idle.resume_latency_us", per_cpu(basis.topology, wake_up));
    put("turbo", turbo(root));
    put("swap", text(&under(root, "/proc/swaps")).ok().map(|text| swap(&text)));
    put("tsc", basis.cpu_flags.map(tsc_flags));
    let config = kernel_config(root, basis.kernel_release);
    put("hz", config.as_deref().and_then(|config| option_of(config, "CONFIG_HZ")));
    put("preempt", preempt(root, basis, config.as_deref()));
    for (name, value) in mitigations(root) {
        put(&name, value);
    }
    knobs
}

/// Features that are off print `(null)` for a list of CPUs.
fn null_is_none(text: String) -> String {
    if text.is_empty() || text.contains("(null)") { "none".to_owned() } else { text }
}

/// The choice in brackets; the whole text where nothing is in brackets.
fn chosen(text: &str, open: char, close: char) -> String {
    let inside = text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
    inside.map_or(text, |(choice, _)| choice).to_owned()
}

/// One value when all online CPUs agree, else each value with its CPUs: `performance on 2-3,
/// powersave on 0-1`. `None` when no CPU has it.
fn per_cpu(topology: Option<&Topology>, read: impl Fn(CpuId) -> Option<String>) -> Option<String> {
    let mut values: BTreeMap<String, Vec<CpuId>> = BTreeMap::new();
    for &cpu in topology?.online() {
        if let Some(value) = read(cpu) {
            values.entry(value).or_default().push(cpu);
        }
    }
    if values.len() <= 1 {
        return values.into_keys().next();
    }
    let each = values.iter().map(|(value, on)| format!("{value} on {}", cpus::format_list(on)));
    Some(each.collect::<Vec<_>>().join(", "))
}

/// Names of the idle states of one CPU, those switched off marked.
fn idle_states(root: &Path, cpu: CpuId) -> Option<String> {
    let dir = under(root, &format!("/sys/devices/system/cpu/cpu{cpu}"));
    let mut states = Vec::new();
    for number in 0..32 {
        let state = dir.join(format!("cpuidle/state{number}"));
        let Some(name) = trimmed(&state.join("name")) else { break };
        let off = trimmed(&state.join("disable")).is_some_and(|flag| flag != "0");
        states.push(if off { format!("{name} (off)") } else { name });
    }
    (!states.is_empty()).then(|| states.join(" "))
}

/// The file was renamed when it became writable.
fn idle_governor(root: &Path) -> Option<String> {
    let file =
        |name: &str| trimmed(&under(root, &format!("/sys/devices/system/cpu/cpuidle/{name}")));
    file("current_governor").or_else(|| file("current_governor_ro"))
}

/// `on` or `off`, from whichever driver says so.
fn turbo(root: &Path) -> Option<String> {
    let flag = |path: &str| trimmed(&under(root, path));
    let on = match flag("/sys/devices/system/cpu/intel_pstate/no_turbo").as_deref() {
        Some("0") => Some(true),
        Some("1") => Some(false),
        _ => match flag("/sys/devices/system/cpu/cpufreq/boost").as_deref() {
            Some("1") => Some(true),
            Some("0") => Some(false),
            _ => None,
        },
    };
    on.map(|on| if on { "on" } else { "off" }.to_owned())
}

/// Swap areas and their sizes, or `none`.
fn swap(swaps: &str) -> String {
    let areas: Vec<String> = swaps
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (area, _kind, kib) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{area} {kib} KiB"))
        })
        .collect();
    if areas.is_empty() { "none".to_owned() } else { areas.join(", ") }
}

/// What the CPU and the kernel promise about the time-stamp counter.
fn tsc_flags(flags: &str) -> String {
    const ABOUT_TSC: [&str; 8] = [
        "constant_tsc",
        "nonstop_tsc",
        "nonstop_tsc_s3",
        "tsc_known_freq",
        "tsc_reliable",
        "tsc_adjust",
        "rdtscp",
        "rdpid",
    ];
    let present = ABOUT_TSC.into_iter().filter(|name| flags.split(' ').any(|flag| flag == *name));
    let present = present.collect::<Vec<_>>().join(" ");
    if present.is_empty() { "none".to_owned() } else { present }
}

/// The value of a parameter of the command line: the last one wins, as in the kernel; `none` when
/// it is not there. What follows `--` belongs to init.
fn parameter_of(line: &str, parameter: &str) -> String {
    let words = line.split_whitespace().take_while(|word| *word != "--");
    let values = words.filter_map(|word| match word.split_once('=') {
        Some((name, value)) if name == parameter => Some(value),
        None if word == parameter => Some("set"),
        _ => None,
    });
    values.last().unwrap_or("none").to_owned()
}

/// One knob per vulnerability the kernel knows.
fn mitigations(root: &Path) -> Vec<(String, Option<String>)> {
    let dir = under(root, "/sys/devices/system/cpu/vulnerabilities");
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.to_owned();
            Some((format!("mitigation.{name}"), trimmed(&entry.path())))
        })
        .collect()
}

/// The preemption model in force, or the best that is known of it.
fn preempt(root: &Path, basis: &Basis<'_>, config: Option<&str>) -> Option<String> {
    if trimmed(&under(root, "/sys/kernel/realtime")).as_deref() == Some("1") {
        return Some("rt".to_owned());
    }
    if let Some(modes) = trimmed(&under(root, "/sys/kernel/debug/sched/preempt")) {
        return Some(chosen(&modes, '(', ')'));
    }
    let built = |word: &str| basis.kernel_build.split_whitespace().any(|part| part == word);
    let default = config.and_then(|config| {
        [
            ("CONFIG_PREEMPT_RT", "rt"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_NONE", "none"),
        ]
        .into_iter()
        .find(|(option, _)| option_of(config, option).as_deref() == Some("y"))
        .map(|(_, mode)| mode)
    });
    if built("PREEMPT_RT") {
        Some("rt".to_owned())
    } else if built("PREEMPT_DYNAMIC") {
        // It can be changed while the kernel runs, and only debugfs tells.
        let asked = basis.command_line.map(|line| parameter_of(line, "preempt"));
        Some(match (asked.as_deref(), default) {
            (Some(mode), _) if mode != "none" && mode != "set" => {
                format!("dynamic, booted as {mode}")
            }
            (_, Some(mode)) => format!("dynamic, built as {mode}"),
            _ => "dynamic".to_owned(),
        })
    } else if built("PREEMPT") {
        Some("full".to_owned())
    } else if built("PREEMPT_LAZY") {
        Some("lazy".to_owned())
    } else {
        default.map(str::to_owned)
    }
}

/// The configuration the running kernel was built with, where it is kept.
fn kernel_config(root: &Path, release: &str) -> Option<String> {
    if let Ok(packed) = File::open(under(root, "/proc/config.gz")) {
        let mut config = String::new();
        let unpacked = flate2::read::GzDecoder::new(packed);
        if unpacked.take(MAX_CONFIG).read_to_string(&mut config).is_ok() {
            return Some(config);
        }
    }
    // The release comes from a file: it must not lead elsewhere.
    if release.is_empty() || release.contains('/') {
        return None;
    }
    [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
        .iter()
        .find_map(|path| text(&under(root, path)).ok())
}

fn option_of(config: &str, option: &str) -> Option<String> {
    config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name == option).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::tree::Tree;

    fn knobs(tree: &Tree, command_line: Option<&str>, build: &str) -> BTreeMap<String, Knob> {
        let topology = Topology::read(tree.root()).ok();
        let basis = Basis {
            topology: topology.as_ref(),
            command_line,
            kernel_release: "6.1.0",
            kernel_build: build,
            cpu_flags: Some("fpu rdtscp constant_tsc nonstop_tsc"),
        };
        read(tree.root(), &basis)
    }

    fn value(text: &str) -> Knob {
        Knob::Value(text.to_owned())
    }

    #[test]
    fn absent_files_are_unknown_and_never_off() {
        let knobs = knobs(&Tree::smt_host(), None, "");
        for name in ["turbo", "thp", "cpufreq.governor", "swap", "hz", "preempt", "smt", "ksm"] {
            assert_eq!(knobs[name], Knob::Unknown, "{name}");
        }
        assert_eq!(knobs["cmdline.nohz_full"], Knob::Unknown);
        assert_eq!(knobs["tsc"], value("constant_tsc nonstop_tsc rdtscp"));
    }

    #[test]
    fn governors_that_differ_are_told_with_their_cpus() {
        let tree = Tree::smt_host();
        let governor = |cpu: u32, name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            tree.file(&path, name);
        };
        (0..7).for_each(|cpu| governor(cpu, "powersave\n"));
        assert_eq!(knobs(&tree, None, "")["cpufreq.governor"], value("powersave"));
        governor(2, "performance\n");
        governor(3, "performance\n");
        assert_eq!(
            knobs(&tree, None, "")["cpufreq.governor"],
            value("performance on 2-3, powersave on 0-1,4-6")
        );
    }

    #[test]
    fn turbo_is_told_by_either_driver() {
        let tree = Tree::empty();
        tree.file("/sys/devices/system/cpu/cpufreq/boost", "0\n");
        assert_eq!(knobs(&tree, None, "")["turbo"], value("off"));
        tree.file("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
        assert_eq!(knobs(&tree, None, "")["turbo"], value("on"));
    }

    #[test]
    fn choices_in_brackets_and_idle_states_are_read() {
        let tree = Tree::smt_host();
        tree.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
            .file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
            .file("/sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n")
            .file("/sys/devices/system/cpu/nohz_full", "  (null)\n");
        for cpu in 0..7 {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
            tree.file(&format!("{dir}/state0/name"), "POLL\n")
                .file(&format!("{dir}/state1/name"), "C1\n")
                .file(&format!("{dir}/state1/disable"), "1\n");
        }
        let knobs = knobs(&tree, None, "");
        assert_eq!(knobs["thp"], value("madvise"));
        assert_eq!(knobs["lockdown"], value("integrity"));
        assert_eq!(knobs["idle.governor"], value("menu"));
        assert_eq!(knobs["idle.states"], value("POLL C1 (off)"));
        assert_eq!(knobs["nohz_full"], value("none"));
    }

    #[test]
    fn limits_on_waking_up_that_differ_are_told_with_their_cpus() {
        let tree = Tree::smt_host();
        assert_eq!(knobs(&tree, None, "")["idle.resume_latency_us"], Knob::Unknown);
        for cpu in 0..7 {
            let limit = if cpu == 2 { "n/a\n" } else { "0\n" };
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/power");
            tree.file(&format!("{dir}/pm_qos_resume_latency_us"), limit);
        }
        let told = value("0 on 0-1,3-6, n/a on 2");
        assert_eq!(knobs(&tree, None, "")["idle.resume_latency_us"], told);
    }

    #[test]
    fn command_line_parameters_are_known_to_be_absent_and_the_last_one_wins() {
        let line = "quiet nohz_full=1 nohz_full=2-3 skew_tick -- isolcpus=9";
        let knobs = knobs(&Tree::empty(), Some(line), "");
        assert_eq!(knobs["cmdline.nohz_full"], value("2-3"));
        assert_eq!(knobs["cmdline.skew_tick"], value("set"));
        assert_eq!(knobs["cmdline.isolcpus"], value("none"));
    }

    #[test]
    fn swap_is_none_only_when_the_kernel_says_so() {
        let header = "Filename\tType\tSize\tUsed\tPriority\n";
        assert_eq!(swap(header), "none");
        let area = format!("{header}/dev/dm-1  partition 8388604 0 -2\n");
        assert_eq!(swap(&area), "/dev/dm-1 8388604 KiB");
    }

    #[test]
    fn mitigations_are_told_one_by_one() {
        let tree = Tree::empty();
        tree.file("/sys/devices/system/cpu/vulnerabilities/spectre_v1", "Mitigation: x\n");
        assert_eq!(knobs(&tree, None, "")["mitigation.spectre_v1"], value("Mitigation: x"));
    }

    #[test]
    fn tick_rate_comes_from_either_place_of_the_configuration() {
        let tree = Tree::empty();
        tree.file("/boot/config-6.1.0", "# CONFIG_HZ_100 is not set\nCONFIG_HZ=250\n");
        assert_eq!(knobs(&tree, None, "")["hz"], value("250"));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(b"CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n").unwrap();
        tree.bytes("/proc/config.gz", &packed.finish().unwrap());
        assert_eq!(knobs(&tree, None, "")["hz"], value("1000"));
        // Not gzip at all: the other place is asked again.
        tree.file("/proc/config.gz", "CONFIG_HZ=7\n");
        assert_eq!(knobs(&tree, None, "")["hz"], value("250"));
    }

    #[test]
    fn preemption_model_is_read_where_it_shows_and_qualified_where_not() {
        let tree = Tree::empty();
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian";
        assert_eq!(knobs(&tree, None, "#1 SMP PREEMPT_RT x")["preempt"], value("rt"));
        assert_eq!(knobs(&tree, None, "#1 SMP PREEMPT x")["preempt"], value("full"));
        assert_eq!(knobs(&tree, None, "#1 SMP x")["preempt"], Knob::Unknown);
        assert_eq!(knobs(&tree, None, dynamic)["preempt"], value("dynamic"));
        assert_eq!(
            knobs(&tree, Some("preempt=full"), dynamic)["preempt"],
            value("dynamic, booted as full")
        );
        tree.file("/boot/config-6.1.0", "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPTION=y\n");
        assert_eq!(knobs(&tree, None, dynamic)["preempt"], value("dynamic, built as none"));
        assert_eq!(knobs(&tree, None, "#1 SMP x")["preempt"], value("none"));
        tree.file("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
        assert_eq!(knobs(&tree, None, dynamic)["preempt"], value("full"));
        tree.file("/sys/kernel/realtime", "1\n");
        assert_eq!(knobs(&tree, None, dynamic)["preempt"], value("rt"));
    }
}
