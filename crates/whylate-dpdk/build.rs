//! Compiles the shim against the system's DPDK where the feature `dpdk` is on, and does nothing
//! otherwise: the default build needs neither DPDK nor a C compiler.

use std::path::PathBuf;
use std::process::{Command, exit};

/// What of DPDK is called; its drivers are loaded from its own directory when it starts.
const LIBRARIES: [&str; 6] =
    ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal", "rte_log"];
const INSTALL: &str = "install DPDK's headers, pkg-config and a C compiler: \
                       apt-get install libdpdk-dev pkg-config gcc";

fn main() {
    for path in ["build.rs", "src/shim.c", "src/shim.h"] {
        println!("cargo:rerun-if-changed={path}");
    }
    for name in ["CC", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if std::env::var_os("CARGO_FEATURE_DPDK").is_none() {
        return;
    }
    if let Err(reason) = build() {
        eprintln!("the feature `dpdk` cannot be built: {reason}; {INSTALL}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    let version = asked(&["--modversion"])?;
    if !at_least(&version, (22, 11)) {
        return Err(format!("DPDK {version} is too old: 22.11 or later is needed"));
    }
    let flags = asked(&["--cflags"])?;
    let directory = asked(&["--variable=libdir"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    let (object, archive) = (out.join("shim.o"), out.join("libwhylate_dpdk_shim.a"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    // Loops over bursts are small and called millions of times a second.
    let mut compile = Command::new(compiler);
    compile.args(["-O3", "-fPIC", "-Wall", "-Wextra", "-std=gnu11"]);
    compile.args(flags.split_whitespace()).args(["-c", "src/shim.c", "-o"]).arg(&object);
    succeed(&mut compile)?;
    let _ = std::fs::remove_file(&archive);
    succeed(Command::new("ar").arg("crs").arg(&archive).arg(&object))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=whylate_dpdk_shim");
    println!("cargo:rustc-link-search=native={directory}");
    for library in LIBRARIES {
        // Logging became a library of its own in 23.11.
        let there = PathBuf::from(&directory).join(format!("lib{library}.so")).exists();
        if there || library != "rte_log" {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
    Ok(())
}

fn at_least(version: &str, least: (u32, u32)) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= least
}

fn asked(words: &[&str]) -> Result<String, String> {
    let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned());
    let output = Command::new(&program).args(words).arg("libdpdk").output();
    let output = output.map_err(|error| format!("{program} does not run ({error})"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("there is no libdpdk here ({said})"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} does not run ({error})")),
    }
}
