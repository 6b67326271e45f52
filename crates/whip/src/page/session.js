// One session of WHIP or WHEP (RFC 9725, draft-ietf-wish-whep): an offer, an answer, an end.

// A refusal, in the server's words.
export class Refusal extends Error {
  constructor(status, text, retryAfter) {
    super(text);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const texts = {
  401: "This server needs a token.",
  404: "There is no such stream on this server.",
  406: "The server accepts none of this browser's formats.",
  409: "The stream is in use, or not yet published.",
  429: "Too many requests. Try again later.",
  503: "The server is busy. Try again later.",
};

async function refusal(response) {
  const isText = (response.headers.get("content-type") || "").startsWith("text/plain");
  const own = isText ? (await response.text()).trim().slice(0, 300) : "";
  const status = response.status;
  const text = own || texts[status] || `The server refused with status ${status}.`;
  return new Refusal(status, text, Number(response.headers.get("retry-after")) || 0);
}

// The STUN and TURN servers in the field Link (RFC 9725 section 4.6).
function iceServers(field) {
  const value = String.raw`\s*;\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]*))`;
  const servers = [];
  for (const [, urls, rest] of (field || "").matchAll(new RegExp(`<([^>]*)>((?:${value})*)`, "g"))) {
    const found = {};
    for (const [, name, text, token] of rest.matchAll(new RegExp(value, "g"))) {
      found[name.toLowerCase()] ??= text === undefined ? token : text.replace(/\\(.)/g, "$1");
    }
    const { rel, username, credential } = found;
    const isUsable = /^stuns?:/.test(urls) || (/^turns?:/.test(urls) && username && credential);
    if (rel === "ice-server" && isUsable) servers.push({ urls, username, credential });
  }
  return servers;
}

// A fragment with later candidates (RFC 9725 section 4.3.2).
function fragment(offer, candidates) {
  const first = (line) => offer.match(new RegExp(`^${line}.*$`, "m"))?.[0].trim() || "";
  const head = ["a=ice-ufrag:", "a=ice-pwd:", "m=", "a=mid:"].map(first);
  return [...head, ...candidates.map((candidate) => `a=${candidate}`), ""].join("\r\n");
}

export class Session {
  // `endpoint` is "whip" or "whep". `prepare` adds what is to be sent or received.
  static async open(endpoint, token, prepare) {
    const session = new Session(token);
    try {
      await session.#open(endpoint, prepare);
    } catch (error) {
      session.close();
      throw error;
    }
    return session;
  }

  constructor(token) {
    this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
    this.fields = token ? { Authorization: `Bearer ${token}` } : {};
    this.resource = null;
    // Our addresses that the server does not know yet, and whether a request is on its way.
    this.candidates = [];
    this.isSending = false;
    this.connection.addEventListener("icecandidate", ({ candidate }) => {
      // The server reaches neither names of this network nor addresses of TCP.
      const isUsable = / udp /i.test(candidate?.candidate) && !candidate.candidate.includes(".local ");
      if (isUsable) this.candidates.push(candidate.candidate);
    });
  }

  async #open(endpoint, prepare) {
    const connection = this.connection;
    prepare(connection);
    // Addresses are looked for when the STUN and TURN servers are known.
    const offer = await connection.createOffer();
    const response = await fetch(endpoint, {
      method: "POST",
      headers: { ...this.fields, "Content-Type": "application/sdp" },
      body: offer.sdp,
    }).catch(() => {
      throw new Error("The server does not answer.");
    });
    if (response.status !== 201) throw await refusal(response);
    const location = response.headers.get("location");
    if (location) this.resource = new URL(location, response.url).href;
    const answer = await response.text();
    const servers = iceServers(response.headers.get("link"));
    if (servers.length) {
      connection.setConfiguration({ ...connection.getConfiguration(), iceServers: servers });
    }
    const tag = response.headers.get("etag");
    connection.addEventListener("icecandidate", () => this.#sendCandidates(offer.sdp, tag));
    await connection.setLocalDescription(offer);
    await connection.setRemoteDescription({ type: "answer", sdp: answer });
  }

  // Sends the addresses that the server does not know yet. It may also find them itself.
  async #sendCandidates(offer, tag) {
    if (!this.resource || !tag || this.isSending) return;
    this.isSending = true;
    while (this.resource && this.candidates.length) {
      const body = fragment(offer, this.candidates.splice(0));
      const headers = {
        ...this.fields, "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": tag,
      };
      await fetch(this.resource, { method: "PATCH", headers, body }).catch(() => {});
    }
    this.isSending = false;
  }

  // Ends the session here and at the server, also while the page is being left.
  close() {
    this.connection.close();
    if (!this.resource) return;
    const request = { method: "DELETE", headers: this.fields, keepalive: true };
    // The server ends a session that it hears no more of.
    fetch(this.resource, request).catch(() => {});
    this.resource = null;
  }

  // Numbers of the connection; those that the browser does not have are 0.
  async stats() {
    const found = {
      framesDecoded: 0, framesReceived: 0, framesDropped: 0, framesEncoded: 0, framesSent: 0,
      framesPerSecond: 0, frameWidth: 0, frameHeight: 0, freezeCount: 0,
      packetsReceived: 0, packetsSent: 0, packetsLost: 0, bytesReceived: 0, bytesSent: 0,
      audioPacketsReceived: 0, audioPacketsSent: 0, audioLevel: 0, totalAudioEnergy: 0,
      roundTripTime: 0, videoCodec: "", audioCodec: "",
    };
    if (this.connection.connectionState === "closed") return found;
    const report = await this.connection.getStats();
    for (const entry of report.values()) this.#add(found, report, entry);
    return found;
  }

  #add(found, report, entry) {
    const isVideo = entry.kind === "video";
    const take = (...names) => {
      for (const name of names) found[name] += entry[name] || 0;
    };
    if (entry.type === "inbound-rtp" || entry.type === "outbound-rtp") {
      const codec = report.get(entry.codecId)?.mimeType.split("/")[1] || "";
      if (codec) found[isVideo ? "videoCodec" : "audioCodec"] = codec;
      take("packetsReceived", "packetsSent", "bytesReceived", "bytesSent");
      if (!isVideo) found.audioPacketsReceived += entry.packetsReceived || 0;
      if (!isVideo) found.audioPacketsSent += entry.packetsSent || 0;
    }
    if (entry.type === "inbound-rtp") {
      take("packetsLost");
      if (isVideo) take("framesDecoded", "framesReceived", "framesDropped", "freezeCount");
      else take("audioLevel", "totalAudioEnergy");
    }
    if (entry.type === "outbound-rtp" && isVideo) take("framesEncoded", "framesSent");
    if (entry.type === "media-source" && !isVideo) take("audioLevel", "totalAudioEnergy");
    if (isVideo && (entry.type === "inbound-rtp" || entry.type === "outbound-rtp")) {
      take("framesPerSecond");
      found.frameWidth = Math.max(found.frameWidth, entry.frameWidth || 0);
      found.frameHeight = Math.max(found.frameHeight, entry.frameHeight || 0);
    }
    if (entry.type === "remote-inbound-rtp") {
      take("packetsLost");
      found.roundTripTime = Math.max(found.roundTripTime, entry.roundTripTime || 0);
    }
    if (entry.type === "candidate-pair" && (entry.nominated || entry.selected)) {
      found.roundTripTime = Math.max(found.roundTripTime, entry.currentRoundTripTime || 0);
    }
  }
}
