//! What identifies a host for the purpose of comparing numbers.
//!
//! Everything is read back from the running kernel, nothing from what somebody configured. A field
//! that cannot be read stays empty, a knob that cannot be read is `Unknown`: reading never fails,
//! because a host that hides a file is still a host.

use std::path::Path;

use whylate_model::host::{Fingerprint, Knob};

use crate::doctor::settings;
use crate::files::{text, trimmed, under};
use crate::knobs;
use crate::topology::Topology;

/// Reads the fingerprint of the host whose `/proc` and `/sys` lie below `root`.
#[must_use]
pub fn read(root: &Path) -> Fingerprint {
    let cpuinfo = text(&under(root, "/proc/cpuinfo")).unwrap_or_default();
    let kernel = |name: &str| trimmed(&under(root, &format!("/proc/sys/kernel/{name}")));
    let topology = Topology::read(root).ok();
    let release = kernel("osrelease").unwrap_or_default();
    let build = kernel("version").unwrap_or_default();
    let command_line = trimmed(&under(root, "/proc/cmdline"));
    let basis = knobs::Basis {
        topology: topology.as_ref(),
        command_line: command_line.as_deref(),
        kernel_release: &release,
        kernel_build: &build,
        cpu_flags: cpuinfo_field(&cpuinfo, "flags"),
    };
    let mut knobs = knobs::read(root, &basis);
    knobs.extend(settings::read(root));
    Fingerprint {
        hostname: kernel("hostname").unwrap_or_default(),
        architecture: kernel("arch").unwrap_or_else(|| machine(root)),
        cpu_model: cpu_model(root, &cpuinfo),
        microcode: cpuinfo_field(&cpuinfo, "microcode")
            .map_or(Knob::Unknown, |value| Knob::Value(value.to_owned())),
        hypervisor: hypervisor(root, &cpuinfo),
        cpus_online: topology.as_ref().map(|t| t.online().to_vec()).unwrap_or_default(),
        cpus_isolated: topology.as_ref().map(|t| t.isolated().to_vec()).unwrap_or_default(),
        memory_bytes: memory_bytes(root),
        knobs,
        command_line: command_line.unwrap_or_default(),
        kernel: release,
        kernel_build: build,
    }
}

/// Does a hypervisor lie below this kernel? Then time can go missing without any event here.
#[must_use]
pub fn virtualised(fingerprint: &Fingerprint) -> bool {
    fingerprint.hypervisor.is_some()
}

/// The value of the first line `name : value`.
fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// `uname -m` of kernels before 6.1, which have no file for it.
fn machine(root: &Path) -> String {
    if root == Path::new("/") {
        rustix::system::uname().machine().to_string_lossy().into_owned()
    } else {
        String::new()
    }
}

fn memory_bytes(root: &Path) -> u64 {
    let meminfo = text(&under(root, "/proc/meminfo")).unwrap_or_default();
    let kib = meminfo.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The name on x86; on arm64, which has numbers only, the cores of the large servers by name and
/// all others by number, and before it the board where a device tree tells it.
fn cpu_model(root: &Path, cpuinfo: &str) -> String {
    for name in ["model name", "cpu model", "cpu"] {
        if let Some(model) = cpuinfo_field(cpuinfo, name) {
            return model.to_owned();
        }
    }
    let field = |name| cpuinfo_field(cpuinfo, name).unwrap_or("?").to_ascii_lowercase();
    let (implementer, part) = (field("CPU implementer"), field("CPU part"));
    if implementer == "?" {
        return String::new();
    }
    let core = match (implementer.as_str(), part.as_str()) {
        ("0x41", "0xd03") => "Cortex-A53",
        ("0x41", "0xd08") => "Cortex-A72",
        ("0x41", "0xd0b") => "Cortex-A76",
        ("0x41", "0xd0c") => "Neoverse-N1",
        ("0x41", "0xd40") => "Neoverse-V1",
        ("0x41", "0xd49") => "Neoverse-N2",
        ("0x41", "0xd4f") => "Neoverse-V2",
        ("0xc0", "0xac3" | "0xac4") => "Ampere-1",
        _ => "",
    };
    let core = if core.is_empty() {
        format!("implementer {implementer} part {part}")
    } else {
        core.to_owned()
    };
    match trimmed(&under(root, "/proc/device-tree/model")) {
        Some(board) if !board.is_empty() => format!("{board}, {core}"),
        _ => core,
    }
}

/// The hypervisor, where there is one.
///
/// On x86 the `hypervisor` flag decides and the rest only names it. A hypervisor can hide the flag,
/// and arm64 has none: then only names that no bare machine bears count. The large clouds put
/// their name on bare machines, too, so for them the product must not say `metal`.
fn hypervisor(root: &Path, cpuinfo: &str) -> Option<String> {
    let flags = cpuinfo_field(cpuinfo, "flags");
    let flagged = flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let named = named_by_kernel(root).or_else(|| named_by_firmware(root, flags.is_none()));
    match (flagged, named) {
        (_, Some(name)) => Some(name),
        (true, None) => Some("unnamed hypervisor".to_owned()),
        (false, None) => None,
    }
}

/// Where the kernel itself knows what it runs on.
fn named_by_kernel(root: &Path) -> Option<String> {
    let kind = trimmed(&under(root, "/sys/hypervisor/type"));
    if let Some(kind) = kind.filter(|kind| !kind.is_empty() && kind != "none") {
        return Some(if kind == "xen" { "Xen".to_owned() } else { kind });
    }
    let compatible = under(root, "/proc/device-tree/hypervisor/compatible");
    if let Some(kind) = trimmed(&compatible) {
        return Some(kind.split('\0').next().unwrap_or_default().to_owned());
    }
    let clocks = trimmed(&under(
        root,
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    ))?;
    [("kvm-clock", "KVM"), ("hyperv_clocksource", "Hyper-V"), ("xen", "Xen")]
        .into_iter()
        .find(|(clock, _)| clocks.split_whitespace().any(|name| name.starts_with(clock)))
        .map(|(_, name)| name.to_owned())
}

/// What the firmware calls the machine. `no_flag`: this architecture has no flag to decide.
fn named_by_firmware(root: &Path, no_flag: bool) -> Option<String> {
    let dmi = |name: &str| trimmed(&under(root, &format!("/sys/class/dmi/id/{name}")));
    let vendor = dmi("sys_vendor").unwrap_or_default();
    let product = dmi("product_name").unwrap_or_default();
    let both = format!("{vendor} {product}");
    for (mark, name) in [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("Bochs", "Bochs"),
        ("Xen", "Xen"),
        ("Parallels Virtual", "Parallels"),
        ("Microsoft Corporation Virtual Machine", "Hyper-V"),
        ("OpenStack", "OpenStack"),
        ("Apple Virtualization", "Apple Virtualization"),
    ] {
        if both.contains(mark) {
            return Some(name.to_owned());
        }
    }
    let cloud = ["Amazon EC2", "Google", "Alibaba Cloud"].into_iter().find(|c| vendor.contains(c));
    cloud.filter(|_| no_flag && !product.contains("metal")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;

    use super::*;
    use crate::tree::Tree;

    const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some Xeon 6 @ 3\n\
                       microcode\t: 0xb000171\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n";
    const ARM: &str = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
                       CPU part\t: 0xd0c\n";

    #[test]
    fn identity_is_read_from_the_tree() {
        let tree = Tree::smt_host();
        tree.file("/proc/cpuinfo", X86)
            .file("/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n")
            .file("/proc/cmdline", "root=/dev/sda1 quiet\n")
            .file("/proc/sys/kernel/hostname", "box\n")
            .file("/proc/sys/kernel/osrelease", "6.1.0-rt\n")
            .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT\n")
            .file("/proc/sys/kernel/arch", "x86_64\n");
        let read = read(tree.root());
        assert_eq!(read.hostname, "box");
        assert_eq!(read.kernel, "6.1.0-rt");
        assert_eq!(read.kernel_build, "#1 SMP PREEMPT_RT");
        assert_eq!(read.architecture, "x86_64");
        assert_eq!(read.command_line, "root=/dev/sda1 quiet");
        assert_eq!(read.cpu_model, "Some Xeon 6 @ 3");
        assert_eq!(read.microcode, Knob::Value("0xb000171".to_owned()));
        assert_eq!(read.memory_bytes, 16 << 20);
        assert_eq!(read.cpus_isolated, [CpuId(2), CpuId(6)]);
        assert_eq!(read.cpus_online.len(), 7);
        assert!(!virtualised(&read));
    }

    #[test]
    fn host_that_hides_everything_gives_empty_fields_and_unknown_knobs() {
        let tree = Tree::empty();
        let read = read(tree.root());
        assert_eq!(read.hostname, "");
        assert_eq!(read.microcode, Knob::Unknown);
        assert!(!read.knobs.is_empty());
        for (name, knob) in &read.knobs {
            assert_eq!(*knob, Knob::Unknown, "{name}");
        }
    }

    #[test]
    fn hypervisors_are_known_by_flag_kernel_and_firmware() {
        let flagged = X86.replace("nonstop_tsc", "nonstop_tsc hypervisor");
        let tree = Tree::empty();
        assert_eq!(hypervisor(tree.root(), X86), None);
        assert_eq!(hypervisor(tree.root(), &flagged).as_deref(), Some("unnamed hypervisor"));
        let clock = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        tree.file(clock, "tsc kvm-clock acpi_pm\n");
        assert_eq!(hypervisor(tree.root(), &flagged).as_deref(), Some("KVM"));
        tree.file("/sys/hypervisor/type", "xen\n");
        assert_eq!(hypervisor(tree.root(), &flagged).as_deref(), Some("Xen"));
    }

    #[test]
    fn firmware_names_count_where_no_bare_machine_bears_them() {
        let named = |vendor: &str, product: &str, cpuinfo: &str| {
            let tree = Tree::empty();
            tree.file("/sys/class/dmi/id/sys_vendor", vendor)
                .file("/sys/class/dmi/id/product_name", product);
            hypervisor(tree.root(), cpuinfo)
        };
        assert_eq!(named("QEMU\n", "KVM Virtual Machine\n", ARM).as_deref(), Some("QEMU"));
        assert_eq!(named("Amazon EC2\n", "m7g.large\n", ARM).as_deref(), Some("Amazon EC2"));
        assert_eq!(named("Amazon EC2\n", "m7g.metal\n", ARM), None);
        assert_eq!(named("Amazon EC2\n", "c5.xlarge\n", X86), None);
        assert_eq!(named("Microsoft Corporation\n", "Surface Pro\n", X86), None);
        let guest = named("Microsoft Corporation\n", "Virtual Machine\n", X86);
        assert_eq!(guest.as_deref(), Some("Hyper-V"));
        assert_eq!(named("Dell Inc.\n", "PowerEdge R650\n", X86), None);
    }

    #[test]
    fn arm_cores_have_names_or_numbers() {
        let tree = Tree::empty();
        assert_eq!(cpu_model(tree.root(), ARM), "Neoverse-N1");
        let other = ARM.replace("0xd0c", "0xfff");
        assert_eq!(cpu_model(tree.root(), &other), "implementer 0x41 part 0xfff");
        tree.file("/proc/device-tree/model", "Raspberry Pi 5\0");
        assert_eq!(cpu_model(tree.root(), ARM), "Raspberry Pi 5, Neoverse-N1");
        assert_eq!(cpu_model(tree.root(), ""), "");
    }

    #[test]
    fn this_very_host_has_a_name_a_kernel_and_memory() {
        let read = read(Path::new("/"));
        assert!(!read.kernel.is_empty());
        assert!(!read.architecture.is_empty());
        assert!(read.memory_bytes > 0);
        assert!(!read.cpus_online.is_empty());
    }
}
