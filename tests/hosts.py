"""Several hosts on one machine: network namespaces, with a network between them that can be slow, lossy, or cut. Needs Linux and root.

Each host has one interface, a TUN device whose other end is a file of this process: a thread here carries packets from one to another, and
does to them what the test wants. So nothing is needed of the kernel but namespaces and TUN.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
_PACKET = 1 << 16


def available() -> bool:
    return os.geteuid() == 0 and os.path.exists(_TUN) and shutil.which("ip") is not None


class Host:
    """A namespace with the addresses 10.77.0.<number> and fd77::<number>."""

    def __init__(self, network: str, number: int) -> None:
        self.name = f"{network}h{number}"
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number}"
        self.addresses = {socket.inet_aton(self.address), socket.inet_pton(socket.AF_INET6, self.address6)}
        self.is_cut = False
        self._processes: list[subprocess.Popen[str]] = []
        self.file = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.file, _TUNSETIFF, struct.pack("16sH", self.name.encode(), _IFF_TUN | _IFF_NO_PI))
        _ip("netns", "add", self.name)
        _ip("link", "set", self.name, "netns", self.name)
        _ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", self.name)
        _ip("-n", self.name, "-6", "addr", "add", f"{self.address6}/64", "dev", self.name, "nodad")
        _ip("-n", self.name, "link", "set", self.name, "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """A process on this host; killed with it if it has not ended by then."""
        process = subprocess.Popen(["ip", "netns", "exec", self.name, *command], text=True, **options)
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        os.close(self.file)  # the device goes with it
        _ip("netns", "del", self.name)


class Network:
    """delay: seconds that a packet takes. loss: the share that never arrives."""

    def __init__(self, hosts: int) -> None:
        self.delay = 0.0
        self.loss = 0.0
        self.hosts: list[Host] = []
        self._chance = random.Random(0)
        self._order = itertools.count()
        self._wake_reading, self._wake_writing = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="network")
        try:
            for number in range(1, hosts + 1):
                self.hosts.append(Host(f"es{os.getpid() % 100000:x}", number))
        except BaseException:
            self._close_all()
            raise
        self._thread.start()

    def close(self) -> None:
        os.write(self._wake_writing, b"x")
        self._thread.join()
        self._close_all()

    def _close_all(self) -> None:
        for host in self.hosts:
            host.close()
        os.close(self._wake_reading)
        os.close(self._wake_writing)

    def _carry(self) -> None:
        by_file = {host.file: host for host in self.hosts}
        by_address = {address: host for host in self.hosts for address in host.addresses}
        under_way: list[tuple[float, int, Host, bytes]] = []
        while True:
            patience = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
            ready, _, _ = select.select([*by_file, self._wake_reading], [], [], patience)
            if self._wake_reading in ready:
                return
            for file in ready:
                with contextlib.suppress(BlockingIOError):
                    while packet := os.read(file, _PACKET):
                        to = by_address.get(_destination(packet))
                        if to is None or to.is_cut or by_file[file].is_cut or self._chance.random() < self.loss:
                            continue
                        heapq.heappush(under_way, (time.monotonic() + self.delay, next(self._order), to, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(under_way)
                with contextlib.suppress(OSError):
                    os.write(to.file, packet)


def _destination(packet: bytes) -> bytes:
    """IPv4: RFC 791, 3.1; IPv6: RFC 8200, 3."""
    return packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
