#!/bin/sh
# Installs what the tests use beside a Rust toolchain. Where it cannot (no root, another
# distribution) it says what is missing, and the tests that need it say that they were skipped.
set -u

missing=""
need() { # program package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need oslat rt-tests
need rt-app rt-app
need chromium chromium
need ip iproute2
need ovs-vswitchd openvswitch-switch
need sockperf sockperf
need qemu-aarch64 qemu-user
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
[ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || missing="$missing libc6-dev-arm64-cross"

if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq >/dev/null || true
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null ||
            echo "could not install:$missing" >&2
    else
        echo "not installed (needs root and apt-get):$missing" >&2
    fi
fi

if command -v rustup >/dev/null 2>&1; then
    rustup target list --installed 2>/dev/null | grep -q '^aarch64-unknown-linux-gnu$' ||
        rustup target add aarch64-unknown-linux-gnu >/dev/null 2>&1 ||
        echo "could not add the Rust target aarch64-unknown-linux-gnu" >&2
fi
exit 0
