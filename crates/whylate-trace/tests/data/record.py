#!/usr/bin/env python3
"""Records the files beside this one: pages of the kernel's trace, and the kernel's own text of them.

    record.py TRACEFS OUT      as root; TRACEFS is where tracefs is mounted, OUT a folder

Small instances are made and removed, for many short looks: some of all events, some of rare ones
(their pages hold long waits), some too small on purpose, so that their pages say that events were
lost. The text comes from the `trace` file with the
option `fields`, which prints numbers. A page is kept only where all threads on it are known by
name, so that a recording says nothing about what else ran on the machine. The files here were
recorded on a kernel 6.18 of x86-64 with two CPUs.
"""

import ctypes
import mmap
import os
import re
import signal
import socket
import struct
import sys
import time

EVENTS = """irq_vectors/local_timer irq_vectors/reschedule irq_vectors/call_function
irq_vectors/call_function_single irq_vectors/irq_work irq/irq_handler irq/softirq sched/sched_switch
sched/sched_wakeup sched/sched_migrate_task exceptions/page_fault_user
exceptions/page_fault_kernel nmi/nmi_handler signal/signal_generate signal/signal_deliver
workqueue/workqueue_execute_start workqueue/workqueue_execute_end ipi/ipi_send_cpu
ipi/ipi_send_cpumask csd/csd_queue_cpu""".split()
KNOWN = re.compile(
    r"swapper/\d+|ksoftirqd/\d+|kworker/\S*|migration/\d+|rcu_\w+|jbd2/\S*|kcompactd\d|kswapd\d"
    r"|kdamond\.\d|python3|signals|faults|calls|packets|files|rustc|cargo|coordinator|rust-lld|ld|cc"
    r"|opt \S+|lto \S+|bash|cat|head"
)
NAMES = re.compile(r"(?:prev_|next_)?comm=(.*?) (?:prev_|next_)?pid=")
LIBC = ctypes.CDLL(None, use_errno=True)


def name(text):
    LIBC.prctl(15, text.encode(), 0, 0, 0)


def signals():
    signal.signal(signal.SIGUSR1, lambda *_: None)
    while True:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.003)


def faults():
    source = open("/dev/zero", "rb", buffering=0)
    while True:
        area = mmap.mmap(-1, 8 * 4096)
        area[0] = 1
        source.readinto(memoryview(area)[4096:8192])
        time.sleep(0.003)


def calls():
    LIBC.syscall(324, 16, 0, 0)
    while True:
        LIBC.syscall(324, 8, 0, 0)
        LIBC.syscall(324, 1, 0, 0) if time.time() % 1 < 0.02 else None
        os.sched_setaffinity(0, {int(time.time() * 200) % os.cpu_count()})
        time.sleep(0.002)


def packets():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    while True:
        near.send(b"x")
        far.recv(1)
        udp.sendto(b"x", udp.getsockname())
        udp.recv(1)
        time.sleep(0.002)


def files():
    with open("/var/tmp/whylate-record-fixture", "wb", buffering=0) as file:
        os.unlink(file.name)
        while True:
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            time.sleep(0.004)


def start(work):
    pid = os.fork()
    if pid == 0:
        name(work.__name__)
        try:
            work()
        finally:
            os._exit(0)
    return pid


class Instance:
    def __init__(self, tracefs, kib, events):
        self.path = f"{tracefs}/instances/whylate-record-fixture"
        os.mkdir(self.path)
        self.put("tracing_on", "0")
        self.put("trace_clock", "x86-tsc")
        self.put("options/fields", "1")
        self.put("buffer_size_kb", str(kib))
        for event in events:
            for suffix in ("", "_entry", "_exit"):
                if os.path.exists(f"{self.path}/events/{event}{suffix}/enable"):
                    self.put(f"events/{event}{suffix}/enable", "1")

    def put(self, file, text):
        with open(f"{self.path}/{file}", "w") as opened:
            opened.write(text)

    def text(self, cpu):
        with open(f"{self.path}/per_cpu/cpu{cpu}/trace", errors="replace") as opened:
            return [line for line in opened.read().splitlines() if not line.startswith("#")]

    def pages(self, cpu):
        raw = os.open(f"{self.path}/per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                try:
                    page = os.read(raw, 4096)
                except BlockingIOError:
                    return
                if not page:
                    return
                yield page
        finally:
            os.close(raw)

    def remove(self):
        os.rmdir(self.path)


def types(page):
    """Counts of the record types on a page, and how many records have data."""
    commit = struct.unpack_from("<Q", page, 8)[0]
    at, end, seen, data = 16, 16 + (commit & 0x3FFFFFFF), set(), 0
    while at < end:
        word = struct.unpack_from("<I", page, at)[0]
        kind, delta = word & 31, word >> 5
        seen.add({29: "padding", 30: "extend", 31: "stamp", 0: "long"}.get(kind, "data"))
        if kind == 29 and delta == 0:
            break
        if kind in (30, 31):
            at += 8
        elif kind in (0, 29):
            data += kind == 0
            at += 4 + struct.unpack_from("<I", page, at + 4)[0]
        else:
            data += 1
            at += 4 + 4 * kind
    flags = commit >> 30 & 3
    seen.add(f"missed{flags}")
    return seen, data


def record(tracefs, kib, seconds, events):
    """(cpu, page, lines, what it shows) of every page whose threads are all known."""
    instance = Instance(tracefs, kib, events)
    try:
        instance.put("tracing_on", "1")
        time.sleep(seconds)
        instance.put("tracing_on", "0")
        for cpu in sorted(os.sched_getaffinity(0)):
            lines = [line for line in instance.text(cpu) if "LOST" not in line]
            at = 0
            for page in instance.pages(cpu):
                shows, count = types(page)
                mine = lines[at : at + count]
                at += count
                names = {found for line in mine for found in NAMES.findall(line)}
                names |= {line[:16].strip() for line in mine}
                shows |= {line.split(": ", 2)[1] for line in mine}
                strange = [found for found in names if not KNOWN.fullmatch(found)]
                if not strange:
                    yield cpu, page, mine, shows
            assert at == len(lines), (cpu, at, len(lines))
    finally:
        instance.remove()


def look(tracefs):
    """Pages of many looks, while known work goes on."""
    often = ("exceptions/page_fault_user", "sched/sched_switch")
    most = [event for event in EVENTS if event not in often]
    rare = [event for event in EVENTS if event.startswith(("signal", "workqueue", "csd", "ipi/"))]
    pages = []
    workers = [start(work) for work in (signals, faults, calls, packets, files)]
    try:
        for _ in range(12):
            pages += record(tracefs, 1024, 0.02, EVENTS)
            pages += record(tracefs, 1024, 0.03, most)
            pages += record(tracefs, 8, 0.3, EVENTS)
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    worker = start(packets)
    try:
        for _ in range(5):
            pages += record(tracefs, 1024, 1.0, rare)
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    return pages


def main():
    tracefs, out = sys.argv[1:]
    left = look(tracefs)
    print(f"{len(left)} pages")
    seen, kept = set(), []
    while True:
        best = max(left, key=lambda page: len(page[3] - seen) / (len(page[2]) + 10))
        if not best[3] - seen:
            break
        kept.append(best)
        seen |= best[3]
    # What a later one shows as well need not be shown twice.
    for page in list(kept):
        others = set().union(*(other[3] for other in kept if other is not page))
        if page[3] <= others:
            kept.remove(page)
    for number, (cpu, page, lines, shows) in enumerate(kept, 1):
        with open(f"{out}/page-{number}-cpu{cpu}.bin", "wb") as file:
            file.write(page)
        with open(f"{out}/page-{number}-cpu{cpu}.txt", "w") as file:
            file.write("".join(line + "\n" for line in lines))
        print(number, cpu, len(lines), " ".join(sorted(shows)))
    print("not seen:", [e for e in EVENTS if not any(e.split("/")[1] in s for s in seen)])
    copy_text(tracefs, out, "events/header_page")
    for event in EVENTS:
        for suffix in ("", "_entry", "_exit"):
            if os.path.exists(f"{tracefs}/events/{event}{suffix}/format"):
                copy_text(tracefs, out, f"events/{event}{suffix}/format")


def copy_text(tracefs, out, file):
    os.makedirs(os.path.dirname(f"{out}/{file}"), exist_ok=True)
    with open(f"{tracefs}/{file}") as source, open(f"{out}/{file}", "w") as copy:
        copy.write(source.read())


main()
