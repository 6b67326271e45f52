#!/usr/bin/env python3
"""Receives texture video by multicast, written from the documentation alone: no code of Rushes is used.

    texture_group.py ADDRESS PORT FORMAT OUTPUT

Asks the server for its group in this format (rgb24, yuv420 or bc1), writes the octets of every whole frame to OUTPUT in
order until the server stops, and reports on the standard output, as JSON, the number of the first frame of the offer,
those of the frames that were written, and how many packets were requested. The messages are those of the module
`control` of `crates/delivery`; formats, tiles and packets are those of docs/rtp-texture.md. Packets that are missing
when a frame is announced are requested once; repair packets are discarded.
"""

import json
import select
import socket
import struct
import sys
import time

# The number of each format, and its planes: how many pixels share one, the sides of a block, and its octets.
FORMATS = {
    "rgb24": (1, [(1, 1, 1, 1, 3)]),
    "yuv420": (4, [(1, 1, 1, 1, 1), (2, 2, 1, 1, 1), (2, 2, 1, 1, 1)]),
    "bc1": (7, [(1, 1, 4, 4, 8)]),
}
MULTICAST, RECOVERY, FEC, COLOUR = 4, 1, 2, 8
OFFER, REFUSE, START, FRAME, STOP = 1, 2, 3, 4, 7
ACCEPT, PING, NACK = 16, 18, 20
# A packet may be a little later than the announcement of its frame.
LATE = 0.01


def opening(number):
    """A client that shows one format, has bit 0 of the transports, and requests multicast."""
    abilities = RECOVERY | FEC | COLOUR
    octets = b"RSHT" + struct.pack(">HBBQ", 1, 1, 0, 1 << number)
    return octets + struct.pack(">BBBBIII", 1 | abilities << 4, number, MULTICAST, 0, 0, 0, 0)


def message(kind, body):
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def ceil(dividend, divisor):
    return -(-dividend // divisor)


class Offer:
    """What the server sends, and the place of each packet in a frame."""

    def __init__(self, body, planes):
        self.epoch, self.format, self.transport = struct.unpack(">HBB", body[16:20])
        self.width, self.height, _, _, rows, payload, _ = struct.unpack(">7I", body[20:48])
        self.first_frame, per_plane, count = *struct.unpack(">Q", body[48:56]), body[56:59], body[59]
        self.ports = struct.unpack(f">{count}H", body[60 : 60 + 2 * count])
        self.abilities = body[61 + 2 * count]
        group = body[-18:]
        assert group[:12] == bytes(10) + b"\xff\xff", "the group is not one of IPv4"
        self.group, self.port = socket.inet_ntoa(group[12:16]), int.from_bytes(group[16:], "big")
        self.places = []
        self.octets = 0
        for (across, down, block_width, block_height, block), units in zip(planes, per_plane):
            row = ceil(ceil(self.width, across), block_width) * block
            plane_rows = ceil(ceil(self.height, down), block_height)
            for unit in range(units):
                unit_rows = plane_rows // units + (unit < plane_rows % units)
                self.add_unit(unit_rows * row, rows * row, payload)

    def add_unit(self, octets, stripe, payload):
        end = self.octets + octets
        while self.octets < end:
            stripe_end = min(self.octets + stripe, end)
            while self.octets < stripe_end:
                length = min(payload, stripe_end - self.octets)
                self.places.append((self.octets, length))
                self.octets += length


class Viewer:
    def __init__(self, address, port, name):
        number, self.planes = FORMATS[name]
        self.control = socket.create_connection((address, port))
        self.control.sendall(opening(number))
        self.unread, self.offer, self.units = b"", None, {}
        # The octets of each frame and its missing packets; frames that are whole; when to request what is missing.
        self.frames, self.whole, self.due = {}, {}, {}
        self.next, self.requested, self.stopped, self.pings = 0, 0, None, 0

    def join(self):
        own, server = self.control.getsockname()[0], self.control.getpeername()[0]
        for unit, port in enumerate(self.offer.ports):
            unit_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            unit_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            unit_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            unit_socket.bind((self.offer.group, self.offer.port + unit))
            membership = socket.inet_aton(self.offer.group) + socket.inet_aton(own)
            unit_socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            unit_socket.setblocking(False)
            self.units[unit_socket] = (server, port)

    def handle_message(self, kind, body):
        if kind == OFFER:
            self.offer = Offer(body, self.planes)
            self.next = self.offer.first_frame
            self.join()
            self.control.sendall(message(ACCEPT, struct.pack(">HBB", self.offer.epoch, 0, 0)))
        elif kind == FRAME:
            number = int.from_bytes(body[:8], "big")
            self.next = max(self.next, number + 1)
            if self.offer.first_frame <= number and number not in self.whole:
                self.due[number] = time.monotonic() + LATE
        elif kind in (REFUSE, STOP):
            self.stopped = body[2:].decode()

    def read_control(self):
        octets = self.control.recv(65_536)
        self.unread += octets
        if not octets and self.stopped is None:
            self.stopped = "the connection was closed"
        while len(self.unread) >= 4:
            length = int.from_bytes(self.unread[1:4], "big")
            if len(self.unread) < 4 + length:
                break
            kind, body, self.unread = self.unread[0], self.unread[4 : 4 + length], self.unread[4 + length :]
            self.handle_message(kind, body)

    def read_unit(self, unit_socket):
        try:
            while True:
                packet, source = unit_socket.recvfrom(65_536)
                if source == self.units[unit_socket]:
                    self.handle_packet(packet)
        except BlockingIOError:
            pass

    def handle_packet(self, packet):
        places, index = self.offer.places, int.from_bytes(packet[1:4], "big")
        # The number of one that is sent again comes after those of all packets.
        index -= len(places) if index >= len(places) else 0
        ahead = (packet[0] - self.next + 128) % 256 - 128
        number = self.next + ahead
        if index >= len(places) or number < self.offer.first_frame or number in self.whole:
            return
        start, length = places[index]
        octets, missing = self.frames.setdefault(number, (bytearray(self.offer.octets), set(range(len(places)))))
        if index not in missing or len(packet) != 4 + length:
            return
        octets[start : start + length] = packet[4:]
        missing.remove(index)
        if not missing:
            self.whole[number] = self.frames.pop(number)[0]
            self.due.pop(number, None)

    def request(self, now):
        if not self.offer.abilities & RECOVERY:
            return
        for number in [number for number, due in self.due.items() if due <= now]:
            del self.due[number]
            _, missing = self.frames.get(number, (None, set(range(len(self.offer.places)))))
            runs = [struct.pack(">I", packet)[1:] + struct.pack(">H", 1) for packet in sorted(missing)[:255]]
            self.requested += len(runs)
            self.control.sendall(message(NACK, struct.pack(">QB", number, len(runs)) + b"".join(runs)))

    def run(self):
        ping_due = time.monotonic() + 1
        # Datagrams that arrived before the end are read after it.
        while self.stopped is None or any(select.select(list(self.units), [], [], 0.2)):
            waits = [] if self.stopped is not None else [self.control]
            ready = select.select([*self.units, *waits], [], [], LATE)[0]
            for unit_socket in ready:
                if unit_socket is self.control:
                    self.read_control()
                else:
                    self.read_unit(unit_socket)
            now = time.monotonic()
            if self.stopped is None and self.offer:
                self.request(now)
                if now >= ping_due:
                    ping_due, self.pings = now + 1, self.pings + 1
                    self.control.sendall(message(PING, struct.pack(">IQ", self.pings, int(now * 1e6))))


def main():
    address, port, name, output = sys.argv[1:]
    viewer = Viewer(address, int(port), name)
    try:
        viewer.run()
    except ConnectionError as error:
        viewer.stopped = viewer.stopped or str(error)
    numbers = sorted(viewer.whole)
    with open(output, "wb") as file:
        for number in numbers:
            file.write(viewer.whole[number])
    report = {"end": viewer.stopped, "frames": numbers, "requested": viewer.requested}
    if viewer.offer:
        report |= {"first_frame": viewer.offer.first_frame, "octets": viewer.offer.octets}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
