#!/bin/sh
# Gets what a guest with a network card that stamps is made of: a QEMU that emulates one (igb, of
# bookworm-backports) and a kernel that drives it, unpacked below one directory by themselves. Nothing of
# the system is changed. A system that is no Debian bookworm of amd64, or with which this QEMU does not go, has
# none: the directory says why, and the test that needs it tells that. What cannot be fetched is tried three
# times, and where CI is set it is an error that names it.
set -u

TRIES=3

into=${1:-/var/cache/whylate-tests/guest}
[ -e "$into/ready" ] && exit 0
# Of two suites at once the second waits, and has what the first fetched, in place of removing it meanwhile. The lock
# lasts as long as this shell.
lock=$into.lock
if command -v flock >/dev/null 2>&1 && (mkdir -p "$(dirname "$into")" && : >>"$lock") 2>/dev/null; then
    exec 9>>"$lock"
    flock 9
    [ -e "$into/ready" ] && exit 0
fi
rm -rf "$into"

told() { # file reason
    mkdir -p "$into" && echo "$2" >"$into/$1"
    echo "no guest with a card that stamps: $2" >&2
}

# No such guest belongs to this system.
cannot() {
    rm -rf "$into/apt" "$into/unpacked"
    told why-not "$1"
    exit 0
}

# It does, and is not to be had.
lacking() {
    rm -rf "$into/apt" "$into/unpacked"
    told not-fetched "$1"
    [ -z "${CI:-}" ] || exit 1
    exit 0
}

[ "$(id -u)" = 0 ] || cannot "its packages are fetched by root"
command -v apt-get >/dev/null 2>&1 || cannot "its packages are Debian's"
[ "$(dpkg --print-architecture)" = amd64 ] || cannot "its packages are those of amd64"
# Whatever mirror this host has.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Release: bookworm' | head -n 1)
[ -n "$mirror" ] || cannot "its packages are those of bookworm"

# Lists and packages of its own, beside those of the system.
mkdir -p "$into/apt/sources" "$into/apt/lists/partial" "$into/apt/archives/partial" "$into/unpacked"
cat >"$into/apt/sources/guest.sources" <<SOURCES
Types: deb
URIs: $mirror
Suites: bookworm bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
own() { # program words
    program=$1
    shift
    timeout 240 "$program" -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$into/apt/sources" \
        -o "Dir::State::lists=$into/apt/lists" -o "Dir::Cache=$into/apt" \
        -o APT::Sandbox::User=root -o Acquire::Retries=3 -o APT::Update::Error-Mode=any "$@"
}
# What was fetched stays for the next try; the reason where it fails.
fetched() {
    reason="bookworm-backports cannot be reached"
    own apt-get update >/dev/null 2>&1 || return 1
    # What it needs and this system lacks; not what would replace something of the system.
    wanted=$(own apt-get -s install --no-install-recommends -t bookworm-backports qemu-system-x86 |
        sed -n 's/^Inst \([^ ]*\) (.*/\1/p')
    kernel=$(own apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
    case "$wanted" in
    *qemu-system-x86*) ;;
    *) cannot "apt-get finds no qemu-system-x86 that goes with this system" ;;
    esac
    [ -n "$kernel" ] || cannot "apt-get finds no linux-image-amd64"
    reason="not all of its packages can be fetched: $(echo "$wanted" "$kernel" | tr '\n' ' ')"
    # shellcheck disable=SC2086
    (cd "$into/apt" && own apt-get download -t bookworm-backports $wanted >/dev/null 2>&1 &&
        own apt-get download "$kernel" >/dev/null 2>&1)
}

try=1
until fetched; do
    [ "$try" -lt "$TRIES" ] || lacking "$reason"
    sleep $((try * 5))
    try=$((try + 1))
done

for package in "$into"/apt/*.deb; do
    case "$package" in
    */linux-image-*)
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$into/unpacked" --wildcards \
            './boot/vmlinuz-*' '*/igb.ko' '*/dca.ko' '*/i2c-algo-bit.ko'
        ;;
    *) dpkg-deb -x "$package" "$into/unpacked" ;;
    esac || lacking "$(basename "$package") cannot be unpacked"
done
cp "$into"/unpacked/boot/vmlinuz-* "$into/vmlinuz" || lacking "$kernel has no kernel"
for module in dca i2c-algo-bit igb; do
    find "$into/unpacked" -name "$module.ko" -exec cp {} "$into/" \;
done
rm -rf "$into/apt"
LD_LIBRARY_PATH="$into/unpacked/usr/lib/x86_64-linux-gnu:$into/unpacked/lib/x86_64-linux-gnu" \
    "$into/unpacked/usr/bin/qemu-system-x86_64" -device help 2>/dev/null | grep -q '"igb"' ||
    lacking "the QEMU that came does not run, or has no igb"
echo "$kernel" >"$into/ready"
exit 0
