// The page: one panel that plays by WHEP, one that publishes by WHIP.

import { Refusal, Session } from "./session.js";

const serves = document.body.dataset.serves.split(" ");
const access = document.getElementById("access");
let token = "";

// What to do again once a token is entered.
let again = null;

access.addEventListener("submit", (event) => {
  event.preventDefault();
  token = access.querySelector("input").value.trim();
  access.hidden = true;
  const retry = again;
  again = null;
  retry?.();
});

const states = {
  new: "Connecting",
  connecting: "Connecting",
  connected: "Connected",
  disconnected: "Interrupted",
};

class Panel {
  constructor(name, endpoint) {
    this.endpoint = endpoint;
    this.element = document.getElementById(name);
    this.video = this.element.querySelector("video");
    this.session = null;
    // Counts starts and stops, so that what a stopped start still does is ignored.
    this.turn = 0;
    this.last = null;
    this.element.hidden = !serves.includes(endpoint);
    for (const button of this.buttons("start")) {
      button.addEventListener("click", () => this.start(button.dataset.source));
    }
    this.buttons("stop")[0].addEventListener("click", () => this.stop());
  }

  buttons(action) {
    return [...this.element.querySelectorAll(`[data-do="${action}"]`)];
  }

  show(state, error) {
    const isOn = this.isOn();
    for (const button of this.buttons("start")) button.hidden = isOn;
    for (const button of this.buttons("stop")) button.hidden = !isOn;
    this.element.querySelector(".state").textContent = state;
    this.element.classList.toggle("connected", state === states.connected);
    const text = this.element.querySelector(".error");
    text.textContent = error || "";
    text.hidden = !error;
  }

  isOn() {
    return this.element.dataset.on === "yes";
  }

  async start(source) {
    this.stop();
    const turn = this.turn;
    this.element.dataset.on = "yes";
    this.show("Connecting");
    try {
      const session = await this.open(source, turn);
      if (turn !== this.turn) return session?.close();
      this.session = session;
      const watch = () => turn === this.turn && this.changed();
      session.connection.addEventListener("connectionstatechange", watch);
      watch();
    } catch (error) {
      if (turn === this.turn) this.failed(error, source);
    }
  }

  changed() {
    const state = this.session.connection.connectionState;
    if (state === "failed") {
      const text = "The connection failed. Is the server's UDP port reachable from here?";
      return this.end("Failed", text);
    }
    if (state === "closed") return this.end("Ended");
    return this.show(states[state]);
  }

  failed(error, source) {
    const retry = () => this.start(source);
    if (error instanceof Refusal && error.status === 401) {
      again = retry;
      access.hidden = false;
      access.querySelector("input").focus();
      return this.end("Ready", token ? "The token is wrong." : "");
    }
    if (error instanceof Refusal && error.status === 409 && error.retryAfter && this.waits) {
      const turn = this.turn;
      setTimeout(() => turn === this.turn && retry(), error.retryAfter * 1000);
      return this.show("Waiting", error.message);
    }
    return this.end("Failed", words(error));
  }

  stop() {
    this.end("Ready");
  }

  end(state, error) {
    this.turn += 1;
    this.session?.close();
    this.session = null;
    for (const track of this.video.srcObject?.getTracks() || []) track.stop();
    this.video.srcObject = null;
    this.last = null;
    this.element.dataset.on = "no";
    this.element.classList.remove("live");
    this.element.querySelector("dl").hidden = true;
    this.show(state, error);
  }

  use(stream) {
    if (this.video.srcObject === stream) return;
    this.video.srcObject = stream;
    this.element.classList.add("live");
    // A browser may insist on a click on the video's own button.
    this.video.play().catch(() => {});
  }

  async refresh() {
    const session = this.session;
    if (!session) return;
    const stats = await session.stats();
    if (session !== this.session) return;
    const now = performance.now();
    const bytes = stats.bytesReceived + stats.bytesSent;
    const seconds = this.last ? (now - this.last.now) / 1000 : 0;
    const rate = seconds > 0 ? ((bytes - this.last.bytes) * 8) / seconds : 0;
    this.last = { now, bytes };
    this.list(stats, rate);
  }

  list(stats, rate) {
    const codecs = [stats.videoCodec, stats.audioCodec].filter(Boolean).join(", ");
    const size = stats.frameWidth ? `${stats.frameWidth} × ${stats.frameHeight}` : "–";
    const trip = stats.roundTripTime ? `${(stats.roundTripTime * 1000).toFixed(1)} ms` : "–";
    const rows = [
      ["Resolution", size],
      ["Frames per second", Math.round(stats.framesPerSecond)],
      ["Lost packets", stats.packetsLost],
      ["Round trip", trip],
      ["Bit rate", `${(rate / 1e6).toFixed(2)} Mbit/s`],
      ["Formats", codecs || "–"],
    ];
    const list = this.element.querySelector("dl");
    const item = ([name, value]) => {
      const group = document.createElement("div");
      const term = document.createElement("dt");
      const definition = document.createElement("dd");
      term.textContent = name;
      definition.textContent = value;
      group.append(term, definition);
      return group;
    };
    list.replaceChildren(...rows.map(item));
    list.hidden = false;
  }
}

class Player extends Panel {
  // A stream that is not yet published may be soon.
  waits = true;

  open(_source, turn) {
    return Session.open(this.endpoint, token, (connection) => {
      connection.addTransceiver("video", { direction: "recvonly" });
      connection.addTransceiver("audio", { direction: "recvonly" });
      const stream = new MediaStream();
      connection.addEventListener("track", ({ track }) => {
        stream.addTrack(track);
        if (turn === this.turn) this.use(stream);
      });
    });
  }
}

class Publisher extends Panel {
  waits = false;

  async open(source, turn) {
    const stream = await capture(source);
    if (turn !== this.turn) {
      for (const track of stream.getTracks()) track.stop();
      return null;
    }
    this.use(stream);
    for (const track of stream.getTracks()) {
      track.addEventListener("ended", () => turn === this.turn && this.stop());
    }
    return Session.open(this.endpoint, token, (connection) => {
      for (const track of stream.getTracks()) {
        const options = { direction: "sendonly", streams: [stream] };
        const transceiver = connection.addTransceiver(track, options);
        if (track.kind === "video") preferH264(transceiver);
      }
    });
  }
}

async function capture(source) {
  const devices = navigator.mediaDevices;
  if (!devices) {
    throw new Error("Browsers allow this over HTTPS or from localhost only.");
  }
  const video = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
  if (source === "screen") return devices.getDisplayMedia({ video: true, audio: true });
  try {
    return await devices.getUserMedia({ video, audio: true });
  } catch (error) {
    // One of both may be missing.
    if (error.name !== "NotFoundError") throw error;
  }
  try {
    return await devices.getUserMedia({ video });
  } catch (error) {
    if (error.name !== "NotFoundError") throw error;
  }
  return devices.getUserMedia({ audio: true });
}

function preferH264(transceiver) {
  const codecs = RTCRtpReceiver.getCapabilities("video")?.codecs || [];
  const isH264 = (codec) => codec.mimeType.toLowerCase() === "video/h264";
  const sorted = [...codecs.filter(isH264), ...codecs.filter((codec) => !isH264(codec))];
  try {
    transceiver.setCodecPreferences(sorted);
  } catch {
    // A browser without this chooses by itself.
  }
}

function words(error) {
  const texts = {
    NotAllowedError: "The browser or its user did not allow this.",
    NotFoundError: "There is no camera and no microphone.",
    NotReadableError: "The camera or microphone is in use by another program.",
  };
  return texts[error.name] || error.message || String(error);
}

const player = new Player("play", "whep");
const publisher = new Publisher("publish", "whip");

setInterval(() => {
  player.refresh();
  publisher.refresh();
}, 1000);

addEventListener("pagehide", () => {
  player.stop();
  publisher.stop();
});

// For tests and for the console: the panels' states and numbers, and their buttons.
window.rushes = {
  play: () => player.start(),
  // The level of sound is 0 while it is muted.
  unmute: () => {
    player.video.muted = false;
  },
  publish: (source = "camera") => publisher.start(source),
  stop: () => {
    player.stop();
    publisher.stop();
  },
  stats: async () => {
    const of = async (panel) => ({
      state: panel.session?.connection.connectionState || "none",
      error: panel.element.querySelector(".error").textContent,
      ...(await panel.session?.stats()),
    });
    return { play: await of(player), publish: await of(publisher) };
  },
};

// A page that only plays does so at once, muted; so does any with "?play".
const isAsked = new URLSearchParams(location.search).has("play");
if (serves.includes("whep") && (isAsked || !serves.includes("whip"))) player.start();
