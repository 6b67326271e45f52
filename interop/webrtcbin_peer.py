#!/usr/bin/python3
"""Publishes and plays by WHIP and WHEP with GStreamer's webrtcbin.

    webrtcbin_peer.py whip URL --seconds 5 --video-out SENT.264
    webrtcbin_peer.py whep URL --seconds 5 --video-out GOT.264

`whip` publishes a test picture (H.264) and a tone (Opus), and writes the H.264 that it sends to a file; `whep` writes
what it plays. The last line is JSON: the frames of video and the packets of audio. Debian: python3-gi,
gir1.2-gst-plugins-bad-1.0, gstreamer1.0-nice, gstreamer1.0-plugins-good, -bad and -ugly.
"""

import argparse
import hashlib
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

PUBLISHED = """
    webrtcbin name=peer bundle-policy=max-bundle
    videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=640,height=360,framerate=30/1
    ! x264enc tune=zerolatency speed-preset=ultrafast bitrate=1000 key-int-max=30
    ! video/x-h264,profile=constrained-baseline
    ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=au
    ! tee name=video ! queue ! filesink name=file
    video. ! queue ! rtph264pay config-interval=-1 aggregate-mode=zero-latency pt=96 ssrc=1111
    ! capssetter caps="application/x-rtp,packetization-mode=(string)1,profile-level-id=(string)42e01f" ! peer.
    audiotestsrc is-live=true ! audioconvert ! audioresample ! opusenc name=sound
    ! rtpopuspay pt=97 ssrc=2222 ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! peer.
"""

# What is played: each stream by the encoding in its caps.
PLAYED = {
    "H264": "rtph264depay ! h264parse ! video/x-h264,stream-format=byte-stream,alignment=au",
    "OPUS": "rtpopusdepay",
}
OFFERED = (
    "application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000,"
    "packetization-mode=(string)1,profile-level-id=(string)42e01f,rtcp-fb-nack-pli=(boolean)true",
    "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2",
)


def certificate():
    """Makes a certificate and its key, in PEM."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("certificate.pem", "key.pem")]
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        make += ["-days", "2", "-subj", "/CN=webrtcbin", "-out", files[0], "-keyout", files[1]]
        subprocess.run(make, check=True, capture_output=True)
        return "".join(file.read_text() for file in files)


def fingerprint(pem):
    """Returns that of a certificate, as descriptions have it (RFC 8122)."""
    end = "-----END CERTIFICATE-----"
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem[: pem.index(end)] + end)).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


class Session:
    """One connection with a server."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.pem = certificate()
        self.loop = GLib.MainLoop()
        self.counts = {"video": 0, "audio": 0}
        self.location = None
        self.error = None
        publishes = arguments.role == "whip"
        # A single element would be no pipeline.
        self.pipeline = Gst.parse_launch(PUBLISHED) if publishes else Gst.Pipeline.new()
        self.pipeline.connect("deep-element-added", self.certify)
        if not publishes:
            self.pipeline.add(Gst.parse_launch("webrtcbin name=peer bundle-policy=max-bundle"))
        self.peer = self.pipeline.get_by_name("peer")
        if publishes:
            file = self.pipeline.get_by_name("file")
            file.set_property("location", arguments.video_out)
            self.count(file.get_static_pad("sink"), "video")
            self.count(self.pipeline.get_by_name("sound").get_static_pad("src"), "audio")
        else:
            direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
            for caps in OFFERED:
                self.peer.emit("add-transceiver", direction, Gst.Caps.from_string(caps))
        self.peer.connect("notify::ice-gathering-state", self.gathered)
        self.peer.connect("pad-added", self.play)

    def certify(self, _pipeline, _bin, element):
        """Gives DTLS the certificate: GStreamer's own is of RSA, which Rushes does not have.

        The offer has been made by then, with the fingerprint of the other.
        """
        factory = element.get_factory()
        if factory and factory.get_name() == "dtlsdec":
            element.set_property("pem", self.pem)

    def count(self, pad, name):
        def probe(_pad, _info):
            self.counts[name] += 1
            return Gst.PadProbeReturn.OK

        pad.add_probe(Gst.PadProbeType.BUFFER, probe)

    def offer(self):
        peer = self.peer

        def made(promise):
            promise.wait()
            # The offer is a part of the reply, which must live as long.
            reply = promise.get_reply()
            offer = reply.get_value("offer")
            peer.emit("set-local-description", offer, Gst.Promise.new())

        peer.emit("create-offer", None, Gst.Promise.new_with_change_func(made))
        return False

    def gathered(self, peer, _property):
        if peer.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            GLib.idle_add(self.post)

    def post(self):
        description = self.peer.get_property("local-description")
        own = rf"\g<1>{fingerprint(self.pem)}"
        offer = re.sub(r"(a=fingerprint:sha-256 )[0-9A-Fa-f:]+", own, description.sdp.as_text())
        fields = {"Content-Type": "application/sdp"}
        if self.arguments.token:
            fields["Authorization"] = f"Bearer {self.arguments.token}"
        request = urllib.request.Request(self.arguments.url, offer.encode(), fields)
        try:
            with urllib.request.urlopen(request) as response:
                answer = response.read()
                self.location = urllib.parse.urljoin(self.arguments.url, response.headers["Location"])
        except urllib.error.HTTPError as refused:
            self.error = f"{refused.code} {refused.read().decode()}"
            self.loop.quit()
            return False
        _, message = GstSdp.SDPMessage.new_from_text(answer.decode())
        kind = GstWebRTC.WebRTCSDPType.ANSWER
        answer = GstWebRTC.WebRTCSessionDescription.new(kind, message)
        self.peer.emit("set-remote-description", answer, Gst.Promise.new())
        return False

    def play(self, _peer, pad):
        if pad.direction != Gst.PadDirection.SRC:
            return
        structure = pad.get_current_caps().get_structure(0)
        encoding = structure.get_string("encoding-name")
        name = structure.get_string("media")
        file = f"filesink location={self.arguments.video_out}" if name == "video" else "fakesink"
        branch = Gst.parse_bin_from_description(f"queue ! {PLAYED[encoding]} ! {file} name=end", True)
        self.count(branch.get_by_name("end").get_static_pad("sink"), name)
        self.pipeline.add(branch)
        branch.sync_state_with_parent()
        pad.link(branch.get_static_pad("sink"))

    def failed(self, _bus, message):
        self.error = str(message.parse_error()[0])
        self.loop.quit()

    def run(self):
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.failed)
        self.pipeline.set_state(Gst.State.PLAYING)
        # By then the formats of both streams are known.
        GLib.timeout_add(500, self.offer)
        GLib.timeout_add(int(self.arguments.seconds * 1000), self.loop.quit)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)
        if self.location:
            request = urllib.request.Request(self.location, method="DELETE")
            if self.arguments.token:
                request.add_header("Authorization", f"Bearer {self.arguments.token}")
            urllib.request.urlopen(request).close()
        if self.error:
            sys.exit(self.error)
        print(json.dumps(self.counts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["whip", "whep"])
    parser.add_argument("url")
    parser.add_argument("--video-out", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--token")
    arguments = parser.parse_args()
    Gst.init(None)
    Session(arguments).run()


if __name__ == "__main__":
    main()
