#!/usr/bin/env python3
"""Drives a browser without a screen: opens a page, waits, and evaluates an expression in it.

    browser.py chromium|firefox URL [--first JS] [--seconds N] [--evaluate JS] [--screenshot FILE.png]

Prints the value, which may be a promise's, as one line of JSON. Cameras and microphones are made up and allowed,
connections to loopback are allowed, and addresses are shown. Only Python's own library is used: Chromium is driven
through a pair of pipes (the DevTools protocol), Firefox through its port for tests (Marionette).
"""

import argparse
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60
EMPTY = "about:blank"
STATISTICS = "window.rushes.stats()"


class Chromium:
    """Chromium behind two pipes, whose messages end with an octet 0."""

    names = ["chromium", "chromium-browser", "google-chrome"]

    def __init__(self, program, profile):
        commands, self.to = os.pipe()
        self.come, answers = os.pipe()
        # Its ends are the descriptors 3 and 4.
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        arguments = [
            "--headless=new", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={profile}",
            "--no-first-run", "--disable-gpu", "--mute-audio", "--window-size=1280,800",
            "--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
            "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
            "--disable-features=WebRtcHideLocalIpsWithMdns", "--disable-background-networking",
            EMPTY,
        ]
        self.process = start(["bash", "-c", script, "bash", program, *arguments], [commands, answers])
        os.close(commands)
        os.close(answers)
        self.buffer, self.number = b"", 0
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(it["targetId"] for it in targets if it["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def send(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self.message())
            if answer.get("id") != self.number:
                continue
            if "error" in answer:
                raise SystemExit(f"{method}: {answer['error']}")
            return answer["result"]

    def message(self):
        while b"\0" not in self.buffer:
            octets = os.read(self.come, 1 << 16)
            if not octets:
                raise SystemExit("Chromium has ended")
            self.buffer += octets
        message, self.buffer = self.buffer.split(b"\0", 1)
        return message

    def open(self, url):
        self.send("Page.navigate", self.session, url=url)

    def evaluate(self, expression):
        result = self.send("Runtime.evaluate", self.session, expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise SystemExit(result["exceptionDetails"].get("exception", {}).get("description"))
        return result["result"].get("value")

    def screenshot(self):
        return self.send("Page.captureScreenshot", self.session, format="png")["data"]


class Firefox:
    """Firefox behind Marionette: messages are JSON after their length and a colon."""

    names = ["firefox", "firefox-esr"]

    PREFERENCES = {
        "media.peerconnection.ice.loopback": True,
        "media.peerconnection.ice.obfuscate_host_addresses": False,
        "media.navigator.streams.fake": True,
        "media.navigator.permission.disabled": True,
        "media.autoplay.default": 0,
        "media.autoplay.blocking_policy": 0,
        # Nothing outside is asked for.
        "app.update.disabledForTesting": True,
        "datareporting.policy.dataSubmissionEnabled": False,
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
    }

    def __init__(self, program, profile):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        preferences = self.PREFERENCES | {"marionette.port": port}
        with open(os.path.join(profile, "user.js"), "w") as file:
            for name, value in preferences.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        arguments = ["--headless", "--no-remote", "--marionette", "--profile", profile]
        self.process = start([program, *arguments, "--width=1280", "--height=800"])
        self.connection = connect(port, self.process)
        self.buffer, self.number = b"", 0
        self.message()
        self.send("WebDriver:NewSession", capabilities={})
        self.send("WebDriver:SetTimeouts", script=PATIENCE * 1000)

    def send(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self.message()
        if error:
            raise SystemExit(f"{command}: {error['message']}")
        return result

    def message(self):
        while b":" not in self.buffer:
            self.receive()
        length, self.buffer = self.buffer.split(b":", 1)
        while len(self.buffer) < int(length):
            self.receive()
        message, self.buffer = self.buffer[: int(length)], self.buffer[int(length) :]
        return json.loads(message)

    def receive(self):
        octets = self.connection.recv(1 << 16)
        if not octets:
            raise SystemExit("Firefox has ended")
        self.buffer += octets

    def open(self, url):
        self.send("WebDriver:Navigate", url=url)

    def evaluate(self, expression):
        script = (
            "const done = arguments[arguments.length - 1];"
            f"(async () => {expression})().then(value => done({{value}}), error => done({{error: String(error)}}))"
        )
        answer = self.send("WebDriver:ExecuteAsyncScript", script=script, args=[])["value"]
        if "error" in answer:
            raise SystemExit(answer["error"])
        return answer.get("value")

    def screenshot(self):
        return self.send("WebDriver:TakeScreenshot", full=False)["value"]


def start(command, descriptors=()):
    """Starts a browser as the leader of its processes, which end together."""
    return subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


def connect(port, process):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.settimeout(PATIENCE)
            return connection
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("Firefox does not listen") from None
            time.sleep(0.1)


def main():
    browsers = {"chromium": Chromium, "firefox": Firefox}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("browser", choices=browsers)
    parser.add_argument("url")
    parser.add_argument("--first", metavar="JS", help="what is done once the page is loaded, such as a click")
    parser.add_argument("--seconds", type=float, default=5, help="time between the page and the evaluation")
    parser.add_argument("--evaluate", default=STATISTICS, metavar="JS", help=f"expression (default: {STATISTICS})")
    parser.add_argument("--screenshot", metavar="FILE", help="a picture of the page, after the evaluation")
    options = parser.parse_args()
    kind = browsers[options.browser]
    program = next(filter(None, map(shutil.which, kind.names)), None)
    if program is None:
        raise SystemExit(f"{options.browser} is not installed")
    signal.alarm(int(options.seconds) + 2 * PATIENCE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = kind(program, profile)
        try:
            browser.open(options.url)
            # The empty page that was there before does not count.
            blank = options.url != EMPTY and "location.href !== 'about:blank' && "
            while not browser.evaluate(f"{blank or ''}document.readyState === 'complete'"):
                time.sleep(0.05)
            if options.first:
                browser.evaluate(options.first)
            time.sleep(options.seconds)
            json.dump(browser.evaluate(options.evaluate), sys.stdout)
            print(flush=True)
            if options.screenshot:
                with open(options.screenshot, "wb") as file:
                    file.write(base64.b64decode(browser.screenshot()))
        finally:
            os.killpg(browser.process.pid, signal.SIGKILL)
            browser.process.wait()


if __name__ == "__main__":
    main()
