#!/usr/bin/env python3
"""A peer for the tests of WebRTC: aiortc behind WHIP and WHEP (RFC 9725), as server and as client, on loopback.

    aiortc_peer.py serve HOST:PORT   POST /whip is received, POST /whep gets the files; ends after one session
    aiortc_peer.py whip URL          publishes the files and ends with them
    aiortc_peer.py whep URL          receives until the other end closes, or for --seconds

The files (--video, --audio) are what FFmpeg reads with time-stamps (MP4, not Annex B); they are encoded again, as
H.264 and Opus. What is received is decoded and counted. The last line of standard output is one object of JSON with
what was counted.
"""

import argparse
import asyncio
import json
import random
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aioice.ice
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.contrib.media import MediaPlayer
from aiortc.mediastreams import MediaStreamError
from aiortc.rtcdtlstransport import RTCDtlsTransport

# aioice leaves out loopback otherwise.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]


def lose(per_cent):
    """Drops RTP packets of both directions, next to the network."""
    chance, dropped = random.Random(1), [0]
    send, receive = RTCDtlsTransport._send_rtp, RTCDtlsTransport._handle_rtp_data

    def drops():
        is_dropped = chance.random() * 100 < per_cent
        dropped[0] += is_dropped
        return is_dropped

    async def send_some(self, data):
        is_rtcp = 192 <= data[1] <= 223
        if is_rtcp or not drops():
            await send(self, data)

    async def receive_some(self, data, arrival_time_ms):
        if not drops():
            await receive(self, data, arrival_time_ms)

    if per_cent:
        RTCDtlsTransport._send_rtp, RTCDtlsTransport._handle_rtp_data = send_some, receive_some
    return dropped


class Session:
    """One connection, with what it sends or receives."""

    def __init__(self, role, options, kinds):
        """Sends tracks of these kinds."""
        self.role, self.options = role, options
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.ended = asyncio.Event()
        self.frames = {}
        # Tracks that have not ended.
        self.open = 0
        self.readers = []
        self.sizes = set()
        self.tracks = []
        self.pc.on("connectionstatechange", self.changed)
        self.pc.on("track", self.receive)
        self.send(kinds)

    def changed(self):
        if self.pc.connectionState in ("failed", "closed"):
            self.ended.set()

    def send(self, kinds):
        files = [getattr(self.options, kind) for kind in kinds]
        # A player is not kept alive by its tracks.
        self.players = [MediaPlayer(file) for file in files if file]
        for player in self.players:
            track = player.video or player.audio
            self.tracks.append(track)
            track.on("ended", self.track_ended)
            transceiver = self.pc.addTransceiver(track, direction="sendonly")
            if track.kind == "video":
                prefer_h264(transceiver)

    def track_ended(self):
        if all(track.readyState == "ended" for track in self.tracks):
            # What was lost last can still be retransmitted.
            asyncio.get_running_loop().call_later(0.5, self.ended.set)

    def receive(self, track):
        async def read():
            while True:
                try:
                    frame = await track.recv()
                except MediaStreamError:
                    self.open -= 1
                    if self.open == 0:
                        self.ended.set()
                    return
                self.frames[track.kind] = self.frames.get(track.kind, 0) + 1
                if track.kind == "video":
                    self.sizes.add(f"{frame.width}x{frame.height}")

        self.open += 1
        self.readers.append(asyncio.ensure_future(read()))

    async def run(self, leave=None):
        """Waits for the end, leaves, and returns the report."""
        timeout = self.options.seconds or None
        try:
            await asyncio.wait_for(self.ended.wait(), timeout)
        except asyncio.TimeoutError:
            pass
        counts = {}
        for report in (await self.pc.getStats()).values():
            if report.type == "inbound-rtp":
                counts[report.kind] = {"packets": report.packetsReceived, "lost": report.packetsLost}
            elif report.type == "outbound-rtp":
                counts[report.kind] = {"packets": report.packetsSent}
            elif report.type == "remote-inbound-rtp":
                counts.setdefault("reported_lost", {})[report.kind] = report.packetsLost
        status = await asyncio.to_thread(leave) if leave else None
        state = self.pc.connectionState
        await self.pc.close()
        report = {"role": self.role, "state": state, "tracks": counts, "decoded": self.frames}
        return report | {"sizes": sorted(self.sizes)} | ({"delete_status": status} if leave else {})

    async def offer(self):
        await self.pc.setLocalDescription(await self.pc.createOffer())
        return self.pc.localDescription.sdp

    async def answer(self, offer):
        await self.pc.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.pc.localDescription.sdp


def prefer_h264(transceiver):
    codecs = RTCRtpSender.getCapabilities("video").codecs
    transceiver.setCodecPreferences([it for it in codecs if it.mimeType in ("video/H264", "video/rtx")])


def request(options, method, url, body=None):
    headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
    if body:
        headers["Content-Type"] = "application/sdp"
    message = urllib.request.Request(url, body and body.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(message, timeout=10) as response:
            return response.status, response.headers.get("Location"), response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, None, error.read().decode()
    except urllib.error.URLError as error:
        return 0, None, str(error)


async def client(options):
    publishes = options.role == "whip"
    session = Session(f"{options.role} client", options, ["video", "audio"] if publishes else [])
    if not publishes:
        prefer_h264(session.pc.addTransceiver("video", direction="recvonly"))
        session.pc.addTransceiver("audio", direction="recvonly")
    offer = await session.offer()
    status, location, answer = await asyncio.to_thread(request, options, "POST", options.target, offer)
    if status != 201:
        raise SystemExit(f"{options.target}: {status}: {answer}")
    await session.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    resource = urllib.parse.urljoin(options.target, location)
    return await session.run(lambda: request(options, "DELETE", resource)[0])


async def serve(options):
    loop, opened = asyncio.get_running_loop(), asyncio.Queue()

    async def accept(path, offer):
        # aiortc cannot leave a track out of its answer.
        kinds = [kind for kind in ("video", "audio") if path == "/whep" and f"m={kind}" in offer]
        session = Session(f"{path[1:]} server", options, kinds)
        answer = await session.answer(offer)
        opened.put_nowait(session)
        return session, answer

    class Handler(BaseHTTPRequestHandler):
        sessions = {}

        def do_POST(self):
            if options.token and self.headers["Authorization"] != f"Bearer {options.token}":
                return self.send_error(401)
            if self.path not in ("/whip", "/whep"):
                return self.send_error(404)
            offer = self.rfile.read(min(int(self.headers["Content-Length"]), 1 << 20)).decode()
            session, answer = asyncio.run_coroutine_threadsafe(accept(self.path, offer), loop).result()
            self.sessions[self.path + "/1"] = session
            self.send_response(201)
            self.send_header("Content-Type", "application/sdp")
            self.send_header("Location", self.path + "/1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer.encode())

        def do_DELETE(self):
            session = self.sessions.pop(self.path, None)
            if session is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            loop.call_soon_threadsafe(session.ended.set)

        def log_message(self, *_):
            pass

    host, port = options.target.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    report = await (await opened.get()).run()
    server.shutdown()
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["serve", "whip", "whep"])
    parser.add_argument("target", help="HOST:PORT, or the server's URL")
    parser.add_argument("--video", help="file that is sent")
    parser.add_argument("--audio", help="file that is sent")
    parser.add_argument("--seconds", type=float, default=0, help="length of the session (0: until it ends)")
    parser.add_argument("--loss", type=float, default=0, help="per cent of the RTP packets that are dropped")
    parser.add_argument("--token", help="bearer token that is sent, or demanded")
    options = parser.parse_args()
    dropped = lose(options.loss)
    report = asyncio.run(serve(options) if options.role == "serve" else client(options))
    print(json.dumps(report | {"dropped": dropped[0]}), flush=True)


if __name__ == "__main__":
    main()
