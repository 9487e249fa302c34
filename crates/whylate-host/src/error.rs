//! What can go wrong with the host, each with the thing named and a remedy.

use std::io;
use std::path::PathBuf;

use whylate_model::CpuId;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Text that is no CPU specification.
    #[error(
        "`{text}` names no CPUs: {why}; write numbers and ranges such as `2-5,8`, or `isolated`, \
         or `cgroup:PATH`"
    )]
    NotACpuSpec {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host has no such CPU.
    #[error("CPU {cpu} does not exist (this machine has CPUs {present}; online: {online})")]
    DoesNotExist {
        /// The CPU.
        cpu: CpuId,
        /// CPUs that exist.
        present: String,
        /// CPUs that are online.
        online: String,
    },
    /// The CPU exists and is offline.
    #[error(
        "cpu {cpu} is offline: online are {online}; bring it up with \
         `echo 1 > /sys/devices/system/cpu/cpu{cpu}/online`, or choose another"
    )]
    Offline {
        /// The CPU.
        cpu: CpuId,
        /// CPUs that are online.
        online: String,
    },
    /// The kernel would not let this process run there.
    #[error(
        "cpu {cpu} is outside the cpuset of this process, which holds {allowed}; start whylate \
         from a cgroup whose cpuset holds it, or choose another"
    )]
    OutsideCpuset {
        /// The CPU.
        cpu: CpuId,
        /// CPUs this process may use.
        allowed: String,
    },
    /// A CPU named more than once.
    #[error("cpu {cpu} is given twice in `{spec}`; name each CPU once")]
    Twice {
        /// The CPU.
        cpu: CpuId,
        /// The specification.
        spec: String,
    },
    /// `isolated` on a host without isolated CPUs.
    #[error(
        "no online CPU of this machine is isolated; boot with `isolcpus=LIST`, make an isolated \
         cpuset partition, or name the CPUs, such as `--cpus {suggestion}`"
    )]
    NoneIsolated {
        /// A CPU that would do.
        suggestion: String,
    },
    /// No such cgroup.
    #[error(
        "cgroup `{path}` was not found; looked for {looked}; `cat /proc/PID/cgroup` shows the path of a process"
    )]
    CgroupNotFound {
        /// As given.
        path: String,
        /// Directories that were tried.
        looked: String,
    },
    /// The cgroup exists and nothing says which CPUs it may use.
    #[error(
        "cgroup `{path}` has no cpuset, nor has any cgroup above it; enable the controller with \
         `echo +cpuset > cgroup.subtree_control` in its parent, or name the CPUs"
    )]
    CgroupWithoutCpuset {
        /// As given.
        path: String,
    },
    /// The cgroup's cpuset is empty.
    #[error("the cpuset of cgroup `{path}` is empty; write CPUs to {file}, or name the CPUs")]
    CgroupEmpty {
        /// As given.
        path: String,
        /// The file that was read.
        file: String,
    },
    /// The housekeeping CPU is one of the measured.
    #[error(
        "cpu {cpu} is measured and cannot do the housekeeping too; take it out of one of the two lists"
    )]
    HousekeepingMeasured {
        /// The CPU.
        cpu: CpuId,
    },
    /// A file of the host could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the host says something this version does not understand.
    #[error("cannot understand {}: {what}", path.display())]
    NotUnderstood {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is nowhere to keep the journal.
    #[error(
        "cannot keep a journal of changed settings: {why}; set XDG_RUNTIME_DIR to a directory \
         that only you can write, and no setting is changed until then"
    )]
    NoJournal {
        /// What was tried and why it failed.
        why: String,
    },
    /// The journal could not be written; the change it announces was not made.
    #[error("cannot write the journal {}, so nothing was changed: {source}", path.display())]
    JournalWrite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A setting could not be written.
    #[error("cannot write `{value}` to {}: {source}; {remedy}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// Why.
        source: io::Error,
        /// What to try.
        remedy: &'static str,
    },
    /// A setting was written and reads back as something else.
    #[error("wrote `{wanted}` to {} and it reads back `{found}`; the kernel did not keep it", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What it says now.
        found: String,
    },
    /// A configuration that cannot be had on this host; nothing was changed.
    #[error("configuration {name} cannot be had here: {why}")]
    ConfigurationRefused {
        /// Its steps, as they are written.
        name: String,
        /// Why, and what to do about it.
        why: String,
    },
    /// A knob of a configuration was set and reads back as something else.
    #[error(
        "knob {knob} was set to `{asked}` and reads back `{got}`: the machine did not keep it, and all \
         of the configuration was taken back"
    )]
    KnobNotKept {
        /// Its name.
        knob: String,
        /// What was asked of it.
        asked: String,
        /// What it says.
        got: String,
    },
    /// A process of the box that is configured has ended.
    #[error(
        "process {pid} of the box has ended: a configuration is put in force for one that runs"
    )]
    BoxEnded {
        /// The process.
        pid: whylate_model::Pid,
    },
    /// Every CPU is to be cleared: there is none to move things to.
    #[error(
        "cannot clear cpus {cpus}: no other CPU is online to move things to; measure fewer CPUs"
    )]
    NowhereToMove {
        /// The CPUs.
        cpus: String,
    },
    /// No cgroup hierarchy has the controller.
    #[error(
        "no cgroup hierarchy of this machine has the controller {controller}: looked at {looked}; \
         as root: mount -t cgroup -o {controller} none DIRECTORY (version 1), or boot a kernel \
         that has it (version 2)"
    )]
    NoController {
        /// The controller.
        controller: &'static str,
        /// Hierarchies that were looked at.
        looked: String,
    },
    /// A thread could not be moved into a cgroup.
    #[error("cannot move task {task} into cgroup {}: {source}; {remedy}", path.display())]
    NotAdopted {
        /// The thread.
        task: whylate_model::Pid,
        /// The cgroup.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to try.
        remedy: &'static str,
    },
    /// Amounts that a cgroup cannot hold.
    #[error("a quota of {amount} in {period} cannot be set: {why}")]
    Quota {
        /// CPU time in each period.
        amount: whylate_model::Nanos,
        /// The period.
        period: whylate_model::Nanos,
        /// What is wrong with it, and what to write.
        why: String,
    },
    /// The root of a host cannot be read at all.
    #[error(
        "cannot look at {}: {source}; name a directory that holds `proc` and `sys` of the machine",
        path.display()
    )]
    Root {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The fingerprint of a recording could not be kept for the next look at the host.
    #[error(
        "cannot remember this recording in {}: {source}; set XDG_STATE_HOME to a directory that \
         can be written, or doctor will not tell what changed since",
        path.display()
    )]
    NotRemembered {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is kept of calibrations cannot be used.
    #[error(
        "cannot use the calibrations in {}: {why}; `whylate calibrate` begins a new file",
        path.display()
    )]
    NoCalibrations {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A calibration could not be kept for later measurements.
    #[error(
        "cannot remember this calibration in {}: {source}; set XDG_STATE_HOME to a directory that can \
         be written, or later results will not know how far they can be trusted",
        path.display()
    )]
    NotCalibrated {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Files for a disk load could not be made.
    #[error(
        "cannot make files for a disk load in {}: {source}; set TMPDIR to a directory that can be \
         written",
        path.display()
    )]
    Tree {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file system has too little room for them.
    #[error(
        "cannot make files for a disk load in {}: they take {wanted} bytes, and {free} are free; \
         ask for fewer, or set TMPDIR to a directory with more room",
        path.display()
    )]
    NoRoomForTree {
        /// Where.
        path: PathBuf,
        /// Bytes of the whole tree.
        wanted: u64,
        /// Bytes that can still be written.
        free: u64,
    },
    /// A bed could not be looked at or taken down.
    #[error("cannot {what}: {source}")]
    Bed {
        /// What was tried.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A kernel interface refused.
    #[error(transparent)]
    Sys(#[from] whylate_sys::SysError),
}
