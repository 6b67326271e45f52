/*
 * Rushes: video and audio between machines in real time.
 *
 * Handles. What is made by a ..._new, ..._open, ..._begin, _serve or _connect is a handle, to be
 * closed once by its own function. A handle is a number in the clothes of a pointer: closing it
 * twice, using it afterwards or passing another kind is an error code, never a wrong access.
 * Frames are handles, too: lent by the stream until rushes_frame_release().
 *
 * Outcomes. Functions return a rushes_status: RUSHES_OK (0), RUSHES_TIMEOUT (1) where nothing came,
 * or an error below 0, of which rushes_last_error_message() says more on the same thread. Answers
 * go to the place that an argument points to, and are written on RUSHES_OK only; handles there are
 * NULL otherwise.
 *
 * Memory. Arguments are lent for the call, also texts (UTF-8, ending with a zero octet) and hooks'
 * arguments, unless a function says otherwise. Structs may grow at their end in later versions: who
 * fills them is told their size as the caller knows it, and sets what it does not know of to 0. Those
 * that lie in arrays or in other structs (rushes_part, rushes_report_block, rushes_sdes_text,
 * rushes_packet_arrival) stay as they are.
 *
 * Times are in nanoseconds, lengths in octets.
 *
 * Threads. Every function may be called from any thread at any time; what excludes each other waits
 * or is RUSHES_ERROR_BUSY, as the function says. Hooks may call functions, as theirs say. An
 * exception thrown from a hook ends the process. After fork() a child must not use handles.
 *
 * Made by cbindgen from bindings/capi/src; do not edit (see bindings/capi/tests/header.rs).
 */

#ifndef RUSHES_H
#define RUSHES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define RUSHES_VERSION_MAJOR 0
#define RUSHES_VERSION_MINOR 1
#define RUSHES_VERSION_PATCH 0
#define RUSHES_VERSION "0.1.0"

/* A timeout without end. */
#define RUSHES_FOREVER UINT64_MAX

/* Times in nanoseconds. */
#define RUSHES_MILLISECONDS(n) ((uint64_t)(n) * 1000000u)
#define RUSHES_SECONDS(n) ((uint64_t)(n) * 1000000000u)

// What every function returns. Negative values are errors, of which rushes_last_error_message()
// says more. Later versions may have further ones.
enum rushes_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done.
    RUSHES_OK = 0,
    // Nothing came in the time given. Not an error.
    RUSHES_TIMEOUT = 1,
    // A pointer is null that must not be.
    RUSHES_ERROR_NULL = -1,
    // This is no handle of that kind.
    RUSHES_ERROR_HANDLE = -2,
    // The handle was closed or released before.
    RUSHES_ERROR_CLOSED = -3,
    // An argument is outside its range.
    RUSHES_ERROR_ARGUMENT = -4,
    // A text is not UTF-8.
    RUSHES_ERROR_TEXT = -5,
    // The buffer given is too small.
    RUSHES_ERROR_BUFFER = -6,
    // Another thread, or the caller further up, is in a call that excludes this one.
    RUSHES_ERROR_BUSY = -7,
    // The library failed: an error of its own, which it caught.
    RUSHES_ERROR_PANIC = -8,
    // The stream's frames go to a hook.
    RUSHES_ERROR_HOOKED = -9,
    // The frame cannot be sent in the stream's format.
    RUSHES_ERROR_FRAME = -10,
    // The network refused something.
    RUSHES_ERROR_NET = -11,
    // The port is in use.
    RUSHES_ERROR_ADDRESS_IN_USE = -12,
    // The stream has no peer, or no remote port.
    RUSHES_ERROR_NO_DESTINATION = -13,
    // The stream has no RTCP.
    RUSHES_ERROR_NO_RTCP = -14,
    // Part of a frame could not be sent.
    RUSHES_ERROR_SEND = -15,
    // A key is of no use here, or used up.
    RUSHES_ERROR_KEY = -16,
    // There was no agreement on keys (ZRTP).
    RUSHES_ERROR_ZRTP = -17,
    // The application said that the short authentication strings differ.
    RUSHES_ERROR_SAS = -18,
    // Not to be had in this build, on this system or in this state.
    RUSHES_ERROR_UNSUPPORTED = -19,
    // The operating system has no threads or no random numbers left.
    RUSHES_ERROR_SYSTEM = -20,
    // Texture video could not begin.
    RUSHES_ERROR_TEXTURE = -21,
    // Texture video has ended.
    RUSHES_ERROR_ENDED = -22,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_status rushes_status;
#else
typedef int32_t rushes_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a stream carries.
enum rushes_codec
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // H.264 (AVC), RFC 6184.
    RUSHES_CODEC_H264 = 1,
    // H.265 (HEVC), RFC 7798.
    RUSHES_CODEC_H265 = 2,
    // H.266 (VVC), RFC 9328.
    RUSHES_CODEC_H266 = 3,
    // Opus, RFC 7587.
    RUSHES_CODEC_OPUS = 4,
    // Frames of any kind, split when larger than a packet.
    RUSHES_CODEC_GENERIC = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_codec rushes_codec;
#else
typedef int32_t rushes_codec;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How lost packets are sent again.
enum rushes_recovery_mode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // They are not.
    RUSHES_RECOVERY_MODE_OFF = 0,
    // In a stream of their own (RFC 4588).
    RUSHES_RECOVERY_MODE_RTX = 1,
    // As they were, in the stream they belong to: for peers that do not know RFC 4588.
    RUSHES_RECOVERY_MODE_VERBATIM = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_recovery_mode rushes_recovery_mode;
#else
typedef int32_t rushes_recovery_mode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a source description says (RFC 3550 section 6.5); the values are the RFC's.
enum rushes_sdes_item
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The canonical name.
    RUSHES_SDES_ITEM_CNAME = 1,
    // The user's name.
    RUSHES_SDES_ITEM_NAME = 2,
    // The user's electronic mail address.
    RUSHES_SDES_ITEM_EMAIL = 3,
    // The user's telephone number.
    RUSHES_SDES_ITEM_PHONE = 4,
    // Where the user is.
    RUSHES_SDES_ITEM_LOCATION = 5,
    // The application.
    RUSHES_SDES_ITEM_TOOL = 6,
    // What the user is doing.
    RUSHES_SDES_ITEM_NOTE = 7,
    // An extension under a name of its own.
    RUSHES_SDES_ITEM_PRIVATE = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_sdes_item rushes_sdes_item;
#else
typedef int32_t rushes_sdes_item;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Cipher and tag of SRTP. Key and salt together have 30 octets for AES-128 in counter mode, 38 for
// AES-192, 46 for AES-256, 28 for AES-128-GCM, 44 for AES-256-GCM, and 30 without encryption.
enum rushes_srtp_suite
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // AES-128 in counter mode, tags of 80 bits: the suite that everybody must have.
    RUSHES_SRTP_SUITE_AES_CM128_HMAC_SHA1_TAG80 = 1,
    // The same with tags of 32 bits on media.
    RUSHES_SRTP_SUITE_AES_CM128_HMAC_SHA1_TAG32 = 2,
    // AES-192 in counter mode, tags of 80 bits.
    RUSHES_SRTP_SUITE_AES_CM192_HMAC_SHA1_TAG80 = 3,
    // The same with tags of 32 bits on media.
    RUSHES_SRTP_SUITE_AES_CM192_HMAC_SHA1_TAG32 = 4,
    // AES-256 in counter mode, tags of 80 bits.
    RUSHES_SRTP_SUITE_AES_CM256_HMAC_SHA1_TAG80 = 5,
    // The same with tags of 32 bits on media.
    RUSHES_SRTP_SUITE_AES_CM256_HMAC_SHA1_TAG32 = 6,
    // AES-128 in Galois/counter mode, tags of 128 bits: the fastest.
    RUSHES_SRTP_SUITE_AEAD_AES128_GCM = 7,
    // AES-256 in Galois/counter mode, tags of 128 bits.
    RUSHES_SRTP_SUITE_AEAD_AES256_GCM = 8,
    // No encryption, tags of 80 bits.
    RUSHES_SRTP_SUITE_NULL_HMAC_SHA1_TAG80 = 9,
    // AES-128 in counter mode and no tag on media: anybody on the path can change what arrives.
    RUSHES_SRTP_SUITE_AES_CM128_NULL_AUTH = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_srtp_suite rushes_srtp_suite;
#else
typedef int32_t rushes_srtp_suite;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which peers keys are agreed on with by ZRTP.
enum rushes_zrtp_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Any.
    RUSHES_ZRTP_POLICY_ALLOW = 0,
    // Any but one with whom the strings were compared in an earlier session and that has lost that
    // session's secret.
    RUSHES_ZRTP_POLICY_REFUSE_CHANGED = 1,
    // Only those with whom the strings were compared in an earlier session.
    RUSHES_ZRTP_POLICY_REFUSE_UNVERIFIED = 2,
    // Only those that know the secret of rushes_stream_options_zrtp_aux_secret().
    RUSHES_ZRTP_POLICY_REQUIRE_SECRET = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_zrtp_policy rushes_zrtp_policy;
#else
typedef int32_t rushes_zrtp_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Something that is not as it should be with a session's key agreement by ZRTP.
enum rushes_zrtp_warning
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // None.
    RUSHES_ZRTP_WARNING_NONE = 0,
    // A secret of an earlier session is not known to the peer: compare the strings.
    RUSHES_ZRTP_WARNING_CACHE_MISMATCH = 1,
    // The same, and the strings were compared before: likelier that somebody is in between.
    RUSHES_ZRTP_WARNING_VERIFIED_BEFORE = 2,
    // The secret got by other means is not the peer's.
    RUSHES_ZRTP_WARNING_AUX_MISMATCH = 3,
    // The peer discloses what it hears to others.
    RUSHES_ZRTP_WARNING_DISCLOSURE = 4,
    // The peer signed the string, which is not verified here.
    RUSHES_ZRTP_WARNING_SIGNATURE = 5,
    // A message of somebody else, or a changed one: it was not used.
    RUSHES_ZRTP_WARNING_FORGED = 6,
    // A Hello that is not the one that was announced.
    RUSHES_ZRTP_WARNING_HELLO_HASH = 7,
    // Another, of a later version.
    RUSHES_ZRTP_WARNING_OTHER = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_zrtp_warning rushes_zrtp_warning;
#else
typedef int32_t rushes_zrtp_warning;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What happened to a receiver.
enum rushes_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // One of a later version.
    RUSHES_EVENT_KIND_OTHER = 0,
    // A frame was begun and cannot be completed: `ssrc`, `timestamp`.
    RUSHES_EVENT_KIND_FRAME_DROPPED = 1,
    // A source is used from another address too, which is not listened to: `ssrc`.
    RUSHES_EVENT_KIND_CONFLICT = 2,
    // A master key has a sixteenth of its lifetime left, or less: `count` packets.
    RUSHES_EVENT_KIND_KEY_EXPIRING = 3,
    // A master key is used up.
    RUSHES_EVENT_KIND_KEY_EXPIRED = 4,
    // Packets are missing and no longer waited for: `ssrc`, `first`, `count`.
    RUSHES_EVENT_KIND_PACKETS_LOST = 5,
    // Packets of a secured stream were refused: `reason`, `count` since this was last told.
    RUSHES_EVENT_KIND_REFUSED = 6,
    // A source has ended: it said goodbye, was silent for long, or gave way to another: `ssrc`.
    RUSHES_EVENT_KIND_SOURCE_ENDED = 7,
    // A source has passed its probation: `ssrc`.
    RUSHES_EVENT_KIND_SOURCE_STARTED = 8,
    // The receive hook's thread cannot read the socket: `reason`. Told at once, and once a second
    // while that lasts; who pulls gets the error itself.
    RUSHES_EVENT_KIND_UNREADABLE = 9,
    // A source goes on with sequence numbers far from those before, as one that was started again:
    // `ssrc`.
    RUSHES_EVENT_KIND_SOURCE_RESTARTED = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_event_kind rushes_event_kind;
#else
typedef int32_t rushes_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a key frame is asked for.
enum rushes_key_frame
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Pictures were lost (PLI).
    RUSHES_KEY_FRAME_PICTURE_LOSS = 1,
    // A decoder refresh point is needed, as when someone joins (FIR).
    RUSHES_KEY_FRAME_FULL_INTRA = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_key_frame rushes_key_frame;
#else
typedef int32_t rushes_key_frame;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a peer said, or what became of one.
enum rushes_rtcp_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Something that this version does not tell.
    RUSHES_RTCP_EVENT_KIND_OTHER = 0,
    // A sender report: `ntp`, `timestamp`, `packets`, `octets`.
    RUSHES_RTCP_EVENT_KIND_SENDER_REPORT = 1,
    // A report about our media: `report`, `round_trip`.
    RUSHES_RTCP_EVENT_KIND_RECEIVER_REPORT = 2,
    // The round-trip time, of a participant that sends no media: `round_trip`.
    RUSHES_RTCP_EVENT_KIND_ROUND_TRIP = 3,
    // A source description that is new: `items`, `item_count`.
    RUSHES_RTCP_EVENT_KIND_SOURCE_DESCRIPTION = 4,
    // A participant leaves: `text`.
    RUSHES_RTCP_EVENT_KIND_BYE = 5,
    // A participant was silent for so long that it counts as gone.
    RUSHES_RTCP_EVENT_KIND_TIMED_OUT = 6,
    // An application's own packet: `subtype`, `text` (four characters), `data`, `data_len`.
    RUSHES_RTCP_EVENT_KIND_APP = 7,
    // A receiver needs a key frame: `request`.
    RUSHES_RTCP_EVENT_KIND_KEY_FRAME_REQUESTED = 8,
    // Packets of ours did not reach a receiver: `sequences`, `sequence_count`.
    RUSHES_RTCP_EVENT_KIND_PACKETS_LOST = 9,
    // Parts of a picture did not reach a receiver.
    RUSHES_RTCP_EVENT_KIND_SLICES_LOST = 10,
    // A receiver says which picture it has: `data`, `data_len`.
    RUSHES_RTCP_EVENT_KIND_REFERENCE_PICTURE = 11,
    // A receiver wants at most `bit_rate`. It is answered by itself.
    RUSHES_RTCP_EVENT_KIND_BIT_RATE_REQUESTED = 12,
    // A sender names the limits that it keeps.
    RUSHES_RTCP_EVENT_KIND_BIT_RATE_NOTIFIED = 13,
    // A receiver estimates what the path can carry: `bit_rate`.
    RUSHES_RTCP_EVENT_KIND_ESTIMATE = 14,
    // When our packets reached a receiver: `ntp` (middle 32 bits), `arrivals`, `arrival_count`.
    RUSHES_RTCP_EVENT_KIND_ARRIVALS = 15,
    // Datagrams were refused because they are not authentic: `count` since this was last told.
    RUSHES_RTCP_EVENT_KIND_REFUSED = 16,
    // A master key has a sixteenth of its lifetime left, or less: `count` packets.
    RUSHES_RTCP_EVENT_KIND_KEY_EXPIRING = 17,
    // A master key is used up.
    RUSHES_RTCP_EVENT_KIND_KEY_EXPIRED = 18,
    // Our SSRC is another's too: it was `from`, and is `ssrc` from now on.
    RUSHES_RTCP_EVENT_KIND_COLLISION = 19,
    // Our own packets come back to us.
    RUSHES_RTCP_EVENT_KIND_LOOP = 20,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_rtcp_event_kind rushes_rtcp_event_kind;
#else
typedef int32_t rushes_rtcp_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// When a texture server takes pictures from its source.
enum rushes_texture_timing
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // At the source's rate. Who cannot keep up misses whole frames.
    RUSHES_TEXTURE_TIMING_LIVE = 0,
    // At the source's rate, or more slowly: every client is sent every frame.
    RUSHES_TEXTURE_TIMING_EVERY_FRAME = 1,
    // As fast as the slowest client takes them.
    RUSHES_TEXTURE_TIMING_FLAT_OUT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rushes_texture_timing rushes_texture_timing;
#else
typedef int32_t rushes_texture_timing;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The application's place among its peers: one canonical name, one wall clock.
typedef struct rushes_context rushes_context;

// A received frame, lent by the stream: its octets are where the stream put them.
typedef struct rushes_frame rushes_frame;

// A stream whose keys are being agreed on.
typedef struct rushes_opening rushes_opening;

// One peer, and the streams with it.
typedef struct rushes_session rushes_session;

// A stream of media to and from a peer.
typedef struct rushes_stream rushes_stream;

// Settings of streams that are to be opened. Every one has a default that works.
typedef struct rushes_stream_options rushes_stream_options;

// A client of texture video.
typedef struct rushes_texture_client rushes_texture_client;

// Settings of texture servers and clients. Every one has a default that works.
typedef struct rushes_texture_options rushes_texture_options;

// A server of texture video.
typedef struct rushes_texture_server rushes_texture_server;

// The short authentication string of a session.
typedef struct rushes_sas {
    // What two people read to each other, with a zero octet at its end.
    char text[64];
    // The whole hash of which it is the beginning.
    uint8_t hash[32];
    // Whether both ends have compared it, in this session or one that it continues.
    bool is_verified;
    // Whether both ends have the same secret (rushes_stream_options_zrtp_aux_secret()): nothing need
    // be compared then.
    bool shares_secret;
} rushes_sas;

// Is told the short authentication string on which both ends agreed by ZRTP, for people to compare:
// a text that is lent for the call, and whether it was compared in an earlier session that this one
// continues. It may take its time. It returns 1 if the strings are equal, 0 if nobody compared
// them (yet; see rushes_session_verify_sas()), and -1 if they differ: then somebody is in between,
// and the stream is not opened.
typedef int32_t (*rushes_sas_hook)(void *user, const char *sas, bool verified);

// Is called once when the hook that it was given with will not be called any more: frees `user`.
typedef void (*rushes_release)(void *user);

// A part of a frame.
typedef struct rushes_part {
    // Its octets.
    const uint8_t *data;
    // How many there are.
    size_t len;
} rushes_part;

// Is given a received frame. It is lent: it goes back when the hook returns, unless the hook called
// rushes_frame_keep(). `user` is what was given with the hook.
typedef void (*rushes_frame_hook)(void *user, struct rushes_frame *frame);

// Something that happened to a receiver. What the kind does not name is 0.
typedef struct rushes_event {
    // What: a rushes_event_kind.
    int32_t kind;
    // The source.
    uint32_t ssrc;
    // The sampling instant of the frame, in ticks.
    uint32_t timestamp;
    // The first of the packets: its sequence number, with the wraps in the upper bits.
    uint64_t first;
    // How many packets.
    uint64_t count;
    // Why packets were refused, or the socket cannot be read; else NULL.
    const char *reason;
} rushes_event;

// Is told of losses and sources. The event is lent for the call.
typedef void (*rushes_event_hook)(void *user, const struct rushes_event *event);

// What a frame is. Later versions may have more at the end.
typedef struct rushes_frame_view {
    // The frame's octets: NAL units with start codes, by default, or one frame of another format.
    // They stay until rushes_frame_release(), and must not be written to.
    const uint8_t *data;
    // How many there are.
    size_t len;
    // The sampling instant, in ticks of the stream's clock rate.
    uint32_t timestamp;
    // The source that sent it.
    uint32_t ssrc;
    // NAL units in it; 1 for formats without.
    uint32_t units;
    // Whether it ends an access unit.
    bool marker;
} rushes_frame_view;

// What a participant received of a source (RFC 3550 section 6.4.1).
typedef struct rushes_report_block {
    // The source.
    uint32_t ssrc;
    // The share of packets lost since the last report, in 1/256.
    uint8_t fraction_lost;
    // Packets lost since the start; below 0 if duplicates came.
    int32_t cumulative_lost;
    // The highest sequence number received, with its wraps in the upper 16 bits.
    uint32_t highest;
    // The jitter of arrivals, in ticks of the media's clock.
    uint32_t jitter;
    // The middle 32 bits of the NTP time of the last sender report; 0 if none came.
    uint32_t last_sender_report;
    // The time since that report came, in 1/65536 s; 0 if none came.
    uint32_t delay;
} rushes_report_block;

// One item of a source description.
typedef struct rushes_sdes_text {
    // What it is: a rushes_sdes_item, or another number of RFC 3550's.
    int32_t item;
    // What it says.
    const char *text;
} rushes_sdes_text;

// When one of our packets came.
typedef struct rushes_packet_arrival {
    // The packet's sequence number.
    uint16_t sequence;
    // Whether it came.
    bool has_arrived;
    // Its mark of congestion (RFC 3168), 0..=3.
    uint8_t ecn;
    // Nanoseconds before the instant of the report; UINT64_MAX if longer than can be told, or not
    // known.
    uint64_t before;
} rushes_packet_arrival;

// What a peer said. What the kind does not name is 0 or NULL.
typedef struct rushes_rtcp_event {
    // What: a rushes_rtcp_event_kind.
    int32_t kind;
    // Who said it.
    uint32_t from;
    // Another source, where the kind has one.
    uint32_t ssrc;
    // A sampling instant, in ticks of the media's clock.
    uint32_t timestamp;
    // The same instant on the wall clock, as an NTP time stamp (RFC 5905): seconds since 1900 in the
    // upper 32 bits.
    uint64_t ntp;
    // Packets sent, modulo 2^32.
    uint32_t packets;
    // Octets of payload sent, modulo 2^32.
    uint32_t octets;
    // The round-trip time in nanoseconds; 0 if it is not known.
    uint64_t round_trip;
    // A report about our media.
    struct rushes_report_block report;
    // How a key frame is asked for: a rushes_key_frame.
    int32_t request;
    // Bits per second.
    uint64_t bit_rate;
    // How many, where the kind says of what.
    uint64_t count;
    // Which of an application's packets it is, 0..=31.
    uint8_t subtype;
    // A reason or a name.
    const char *text;
    // Octets.
    const uint8_t *data;
    // How many there are.
    size_t data_len;
    // Sequence numbers.
    const uint16_t *sequences;
    // How many there are.
    size_t sequence_count;
    // Items of a source description.
    const struct rushes_sdes_text *items;
    // How many there are.
    size_t item_count;
    // When packets came.
    const struct rushes_packet_arrival *arrivals;
    // How many there are.
    size_t arrival_count;
} rushes_rtcp_event;

// Is told of reports and requests. The event, and what it points to, is lent for the call.
typedef void (*rushes_rtcp_hook)(void *user, const struct rushes_rtcp_event *event);

// A stream's counters at one moment. Later versions may have more at the end.
typedef struct rushes_statistics {
    // Frames taken to be sent.
    uint64_t frames_sent;
    // Octets of them, as given.
    uint64_t frame_octets_sent;
    // Packets made.
    uint64_t packets_sent;
    // Octets of RTP payload in them.
    uint64_t payload_octets_sent;
    // Packets sent once more because they were asked for.
    uint64_t retransmitted;
    // Frames (or NAL units) delivered.
    uint64_t frames_received;
    // Frames (or NAL units) begun and dropped.
    uint64_t frames_dropped;
    // Packets accepted.
    uint64_t packets_received;
    // Octets of RTP payload in them.
    uint64_t payload_octets_received;
    // Packets that were missing when they were no longer waited for.
    uint64_t packets_lost;
    // Packets that came after a later one.
    uint64_t packets_reordered;
    // Requests made for missing packets.
    uint64_t requested;
    // Missing packets that came after they were asked for.
    uint64_t recovered;
    // Datagrams that were of no use.
    uint64_t discarded;
    // Octets of memory held for what is not delivered yet.
    uint64_t held_octets;
    // Datagrams from other hosts than the session's peer, ignored; by socket.
    uint64_t foreign;
    // Datagrams that no stream on the port takes; by socket.
    uint64_t unrouted;
    // Datagrams turned away because finished frames were not collected.
    uint64_t uncollected;
    // System calls made to send; by socket, like those that follow up to `buffer_full_waits`.
    uint64_t send_calls;
    // System calls made to receive.
    uint64_t receive_calls;
    // Times that a thread waited for the socket.
    uint64_t wait_calls;
    // Messages that the kernel dropped because the receive buffer was full (Linux).
    uint64_t kernel_drops;
    // Times that sending met a full send buffer.
    uint64_t buffer_full_waits;
    // Frames of the stream that were not sent to their end.
    uint64_t frames_cut;
    // NAL units left out of the stream's frames, because their type has no place in RTP.
    uint64_t units_left_out;
    // Missing packets that were asked for and did not come in time.
    uint64_t unanswered;
    // Missing packets that were not asked for, because an answer could not have come in time.
    uint64_t not_requested;
    // First frames of a source, among those dropped, that may lack their beginning.
    uint64_t frames_unsure;
    // Frames dropped because their source had to give way in the memory of all sources.
    uint64_t frames_displaced;
} rushes_statistics;

// What a stream knows of one source that it receives. Later versions may have more at the end.
typedef struct rushes_source {
    // The source.
    uint32_t ssrc;
    // Packets received, late ones and duplicates included.
    uint64_t received;
    // Packets that should have come so far.
    uint64_t expected;
    // Packets expected less those received.
    int64_t cumulative_lost;
    // The newest packet: its sequence number, with the wraps in the upper bits.
    uint64_t highest;
    // Interarrival jitter (RFC 3550 appendix A.8) in nanoseconds.
    uint64_t jitter;
    // Nanoseconds since its last packet came.
    uint64_t silence;
    // Packets accepted: in time, for the first time.
    uint64_t packets;
    // Packets that were missing when they were no longer waited for.
    uint64_t packets_lost;
    // Frames (or units) delivered.
    uint64_t frames;
    // Frames (or units) begun and dropped.
    uint64_t frames_dropped;
} rushes_source;

// What a stream's RTCP knows of one peer. Later versions may have more at the end.
typedef struct rushes_peer {
    // Its synchronisation source.
    uint32_t ssrc;
    // Whether it said BYE.
    bool has_left;
    // Whether it has reported about our media: `report`.
    bool has_reported;
    // Its last report about our media.
    struct rushes_report_block report;
    // The last round-trip time to it in nanoseconds; 0 if it is not known.
    uint64_t round_trip;
    // Its canonical name, with a zero octet at its end; empty before it was told.
    char cname[256];
} rushes_peer;

// Writes the next picture into `octets`, `len` of them, all of which it must set. It returns 1 if it
// did, 0 at the end, and -1 if it failed. It is called by a thread of the server's own, one call at
// a time; `rewind` says that the first picture is wanted (again).
typedef int32_t (*rushes_texture_source_hook)(void *user,
                                              uint8_t *octets,
                                              size_t len,
                                              bool rewind);

// What a texture server has done for all clients together. Later versions may have more at the end.
typedef struct rushes_texture_server_counts {
    // Clients there are.
    uint64_t clients;
    // Frames sent, counted for each client.
    uint64_t frames;
    // Octets of tiles sent.
    uint64_t octets;
    // Pictures that were not encoded, because the one before was not yet sent.
    uint64_t dropped;
} rushes_texture_server_counts;

// A received frame of texture video, lent to a hook. Later versions may have more at the end.
typedef struct rushes_texture_frame {
    // The frame's octets in one piece, tile behind tile as its format says.
    const uint8_t *data;
    // How many there are.
    size_t len;
    // The frame's number in the stream, from 0.
    uint64_t number;
    // Its format, such as "bc1".
    const char *format;
    // Pixels in a row.
    uint32_t width;
    // Rows.
    uint32_t height;
    // Packets that did not come in time; their octets are the previous frame's.
    uint32_t packets_missing;
    // Nanoseconds from its first packet until all was in place.
    uint64_t took;
} rushes_texture_frame;

// Is given a received frame of texture video, lent for the call. It is called by the threads that
// receive, one call at a time.
typedef void (*rushes_texture_hook)(void *user, const struct rushes_texture_frame *frame);

// What a texture client has seen. Later versions may have more at the end.
typedef struct rushes_texture_client_counts {
    // Frames of which every packet came.
    uint64_t frames_whole;
    // Frames handed over of which something was concealed.
    uint64_t frames_damaged;
    // Frames of which nothing came in time, or before the end.
    uint64_t frames_lost;
    // Pictures that the server did not encode, because it could not keep up.
    uint64_t frames_dropped;
    // Packets put in place.
    uint64_t packets;
    // Packets that did not come in time.
    uint64_t packets_lost;
    // Octets received, headers of packets included.
    uint64_t octets;
    // From the picture being there, by the server's clock, until the frame was in place, in
    // nanoseconds: the median of the latest 1024; 0 if it is not known.
    uint64_t latency_median;
    // The same: the 99th percentile.
    uint64_t latency_p99;
} rushes_texture_client_counts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The name of a status, such as "closed"; "unknown" for a number that is none. Static: never to be
// freed.
const char *rushes_status_name(int32_t status);

// Why the last call of this thread that failed did so, in English; empty if none did. It stays
// as it is until the next failure on this thread, and is never to be freed.
const char *rushes_last_error_message(void);

// The library's version, such as "0.1.0". Static: never to be freed.
const char *rushes_version(void);

// Makes a context, to be closed by rushes_context_close(). `cname` is the canonical name that its
// streams tell their peers (1 to 255 octets), or NULL for a random one.
rushes_status rushes_context_new(const char *cname,
                                 struct rushes_context **context);

// Closes a context. Sessions made from it stay as they are.
rushes_status rushes_context_close(struct rushes_context *context);

// Makes a session with one peer, to be closed by rushes_session_close().
//
// `peer` is a host name, an IPv4 or IPv6 address or a multicast group: streams send there, and take
// datagrams from there only (from everybody in a group). NULL receives from anyone and sends to no
// one. `local` is the local address to bind to, or NULL for all.
rushes_status rushes_session_new(const struct rushes_context *context,
                                 const char *peer,
                                 const char *local,
                                 struct rushes_session **session);

// Closes a session. Its streams stay open until they are closed themselves.
rushes_status rushes_session_close(struct rushes_session *session);

// The session's short authentication string, once its first stream has agreed on a key by ZRTP;
// before, RUSHES_TIMEOUT and nothing is written. `size` is sizeof(rushes_sas).
rushes_status rushes_session_sas(const struct rushes_session *session,
                                 struct rushes_sas *sas,
                                 size_t size);

// Tells whether both ends found their short authentication strings equal. If they were, later
// sessions with the peer need no comparison, as long as both ends keep a cache
// (rushes_stream_options_zrtp_cache()); if not, somebody is in between: close the streams.
// RUSHES_ERROR_UNSUPPORTED if there is no string yet.
rushes_status rushes_session_verify_sas(const struct rushes_session *session, bool are_equal);

// Takes the next warning about the session's key agreement: a rushes_zrtp_warning, 0 if there is
// none.
rushes_status rushes_session_poll_zrtp_warning(const struct rushes_session *session,
                                               int32_t *warning);

// Makes the settings of streams of a session that carry `codec` (a rushes_codec); to be closed by
// rushes_stream_options_close(). They may be used for more than one stream.
rushes_status rushes_stream_options_new(const struct rushes_session *session,
                                        int32_t codec,
                                        struct rushes_stream_options **options);

// Closes settings. Streams opened with them stay as they are.
rushes_status rushes_stream_options_close(struct rushes_stream_options *options);

// Opens a stream, to be closed by rushes_stream_close(): checks every setting and binds the socket,
// unless a stream of the session on the same port has done so.
//
// With rushes_stream_options_zrtp() it waits until both ends have agreed on a key.
rushes_status rushes_stream_open(const struct rushes_stream_options *options,
                                 struct rushes_stream **stream);

// The local UDP port; 0, the default, takes a free one.
rushes_status rushes_stream_options_local_port(const struct rushes_stream_options *options,
                                               uint16_t port);

// The peer's UDP port. Without it the stream only receives.
rushes_status rushes_stream_options_remote_port(const struct rushes_stream_options *options,
                                                uint16_t port);

// The payload type to send and to accept, 0..=127; by default 96 for H.264, 97 for H.265, 98 for
// H.266, 111 for Opus, 99 for generic frames.
rushes_status rushes_stream_options_payload_type(const struct rushes_stream_options *options,
                                                 uint8_t payload_type);

// The stream's own SSRC; random by default.
rushes_status rushes_stream_options_ssrc(const struct rushes_stream_options *options,
                                         uint32_t ssrc);

// The one source to accept, believed from its first packet on; by default any. Streams on one port
// need it, or payload types of their own.
rushes_status rushes_stream_options_remote_ssrc(const struct rushes_stream_options *options,
                                                uint32_t ssrc);

// The one host to listen to, as a name or an address, and the port that its media comes from; 0 for any
// port. What others send is counted (`foreign`) and looked at no further. By default the session's
// peer, if it has one that is no multicast group, and otherwise anybody.
rushes_status rushes_stream_options_only_from(const struct rushes_stream_options *options,
                                              const char *host,
                                              uint16_t port);

// The rate of the timestamps in hertz, not 0; by default the codec's: 90000 for video, 48000 for
// Opus.
rushes_status rushes_stream_options_clock_rate(const struct rushes_stream_options *options,
                                               uint32_t hertz);

// The rate of the frames to send, `frames` in `seconds` (30000 in 1001), neither 0: for automatic
// timestamps and for pacing. By default timestamps are 1/30 s apart and pacing follows the calls.
rushes_status rushes_stream_options_frame_rate(const struct rushes_stream_options *options,
                                               uint32_t frames,
                                               uint32_t seconds);

// Sends all packets of a frame at once.
rushes_status rushes_stream_options_pacing_off(const struct rushes_stream_options *options);

// Spreads large frames over a share of the frame interval, 0.01 to 1; 0.5 by default.
rushes_status rushes_stream_options_pacing_share(const struct rushes_stream_options *options,
                                                 float share);

// Sends at this rate, in bits of UDP payload per second, however large a frame is; a stream with a
// rate of 0 cannot be opened.
rushes_status rushes_stream_options_pacing_rate(const struct rushes_stream_options *options,
                                                uint64_t bits_per_second);

// Whether each NAL unit is delivered as soon as it is whole; by default whole access units are.
rushes_status rushes_stream_options_deliver_units(const struct rushes_stream_options *options,
                                                  bool on);

// Whether NAL units are set apart by lengths of 4 octets, in frames pushed and pulled; by default by
// start codes (00 00 00 01).
rushes_status rushes_stream_options_length_prefixed(const struct rushes_stream_options *options,
                                                    bool on);

// Octets in the largest frame to accept, by default 64 MiB.
rushes_status rushes_stream_options_frame_len_max(const struct rushes_stream_options *options,
                                                  size_t octets);

// sprop-max-don-diff of H.265 and H.266 (RFC 7798 section 7.1): if not 0, the default, NAL units
// travel with their decoding order numbers, and are put into decoding order where they are received.
// Both sides must agree.
rushes_status rushes_stream_options_max_don_diff(const struct rushes_stream_options *options,
                                                 uint16_t max);

// sprop-depack-buf-nalus of H.265 (RFC 7798 section 7.1): the most NAL units sent before one that they
// follow in decoding order; 0, the default, if that is not known.
rushes_status rushes_stream_options_depack_buf_nalus(const struct rushes_stream_options *options,
                                                     uint16_t units);

// sprop-depack-buf-bytes of H.265 and H.266 (RFC 7798 section 7.1): octets of NAL units that wait for
// others at most; 0, the default, if that is not known.
rushes_status rushes_stream_options_depack_buf_bytes(const struct rushes_stream_options *options,
                                                     uint32_t octets);

// Nanoseconds that a missing packet is waited for, from the first packet after it: by default 50 ms;
// with recovery at least so long. It delays nothing while no packet is missing.
rushes_status rushes_stream_options_reorder_time(const struct rushes_stream_options *options,
                                                 uint64_t time);

// Nanoseconds that a frame may wait for packets that are asked for, by default 500 ms. They are waited
// for as long as four requests take; packets whose answer could not come in time are not asked for.
rushes_status rushes_stream_options_latency(const struct rushes_stream_options *options,
                                            uint64_t limit);

// Octets that unfinished frames and reorder windows of all sources may hold together, by default 64
// MiB more than the largest frame, which is the least.
rushes_status rushes_stream_options_memory(const struct rushes_stream_options *options,
                                           size_t octets);

// Packets that the reorder window spans at most (1..=16384), and octets that it holds; by default
// 512 (with recovery 4096) and 4 MiB.
rushes_status rushes_stream_options_reorder_window(const struct rushes_stream_options *options,
                                                   size_t packets,
                                                   size_t octets);

// Packets before a source is believed, by default 2; they are kept meanwhile. 1 believes at once.
rushes_status rushes_stream_options_probation(const struct rushes_stream_options *options,
                                              uint8_t packets);

// Sources that are followed at once, by default 16, and nanoseconds that one may be silent before
// its place may go to another, by default 30 s.
rushes_status rushes_stream_options_sources(const struct rushes_stream_options *options,
                                            size_t max,
                                            uint64_t timeout);

// The first sequence number and timestamp; random by default.
rushes_status rushes_stream_options_first_packet(const struct rushes_stream_options *options,
                                                 uint16_t sequence,
                                                 uint32_t timestamp);

// Octets in the largest IP packet to send, headers included: 100..=65535, by default 1500. What is
// received may be of any size.
rushes_status rushes_stream_options_mtu(const struct rushes_stream_options *options,
                                        size_t octets);

// Octets in the socket's send and receive buffers, by default 4 MiB each. The kernel may allow less.
rushes_status rushes_stream_options_socket_buffer(const struct rushes_stream_options *options,
                                                  size_t octets);

// Nanoseconds that rushes_stream_pull_frame() asks again and again before it sleeps, by default 0:
// it burns a core for a few microseconds of latency.
rushes_status rushes_stream_options_spin(const struct rushes_stream_options *options,
                                         uint64_t time);

// Nanoseconds to wait for room in the socket's send buffer before giving up, by default 1 s.
rushes_status rushes_stream_options_send_timeout(const struct rushes_stream_options *options,
                                                 uint64_t timeout);

// How datagrams are given to the kernel: "auto", the default, "gso", "sendmmsg" or "single".
rushes_status rushes_stream_options_send_path(const struct rushes_stream_options *options,
                                              const char *path);

// How datagrams are taken from the kernel: "auto", the default, "gro", "recvmmsg" or "single".
rushes_status rushes_stream_options_receive_path(const struct rushes_stream_options *options,
                                                 const char *path);

// Whether the kernel and the device read what is sent where it lies (MSG_ZEROCOPY); by default not.
// For real network devices and frames of 16 KiB and more.
rushes_status rushes_stream_options_zero_copy(const struct rushes_stream_options *options,
                                              bool on);

// The differentiated services code point of what is sent, 0..=63 (RFC 2474).
rushes_status rushes_stream_options_dscp(const struct rushes_stream_options *options,
                                         uint8_t dscp);

// The network interface to use, by name.
rushes_status rushes_stream_options_interface(const struct rushes_stream_options *options,
                                              const char *name);

// How far packets to the session's multicast group go, in hops (1 by default), and whether this host
// hears them too (it does by default). RUSHES_ERROR_ARGUMENT if the peer is no multicast group.
rushes_status rushes_stream_options_multicast(const struct rushes_stream_options *options,
                                              uint8_t hops,
                                              bool is_heard_here);

// Sends an empty datagram at once and whenever nothing was sent for `interval` nanoseconds, so that
// address translators keep the path to us open (RFC 6263); by default never. It needs a remote port,
// and a thread that pulls or waits.
rushes_status rushes_stream_options_keep_alive(const struct rushes_stream_options *options,
                                               uint64_t interval);

// Whether RTCP is sent and read; by default it is, on the port above the stream's.
rushes_status rushes_stream_options_rtcp(const struct rushes_stream_options *options, bool on);

// Whether RTCP shares the stream's port (RFC 5761); by default not. Both sides must agree.
rushes_status rushes_stream_options_rtcp_mux(const struct rushes_stream_options *options,
                                             bool on);

// The local port for RTCP, where it is not the one above the stream's.
rushes_status rushes_stream_options_rtcp_local_port(const struct rushes_stream_options *options,
                                                    uint16_t port);

// The peer's port for RTCP, where it is not the one above its stream's.
rushes_status rushes_stream_options_rtcp_remote_port(const struct rushes_stream_options *options,
                                                     uint16_t port);

// The session's bandwidth in bits per second, of which RTCP takes 5 % at most; by default
// 10 Mbit/s. All participants should be told the same.
rushes_status rushes_stream_options_session_bandwidth(const struct rushes_stream_options *options,
                                                      uint64_t bits_per_second);

// Whether requests go out at once (RFC 4585) rather than with the next report; by default only with
// recovery.
rushes_status rushes_stream_options_feedback(const struct rushes_stream_options *options,
                                             bool on);

// Whether feedback may go without a report before it (RFC 5506); by default not. Both sides must
// agree.
rushes_status rushes_stream_options_reduced_size(const struct rushes_stream_options *options,
                                                 bool on);

// Whether the sender is told when each packet came (RFC 8888), as RUSHES_RTCP_EVENT_KIND_ARRIVALS;
// by default not.
rushes_status rushes_stream_options_report_arrivals(const struct rushes_stream_options *options,
                                                    bool on);

// Something that reports say of this participant besides its canonical name; `item` is a
// rushes_sdes_item but the first, the text at most 255 octets.
rushes_status rushes_stream_options_describe(const struct rushes_stream_options *options,
                                             int32_t item,
                                             const char *text);

// Whether lost packets are asked for and sent again, by a rushes_recovery_mode; by default they are
// not. Both sides must agree, and need RTCP. `payload_type` is that of RUSHES_RECOVERY_MODE_RTX; 0
// lets it follow from the stream's (127 for 96, 126 for 97, and so on).
rushes_status rushes_stream_options_recovery(const struct rushes_stream_options *options,
                                             int32_t mode,
                                             uint8_t payload_type);

// The SSRC of the retransmissions that the stream sends, which must not be that of its media;
// random by default. Only with RUSHES_RECOVERY_MODE_RTX.
rushes_status rushes_stream_options_rtx_ssrc(const struct rushes_stream_options *options,
                                             uint32_t ssrc);

// The one source to accept retransmissions of, which must not be that of the media; by default
// any. Only with RUSHES_RECOVERY_MODE_RTX.
rushes_status rushes_stream_options_remote_rtx_ssrc(const struct rushes_stream_options *options,
                                                    uint32_t ssrc);

// Octets of sent packets that are kept to be sent again, by default 4 MiB; only with recovery.
rushes_status rushes_stream_options_history(const struct rushes_stream_options *options,
                                            size_t octets);

// Secures the stream with a master key that both ends have, the same both ways: for streams whose
// media goes one way and whose reports come back. `suite` is a rushes_srtp_suite; `key` is the key
// with its salt behind it, `len` octets, which are copied.
rushes_status rushes_stream_options_srtp(const struct rushes_stream_options *options,
                                         int32_t suite,
                                         const uint8_t *key,
                                         size_t len);

// Secures the stream with master keys of their own for what is sent and for what is received, each
// of `len` octets: for streams whose media goes both ways.
rushes_status rushes_stream_options_srtp_separate(const struct rushes_stream_options *options,
                                                  int32_t suite,
                                                  const uint8_t *send,
                                                  const uint8_t *receive,
                                                  size_t len);

// Lets both ends agree on keys (ZRTP, RFC 6189) when the stream is opened, on its own port. Without a
// remote port this end waits for whoever speaks to it. The first stream of a session decides how.
rushes_status rushes_stream_options_zrtp(const struct rushes_stream_options *options);

// A file for this end's name and what is kept of earlier sessions, so that strings that were
// compared once need not be compared again. Turns ZRTP on, as the following do.
rushes_status rushes_stream_options_zrtp_cache(const struct rushes_stream_options *options,
                                               const char *path);

// Nanoseconds that rushes_stream_open() waits for the peer, by default 30 s.
rushes_status rushes_stream_options_zrtp_timeout(const struct rushes_stream_options *options,
                                                 uint64_t timeout);

// Whether this end never begins an agreement; by default it may.
rushes_status rushes_stream_options_zrtp_passive(const struct rushes_stream_options *options,
                                                 bool on);

// A secret that both ends got by other means, `len` octets, which are copied.
rushes_status rushes_stream_options_zrtp_aux_secret(const struct rushes_stream_options *options,
                                                    const uint8_t *secret,
                                                    size_t len);

// Which peers keys are agreed on with, a rushes_zrtp_policy. By default any, or with a cache any but
// one that was compared with and has lost the secret of that session.
rushes_status rushes_stream_options_zrtp_policy(const struct rushes_stream_options *options,
                                                int32_t policy);

// Sets a function to be told the short authentication string when a stream opened with these
// settings has agreed on its keys, on the thread that opens it, before the stream is there. `user`
// is passed to it, and to `release` (may be NULL) once it will not be called any more.
rushes_status rushes_stream_options_zrtp_sas_hook(const struct rushes_stream_options *options,
                                                  rushes_sas_hook hook,
                                                  void *user,
                                                  rushes_release release);

// Sends under another master key from the next packet and report on; the peer should accept it
// already. `suite` must be the stream's; `mki` is the key's identifier, NULL and 0 for none. Any
// thread may, while others push.
rushes_status rushes_stream_set_send_key(const struct rushes_stream *stream,
                                         int32_t suite,
                                         const uint8_t *key,
                                         size_t len,
                                         const uint8_t *mki,
                                         size_t mki_len);

// Accepts packets and reports under another master key too, from now on. As
// rushes_stream_set_send_key().
rushes_status rushes_stream_add_receive_key(const struct rushes_stream *stream,
                                            int32_t suite,
                                            const uint8_t *key,
                                            size_t len,
                                            const uint8_t *mki,
                                            size_t mki_len);

// Expects the next packet of `source` in the round `roc` (RFC 3711 section 3.3.1): needed to join a
// secured stream that has run for more than 65536 packets.
rushes_status rushes_stream_set_roll_over_counter(const struct rushes_stream *stream,
                                                  uint32_t source,
                                                  uint32_t roc);

// The roll-over counter of what this end sends, for those who join late; 0 before the first packet
// and if the stream is not secured.
rushes_status rushes_stream_roll_over_counter(const struct rushes_stream *stream,
                                              uint32_t *roc);

// Begins to open a stream with rushes_stream_options_zrtp(): says Hello to the peer, or waits for
// one. To be closed by rushes_opening_close(), also when the stream is there.
rushes_status rushes_stream_begin(const struct rushes_stream_options *options,
                                  struct rushes_opening **opening);

// The UDP port of the stream's socket.
rushes_status rushes_opening_local_port(const struct rushes_opening *opening, uint16_t *port);

// Waits until the keys are agreed on, at most for `timeout` nanoseconds; RUSHES_TIMEOUT if they are
// not by then, and it may be called again. The stream is to be closed by rushes_stream_close().
rushes_status rushes_opening_wait(const struct rushes_opening *opening,
                                  uint64_t timeout,
                                  struct rushes_stream **stream);

// Closes an opening; if there is no stream yet there will be none. A wait in progress on another thread
// ends within 0.1 s with RUSHES_ERROR_CLOSED.
rushes_status rushes_opening_close(struct rushes_opening *opening);

// Closes a stream: says goodbye, ends its hooks and gives its port back.
//
// When it returns no hook of the stream is running or will be called. On other threads a pull or a
// wait in progress ends within 0.1 s with RUSHES_ERROR_CLOSED, and a push goes on to its end, which
// then gives the port back. It may be called from the stream's receive hook, or from the event hook
// beside one, and that is the last call of either. From an RTCP hook, or an event hook of a stream
// that is pulled, it is RUSHES_ERROR_BUSY and the stream stays open. Two hooks must not close each
// other's streams at the same time: each would wait for the other.
rushes_status rushes_stream_close(struct rushes_stream *stream);

// Sends one frame: an access unit with start codes, an Opus packet, or whatever the stream's codec
// calls a frame. Returns when the kernel has all of it; the octets are the caller's again, and
// unchanged.
//
// `timestamp` is the sampling instant in ticks of the stream's clock rate; with NULL it follows the
// frame before by one frame interval. With pacing (rushes_stream_options_pacing_share()) a large
// frame takes its share of the frame interval. Any thread may push; frames that several push at once
// go out one after the other.
rushes_status rushes_stream_push_frame(const struct rushes_stream *stream,
                                       const uint8_t *data,
                                       size_t len,
                                       const uint32_t *timestamp);

// As rushes_stream_push_frame(), of a frame that was captured `age` nanoseconds ago: the receiver
// learns it from reports and presents streams of several devices in step.
rushes_status rushes_stream_push_frame_captured(const struct rushes_stream *stream,
                                                const uint8_t *data,
                                                size_t len,
                                                const uint32_t *timestamp,
                                                uint64_t age);

// As rushes_stream_push_frame(), of a frame in `count` parts that lie in different places, such as
// parameter sets and a slice. More than one part are copied once, into memory that the stream keeps.
rushes_status rushes_stream_push_frame_parts(const struct rushes_stream *stream,
                                             const struct rushes_part *parts,
                                             size_t count,
                                             const uint32_t *timestamp);

// Sends one packet without payload, from which receivers learn of packets lost before it: good at
// the end of a stream.
rushes_status rushes_stream_send_keep_alive(const struct rushes_stream *stream);

// Waits for `time` nanoseconds, answering requests and reports meanwhile: what who only sends should
// do between frames. Others may push meanwhile.
rushes_status rushes_stream_wait(const struct rushes_stream *stream,
                                 uint64_t time);

// Waits for the next frame, at most for `timeout` nanoseconds (RUSHES_FOREVER: until the stream is
// closed); with 0 it takes what is there. RUSHES_TIMEOUT, and NULL in `*frame`, if none came.
//
// Frames of one source come in order, each whole, each once. The frame is lent until
// rushes_frame_release(). One thread pulls at a time: another gets RUSHES_ERROR_BUSY.
// RUSHES_ERROR_HOOKED if the frames go to a hook.
rushes_status rushes_stream_pull_frame(const struct rushes_stream *stream,
                                       uint64_t timeout,
                                       struct rushes_frame **frame);

// Gives every frame from now on to `hook`, on one thread of the stream's own. `user` is passed to
// it, and to `release` (may be NULL) once the hook will not be called any more; if this fails,
// `release` is called at once. RUSHES_ERROR_HOOKED if there is a hook already.
//
// The hook may call every function of the library, also rushes_stream_close() of its own stream. It
// must not throw: that ends the process.
rushes_status rushes_stream_on_frame(const struct rushes_stream *stream,
                                     rushes_frame_hook hook,
                                     void *user,
                                     rushes_release release);

// Sets a function to be told of packets lost, frames dropped and sources that come and go, on the
// thread that pulls or runs the receive hook, and of a socket that the latter cannot read; to be set
// before rushes_stream_on_frame(). `user` and `release` are as there. Called from within a pull, it
// may push and ask for reports; a call that would have to wait for another thread is
// RUSHES_ERROR_BUSY then.
rushes_status rushes_stream_on_event(const struct rushes_stream *stream,
                                     rushes_event_hook hook,
                                     void *user,
                                     rushes_release release);

// The stream's own synchronisation source. A collision may change it.
rushes_status rushes_stream_ssrc(const struct rushes_stream *stream, uint32_t *ssrc);

// The UDP port of the stream's socket.
rushes_status rushes_stream_local_port(const struct rushes_stream *stream, uint16_t *port);

// The local address and port of the stream's socket as a text, such as "127.0.0.1:5004", into `size`
// octets; 64 are enough.
rushes_status rushes_stream_local_address(const struct rushes_stream *stream,
                                          char *text,
                                          size_t size);

// The timestamp of the next frame that is given none, in ticks.
rushes_status rushes_stream_next_timestamp(const struct rushes_stream *stream,
                                           uint32_t *timestamp);

// Looks at a frame. `size` is sizeof(rushes_frame_view). Any thread may.
rushes_status rushes_frame_look(const struct rushes_frame *frame,
                                struct rushes_frame_view *view,
                                size_t size);

// Nanoseconds since the frame's last datagram came in.
rushes_status rushes_frame_age(const struct rushes_frame *frame, uint64_t *age);

// Keeps a frame that a hook was given: from now on it is the application's, and stays until
// rushes_frame_release(). Nothing is copied. To be called within the hook; frames that were pulled
// are kept already.
rushes_status rushes_frame_keep(const struct rushes_frame *frame);

// Gives a frame's memory back to the stream, also when that is closed. Any thread may. Its octets
// are not to be looked at any more.
rushes_status rushes_frame_release(struct rushes_frame *frame);

// Sets a function to be told of every report and request, on whichever thread reads the stream's
// port: the one that pulls, pushes, waits or runs the receive hook. Until it is set they wait, the
// last 256 of them. It takes the place of an earlier one. `user` is passed to it, and to `release`
// (may be NULL) once it will not be called any more.
//
// The hook may ask for reports and push to other streams. A call that would have to wait for
// another, such as pushing to the stream whose push called the hook, is RUSHES_ERROR_BUSY: leave it
// to the thread that pushes. It must not throw: that ends the process.
rushes_status rushes_stream_on_rtcp(const struct rushes_stream *stream,
                                    rushes_rtcp_hook hook,
                                    void *user,
                                    rushes_release release);

// Asks every media source for a key frame; `request` is a rushes_key_frame. With feedback
// (rushes_stream_options_feedback()) it goes at once, otherwise with the next report, up to some
// seconds later. Any thread may.
rushes_status rushes_stream_request_key_frame(const struct rushes_stream *stream,
                                              int32_t request);

// Asks the media source `ssrc` to keep to a bit rate (TMMBR, RFC 5104), each packet counted with
// `overhead` octets of header (0..=511).
rushes_status rushes_stream_request_bit_rate(const struct rushes_stream *stream,
                                             uint32_t ssrc,
                                             uint64_t bits_per_second,
                                             uint16_t overhead);

// Tells `count` media sources what the path is estimated to carry together (REMB).
rushes_status rushes_stream_send_estimate(const struct rushes_stream *stream,
                                          uint64_t bits_per_second,
                                          const uint32_t *sources,
                                          size_t count);

// Sends an application's own packet with the next report: `subtype` is 0..=31, `name` has four ASCII
// characters, and zeros fill the `len` octets of data up to a multiple of four. RUSHES_ERROR_BUSY if
// 64 such packets wait already.
rushes_status rushes_stream_send_app(const struct rushes_stream *stream,
                                     uint8_t subtype,
                                     const char *name,
                                     const uint8_t *data,
                                     size_t len);

// Leaves: says BYE, with a reason or NULL, at once in sessions of fewer than 50. Closing the stream
// does so too.
rushes_status rushes_stream_send_bye(const struct rushes_stream *stream,
                                     const char *reason);

// The stream's counters; `size` is sizeof(rushes_statistics). Any thread may ask, while others push
// and pull.
rushes_status rushes_stream_statistics(const struct rushes_stream *stream,
                                       struct rushes_statistics *statistics,
                                       size_t size);

// Datagrams that were of no use for the reason called `reason`, such as "duplicate", "late" or
// "authentication failed"; 0 for a reason that there is not.
rushes_status rushes_stream_discarded(const struct rushes_stream *stream,
                                      const char *reason,
                                      uint64_t *count);

// The source at `index` of those that the stream follows; RUSHES_ERROR_ARGUMENT if there are not so
// many. `size` is sizeof(rushes_source).
rushes_status rushes_stream_source(const struct rushes_stream *stream,
                                   size_t index,
                                   struct rushes_source *source,
                                   size_t size);

// The peer at `index` of those that the stream's RTCP knows; RUSHES_ERROR_ARGUMENT if there are not
// so many. `size` is sizeof(rushes_peer).
rushes_status rushes_stream_peer(const struct rushes_stream *stream,
                                 size_t index,
                                 struct rushes_peer *peer,
                                 size_t size);

// When a frame of the source `ssrc` was captured, by the sender's wall clock: as an NTP time stamp
// (RFC 5905), the same clock for all streams of one sender. RUSHES_TIMEOUT before its first sender
// report.
rushes_status rushes_stream_capture_time(const struct rushes_stream *stream,
                                         uint32_t ssrc,
                                         uint32_t timestamp,
                                         uint64_t *ntp);

// Nanoseconds since a frame of the source `ssrc` was captured, by the sender's wall clock and ours;
// negative if the sender's is ahead. RUSHES_TIMEOUT before its first sender report, and if the
// clocks are an hour or more apart: some senders do not report wall-clock time.
rushes_status rushes_stream_capture_latency(const struct rushes_stream *stream,
                                            uint32_t ssrc,
                                            uint32_t timestamp,
                                            int64_t *latency);

// Makes settings of texture servers and clients, to be closed by rushes_texture_options_close(). They
// may be used more than once.
rushes_status rushes_texture_options_new(struct rushes_texture_options **options);

// Closes settings. What was made with them stays as it is.
rushes_status rushes_texture_options_close(struct rushes_texture_options *options);

// The format that a server encodes to for clients that do not wish otherwise, or that a client
// wishes: "bc1", "bc3", "ycocg-bc3", "rgb24", "rgba8", "rgb565", "yuv420", "yuv422", "ycocg420",
// "etc1", "etc2", "astc-4x4", and so on. By default the source's own.
rushes_status rushes_texture_options_format(const struct rushes_texture_options *options,
                                            const char *format);

// How tiles travel: "udp", "tcp" or "rtp". By default the client lets the server choose, which chooses
// UDP. With keys it is RTP.
rushes_status rushes_texture_options_transport(const struct rushes_texture_options *options,
                                               const char *transport);

// Tiles of a frame, 1 to 64: each has a socket and a thread on both sides. By default the client lets
// the server choose, which takes as many as it has processors, but no more than 8.
rushes_status rushes_texture_options_units(const struct rushes_texture_options *options,
                                           uint8_t units);

// When a server takes pictures from its source: a rushes_texture_timing; live by default.
rushes_status rushes_texture_options_timing(const struct rushes_texture_options *options,
                                            int32_t timing);

// Whether a server's source begins again at its end; by default its end ends the sessions.
rushes_status rushes_texture_options_loops(const struct rushes_texture_options *options,
                                           bool on);

// Bits per second at which all tiles for one client are sent together; 0, the default, does not pace
// UDP, and RTP at 10 Gbit/s.
rushes_status rushes_texture_options_bit_rate(const struct rushes_texture_options *options,
                                              uint64_t bits_per_second);

// Clients of one host that a server serves at once, 4 by default. A host is an IPv4 address, or an IPv6
// network of 64 bits.
rushes_status rushes_texture_options_clients_per_host_max(const struct rushes_texture_options *options,
                                                          size_t clients);

// Clients that a server serves at once, 8 by default.
rushes_status rushes_texture_options_clients_max(const struct rushes_texture_options *options,
                                                 size_t clients);

// Frames that a client has memory for, 2 to 8: 3 by default.
rushes_status rushes_texture_options_slots(const struct rushes_texture_options *options,
                                           size_t slots);

// Secures sessions with a key that both ends have; as rushes_stream_options_srtp(). Both show that
// they have it before anything is offered, and the control connection is sealed under fresh keys,
// from which those of the media follow.
rushes_status rushes_texture_options_srtp(const struct rushes_texture_options *options,
                                          int32_t suite,
                                          const uint8_t *key,
                                          size_t len);

// Lets both ends agree on keys (ZRTP). `cache` is a file for what is kept of earlier sessions, or
// NULL. The control connection is clear until the keys are agreed on, and sealed from then on.
rushes_status rushes_texture_options_zrtp(const struct rushes_texture_options *options,
                                          const char *cache);

// Listens on `local` ("127.0.0.1:7000"; port 0 takes a free one) and serves clients until it is
// closed by rushes_texture_server_close(). `source` is a file (Y4M, KTX 2.0, PNG), a folder of PNG
// images or a test pattern, "pattern:3840x2160@60". `options` may be NULL.
rushes_status rushes_texture_serve(const char *local,
                                   const char *source,
                                   const struct rushes_texture_options *options,
                                   struct rushes_texture_server **server);

// As rushes_texture_serve(), with pictures that the application makes: of `format` ("rgba8"), `width`
// by `height` pixels, `frames` in `seconds`. `hook` is called for each; `user` is passed to it, and to
// `release` (may be NULL) once it will not be called any more.
rushes_status rushes_texture_serve_from(const char *local,
                                        const char *format,
                                        uint32_t width,
                                        uint32_t height,
                                        uint32_t frames,
                                        uint32_t seconds,
                                        rushes_texture_source_hook hook,
                                        void *user,
                                        rushes_release release,
                                        const struct rushes_texture_options *options,
                                        struct rushes_texture_server **server);

// The TCP port that a server listens on.
rushes_status rushes_texture_server_port(const struct rushes_texture_server *server,
                                         uint16_t *port);

// What a server has done so far; `size` is sizeof(rushes_texture_server_counts).
rushes_status rushes_texture_server_statistics(const struct rushes_texture_server *server,
                                               struct rushes_texture_server_counts *statistics,
                                               size_t size);

// Encodes to another format from now on. A client that cannot show it keeps what it has.
rushes_status rushes_texture_server_set_format(const struct rushes_texture_server *server,
                                               const char *format);

// The short authentication string of the client at `index` of those whose keys were agreed on by
// ZRTP; RUSHES_TIMEOUT if there are not so many (yet). `size` is sizeof(rushes_sas).
rushes_status rushes_texture_server_sas(const struct rushes_texture_server *server,
                                        size_t index,
                                        struct rushes_sas *sas,
                                        size_t size);

// Closes a server: its clients are told, its threads have ended when it returns. From the
// source's own hook it is RUSHES_ERROR_BUSY and the server stays open.
rushes_status rushes_texture_server_close(struct rushes_texture_server *server);

// Connects to the server at `address` ("192.0.2.7:7000") and returns when frames are on their way; to
// be closed by rushes_texture_client_close(). `options` may be NULL.
//
// `hook` is given every frame, in order, in memory into which it was received; it must not throw.
// `user` is passed to it, and to `release` (may be NULL) once it will not be called any more.
rushes_status rushes_texture_connect(const char *address,
                                     const struct rushes_texture_options *options,
                                     rushes_texture_hook hook,
                                     void *user,
                                     rushes_release release,
                                     struct rushes_texture_client **client);

// Waits until the stream has ended, at most for `timeout` nanoseconds; RUSHES_TIMEOUT if it has not.
// When it has, it is RUSHES_ERROR_ENDED, and the message says how.
rushes_status rushes_texture_client_wait(const struct rushes_texture_client *client,
                                         uint64_t timeout);

// What a client has seen so far; `size` is sizeof(rushes_texture_client_counts).
rushes_status rushes_texture_client_statistics(const struct rushes_texture_client *client,
                                               struct rushes_texture_client_counts *statistics,
                                               size_t size);

// The short authentication string, if keys were agreed on by ZRTP; else RUSHES_TIMEOUT. `size` is
// sizeof(rushes_sas).
rushes_status rushes_texture_client_sas(const struct rushes_texture_client *client,
                                        struct rushes_sas *sas,
                                        size_t size);

// Closes a client: the server is told, and the hook is not called any more when it returns. From the
// hook itself it is RUSHES_ERROR_BUSY and the client stays open. Two clients' hooks must not close
// each other's client at the same time: each would wait for the other.
rushes_status rushes_texture_client_close(struct rushes_texture_client *client);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RUSHES_H */
