#!/bin/sh
# Installs what the tests use beside a Rust toolchain. Where that cannot be done (no root, another
# distribution) it says what is missing, and the tests that need it say that they were skipped; where CI is
# set, what cannot be had is an error that names it.
set -u

# No room is said before anything is installed or compiled, as xtask/src/room.rs says it, which is compiled first.
# What df does not count is not asked.
NEEDED_MB=64
check_room() { # folder
    kib=$(LC_ALL=C df -Pk "$1" 2>/dev/null | {
        read -r _ && read -r _ total _ available _ && [ "$total" != 0 ] && echo "$available"
    })
    case "$kib" in
    '' | *[!0-9]*) return ;;
    esac
    mb=$((kib / 1024))
    [ "$mb" -lt "$NEEDED_MB" ] || return
    echo "no room for the tests: $1 has $mb MB left, and $NEEDED_MB are needed; empty it" >&2
    exit 1
}
check_room /tmp
check_room "${TMPDIR:-/tmp}"

TRIES=3

# Each program, and Debian's package that has it. `cargo xtask check` finds here what the tests run.
programs="
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
ar binutils
bash bash
cat coreutils
cc gcc
chromium chromium
chrt util-linux
cyclictest rt-tests
dash dash
date coreutils
df coreutils
dpdk-testpmd dpdk-dev
flock util-linux
insmod kmod
git git
ip iproute2
kill procps
ldd libc-bin
make make
mount mount
netsniff-ng netsniff-ng
nice coreutils
nsenter util-linux
objdump binutils
oslat rt-tests
ovs-ofctl openvswitch-common
ovs-vswitchd openvswitch-switch
pgrep procps
ping iputils-ping
pkg-config pkg-config
python3 python3
qemu-aarch64 qemu-user
qperf qperf
renice bsdutils
rt-app rt-app
script bsdutils
setpriv util-linux
setsid util-linux
sh dash
sleep coreutils
sockperf sockperf
stdbuf coreutils
stress-ng stress-ng
strip binutils
taskset util-linux
tc iproute2
tcpdump tcpdump
timeout coreutils
trafgen netsniff-ng
true coreutils
umount mount
unshare util-linux
wc coreutils
"

# Packages of what is not here, each once.
missing() {
    {
        echo "$programs" | while read -r program package; do
            [ -z "$program" ] || command -v "$program" >/dev/null 2>&1 || echo "$package"
        done
        [ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || echo libc6-dev-arm64-cross
        pkg-config --exists libdpdk 2>/dev/null || echo libdpdk-dev
    } | sort -u | tr '\n' ' '
}

# Says what cannot be had; in CI that is the end.
lacking() {
    echo "not to be had: $1" >&2
    [ -z "${CI:-}" ] || exit 1
}

# Waits where somebody else installs, such as another suite.
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=600 \
        -o Acquire::Retries=3 "$@" >/dev/null
}

if [ -n "$(missing)" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        try=1
        while [ -n "$(missing)" ] && [ "$try" -le "$TRIES" ]; do
            [ "$try" = 1 ] || sleep $((try * 5))
            apt-get update -qq >/dev/null
            # All at once; and where one of them is not to be had, the others all the same.
            # shellcheck disable=SC2046
            install $(missing) || for package in $(missing); do install "$package"; done
            try=$((try + 1))
        done
    fi
    left=$(missing)
    [ -z "$left" ] || lacking "$left"
fi

# A guest with a card that stamps, for which nothing is installed; its test says why there is none. In CI it
# fails where this system has one and it cannot be fetched, and has said so.
"$(dirname "$0")/get-guest.sh" || exit 1

target=aarch64-unknown-linux-gnu
has_target() {
    rustup target list --installed 2>/dev/null | grep -q "^$target\$"
}
if command -v rustup >/dev/null 2>&1 && ! has_target; then
    try=1
    until rustup target add "$target" >/dev/null 2>&1 || [ "$try" = "$TRIES" ]; do
        sleep $((try * 5))
        try=$((try + 1))
    done
    has_target || lacking "the Rust target $target"
fi
exit 0
