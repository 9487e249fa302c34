//! Tells the figures where the program lies that they measure: the release build beside this one.

use std::path::Path;

fn main() {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    // target/PROFILE/build/accept-HASH/out
    let target = Path::new(&out).ancestors().nth(4).expect("four folders below the target folder");
    let told = |name: &str, path: &Path| println!("cargo:rustc-env={name}={}", path.display());
    told("CARGO_BIN_EXE_whylate", &target.join("release/whylate"));
    told("CARGO_TARGET_TMPDIR", &target.join("tmp"));
    println!("cargo:rerun-if-changed=build.rs");
}
