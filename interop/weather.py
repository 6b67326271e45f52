#!/usr/bin/env python3
"""Forwards Ethernet frames between network interfaces, and loses, delays, reorders and repeats some, from a fixed seed.

    weather.py SEED INTERFACE INTERFACE...

It is what `tc netem` does, for kernels without it, and a hub: what comes from an interface goes to all others.
Addresses stay as they are, so that unicast, groups, ARP and IGMP pass. The conditions are those of frames towards an
interface, and are read from the standard input, a line each:

    INTERFACE [loss=SHARE] [burst=FRAMES] [delay=MS] [jitter=MS] [duplicate=SHARE] [udp=1]

`loss` is the share that is lost, in bursts of so many frames on average (1); each frame is delayed by up to `jitter`
beyond `delay`, so that later ones overtake it; with `udp`, frames other than UDP over IPv4 have none of it; what is not
named is 0. It says `ready`, answers each line with `ok`, and ends with its input. It needs root, and the interfaces to
itself: up, and without addresses. Frames larger than the MTU (GSO) are not forwarded: set `gso_max_segs 1` at the
other ends. Linux only.
"""

import heapq
import itertools
import os
import random
import select
import socket
import sys
import time

# From <linux/if_packet.h> and <asm-generic/socket.h>.
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 1, 15, 23
PACKET_MR_PROMISC = 1
ETH_P_ALL = 3
SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32
# So that nothing is lost while this program does not run.
BUFFER = 64 << 20
FRAME_MAX = 65_600
# Frames of an interface at a time, so that others are not late.
FRAMES_MAX = 64


class Port:
    """An interface, and the conditions of frames towards it."""

    def __init__(self, name, seed):
        self.name, self.random, self.is_losing = name, random.Random(seed), False
        self.set({})
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        # Checksums that the sender left to the interface are computed by the next one, which this header says.
        self.socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
            self.socket.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self.socket.bind((name, ETH_P_ALL))
        index = socket.if_nametoindex(name)
        membership = index.to_bytes(4, sys.byteorder) + PACKET_MR_PROMISC.to_bytes(2, sys.byteorder) + bytes(10)
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
        self.socket.setblocking(False)

    def set(self, conditions):
        self.loss = conditions.get("loss", 0.0)
        self.burst = max(conditions.get("burst", 1.0), 1.0)
        self.delay, self.jitter = conditions.get("delay", 0.0) / 1e3, conditions.get("jitter", 0.0) / 1e3
        self.duplicate, self.is_udp_only = conditions.get("duplicate", 0.0), conditions.get("udp", 0.0) > 0

    def is_lost(self):
        """Two states: a burst ends with each frame with one chance, and begins with another (Gilbert)."""
        if self.loss >= 1:
            return True
        ends = 1 / self.burst
        begins = ends * self.loss / (1 - self.loss)
        self.is_losing = self.random.random() < (1 - ends if self.is_losing else begins)
        return self.is_losing

    def dues(self, now, frame):
        """Returns when a frame is to be sent: not at all, once, or twice."""
        if self.is_udp_only and not is_udp(frame):
            return [now]
        if self.is_lost():
            return []
        count = 2 if self.random.random() < self.duplicate else 1
        return [now + self.delay + self.random.random() * self.jitter for _ in range(count)]

    def send(self, frame):
        try:
            self.socket.send(frame)
        except OSError:
            # The other end is down, or its queue is full: lost.
            pass


def is_udp(frame):
    """The headers are that of virtio (10 octets), of Ethernet (14), and of IP."""
    return frame[22:24] == b"\x08\x00" and frame[33:34] == b"\x11"


def read_frames(port):
    for _ in range(FRAMES_MAX):
        try:
            yield port.socket.recv(FRAME_MAX)
        except OSError:
            return


def main():
    seed, ports = int(sys.argv[1]), []
    for at, name in enumerate(sys.argv[2:]):
        ports.append(Port(name, seed + at))
    by_name = {port.name: port for port in ports}
    print("ready", flush=True)
    waiting, order, text = [], itertools.count(), b""
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, to, frame = heapq.heappop(waiting)
            to.send(frame)
        longest = max(0.0, waiting[0][0] - now) if waiting else None
        ready = select.select([0, *(port.socket for port in ports)], [], [], longest)[0]
        now = time.monotonic()
        for port in ports:
            for frame in read_frames(port) if port.socket in ready else ():
                for to in ports:
                    for due in to.dues(now, frame) if to is not port else ():
                        heapq.heappush(waiting, (due, next(order), to, frame))
        if 0 in ready:
            octets = os.read(0, 4096)
            if not octets:
                return
            *lines, text = (text + octets).split(b"\n")
            for line in lines:
                name, *fields = line.decode().split()
                by_name[name].set({key: float(value) for key, value in (field.split("=") for field in fields)})
                print("ok", flush=True)


if __name__ == "__main__":
    main()
