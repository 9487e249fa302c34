#!/bin/sh
# Gets what a guest with a network card that stamps is made of: a QEMU that emulates one (igb, of
# bookworm-backports) and a kernel that drives it, unpacked below one directory by themselves. Nothing of
# the system is changed. Where it cannot, the directory says why, and the test that needs it tells that.
set -u

into=${1:-/var/cache/whylate-tests/guest}
[ -e "$into/ready" ] && exit 0
rm -rf "$into"
mkdir -p "$into" || exit 0

cannot() {
    rm -rf "$into/apt" "$into/unpacked"
    echo "$1" >"$into/why-not"
    echo "no guest with a card that stamps: $1" >&2
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
        -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}
own apt-get update >/dev/null 2>&1 || cannot "bookworm-backports cannot be reached"

# What it needs and this system lacks; not what would replace something of the system.
wanted=$(own apt-get -s install --no-install-recommends -t bookworm-backports qemu-system-x86 |
    sed -n 's/^Inst \([^ ]*\) (.*/\1/p')
kernel=$(own apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
case "$wanted" in
*qemu-system-x86*) ;;
*) cannot "apt-get finds no qemu-system-x86 that goes with this system" ;;
esac
[ -n "$kernel" ] || cannot "apt-get finds no linux-image-amd64"
# shellcheck disable=SC2086
(cd "$into/apt" && own apt-get download -t bookworm-backports $wanted >/dev/null 2>&1 &&
    own apt-get download "$kernel" >/dev/null 2>&1) || cannot "its packages cannot be fetched"

for package in "$into"/apt/*.deb; do
    case "$package" in
    */linux-image-*)
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$into/unpacked" --wildcards \
            './boot/vmlinuz-*' '*/igb.ko' '*/dca.ko' '*/i2c-algo-bit.ko'
        ;;
    *) dpkg-deb -x "$package" "$into/unpacked" ;;
    esac || cannot "$(basename "$package") cannot be unpacked"
done
cp "$into"/unpacked/boot/vmlinuz-* "$into/vmlinuz" || cannot "$kernel has no kernel"
for module in dca i2c-algo-bit igb; do
    find "$into/unpacked" -name "$module.ko" -exec cp {} "$into/" \;
done
rm -rf "$into/apt"
LD_LIBRARY_PATH="$into/unpacked/usr/lib/x86_64-linux-gnu:$into/unpacked/lib/x86_64-linux-gnu" \
    "$into/unpacked/usr/bin/qemu-system-x86_64" -device help 2>/dev/null | grep -q '"igb"' ||
    cannot "the QEMU that came does not run, or has no igb"
echo "$kernel" >"$into/ready"
exit 0
