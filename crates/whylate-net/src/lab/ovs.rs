//! Open vSwitch in the device of a bed: a data base and a switch of its own, which know nothing of
//! those that the machine may run.

use std::path::Path;
use std::process::Command;

use whylate_host::bed::{self, Role};
use whylate_sys::{ethtool, namespace};

use super::bed::Bed;
use super::ip;
use crate::error::NetError;

const PROGRAMS: [&str; 4] = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"];
/// Where its packages put the shape of its data base.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];

/// Refuses where Open vSwitch is not installed.
pub(super) fn needed() -> Result<(), NetError> {
    let missing = |program| NetError::NoProgram {
        what: "a bed of kind ovs",
        program,
        package: "Open vSwitch (Debian: openvswitch-switch)",
    };
    match PROGRAMS.iter().find(|program| !ip::is_installed(program)) {
        Some(program) => Err(missing(program)),
        None if schema().is_none() => Err(missing("vswitch.ovsschema")),
        None => Ok(()),
    }
}

fn schema() -> Option<&'static str> {
    SCHEMAS.into_iter().find(|path| Path::new(path).exists())
}

/// Starts it in the device's namespace and joins both ports; says who forwards the packets. With
/// `kernel` the kernel does, where it has the module loaded already; without, the switch's process.
pub(super) fn start(name: &str, kernel: bool) -> Result<String, NetError> {
    if !kernel {
        for (role, link) in [(Role::Client, "client0"), (Role::Server, "server0")] {
            inside(name, role, || Ok(ethtool::make_checksums_early(link)?))?;
        }
    }
    inside(name, Role::Device, || daemons(name, kernel))?;
    Ok(if kernel {
        "Open vSwitch, forwarding in the kernel".to_owned()
    } else {
        "Open vSwitch, forwarding in its own process; checksums are made before sending".to_owned()
    })
}

/// Does something on a thread of its own in a namespace of the bed; processes that it starts are
/// born there.
fn inside<T: Send>(
    name: &str,
    role: Role,
    work: impl FnOnce() -> Result<T, NetError> + Send,
) -> Result<T, NetError> {
    let place = bed::mount_point(name, role);
    std::thread::scope(|scope| {
        let there = move || {
            namespace::enter_network(&place)?;
            work()
        };
        scope.spawn(there).join().unwrap_or_else(|_| Err(NetError::NoBed(name.to_owned())))
    })
}

fn daemons(name: &str, kernel: bool) -> Result<(), NetError> {
    let run = bed::run_directory(name);
    let path = |file: &str| run.join(file).display().to_string();
    let program = |program: &str, words: &[String]| {
        let mut command = Command::new(program);
        command.args(words);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &run);
        }
        ip::run(command)
    };
    let daemon = |program: &str| {
        vec![
            format!("--pidfile={}", path(&format!("{program}.pid"))),
            format!("--unixctl={}", path(&format!("{program}.ctl"))),
            format!("--log-file={}", path(&format!("{program}.log"))),
            "-vconsole:off".to_owned(),
            "-vsyslog:off".to_owned(),
            "--no-chdir".to_owned(),
            "--detach".to_owned(),
        ]
    };
    let (base, socket) = (path("conf.db"), path("db.sock"));
    let schema = schema().unwrap_or_default().to_owned();
    program("ovsdb-tool", &["create".to_owned(), base.clone(), schema])?;
    let mut words = vec![base, format!("--remote=punix:{socket}")];
    words.extend(daemon("ovsdb-server"));
    program("ovsdb-server", &words)?;
    let control = |words: &str| {
        let mut all = vec![format!("--db=unix:{socket}"), "--timeout=10".to_owned()];
        all.extend(words.split_whitespace().map(str::to_owned));
        program("ovs-vsctl", &all)
    };
    control("--no-wait init")?;
    let mut words = vec![format!("unix:{socket}")];
    words.extend(daemon("ovs-vswitchd"));
    // Otherwise it would ask for the kernel's switch, and have its module loaded.
    words.extend((!kernel).then(|| "--disable-system".to_owned()));
    program("ovs-vswitchd", &words)?;
    let datapath = if kernel { "system" } else { "netdev" };
    control(&format!(
        "add-br switch0 -- set bridge switch0 datapath_type={datapath} fail_mode=standalone \
         -- add-port switch0 to-client -- add-port switch0 to-server"
    ))?;
    ip::ip(name, Role::Device, &format!("addr add {}/24 dev switch0", Bed::address(Role::Device)))?;
    ip::ip(name, Role::Device, "link set switch0 addrgenmode none up")?;
    Ok(())
}
