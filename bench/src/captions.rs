//! The words of all figures: what their numbers mean, and how they were measured.

use crate::report::Caption;

/// Names a place in the thesis.
macro_rules! thesis {
    ($place:literal) => {
        Some(concat!(
            $place,
            " of Jussi Iho, Low-Latency and High-Bandwidth Video Stream Delivery, master's thesis, \
             Tampere University, 2021, urn.fi/URN:NBN:fi:tuni-202104263673 (16 cores, RTX 2070)."
        ))
    };
}

const UVGRTP: Option<&str> = Some(
    "The method is that of A. Altonen, J. Räsänen, J. Laitinen, M. Viitanen and J. Vanne, \
     Open-Source RTP Library for High-Speed 4K HEVC Video Streaming, IEEE MMSP 2020, between two \
     computers.",
);

pub(crate) static GOODPUT: Caption = Caption {
    name: "goodput",
    title: "Goodput and CPU time of each path to the kernel",
    meaning: "The nearer a row is to the raw one, the less Rushes adds to the kernel's own work \
              for the same octets.",
    method: "H.265 access units of one slice go from one process to another, each on a core of its \
             own, as fast as they are acknowledged, or paced without acknowledgements; rows take \
             turns.",
    source: None,
};

pub(crate) static SLICES: Caption = Caption {
    name: "slices",
    title: "Goodput and CPU time by number of slices",
    meaning: "The less a row falls behind that of one slice, the less slices cost. Short last fragments end \
              messages of the system; equal packets do not.",
    method: "H.265 access units of many slices go from one process to another, each on a core of its own, as \
             fast as they are acknowledged; rows take turns.",
    source: None,
};

pub(crate) static GOODPUT_VETH: Caption =
    Caption { name: "goodput-veth", title: "Goodput by virtual Ethernet", ..GOODPUT };

pub(crate) static RATE: Caption = Caption {
    name: "rate",
    title: "Rate control on paths of limited capacity",
    meaning: "Under rate control, media uses most of the capacity with a short queue and few losses; \
              at a fixed rate it either leaves capacity or fills the queue and loses packets. \
              Beside TCP, which keeps the queue full, media falls to its minimum.",
    method: "Flows of media and TCP share a path with a bottleneck and a drop-tail queue, in \
             virtual time. Receivers report after 16 packets or 40 ms; the delay is 50 ms in each \
             direction unless the case says otherwise.",
    source: Some(
        "The cases are those of RFC 8867 sections 5.1 to 5.8, and media is that of RFC 8593 \
         section 5.",
    ),
};

pub(crate) static RATES_POINTS: Caption = Caption {
    name: "rates-points",
    title: "Goodput, losses and CPU time by frame rate",
    meaning: "Goodput grows with the frame rate until a way of sending reaches its limit, where \
              access units are lost or the sender is late.",
    method: "Access units are sent at a fixed rate without acknowledgements; rows take turns at \
             each rate, and rates rise until more than 2.5 % of the access units are lost or the \
             sender is more than 2.5 % late.",
    source: UVGRTP,
};

pub(crate) static RATES: Caption = Caption {
    name: "rates",
    title: "Peak goodput with at most 2.5 % of access units lost",
    meaning: "A peak is the highest frame rate that a row kept; its share of the raw peak is the \
              part of the kernel's limit that is left with RTP and encryption.",
    ..RATES_POINTS
};

pub(crate) static RATES_CODECS: Caption = Caption {
    name: "rates-codecs",
    title: "Peak goodput by codec and bit rate",
    meaning: "Equal peaks mean that neither the codec nor the size of its access units matters.",
    ..RATES_POINTS
};

pub(crate) static PEERS: Caption = Caption {
    name: "peers",
    title: "Peak goodput of whole programs with at most 2.5 % of access units lost",
    meaning: "A program's share of Rushes compares the goodput of both from file to file on this \
              machine; beside it is its CPU time.",
    method: "Programs are started by their command lines and take turns at each frame rate; only \
             access units that a receiver wrote octet for octet count.",
    source: None,
};

pub(crate) static LATENCY_VIDEO: Caption = Caption {
    name: "latency-video",
    title: "Round trip of 4K video",
    meaning: "The difference from the bare row is the latency that Rushes adds to that of the \
              sockets.",
    method: "One process sends an access unit each interval, unpaced, another sends it back when \
             it is complete; the time is from the push until it is complete again.",
    source: UVGRTP,
};

pub(crate) static LATENCY_SIZE: Caption = Caption {
    name: "latency-size",
    title: "Round trip by size of the access unit, 120 a second",
    source: None,
    ..LATENCY_VIDEO
};

pub(crate) static LATENCY_MANY: Caption = Caption {
    name: "latency-many",
    title: "Round trips of many access units",
    meaning: "A late or failed round trip in a Rushes row, but none in the bare row, would be a \
              missed wake-up.",
    source: None,
    ..LATENCY_VIDEO
};

pub(crate) static START_CODE: Caption = Caption {
    name: "start-code",
    title: "Speed of finding NAL units in a byte stream",
    meaning: "A sender reads each frame once for its start codes: a GB/s here is 8 Gbit/s that one \
              core can search.",
    method: "One core counts the start codes of the same octets by each search in turn.",
    source: None,
};

pub(crate) static SRTP: Caption = Caption {
    name: "srtp",
    title: "Goodput and CPU time with encryption",
    meaning: "The share of the plain row is the goodput that remains when packets are encrypted \
              and authenticated.",
    method: "The same as goodput by the fastest path, with fixed keys; the primitives are the \
             cipher and the tag alone on one core, for packets of 1 400 octets.",
    source: None,
};

pub(crate) static MANY_STREAMS: Caption = Caption {
    name: "many-streams",
    title: "Many small streams on one port",
    meaning: "CPU time of a packet, in microseconds, beside that of sockets alone. Neither it nor the \
              losses should grow with the number of streams.",
    method: "Opus at 64 kbit/s from one port to another in one process: a thread pushes a frame of each \
             stream every 20 ms, another pulls it, stream by stream or all together. The reference \
             sends each packet by itself, and receives up to 64 at once into a table of SSRCs.",
    source: None,
};

pub(crate) static MANY_STREAMS_IDLE: Caption = Caption {
    name: "many-streams-idle",
    title: "Memory and file descriptors of an idle stream",
    meaning: "What a stream costs before its first packet, beyond what streams share.",
    method: "Streams are opened in a process of their own; memory is what the process has written to.",
    source: None,
};

pub(crate) static MANY_STREAMS_SOAK: Caption = Caption {
    name: "many-streams-soak",
    title: "Many streams for a long time",
    meaning: "Memory should stay the same after the first seconds, RTCP below 5 % of the octets of media (RFC 3550 \
              section 6.2), and nothing be lost that the kernel did not drop for want of room.",
    method: "Opus at 64 kbit/s from one port to another in one process, by push_many and a Poller. Memory is that \
             of both ends.",
    source: None,
};

pub(crate) static SCALE_STREAMS: Caption = Caption {
    name: "scale-streams",
    title: "Cost of a packet by number of streams",
    meaning: "The flatter a line, the less a stream costs its neighbours. A line rises where the state of all \
              streams no longer fits the processor's caches, and at few streams, whose packets come one by one.",
    method: MANY_STREAMS.method,
    source: None,
};

pub(crate) static SCALE_SLICES: Caption = Caption {
    name: "scale-slices",
    title: "Cost of a gigabyte by number of slices",
    meaning: SLICES.meaning,
    method: SLICES.method,
    source: None,
};

pub(crate) static SCALE_OCTETS: Caption = Caption {
    name: "scale-octets",
    title: "Cost of a gigabyte by size of access units",
    meaning: "What an access unit costs beside its octets, which matters for small ones; large ones leave the \
              caches.",
    method: SLICES.method,
    source: None,
};

pub(crate) static ZRTP: Caption = Caption {
    name: "zrtp",
    title: "Time of a key agreement",
    meaning: "A call is silent for the time of the first stream; further streams of a session \
              derive their keys and need no arithmetic of that kind.",
    method: "Two ends in one process, a thread each, agree over loopback; the time is from the \
             first Hello until both may send.",
    source: None,
};

pub(crate) static STREAMS: Caption = Caption {
    name: "streams",
    title: "Goodput and CPU time by number of streams",
    meaning: "Goodput that stays level from as many streams as cores on shows that streams do not \
              hinder each other.",
    method: "Each stream has a socket and a thread at either end and sends as fast as it is \
             acknowledged; the total work is the same for each number.",
    source: None,
};

pub(crate) static PACKET_SIZES: Caption = Caption {
    name: "packet-sizes",
    title: "Goodput and CPU time by packet size",
    meaning: "The cost of a packet falls with its size; it is lower where the kernel takes many \
              packets as one message.",
    method: "The same access units are sent in packets of each size, as fast as they are \
             acknowledged.",
    source: None,
};

pub(crate) static BUFFERS: Caption = Caption {
    name: "buffers",
    title: "Losses by size of the receiver's socket buffer",
    meaning: "A buffer is large enough where no access unit is lost; pacing needs less of it than \
              bursts.",
    method: "Access units of which some are larger are sent at a fixed bit rate without \
             acknowledgements; paced ones are spread over half of the time until the next.",
    source: None,
};

pub(crate) static PLACES: Caption = Caption {
    name: "places",
    title: "Goodput and CPU time by network",
    meaning: "Networks with larger packets, and with segmentation below the sender, cost less CPU \
              time.",
    method: "The same access units are sent by loopback, and between two network namespaces that \
             virtual Ethernet joins, as fast as they are acknowledged.",
    source: None,
};

const BUCKET: Caption = Caption {
    name: "",
    title: "",
    meaning: "A short queue drops the part of a burst that exceeds it, so the way of pacing \
              decides how much of a link can be used.",
    method: "A token bucket with the queue of a small switch, whose rate counts from the Ethernet \
             header on, stands between two network namespaces; senders get no feedback.",
    source: None,
};

pub(crate) static BUCKET_1G: Caption =
    Caption { name: "bucket-1g", title: "Losses on a link of 1 Gbit/s by load", ..BUCKET };

pub(crate) static BUCKET_1G_FPS: Caption = Caption {
    name: "bucket-1g-fps",
    title: "Losses on a link of 1 Gbit/s by frame rate",
    ..BUCKET
};

pub(crate) static BUCKET_10G: Caption =
    Caption { name: "bucket-10g", title: "Losses on a link of 10 Gbit/s by load", ..BUCKET };

pub(crate) static BUCKET_10G_FPS: Caption = Caption {
    name: "bucket-10g-fps",
    title: "Losses on a link of 10 Gbit/s by frame rate",
    ..BUCKET
};

pub(crate) static FRAMES: Caption = Caption {
    name: "frames",
    title: "Latency of the first frames of a texture stream",
    meaning: "The first frames show the cost of touching new memory, the later ones a steady \
              stream.",
    method: "Each stream starts anew, without a warm-up, and sends 60 frames a second; lines are \
             percentiles of all streams.",
    source: thesis!("Figure 5.1"),
};

const TEXTURE: Caption = Caption {
    name: "",
    title: "",
    meaning: "",
    method: "Server and client are threads of one process, which one clock times from the picture \
             in memory until the last octet of its frame is in place, one frame at a time, in \
             turns with the same octets through bare sockets.",
    source: None,
};

pub(crate) static LATENCY: Caption = Caption {
    name: "latency",
    title: "Latency of texture frames by resolution",
    meaning: "A frame that takes less than its interval, 16.7 ms at 60 a second, can be sent live; \
              bare sockets are the limit.",
    source: thesis!("Figure 5.2"),
    ..TEXTURE
};

pub(crate) static UNITS: Caption = Caption {
    name: "units",
    title: "Latency of texture frames by number of units",
    meaning: "Units work in parallel, so latency falls until each core has one.",
    source: thesis!("Figure 5.3"),
    ..TEXTURE
};

pub(crate) static PACKET_SIZE: Caption = Caption {
    name: "packet-size",
    title: "Latency of texture frames by packet size",
    meaning: "Larger packets cost less for each octet, as far as a network carries them.",
    source: thesis!("Figure 5.4"),
    ..TEXTURE
};

pub(crate) static TIMINGS: Caption = Caption {
    name: "timings",
    title: "Where the time of a texture frame goes",
    meaning: "The parts overlap: a client receives while the server sends, so they add up to more \
              than the whole.",
    source: thesis!("Table 5.2"),
    ..TEXTURE
};

pub(crate) static DELIVERY: Caption = Caption {
    name: "delivery",
    title: "The same texture frames compared with bare sockets",
    meaning: "The share of bare is how near delivery is to the limit of sockets, which is 100 %.",
    ..TEXTURE
};

pub(crate) static SOCKETS: Caption = Caption {
    name: "texture-sockets",
    title: "Goodput and CPU time of texture frames beside sockets alone",
    meaning: "What is missing to 100 % of sockets in place is what Rushes adds to the kernel's work and the \
              one copy of each octet into its frame, without which a receiver of datagrams has no picture; \
              bare sockets by UDP leave out that copy.",
    ..TEXTURE
};

pub(crate) static THESIS: Caption = Caption {
    name: "thesis",
    title: "The same texture frames compared with their aims and the thesis",
    meaning: "An aim is met by the median of frames without a loss; rates are divided by the \
              number of cores, as the machines differ.",
    source: thesis!("The results"),
    ..TEXTURE
};

pub(crate) static ENCODE: Caption = Caption {
    name: "encode",
    title: "Speed of the texture encoders on one core",
    meaning: "An encoder as fast as a copy of as many octets is limited by memory, not by \
              arithmetic; PSNR is of the picture decoded again.",
    method: "Each encoder encodes the same RGBA8 picture of 2160p in turn with a copy of half as \
             many octets as it reads and writes.",
    source: None,
};

#[cfg(feature = "gpu")]
mod gpu {
    use super::Caption;

    pub(crate) static GPU: Caption = Caption {
        name: "gpu",
        title: "Texture frames into the memory of a graphics processor",
        meaning: "The time from the last octet to the device is the time that a kind of memory \
                  adds to receiving.",
        method: "Frames are received one at a time by each kind of memory in turn; the device has \
                 a frame when it has finished its copy.",
        source: thesis!("Table 5.2"),
    };

    pub(crate) static GPU_DRAW: Caption = Caption {
        name: "gpu-draw",
        title: "Time to draw a frame of 2160p",
        meaning: "Drawing has to fit in a frame interval beside the transfer.",
        method: "A frame in device memory is drawn without scaling, from submission until the \
                 device is done.",
        source: None,
    };

    pub(crate) static GPU_ENCODE: Caption = Caption {
        name: "gpu-encode",
        title: "Time to encode a picture of 2160p from memory to memory",
        meaning: "A device pays off where it is faster than the cores that are free.",
        method: "RGBA8 pictures go to the device and frames come back, whole or in stripes; one \
                 core does the same.",
        source: None,
    };

    pub(crate) static GPU_SEND: Caption = Caption {
        name: "gpu-send",
        title: "From a picture of 2160p to its frame at the client, by encoder",
        meaning: "Sending in stripes hides the time of encoding behind that of sending.",
        method: "Each frame is encoded by the units or by the device, and sent by loopback; ways \
                 take turns, one frame each.",
        source: None,
    };

    pub(crate) static GPU_MEMORY: Caption = Caption {
        name: "gpu-memory",
        title: "Cost of the memory that frames are received into",
        meaning: "Receiving writes each octet once, so slow writing limits it; slow reading \
                  matters only where the processor conceals losses.",
        method: "The memory of a client is written, read and concealed in before frames arrive.",
        source: None,
    };
}

#[cfg(feature = "gpu")]
pub(crate) use self::gpu::{GPU, GPU_DRAW, GPU_ENCODE, GPU_MEMORY, GPU_SEND};
