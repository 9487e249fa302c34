#!/bin/dash
# The first process of the guest: joins its two cards by namespaces of their own, measures from one to the
# other by each transport, sends the runs out by its serial ports, and turns the guest off.
export PATH=/bin HOME=/tmp NO_COLOR=1

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
for module in dca i2c-algo-bit igb; do
    insmod "/lib/$module.ko"
done

unshare --net sleep 1000 &
far=$!
in_far() {
    nsenter -t "$far" -n "$@"
}
# Until the process has a namespace of its own this moves nothing, and succeeds.
is_here() {
    ip link show eth1 >/dev/null 2>&1
}
until ip link set eth1 netns "$far" && ! is_here; do
    sleep 0.2
done
ip link set lo up
ip address add 198.18.0.1/24 dev eth0
ip link set eth0 up
in_far ip address add 198.18.0.2/24 dev eth1
in_far ip link set eth1 up

in_far whylate reflect --listen 198.18.0.2:4021 --wait block --no-dma-latency >/tmp/udp.log 2>&1 &
in_far whylate reflect --listen 198.18.0.2:4022 --port tcp --wait epoll --no-dma-latency \
    >/tmp/tcp.log 2>&1 &

has_carrier() { # words of ip link
    "$@" | {
        read -r line
        case "$line" in
        *"state UP"*) true ;;
        *) false ;;
        esac
    }
}
until has_carrier ip -o link show eth0 && has_carrier in_far ip -o link show eth1; do
    sleep 0.2
done

measure() { # transport address serial port
    until read -r _ <"/tmp/$1.log"; do
        sleep 0.2
    done
    whylate rtt "$2" --port "$1" --rate 200pps --duration 500ms --warmup 100ms --wait block --no-trace \
        --no-dma-latency --breakdown=stamps -o "/tmp/$1"
    echo "whylate rtt --port $1: $?"
    cat "/tmp/$1.log"
    cat "/tmp/$1/run.json" >"$3"
}
measure udp 198.18.0.2:4021 /dev/ttyS1
measure tcp 198.18.0.2:4022 /dev/ttyS2

echo o >/proc/sysrq-trigger
sleep 9
