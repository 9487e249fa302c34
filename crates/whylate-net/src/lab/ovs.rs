//! Open vSwitch in the device of a bed: a data base and a switch of its own, which know nothing of
//! those that the machine may run.

use std::path::{Path, PathBuf};
use std::process::Command;

use whylate_host::bed::{self, Role};
use whylate_sys::ethtool;

use super::bed::{Bed, inside};
use super::ip;
use crate::error::NetError;

const PROGRAMS: [&str; 5] =
    ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];
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
    inside(name, Role::Device, || {
        let switch = Switch::start(name, kernel)?;
        switch.join(&["to-client".to_owned(), "to-server".to_owned()])
    })?;
    ip::ip(name, Role::Device, &format!("addr add {}/24 dev switch0", Bed::address(Role::Device)))?;
    ip::ip(name, Role::Device, "link set switch0 addrgenmode none up")?;
    Ok(if kernel {
        "Open vSwitch, forwarding in the kernel".to_owned()
    } else {
        "Open vSwitch, forwarding in its own process; checksums are made before sending".to_owned()
    })
}

/// Starts it with several ports of which `to` has what answers to the hardware address `mac`: what is sent
/// there goes there alone, also before it has sent anything itself, and the switch leaves the queue of that
/// port to whoever makes it narrow.
pub(super) fn start_fan_in(
    name: &str,
    kernel: bool,
    from: &[String],
    (to, mac): (&str, &str),
) -> Result<(), NetError> {
    inside(name, Role::Device, || {
        let switch = Switch::start(name, kernel)?;
        let ports: Vec<String> = from.iter().cloned().chain([to.to_owned()]).collect();
        switch.join(&ports)?;
        // Without it the switch takes away what `tc` sets there, whenever it is configured.
        switch.control(&left_alone(to))?;
        let words = ["add-flow".to_owned(), switch.management(), only_to(to, mac)];
        switch.program("ovs-ofctl", &words).map(|_| ())
    })
}

/// The port's queue is somebody else's, in words of `ovs-vsctl`.
fn left_alone(port: &str) -> String {
    format!("-- --id=@none create qos type=linux-noop -- set port {port} qos=@none")
}

/// What is sent to this hardware address leaves by this port alone, in words of `ovs-ofctl`.
fn only_to(port: &str, mac: &str) -> String {
    format!("priority=100,dl_dst={mac},actions=output:{port}")
}

/// The switch of a bed and its data base, which are in the calling thread's namespace.
struct Switch {
    run: PathBuf,
    datapath: &'static str,
}

impl Switch {
    /// Starts both of its processes.
    fn start(name: &str, kernel: bool) -> Result<Self, NetError> {
        let datapath = if kernel { "system" } else { "netdev" };
        let switch = Self { run: bed::run_directory(name), datapath };
        let base = switch.path("conf.db");
        let schema = schema().unwrap_or_default().to_owned();
        switch.program("ovsdb-tool", &["create".to_owned(), base.clone(), schema])?;
        let mut words = vec![base, format!("--remote=punix:{}", switch.socket())];
        words.extend(switch.daemon("ovsdb-server"));
        switch.program("ovsdb-server", &words)?;
        switch.control("--no-wait init")?;
        let mut words = vec![format!("unix:{}", switch.socket())];
        words.extend(switch.daemon("ovs-vswitchd"));
        // Otherwise it would ask for the kernel's switch, and have its module loaded.
        words.extend((!kernel).then(|| "--disable-system".to_owned()));
        switch.program("ovs-vswitchd", &words)?;
        Ok(switch)
    }

    /// Makes a bridge of these ports.
    fn join(&self, ports: &[String]) -> Result<(), NetError> {
        let datapath = self.datapath;
        let mut words = format!(
            "add-br switch0 -- set bridge switch0 datapath_type={datapath} fail_mode=standalone"
        );
        for port in ports {
            words.push_str(" -- add-port switch0 ");
            words.push_str(port);
        }
        self.control(&words).map(|_| ())
    }

    fn path(&self, file: &str) -> String {
        self.run.join(file).display().to_string()
    }

    /// Where its data base listens.
    fn socket(&self) -> String {
        self.path("db.sock")
    }

    /// Where the bridge takes flows.
    fn management(&self) -> String {
        format!("unix:{}", self.path("switch0.mgmt"))
    }

    fn control(&self, words: &str) -> Result<String, NetError> {
        let mut all = vec![format!("--db=unix:{}", self.socket()), "--timeout=10".to_owned()];
        all.extend(words.split_whitespace().map(str::to_owned));
        self.program("ovs-vsctl", &all)
    }

    fn program(&self, program: &str, words: &[String]) -> Result<String, NetError> {
        let mut command = Command::new(program);
        command.args(words);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &self.run);
        }
        ip::run(command)
    }

    /// Where a process of it writes, so that it is known when the bed is taken down.
    fn daemon(&self, program: &str) -> Vec<String> {
        vec![
            format!("--pidfile={}", self.path(&format!("{program}.pid"))),
            format!("--unixctl={}", self.path(&format!("{program}.ctl"))),
            format!("--log-file={}", self.path(&format!("{program}.log"))),
            "-vconsole:off".to_owned(),
            "-vsyslog:off".to_owned(),
            "--no-chdir".to_owned(),
            "--detach".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_of_a_fan_in_leaves_the_narrow_queue_alone_and_floods_nothing() {
        assert_eq!(
            left_alone("to-server"),
            "-- --id=@none create qos type=linux-noop -- set port to-server qos=@none"
        );
        let flow = only_to("to-server", "02:00:00:00:00:02");
        assert_eq!(flow, "priority=100,dl_dst=02:00:00:00:00:02,actions=output:to-server");
        let switch = Switch { run: PathBuf::from("/run/x"), datapath: "netdev" };
        assert_eq!(switch.management(), "unix:/run/x/switch0.mgmt");
        // By this directory its processes are known when the bed goes.
        assert!(switch.daemon("ovs-vswitchd").iter().any(|word| word.contains("/run/x/")));
    }
}
