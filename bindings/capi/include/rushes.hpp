// Rushes: video and audio between machines in real time. C++17 or later, header only, over
// rushes.h.
//
// Objects own their handles: they are movable, not copyable, and close the handle on destruction.
// If the handle cannot be closed, for example from its own hook, destruction ends the process
// (std::terminate). Errors are thrown as rushes::error. Frames are lent by the stream, and return
// to it when the frame object is destroyed.
//
// Threads: every function may be called on any thread, as rushes.h documents; an object itself must
// not be moved or destroyed while another thread uses it. Hooks are called by the library's threads
// or within calls; a hook that throws ends the process (std::terminate).
#ifndef RUSHES_HPP
#define RUSHES_HPP

#include "rushes.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

namespace rushes {

// A view of contiguous elements that it does not own, for C++17. If the standard library has
// std::span (C++20), the two convert to each other. Read-only octets (rushes::bytes) can also be
// made from std::byte: from a pointer and a length, a std::span, a vector or an array.
template <class T> class span {
    // Whether a pointer `P` points to octets of another type than std::uint8_t.
    template <class P>
    static constexpr bool is_byte = std::is_same_v<T, const std::uint8_t> &&
                                    std::is_convertible_v<P, const std::byte *>;

public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class C, class = std::enable_if_t<std::is_convertible_v<
                           decltype(std::declval<C &>().data()), T *>>>
    constexpr span(C &&container) noexcept : data_(container.data()), size_(container.size()) {}
    template <class P, class = std::enable_if_t<is_byte<P *>>>
    span(P *data, std::size_t size) noexcept
        : data_(reinterpret_cast<T *>(data)), size_(size) {}
    template <class C, class = std::enable_if_t<is_byte<decltype(std::declval<C &>().data())>>,
              class = void>
    span(C &&container) noexcept : span(container.data(), container.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t n) const noexcept { return data_[n]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace rushes

#ifdef __cpp_lib_ranges
// The elements must outlive the view.
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<rushes::span<T>> = true;
#endif

namespace rushes {

// Read-only octets.
using bytes = span<const std::uint8_t>;

// A duration; milliseconds and so on convert to it.
using duration = std::chrono::nanoseconds;

// A timeout without limit.
inline constexpr duration forever = duration::max();

// An error of the library: what() describes it, code() is a rushes_status below 0.
class error : public std::runtime_error {
public:
    error(rushes_status code, const char *message) : std::runtime_error(message), code_(code) {}
    rushes_status code() const noexcept { return code_; }

private:
    rushes_status code_;
};

namespace detail {

// Throws the error of a status; returns false on RUSHES_TIMEOUT.
inline bool check(rushes_status status) {
    if (status < 0) throw error(status, rushes_last_error_message());
    return status != RUSHES_TIMEOUT;
}

// Returns all results of get(index, place), up to the first index that is out of range.
template <class T, class F> std::vector<T> collect(F &&get) {
    std::vector<T> all;
    for (;;) {
        T one{};
        const rushes_status status = get(all.size(), &one);
        if (status == RUSHES_ERROR_ARGUMENT) return all;
        check(status);
        all.push_back(one);
    }
}

inline std::uint64_t nanos(duration time) noexcept {
    if (time == forever) return RUSHES_FOREVER;
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

// A handle that is closed on destruction.
template <class T, rushes_status (*Close)(T *)> class handle {
public:
    handle() noexcept = default;
    explicit handle(T *raw) noexcept : raw_(raw) {}
    handle(handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle() { reset(); }

    T *get() const noexcept { return raw_; }
    T **place() noexcept {
        reset();
        return &raw_;
    }
    // The handle's number stays stored: other threads may still use it, but it is invalid from now
    // on.
    void close() {
        if (!raw_) return;
        const rushes_status status = Close(raw_);
        if (status != RUSHES_ERROR_CLOSED) check(status);
    }

private:
    // If the handle stayed open, its hooks would use destroyed objects.
    void reset() noexcept {
        if (raw_ && Close(std::exchange(raw_, nullptr)) == RUSHES_ERROR_BUSY) std::terminate();
    }
    T *raw_ = nullptr;
};

template <class F> void release(void *user) noexcept { delete static_cast<F *>(user); }

// Copies a function object to memory for a hook's `user`; the library releases it.
template <class F> void *store_hook(F &&hook) {
    return new std::decay_t<F>(std::forward<F>(hook));
}

} // namespace detail

// The library's version.
inline std::string version() { return rushes_version(); }

enum class codec : std::int32_t {
    h264 = RUSHES_CODEC_H264,
    h265 = RUSHES_CODEC_H265,
    h266 = RUSHES_CODEC_H266,
    opus = RUSHES_CODEC_OPUS,
    generic = RUSHES_CODEC_GENERIC,
    /** KLV metadata, RFC 6597. */
    klv = RUSHES_CODEC_KLV,
    vp8 = RUSHES_CODEC_VP8,
    vp9 = RUSHES_CODEC_VP9,
    /** A frame is a temporal unit. */
    av1 = RUSHES_CODEC_AV1,
    /** RFC 4175; needs stream_options::raw_video. */
    uncompressed = RUSHES_CODEC_UNCOMPRESSED,
    /** Samples, of each channel in turn, in network byte order. */
    l16 = RUSHES_CODEC_L16,
    l24 = RUSHES_CODEC_L24,
    pcmu = RUSHES_CODEC_PCMU,
    pcma = RUSHES_CODEC_PCMA,
};

// The size, sampling (a rushes_sampling), scan (a rushes_scan) and depth of uncompressed video.
using raw_video = rushes_raw_video;

// Returns the octets of a frame of uncompressed video, or of a field of interlaced video.
inline std::size_t frame_len(const raw_video &video) {
    std::size_t len = 0;
    detail::check(rushes_raw_video_frame_len(&video, sizeof video, &len));
    return len;
}

// The meaning of an element of RTP header extensions.
enum class extension : std::int32_t {
    // The capture time of a frame, as browsers send it.
    abs_capture_time = RUSHES_EXTENSION_ABS_CAPTURE_TIME,
    // The same (RFC 6051).
    ntp64 = RUSHES_EXTENSION_NTP64,
    ntp56 = RUSHES_EXTENSION_NTP56,
};

enum class srtp_suite : std::int32_t {
    aes_cm_128_hmac_sha1_80 = RUSHES_SRTP_SUITE_AES_CM128_HMAC_SHA1_TAG80,
    aes_cm_128_hmac_sha1_32 = RUSHES_SRTP_SUITE_AES_CM128_HMAC_SHA1_TAG32,
    aes_cm_192_hmac_sha1_80 = RUSHES_SRTP_SUITE_AES_CM192_HMAC_SHA1_TAG80,
    aes_cm_192_hmac_sha1_32 = RUSHES_SRTP_SUITE_AES_CM192_HMAC_SHA1_TAG32,
    aes_cm_256_hmac_sha1_80 = RUSHES_SRTP_SUITE_AES_CM256_HMAC_SHA1_TAG80,
    aes_cm_256_hmac_sha1_32 = RUSHES_SRTP_SUITE_AES_CM256_HMAC_SHA1_TAG32,
    aead_aes_128_gcm = RUSHES_SRTP_SUITE_AEAD_AES128_GCM,
    aead_aes_256_gcm = RUSHES_SRTP_SUITE_AEAD_AES256_GCM,
    null_hmac_sha1_80 = RUSHES_SRTP_SUITE_NULL_HMAC_SHA1_TAG80,
    aes_cm_128_null_auth = RUSHES_SRTP_SUITE_AES_CM128_NULL_AUTH,
};

enum class zrtp_policy : std::int32_t {
    allow = RUSHES_ZRTP_POLICY_ALLOW,
    refuse_changed = RUSHES_ZRTP_POLICY_REFUSE_CHANGED,
    refuse_unverified = RUSHES_ZRTP_POLICY_REFUSE_UNVERIFIED,
    require_secret = RUSHES_ZRTP_POLICY_REQUIRE_SECRET,
};

enum class recovery : std::int32_t {
    off = RUSHES_RECOVERY_MODE_OFF,
    rtx = RUSHES_RECOVERY_MODE_RTX,
    verbatim = RUSHES_RECOVERY_MODE_VERBATIM,
};

// Whether repair packets are sent, and how many; see rushes_fec_mode.
enum class fec : std::int32_t {
    receive = RUSHES_FEC_MODE_RECEIVE,
    percent = RUSHES_FEC_MODE_PERCENT,
    by_loss = RUSHES_FEC_MODE_BY_LOSS,
};

// The format of repair packets; see rushes_fec_format.
enum class fec_format : std::int32_t {
    flexfec = RUSHES_FEC_FORMAT_FLEXFEC,
    flexfec_03 = RUSHES_FEC_FORMAT_FLEXFEC03,
    ulpfec = RUSHES_FEC_FORMAT_ULPFEC,
};

// How packets are marked with rate control; see rushes_rate_mark.
enum class rate_mark : std::int32_t {
    none = RUSHES_RATE_MARK_NONE,
    l4s = RUSHES_RATE_MARK_L4S,
    classic = RUSHES_RATE_MARK_CLASSIC,
};

// The severity of a message; see rushes_log_level.
enum class log_level : std::int32_t {
    error = RUSHES_LOG_LEVEL_ERROR,
    warning = RUSHES_LOG_LEVEL_WARNING,
    info = RUSHES_LOG_LEVEL_INFO,
    debug = RUSHES_LOG_LEVEL_DEBUG,
    trace = RUSHES_LOG_LEVEL_TRACE,
};

enum class key_frame : std::int32_t {
    picture_loss = RUSHES_KEY_FRAME_PICTURE_LOSS,
    full_intra = RUSHES_KEY_FRAME_FULL_INTRA,
};

// The result of a SAS hook.
enum class sas_answer : std::int32_t { differs = -1, not_compared = 0, equal = 1 };

// The short authentication string of a session.
struct sas {
    std::string text;
    bool is_verified;
};

// Valid during the call of a hook; `kind` is a rushes_event_kind or rushes_rtcp_event_kind.
using event = rushes_event;
using rtcp_event = rushes_rtcp_event;
using texture_frame = rushes_texture_frame;
using statistics = rushes_statistics;
using rtcp_statistics = rushes_rtcp_statistics;
using read_options = rushes_read_options;
using peer = rushes_peer;
using peer_options = rushes_peer_options;
using source = rushes_source;

// Calls hook(log_level, std::string_view text) for every message of the library up to the level
// `most` from now on. Replaces an earlier hook. See rushes_set_log(): the hook is called on any
// thread, one call at a time, and must use no object and no function of the library.
template <class F> void set_log(log_level most, F &&hook) {
    using function = std::decay_t<F>;
    detail::check(rushes_set_log(
        static_cast<std::int32_t>(most),
        [](void *user, std::int32_t level, const char *text) noexcept {
            (*static_cast<function *>(user))(static_cast<log_level>(level), std::string_view(text));
        },
        detail::store_hook(std::forward<F>(hook)), detail::release<function>));
}
// Removes the hook; nothing is logged any more.
inline void set_log_off() {
    detail::check(rushes_set_log(RUSHES_LOG_LEVEL_OFF, nullptr, nullptr, nullptr));
}

// The packets of a frame that carry an element of header extensions.
enum class placement : std::int32_t {
    first = RUSHES_PLACEMENT_FIRST,
    last = RUSHES_PLACEMENT_LAST,
    every = RUSHES_PLACEMENT_EVERY,
};

// An element of header extensions for the packets of a frame.
struct element {
    placement where;
    std::uint8_t id;
    bytes data;
};

// A received frame, lent by its stream until this object is destroyed.
class frame {
public:
    explicit frame(rushes_frame *raw) : handle_(raw), view_{} {
        detail::check(rushes_frame_look(raw, &view_, sizeof view_));
    }
    // The octets: NAL units with start codes, or one frame of another format.
    bytes data() const noexcept { return {view_.data, view_.len}; }
    std::size_t size() const noexcept { return view_.len; }
    // The sampling instant in ticks of the stream's clock rate.
    std::uint32_t timestamp() const noexcept { return view_.timestamp; }
    std::uint32_t ssrc() const noexcept { return view_.ssrc; }
    // The number of NAL units in the frame; 1 for formats without NAL units.
    std::uint32_t units() const noexcept { return view_.units; }
    // Whether the frame ends an access unit.
    bool marker() const noexcept { return view_.marker; }
    // When the frame was captured by its sender's wall clock, as an NTP time of 64 bits, if its
    // packets carry that (stream_options::extension).
    std::optional<std::uint64_t> capture_time() const noexcept {
        if (!view_.has_capture_time) return {};
        return view_.capture_time;
    }
    // The ranges of octets that did not arrive, as pairs of a begin and an end; none by default.
    std::vector<std::pair<std::size_t, std::size_t>> missing() const {
        std::vector<std::pair<std::size_t, std::size_t>> ranges(view_.missing);
        for (std::size_t n = 0; n < ranges.size(); ++n)
            detail::check(rushes_frame_missing(handle_.get(), n, &ranges[n].first,
                                               &ranges[n].second));
        return ranges;
    }
    // Whether it is the second field of a frame of interlaced uncompressed video.
    bool is_second_field() const noexcept { return view_.is_second_field; }
    // The octets of an element of header extensions that the first packet carried, or the last one;
    // none without the element (stream_options::extension_uri). They live as long as the frame.
    std::optional<bytes> element(std::uint8_t id, bool is_last = false) const {
        const std::uint8_t *data = nullptr;
        std::size_t len = 0;
        detail::check(rushes_frame_element(handle_.get(), id, is_last, &data, &len));
        if (data == nullptr) return {};
        return bytes(data, len);
    }
    // The C handle; the frame still owns it.
    rushes_frame *get() const noexcept { return handle_.get(); }
    // The time since the frame's last datagram arrived.
    duration age() const {
        std::uint64_t age = 0;
        detail::check(rushes_frame_age(handle_.get(), &age));
        return duration(age);
    }

private:
    detail::handle<rushes_frame, rushes_frame_release> handle_;
    rushes_frame_view view_;
};

// A stream's RTCP. It does not own the stream, and must not outlive it.
class rtcp {
public:
    // Calls hook(const rtcp_event &) for every report and request, on the thread that reads the
    // port. See rushes_stream_on_rtcp() for the calls that it may make.
    template <class F> void install_hook(F &&hook) {
        using function = std::decay_t<F>;
        detail::check(rushes_stream_on_rtcp(
            stream_,
            [](void *user, const rushes_rtcp_event *raw) noexcept {
                (*static_cast<function *>(user))(*raw);
            },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>));
    }
    // The bit rate that the encoder should produce, in bits per second; 0 without rate control.
    std::uint64_t target_rate() const {
        std::uint64_t rate = 0;
        detail::check(rushes_stream_target_rate(stream_, &rate));
        return rate;
    }
    void request_key_frame(key_frame request = key_frame::picture_loss) {
        detail::check(
            rushes_stream_request_key_frame(stream_, static_cast<std::int32_t>(request)));
    }
    void request_bit_rate(std::uint32_t ssrc, std::uint64_t bits_per_second,
                          std::uint16_t overhead = 0) {
        detail::check(rushes_stream_request_bit_rate(stream_, ssrc, bits_per_second, overhead));
    }
    void send_estimate(std::uint64_t bits_per_second, span<const std::uint32_t> sources) {
        detail::check(rushes_stream_send_estimate(stream_, bits_per_second, sources.data(),
                                                  sources.size()));
    }
    // `name` has four ASCII characters.
    void send_app_packet(const std::string &name, std::uint8_t subtype, bytes data) {
        detail::check(rushes_stream_send_app(stream_, subtype, name.c_str(), data.data(),
                                             data.size()));
    }
    void send_bye_packet(const std::string &reason = {}) {
        detail::check(rushes_stream_send_bye(stream_, reason.c_str()));
    }
    rtcp_statistics get_statistics() const {
        rtcp_statistics now{};
        detail::check(rushes_stream_rtcp_statistics(stream_, &now, sizeof now));
        return now;
    }
    std::vector<peer> peers() const {
        return detail::collect<peer>([this](std::size_t index, peer *one) {
            return rushes_stream_peer(stream_, index, one, sizeof *one);
        });
    }
    // The capture time of a frame on its sender's clock, as an NTP timestamp; none before the
    // sender's first report.
    std::optional<std::uint64_t> capture_time(std::uint32_t ssrc, std::uint32_t timestamp) const {
        std::uint64_t ntp = 0;
        if (!detail::check(rushes_stream_capture_time(stream_, ssrc, timestamp, &ntp))) return {};
        return ntp;
    }
    // The time since a frame was captured, by our clock and its sender's; none before the sender's
    // first report, and if it does not report wall-clock time.
    std::optional<duration> capture_latency(std::uint32_t ssrc, std::uint32_t timestamp) const {
        std::int64_t nanos = 0;
        if (!detail::check(rushes_stream_capture_latency(stream_, ssrc, timestamp, &nanos))) {
            return {};
        }
        return duration(nanos);
    }

    // How long ago a frame was captured, by the time that it carries or else by its sender's
    // reports; none if neither is known.
    std::optional<duration> frame_latency(const frame &frame) const {
        std::int64_t nanos = 0;
        if (!detail::check(rushes_stream_frame_latency(stream_, frame.get(), &nanos))) return {};
        return duration(nanos);
    }

private:
    friend class media_stream;
    explicit rtcp(rushes_stream *stream) noexcept : stream_(stream) {}
    rushes_stream *stream_;
};

// A media stream to and from a peer. Closed on destruction.
class media_stream {
public:
    // Takes ownership of a C handle.
    explicit media_stream(rushes_stream *raw) noexcept : handle_(raw) {}

    // Sends one frame; returns when the kernel has accepted all of it. The default timestamp is one
    // frame interval after the previous one.
    void push_frame(bytes data, std::optional<std::uint32_t> timestamp = {}) {
        detail::check(rushes_stream_push_frame(get(), data.data(), data.size(),
                                               timestamp ? &*timestamp : nullptr));
    }
    void push_frame(const std::uint8_t *data, std::size_t len,
                    std::optional<std::uint32_t> timestamp = {}) {
        push_frame(bytes(data, len), timestamp);
    }
    // Sends one frame that was captured `age` ago.
    void push_frame_captured(bytes data, duration age,
                             std::optional<std::uint32_t> timestamp = {}) {
        detail::check(rushes_stream_push_frame_captured(get(), data.data(), data.size(),
                                                        timestamp ? &*timestamp : nullptr,
                                                        detail::nanos(age)));
    }
    // Sends one frame whose packets carry elements of header extensions.
    void push_frame_with(bytes data, std::initializer_list<element> elements, duration age = {},
                         std::optional<std::uint32_t> timestamp = {}) {
        std::vector<rushes_element> raw;
        for (const auto &one : elements) {
            raw.push_back({static_cast<std::int32_t>(one.where), one.id, one.data.data(),
                           one.data.size()});
        }
        detail::check(rushes_stream_push_frame_with(get(), data.data(), data.size(),
                                                    timestamp ? &*timestamp : nullptr,
                                                    detail::nanos(age), raw.data(), raw.size()));
    }
    // Sends one frame that consists of separate parts.
    void push_frame(std::initializer_list<bytes> parts,
                    std::optional<std::uint32_t> timestamp = {}) {
        push_frame_parts(span<const bytes>(parts.begin(), parts.size()), timestamp);
    }
    void push_frame_parts(span<const bytes> parts, std::optional<std::uint32_t> timestamp = {}) {
        // A frame's few parts need no allocation.
        rushes_part few[16];
        std::vector<rushes_part> many(parts.size() > std::size(few) ? parts.size() : 0);
        rushes_part *raw = many.empty() ? few : many.data();
        for (std::size_t n = 0; n < parts.size(); ++n) raw[n] = {parts[n].data(), parts[n].size()};
        detail::check(rushes_stream_push_frame_parts(get(), raw, parts.size(),
                                                     timestamp ? &*timestamp : nullptr));
    }
    void resume() { detail::check(rushes_stream_resume(get())); }
    // Ends sending, also a push on another thread.
    void stop_sending() { detail::check(rushes_stream_stop_sending(get())); }
    // Leaves out the frames of temporal layers above `max`.
    void set_max_temporal_id(std::uint8_t max = UINT8_MAX) {
        detail::check(rushes_stream_set_max_temporal_id(get(), max));
    }
    // Spreads packets in another way from the next frame on.
    void set_pacing_off() { detail::check(rushes_stream_set_pacing_off(get())); }
    void set_pacing_share(float share) {
        detail::check(rushes_stream_set_pacing_share(get(), share));
    }
    void set_pacing_rate(std::uint64_t bits_per_second) {
        detail::check(rushes_stream_set_pacing_rate(get(), bits_per_second));
    }
    void send_keep_alive() { detail::check(rushes_stream_send_keep_alive(get())); }
    // Waits and answers requests and reports meanwhile. Programs that only send call it between
    // frames.
    void wait(duration time) { detail::check(rushes_stream_wait(get(), detail::nanos(time))); }

    // Returns the next frame; none if it does not arrive in time.
    std::optional<frame> pull_frame(duration timeout = forever) {
        rushes_frame *raw = nullptr;
        if (!detail::check(rushes_stream_pull_frame(get(), detail::nanos(timeout), &raw))) {
            return {};
        }
        return frame(raw);
    }
    // Calls hook(rushes::frame) for every frame from now on, on a thread of the library.
    template <class F> void install_receive_hook(F &&hook) {
        using function = std::decay_t<F>;
        detail::check(rushes_stream_on_frame(
            get(),
            [](void *user, rushes_frame *raw) noexcept {
                detail::check(rushes_frame_keep(raw));
                (*static_cast<function *>(user))(frame(raw));
            },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>));
    }
    // Calls hook(const event &) for lost packets and other events; before install_receive_hook.
    template <class F> void install_event_hook(F &&hook) {
        using function = std::decay_t<F>;
        detail::check(rushes_stream_on_event(
            get(),
            [](void *user, const rushes_event *raw) noexcept {
                (*static_cast<function *>(user))(*raw);
            },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>));
    }

    rtcp get_rtcp() const noexcept { return rtcp(get()); }

    void set_send_key(srtp_suite suite, bytes key, bytes mki = {}) {
        detail::check(rushes_stream_set_send_key(get(), static_cast<std::int32_t>(suite),
                                                 key.data(), key.size(), mki.data(), mki.size()));
    }
    void add_receive_key(srtp_suite suite, bytes key, bytes mki = {}) {
        detail::check(rushes_stream_add_receive_key(get(), static_cast<std::int32_t>(suite),
                                                    key.data(), key.size(), mki.data(),
                                                    mki.size()));
    }

    statistics get_statistics() const {
        statistics now{};
        detail::check(rushes_stream_statistics(get(), &now, sizeof now));
        return now;
    }
    std::vector<source> sources() const {
        return detail::collect<source>([this](std::size_t index, source *one) {
            return rushes_stream_source(get(), index, one, sizeof *one);
        });
    }
    // The latest 16 sources that have ended, the newest last.
    std::vector<source> ended_sources() const {
        return detail::collect<source>([this](std::size_t index, source *one) {
            return rushes_stream_ended_source(get(), index, one, sizeof *one);
        });
    }
    std::uint32_t get_ssrc() const {
        std::uint32_t ssrc = 0;
        detail::check(rushes_stream_ssrc(get(), &ssrc));
        return ssrc;
    }
    std::uint16_t local_port() const {
        std::uint16_t port = 0;
        detail::check(rushes_stream_local_port(get(), &port));
        return port;
    }
    std::uint32_t next_timestamp() const {
        std::uint32_t timestamp = 0;
        detail::check(rushes_stream_next_timestamp(get(), &timestamp));
        return timestamp;
    }

    // Closes the stream before destruction; throws if that is not possible.
    void close() { handle_.close(); }
    // The handle, for functions of rushes.h; this object keeps ownership.
    rushes_stream *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_stream, rushes_stream_close> handle_;
};

// A frame for push_many.
struct frame_push {
    const media_stream &stream;
    bytes data;
    // By default that after the stream's last frame.
    std::optional<std::uint32_t> timestamp = {};
};

// Sends frames of many streams in few system calls; returns the status of each. Those that could not
// be sent do not stop the others, and nothing is thrown for them.
inline std::vector<rushes_status> push_many(span<const frame_push> frames) {
    std::vector<rushes_push> raw;
    raw.reserve(frames.size());
    for (std::size_t n = 0; n < frames.size(); ++n) {
        const frame_push &one = frames[n];
        raw.push_back({one.stream.get(), one.data.data(), one.data.size(),
                       one.timestamp ? &*one.timestamp : nullptr});
    }
    std::vector<rushes_status> results(raw.size(), RUSHES_OK);
    const rushes_status status = rushes_push_many(raw.data(), raw.size(), results.data());
    for (const rushes_status one : results) {
        if (one != RUSHES_OK) return results;
    }
    // No frame is to blame.
    detail::check(status);
    return results;
}

// Receives from many streams on one thread. Its streams stay the program's: closing one removes it,
// and closing the poller lets the others be pulled again.
class poller {
public:
    poller() { detail::check(rushes_poller_new(handle_.place())); }

    // Adds a stream: pull returns its frames with the token, which no other stream of the poller has.
    void add(const media_stream &stream, std::uint64_t token) {
        detail::check(rushes_poller_add(get(), stream.get(), token));
    }
    // Adds a stream that only sends: pull reads and answers its reports and requests.
    void add_sender(const media_stream &stream, std::uint64_t token) {
        detail::check(rushes_poller_add_sender(get(), stream.get(), token));
    }
    // Removes a stream, which can then be pulled by itself.
    void remove(std::uint64_t token) { detail::check(rushes_poller_remove(get(), token)); }
    // Returns the next frame of any stream and the stream's token; none if none arrives in time, or
    // after wake.
    std::optional<std::pair<std::uint64_t, frame>> pull(duration timeout = forever) {
        std::uint64_t token = 0;
        rushes_frame *raw = nullptr;
        if (!detail::check(rushes_poller_pull(get(), detail::nanos(timeout), &token, &raw))) {
            return {};
        }
        return std::pair(token, frame(raw));
    }
    // How long pull has nothing to do if no packet arrives; forever if that is not limited.
    duration timeout() const {
        std::uint64_t nanos = 0;
        detail::check(rushes_poller_timeout(get(), &nanos));
        return nanos == RUSHES_FOREVER ? forever : duration(nanos);
    }
    // On Linux, a descriptor that is readable while pull has something to do.
    int descriptor() const {
        int descriptor = -1;
        detail::check(rushes_poller_descriptor(get(), &descriptor));
        return descriptor;
    }
    // Ends a pull on another thread, or the next one.
    void wake() const { detail::check(rushes_poller_wake(get())); }

    // Closes the poller before destruction; throws if that is not possible.
    void close() { handle_.close(); }
    // The handle, for functions of rushes.h; this object keeps ownership.
    rushes_poller *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_poller, rushes_poller_close> handle_;
};

// A stream whose keys are being agreed on.
class opening {
public:
    explicit opening(rushes_opening *raw) noexcept : handle_(raw) {}
    // Waits until both ends have agreed, and returns the stream; none on timeout, after which
    // wait() may be called again.
    std::optional<media_stream> wait(duration timeout) {
        rushes_stream *raw = nullptr;
        if (!detail::check(rushes_opening_wait(handle_.get(), detail::nanos(timeout), &raw))) {
            return {};
        }
        return media_stream(raw);
    }
    std::uint16_t local_port() const {
        std::uint16_t port = 0;
        detail::check(rushes_opening_local_port(handle_.get(), &port));
        return port;
    }

private:
    detail::handle<rushes_opening, rushes_opening_close> handle_;
};

// Settings of streams; each has a working default. Calls can be chained, up to open().
class stream_options {
public:
    // Takes ownership of a C handle.
    explicit stream_options(rushes_stream_options *raw) noexcept : handle_(raw) {}
    stream_options(rushes_session *session, codec codec) {
        detail::check(
            rushes_stream_options_new(session, static_cast<std::int32_t>(codec), handle_.place()));
    }

#define RUSHES_OPTION(name, parameters, arguments)                                                 \
    stream_options &name parameters {                                                              \
        detail::check(rushes_stream_options_##name arguments);                                     \
        return *this;                                                                              \
    }
    RUSHES_OPTION(local_port, (std::uint16_t port), (get(), port))
    RUSHES_OPTION(remote_port, (std::uint16_t port), (get(), port))
    RUSHES_OPTION(also_to, (const std::string &host, std::uint16_t port),
                  (get(), host.c_str(), port))
    RUSHES_OPTION(payload_type, (std::uint8_t type), (get(), type))
    RUSHES_OPTION(ssrc, (std::uint32_t ssrc), (get(), ssrc))
    RUSHES_OPTION(remote_ssrc, (std::uint32_t ssrc), (get(), ssrc))
    RUSHES_OPTION(only_from, (const std::string &host, std::uint16_t port = 0),
                  (get(), host.c_str(), port))
    RUSHES_OPTION(clock_rate, (std::uint32_t hertz), (get(), hertz))
    RUSHES_OPTION(channels, (std::uint8_t channels), (get(), channels))
    RUSHES_OPTION(packet_time, (duration time), (get(), detail::nanos(time)))
    RUSHES_OPTION(frame_rate, (std::uint32_t frames, std::uint32_t seconds = 1),
                  (get(), frames, seconds))
    RUSHES_OPTION(pacing_off, (), (get()))
    RUSHES_OPTION(pacing_share, (float share), (get(), share))
    RUSHES_OPTION(pacing_rate, (std::uint64_t bits_per_second), (get(), bits_per_second))
    RUSHES_OPTION(burst, (std::size_t octets, duration time), (get(), octets, detail::nanos(time)))
    RUSHES_OPTION(padding_limit, (std::uint16_t per_mille), (get(), per_mille))
    RUSHES_OPTION(deliver_units, (bool on = true), (get(), on))
    RUSHES_OPTION(length_prefixed, (bool on = true), (get(), on))
    RUSHES_OPTION(frame_len_max, (std::size_t octets), (get(), octets))
    RUSHES_OPTION(raw_video, (const rushes::raw_video &video), (get(), &video, sizeof video))
    RUSHES_OPTION(incomplete_frames, (bool on), (get(), on))
    RUSHES_OPTION(max_don_diff, (std::uint16_t max), (get(), max))
    RUSHES_OPTION(depack_buf_nalus, (std::uint16_t units), (get(), units))
    RUSHES_OPTION(depack_buf_bytes, (std::uint32_t octets), (get(), octets))
    RUSHES_OPTION(reorder_time, (duration time), (get(), detail::nanos(time)))
    RUSHES_OPTION(latency, (duration limit), (get(), detail::nanos(limit)))
    RUSHES_OPTION(memory, (std::size_t octets), (get(), octets))
    RUSHES_OPTION(reorder_window, (std::size_t packets, std::size_t octets),
                  (get(), packets, octets))
    RUSHES_OPTION(probation, (std::uint8_t packets), (get(), packets))
    RUSHES_OPTION(sources, (std::size_t max, duration timeout),
                  (get(), max, detail::nanos(timeout)))
    RUSHES_OPTION(first_packet, (std::uint16_t sequence, std::uint32_t timestamp),
                  (get(), sequence, timestamp))
    RUSHES_OPTION(mtu, (std::size_t octets), (get(), octets))
    RUSHES_OPTION(socket_buffer, (std::size_t octets), (get(), octets))
    RUSHES_OPTION(spin, (duration time), (get(), detail::nanos(time)))
    RUSHES_OPTION(send_timeout, (duration timeout), (get(), detail::nanos(timeout)))
    RUSHES_OPTION(send_path, (const std::string &path), (get(), path.c_str()))
    RUSHES_OPTION(receive_path, (const std::string &path), (get(), path.c_str()))
    RUSHES_OPTION(extension, (rushes::extension element, std::uint8_t id),
                  (get(), static_cast<std::int32_t>(element), id))
    RUSHES_OPTION(extension_uri, (const std::string &uri, std::uint8_t id),
                  (get(), uri.c_str(), id))
    RUSHES_OPTION(extmap_allow_mixed, (bool on = true), (get(), on))
    RUSHES_OPTION(mid, (const std::string &mid), (get(), mid.c_str()))
    RUSHES_OPTION(rid, (const std::string &rid), (get(), rid.c_str()))
    RUSHES_OPTION(dscp, (std::uint8_t dscp), (get(), dscp))
    RUSHES_OPTION(interface, (const std::string &name), (get(), name.c_str()))
    RUSHES_OPTION(multicast_source, (const std::string &host), (get(), host.c_str()))
    RUSHES_OPTION(multicast, (std::uint8_t hops, bool is_heard_here = true),
                  (get(), hops, is_heard_here))
    RUSHES_OPTION(keep_alive, (duration interval), (get(), detail::nanos(interval)))
    RUSHES_OPTION(rtcp, (bool on), (get(), on))
    RUSHES_OPTION(rtcp_mux, (bool on = true), (get(), on))
    RUSHES_OPTION(rtcp_local_port, (std::uint16_t port), (get(), port))
    RUSHES_OPTION(rtcp_remote_port, (std::uint16_t port), (get(), port))
    RUSHES_OPTION(session_bandwidth, (std::uint64_t bits_per_second), (get(), bits_per_second))
    RUSHES_OPTION(feedback, (bool on = true), (get(), on))
    RUSHES_OPTION(reduced_size, (bool on = true), (get(), on))
    RUSHES_OPTION(report_arrivals, (bool on = true), (get(), on))
    RUSHES_OPTION(report_transport_wide, (bool on = true), (get(), on))
    RUSHES_OPTION(rate_control,
                  (std::uint64_t min, std::uint64_t start, std::uint64_t max,
                   rate_mark mark = rate_mark::none),
                  (get(), min, start, max, static_cast<std::int32_t>(mark)))
    RUSHES_OPTION(rate_priority, (std::uint8_t weight), (get(), weight))
    RUSHES_OPTION(circuit_breakers, (bool on = true), (get(), on))
    RUSHES_OPTION(describe, (rushes_sdes_item item, const std::string &text),
                  (get(), item, text.c_str()))
    RUSHES_OPTION(recovery, (rushes::recovery mode, std::uint8_t payload_type = 0),
                  (get(), static_cast<std::int32_t>(mode), payload_type))
    RUSHES_OPTION(rtx_ssrc, (std::uint32_t ssrc), (get(), ssrc))
    RUSHES_OPTION(remote_rtx_ssrc, (std::uint32_t ssrc), (get(), ssrc))
    RUSHES_OPTION(fec,
                  (rushes::fec mode, std::uint8_t percent = 0,
                   fec_format format = fec_format::flexfec),
                  (get(), static_cast<std::int32_t>(mode), percent,
                   static_cast<std::int32_t>(format)))
    RUSHES_OPTION(history, (std::size_t octets), (get(), octets))
    RUSHES_OPTION(srtp, (srtp_suite suite, bytes key),
                  (get(), static_cast<std::int32_t>(suite), key.data(), key.size()))
    RUSHES_OPTION(zrtp, (), (get()))
    RUSHES_OPTION(zrtp_cache, (const std::string &path), (get(), path.c_str()))
    RUSHES_OPTION(zrtp_timeout, (duration timeout), (get(), detail::nanos(timeout)))
    RUSHES_OPTION(zrtp_passive, (bool on = true), (get(), on))
    RUSHES_OPTION(zrtp_aux_secret, (bytes secret), (get(), secret.data(), secret.size()))
    RUSHES_OPTION(zrtp_policy, (rushes::zrtp_policy policy), (get(), static_cast<std::int32_t>(policy)))
#undef RUSHES_OPTION

    // Keys of the same length for sending and for receiving.
    stream_options &srtp_separate(srtp_suite suite, bytes send, bytes receive) {
        if (send.size() != receive.size()) {
            throw error(RUSHES_ERROR_KEY, "the two keys differ in length");
        }
        detail::check(rushes_stream_options_srtp_separate(get(), static_cast<std::int32_t>(suite),
                                                          send.data(), receive.data(),
                                                          send.size()));
        return *this;
    }
    // Calls hook(const std::string &sas, bool is_verified), which returns a sas_answer, after a
    // stream has agreed on its keys and before it is returned.
    template <class F> stream_options &zrtp_sas_hook(F &&hook) {
        using function = std::decay_t<F>;
        detail::check(rushes_stream_options_zrtp_sas_hook(
            get(),
            [](void *user, const char *sas, bool is_verified) noexcept {
                return static_cast<std::int32_t>(
                    (*static_cast<function *>(user))(std::string(sas), is_verified));
            },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>));
        return *this;
    }

    // Opens a stream; with ZRTP, waits until both ends have agreed on a key.
    media_stream open() const {
        rushes_stream *raw = nullptr;
        detail::check(rushes_stream_open(get(), &raw));
        return media_stream(raw);
    }
    // Begins to agree on a key by ZRTP.
    opening begin() const {
        rushes_opening *raw = nullptr;
        detail::check(rushes_stream_begin(get(), &raw));
        return opening(raw);
    }
    rushes_stream_options *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_stream_options, rushes_stream_options_close> handle_;
};

// One peer, and the streams exchanged with it.
class session {
public:
    explicit session(rushes_session *raw) noexcept : handle_(raw) {}

    // Settings for a stream of this session.
    stream_options stream(codec codec) const { return stream_options(get(), codec); }
    // Opens a stream from one port to another with default settings; with a remote port of 0 it
    // only receives.
    media_stream create_stream(std::uint16_t local_port, std::uint16_t remote_port,
                               codec codec) const {
        stream_options options(get(), codec);
        options.local_port(local_port);
        if (remote_port != 0) options.remote_port(remote_port);
        return options.open();
    }
    // The short authentication string; none before there is one.
    std::optional<rushes::sas> get_sas() const {
        rushes_sas now{};
        if (!detail::check(rushes_session_sas(get(), &now, sizeof now))) return {};
        return rushes::sas{now.text, now.is_verified};
    }
    // Reports whether both ends found their strings equal.
    void verify_sas(bool are_equal) {
        detail::check(rushes_session_verify_sas(get(), are_equal));
    }
    rushes_session *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_session, rushes_session_close> handle_;
};

// The direction of a stream, as seen from this end.
enum class direction : std::int32_t {
    send_recv = RUSHES_DIRECTION_SEND_RECV,
    send_only = RUSHES_DIRECTION_SEND_ONLY,
    recv_only = RUSHES_DIRECTION_RECV_ONLY,
};

// A stream that was agreed on with a peer.
struct peer_stream {
    // Its number among the streams that were added, from 0.
    std::size_t index;
    // The identification of the media in the description; empty if it has none.
    std::string mid;
    rushes::codec codec;
    // Whether frames can be pushed.
    bool sends;
    // Whether frames are received.
    bool receives;
    // Close it before the connection: destroy it first.
    media_stream stream;
};

// A connection with a peer that is entered by offer and answer: a browser, or a server between
// browsers (WebRTC). Closed on destruction.
class peer_connection {
public:
    // Takes ownership of a C handle.
    explicit peer_connection(rushes_peer_connection *raw) noexcept : handle_(raw) {}

    // Settings for a stream of this connection. Address, ports, payload type, keys and header
    // extensions are agreed on with the peer.
    stream_options stream(codec codec) const {
        rushes_stream_options *raw = nullptr;
        detail::check(rushes_peer_stream_options_new(get(), static_cast<std::int32_t>(codec), &raw));
        return stream_options(raw);
    }
    // Adds a stream to what is offered or answered.
    void add(const stream_options &options, direction way = direction::send_recv) {
        detail::check(
            rushes_peer_connection_add(get(), options.get(), static_cast<std::int32_t>(way)));
    }
    void add(codec codec, direction way = direction::send_recv) { add(stream(codec), way); }
    // Adds another format for the stream that was added last: the first one that the peer has is
    // taken.
    void add_alternative(const stream_options &options) {
        detail::check(rushes_peer_connection_add_alternative(get(), options.get()));
    }
    // Makes the offer for the peer, once.
    std::string offer() {
        const char *text = nullptr;
        detail::check(rushes_peer_connection_offer(get(), &text));
        return text;
    }
    // Takes the peer's offer, and returns the answer for it. On a connection that exists it may bring
    // other credentials of ICE or further addresses, but change nothing else.
    std::string answer(const std::string &offer) {
        const char *text = nullptr;
        detail::check(rushes_peer_connection_answer(get(), offer.c_str(), &text));
        return text;
    }
    // Takes the peer's answer to the offer.
    void set_answer(const std::string &answer) {
        detail::check(rushes_peer_connection_set_answer(get(), answer.c_str()));
    }
    // Waits until a path to the peer and the keys are found, and returns the streams that were
    // agreed on; none on timeout, after which connect() may be called again.
    std::optional<std::vector<peer_stream>> connect(duration timeout = forever) {
        if (!detail::check(rushes_peer_connection_connect(get(), detail::nanos(timeout)))) return {};
        std::vector<peer_stream> streams;
        for (std::size_t index = 0;; ++index) {
            rushes_peer_stream about{};
            const rushes_status status =
                rushes_peer_connection_look(get(), index, &about, sizeof about);
            if (status == RUSHES_ERROR_ARGUMENT) return streams;
            if (status == RUSHES_ERROR_UNSUPPORTED) continue;
            detail::check(status);
            rushes_stream *raw = nullptr;
            detail::check(rushes_peer_connection_open(get(), index, &raw));
            streams.push_back({index, about.mid, static_cast<codec>(about.codec), about.sends,
                               about.receives, media_stream(raw)});
        }
    }
    // Adds an address of the peer that was found after its description was written.
    void add_candidate(const std::string &candidate) {
        detail::check(rushes_peer_connection_add_candidate(get(), candidate.c_str()));
    }
    // Takes a fragment of a description, as WHIP and WHEP carry them; returns the fragment that
    // answers it, if it has new credentials.
    std::optional<std::string> add_fragment(const std::string &fragment) {
        const char *text = nullptr;
        detail::check(rushes_peer_connection_add_fragment(get(), fragment.c_str(), &text));
        if (text == nullptr) return {};
        return text;
    }
    // Offers to look for a path again: returns a fragment with new credentials and the addresses of
    // this end, which WHIP and WHEP carry in a PATCH. Nothing else changes before the answer.
    std::string offer_restart() {
        const char *text = nullptr;
        detail::check(rushes_peer_connection_offer_restart(get(), &text));
        return text;
    }
    // Takes the peer's answer to `offer_restart`: both ends look for a path. Keys and streams stay.
    // Throws if nothing was offered, or if the answer cannot be read.
    void set_restart_answer(const std::string &answer) {
        detail::check(rushes_peer_connection_set_restart_answer(get(), answer.c_str()));
    }
    // How long the peer has not answered on the path that is used; none while there is none. From 10 s
    // on a restart is worthwhile.
    std::optional<duration> silence() const {
        std::uint64_t silence = 0;
        detail::check(rushes_peer_connection_silence(get(), &silence));
        if (silence == UINT64_MAX) return {};
        return duration(silence);
    }
    // Whether a path to the peer is found and answers.
    bool is_connected() const {
        bool is_connected = false;
        detail::check(rushes_peer_connection_is_connected(get(), &is_connected));
        return is_connected;
    }
    // The error that the connection has ended with; none while it has not.
    std::optional<error> ended() const {
        const rushes_status status = rushes_peer_connection_check(get());
        if (status == RUSHES_OK) return {};
        return error(status, rushes_last_error_message());
    }
    // Closes the connection before destruction.
    void close() { handle_.close(); }
    rushes_peer_connection *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_peer_connection, rushes_peer_connection_close> handle_;
};

// The identity that an application's streams share; it creates sessions.
class context {
public:
    context() { detail::check(rushes_context_new(nullptr, handle_.place())); }
    explicit context(const std::string &cname) {
        detail::check(rushes_context_new(cname.c_str(), handle_.place()));
    }
    // Creates a session with one peer: a host name, an address or a multicast group.
    session create_session(const std::string &remote) const {
        return make(remote.c_str(), nullptr);
    }
    // Creates a session with one peer, with its sockets bound to one local address.
    session create_session(const std::string &local, const std::string &remote) const {
        return make(remote.c_str(), local.c_str());
    }
    // Creates a session that receives from any host and does not send.
    session create_session() const { return make(nullptr, nullptr); }
    // Creates such a session at one local address or in a multicast group.
    session receive_on(const std::string &address) const {
        rushes_session *raw = nullptr;
        detail::check(rushes_session_receive_on(get(), address.c_str(), &raw));
        return session(raw);
    }
    // Opens the socket of a connection with a peer that is entered by offer and answer.
    peer_connection create_peer_connection(const peer_options &options = {}) const {
        rushes_peer_connection *raw = nullptr;
        detail::check(rushes_peer_connection_new(get(), &options, sizeof options, &raw));
        return peer_connection(raw);
    }
    // Opens such a connection on one local address.
    peer_connection create_peer_connection(const std::string &local) const {
        peer_options options{};
        options.local_address = local.c_str();
        return create_peer_connection(options);
    }
    rushes_context *get() const noexcept { return handle_.get(); }

private:
    session make(const char *remote, const char *local) const {
        rushes_session *raw = nullptr;
        detail::check(rushes_session_new(get(), remote, local, &raw));
        return session(raw);
    }
    detail::handle<rushes_context, rushes_context_close> handle_;
};

// A view of a frame of a file, valid until the next frame is read from the same reader or the
// reader is destroyed.
class media_frame {
public:
    explicit media_frame(const rushes_media_frame &raw) noexcept : raw_(raw) {}
    // The octets: an access unit, an Opus packet, a KLV item, or a piece of a generic file.
    bytes data() const noexcept { return {raw_.data, raw_.len}; }
    std::size_t size() const noexcept { return raw_.len; }
    // The position of a picture in presentation order, in 1/120 of a frame interval; none for other
    // frames.
    std::optional<std::int64_t> position() const noexcept {
        if (!raw_.is_picture) return {};
        return raw_.position;
    }
    // The time since the frame's first octets arrived from a live source.
    std::optional<rushes::duration> age() const noexcept {
        if (raw_.age == UINT64_MAX) return {};
        return rushes::duration(raw_.age);
    }
    // The duration in ticks of the codec's clock, if the file contains it (Opus, samples).
    std::optional<std::uint32_t> duration() const noexcept {
        if (raw_.duration == 0) return {};
        return raw_.duration;
    }
    bool is_field() const noexcept { return raw_.is_field; }
    // Whether the frame was available without waiting.
    bool is_ahead() const noexcept { return raw_.is_ahead; }

private:
    rushes_media_frame raw_;
};

// The frames of a media file, or of a live source: a pipe or a device.
class media_reader {
public:
    // Opens a file, or the standard input with "-". The default codec follows from the name's
    // extension.
    explicit media_reader(const std::string &path, std::optional<codec> codec = {},
                          const read_options &options = {}) {
        const std::int32_t number = codec ? static_cast<std::int32_t>(*codec) : 0;
        detail::check(rushes_media_reader_open(path.c_str(), number, &options, sizeof options,
                                               handle_.place()));
    }
    // Returns the next frame; none at the end (has_ended()), and if a live source has none in time.
    std::optional<media_frame> next(duration timeout = forever) {
        rushes_media_frame raw{};
        const rushes_status status =
            rushes_media_reader_next(handle_.get(), detail::nanos(timeout), &raw, sizeof raw);
        has_ended_ = status == RUSHES_ERROR_ENDED;
        if (has_ended_ || !detail::check(status)) return {};
        return media_frame(raw);
    }
    // Whether the latest next() found that there are no more frames.
    bool has_ended() const noexcept { return has_ended_; }
    bool is_live() const {
        bool is_live = false;
        detail::check(rushes_media_reader_is_live(handle_.get(), &is_live));
        return is_live;
    }
    // The frame rate that the latest frame declares, as frames in seconds; directly after opening a
    // file, that of the first frame.
    std::optional<std::pair<std::uint32_t, std::uint32_t>> frame_rate() const {
        std::pair<std::uint32_t, std::uint32_t> rate;
        if (!detail::check(rushes_media_reader_frame_rate(handle_.get(), &rate.first,
                                                          &rate.second))) {
            return {};
        }
        return rate;
    }
    // The size, sampling and depth of uncompressed video; of a live source, after its first frame.
    std::optional<rushes::raw_video> raw_video() const {
        rushes::raw_video video{};
        if (!detail::check(
                rushes_media_reader_raw_video(handle_.get(), &video, sizeof video)))
            return {};
        return video;
    }

    // How the samples of a WAV file are sampled: the rate in hertz and the channels. None for other
    // files and, of a live source, before the first frame.
    std::optional<std::pair<std::uint32_t, std::uint8_t>> sampling() const {
        std::pair<std::uint32_t, std::uint8_t> sampling;
        if (!detail::check(rushes_media_reader_sampling(handle_.get(), &sampling.first,
                                                        &sampling.second))) {
            return {};
        }
        return sampling;
    }

    // Iterates over the remaining frames: for (const rushes::media_frame &frame : reader).
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = media_frame;
        using difference_type = std::ptrdiff_t;
        using pointer = const media_frame *;
        using reference = const media_frame &;
        iterator() noexcept = default;
        reference operator*() const { return *frame_; }
        pointer operator->() const { return &*frame_; }
        iterator &operator++() {
            frame_ = reader_->next();
            return *this;
        }
        void operator++(int) { ++*this; }
        // Two iterators are equal if both or neither are at the end.
        friend bool operator==(const iterator &one, const iterator &other) noexcept {
            return one.frame_.has_value() == other.frame_.has_value();
        }
        friend bool operator!=(const iterator &one, const iterator &other) noexcept {
            return !(one == other);
        }

    private:
        friend class media_reader;
        explicit iterator(media_reader &reader) : reader_(&reader) { ++*this; }
        media_reader *reader_ = nullptr;
        std::optional<media_frame> frame_;
    };
    iterator begin() { return iterator(*this); }
    iterator end() noexcept { return {}; }

private:
    detail::handle<rushes_media_reader, rushes_media_reader_close> handle_;
    bool has_ended_ = false;
};

// Settings of texture servers and clients; each has a working default.
class texture_options {
public:
    texture_options() { detail::check(rushes_texture_options_new(handle_.place())); }

#define RUSHES_OPTION(name, parameters, arguments)                                                 \
    texture_options &name parameters {                                                             \
        detail::check(rushes_texture_options_##name arguments);                                    \
        return *this;                                                                              \
    }
    RUSHES_OPTION(format, (const std::string &name), (get(), name.c_str()))
    RUSHES_OPTION(quality, (const std::string &name), (get(), name.c_str()))
    RUSHES_OPTION(transport, (const std::string &name), (get(), name.c_str()))
    RUSHES_OPTION(multicast, (const std::string &group), (get(), group.c_str()))
    RUSHES_OPTION(units, (std::uint8_t units), (get(), units))
    RUSHES_OPTION(timing, (rushes_texture_timing timing), (get(), timing))
    RUSHES_OPTION(loops, (bool on = true), (get(), on))
    RUSHES_OPTION(pacing_off, (), (get()))
    RUSHES_OPTION(pacing_share, (float share), (get(), share))
    RUSHES_OPTION(pacing_rate, (std::uint64_t bits_per_second), (get(), bits_per_second))
    RUSHES_OPTION(burst, (std::size_t octets, duration time), (get(), octets, detail::nanos(time)))
    RUSHES_OPTION(adaptation, (rushes_texture_adaptation adaptation), (get(), adaptation))
    RUSHES_OPTION(clients_max, (std::size_t clients), (get(), clients))
    RUSHES_OPTION(recovery_off, (), (get()))
    RUSHES_OPTION(fec, (rushes::fec mode, std::uint8_t percent = 0),
                  (get(), static_cast<std::int32_t>(mode), percent))
    RUSHES_OPTION(packing, (bool on = true), (get(), on))
    RUSHES_OPTION(size_max, (std::uint32_t width, std::uint32_t height), (get(), width, height))
    RUSHES_OPTION(scaling, (bool on = true), (get(), on))
    // The code points of texture_frame's colour.
    RUSHES_OPTION(colour, (const std::array<std::uint8_t, 4> &points), (get(), points.data()))
    RUSHES_OPTION(clients_per_host_max, (std::size_t clients), (get(), clients))
    RUSHES_OPTION(slots, (std::size_t slots), (get(), slots))
    RUSHES_OPTION(srtp, (srtp_suite suite, bytes key),
                  (get(), static_cast<std::int32_t>(suite), key.data(), key.size()))
    RUSHES_OPTION(zrtp, (), (get(), nullptr))
#undef RUSHES_OPTION
    texture_options &zrtp_cache(const std::string &path) {
        detail::check(rushes_texture_options_zrtp(get(), path.c_str()));
        return *this;
    }
    rushes_texture_options *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_texture_options, rushes_texture_options_close> handle_;
};

// How the memory of frames is passed to other graphics interfaces; see rushes_memory_handle.
enum class memory_handle : std::int32_t {
    opaque_fd = RUSHES_MEMORY_HANDLE_OPAQUE_FD,
    dma_buf = RUSHES_MEMORY_HANDLE_DMA_BUF,
};

// The fastest graphics processor that has Vulkan. Clients and frames that use it may outlive it. The constructor
// throws RUSHES_ERROR_UNSUPPORTED if there is none, or if the library was installed without `--gpu`.
class gpu {
public:
    using uuid = std::array<std::uint8_t, 16>;
    gpu() {
        detail::check(rushes_gpu_open(handle_.place()));
        detail::check(rushes_gpu_describe(handle_.get(), &description_, sizeof description_));
    }
    // The driver's name for it.
    std::string name() const { return description_.name; }
    // Its identifier, and that of its driver in its version, of 16 octets each; see rushes_gpu_description.
    uuid device_uuid() const noexcept { return uuid_of(description_.device_uuid); }
    uuid driver_uuid() const noexcept { return uuid_of(description_.driver_uuid); }
    // Whether it is emulated by the main processor.
    bool is_software() const noexcept { return description_.is_software; }
    rushes_gpu *get() const noexcept { return handle_.get(); }

private:
    static uuid uuid_of(const std::uint8_t *octets) noexcept {
        uuid copy;
        for (std::size_t at = 0; at < copy.size(); ++at) copy[at] = octets[at];
        return copy;
    }
    detail::handle<rushes_gpu, rushes_gpu_close> handle_;
    rushes_gpu_description description_{};
};

// A frame's memory, as other graphics interfaces import it. It owns the descriptor, and closes it on destruction.
class gpu_memory {
public:
    explicit gpu_memory(const rushes_gpu_memory &raw) noexcept : raw_(raw) {}
    gpu_memory(gpu_memory &&other) noexcept : raw_(other.raw_) { other.raw_.fd = -1; }
    gpu_memory &operator=(gpu_memory &&other) noexcept {
        gpu_memory moved(std::move(other));
        std::swap(raw_, moved.raw_);
        return *this;
    }
    gpu_memory(const gpu_memory &) = delete;
    gpu_memory &operator=(const gpu_memory &) = delete;
    ~gpu_memory() {
        if (raw_.fd >= 0) ::close(raw_.fd);
    }
    // The descriptor, which this object still owns; -1 after release_fd().
    int fd() const noexcept { return raw_.fd; }
    // Hands the descriptor over: to an import by Vulkan, OpenGL or CUDA, otherwise to the caller, who closes it.
    int release_fd() noexcept { return std::exchange(raw_.fd, -1); }
    // Octets of the memory. An import must name this size; the frame, at its start, may be shorter.
    std::uint64_t size() const noexcept { return raw_.size; }
    // For imports of dedicated memory, and for Vulkan; see rushes_gpu_memory.
    std::uint64_t buffer_size() const noexcept { return raw_.buffer_size; }
    std::uint32_t memory_type() const noexcept { return raw_.memory_type; }
    bool is_dedicated() const noexcept { return raw_.is_dedicated; }

private:
    rushes_gpu_memory raw_;
};

// A frame in the memory of a graphics processor, received or to be drawn. Nobody else writes its octets until it is sent
// or this object is destroyed; then the memory is used for a later frame, so all work that uses it must be done. It may outlive its
// client or server.
class gpu_frame {
public:
    explicit gpu_frame(rushes_gpu_frame *raw) : handle_(raw), view_{} {
        detail::check(rushes_gpu_frame_look(raw, &view_, sizeof view_));
    }
    // The number of octets, in the order of the format.
    std::size_t size() const noexcept { return view_.len; }
    // The frame's number in the stream, from 0.
    std::uint64_t number() const noexcept { return view_.number; }
    // The format, such as "bc1".
    std::string_view format() const noexcept { return view_.format; }
    std::uint32_t width() const noexcept { return view_.width; }
    std::uint32_t height() const noexcept { return view_.height; }
    // Packets that did not arrive in time; their octets were replaced with the previous frame's.
    std::uint32_t packets_missing() const noexcept { return view_.packets_missing; }
    // The time from its first packet until it was complete.
    duration took() const noexcept { return duration(view_.took); }
    // The code points of its colours, as in texture_frame.
    std::array<std::uint8_t, 4> colour() const noexcept {
        return {view_.colour[0], view_.colour[1], view_.colour[2], view_.colour[3]};
    }
    // A number of its memory that no other memory of this process has. Later frames use the same memory again, so
    // import it once for each number.
    std::uint64_t memory() const noexcept { return view_.memory; }
    // Returns the memory with a new descriptor. The graphics processor has written all octets of a received frame: there
    // is no fence.
    gpu_memory export_memory() const {
        rushes_gpu_memory memory{};
        detail::check(rushes_gpu_frame_export(handle_.get(), &memory, sizeof memory));
        return gpu_memory(memory);
    }
    // Sends a canvas after what writes its pixels has ended; see rushes_gpu_frame_send(). This object is of no use
    // afterwards. Returns false if the server has ended.
    bool send() {
        const rushes_status status = rushes_gpu_frame_send(handle_.get());
        if (status != RUSHES_ERROR_ENDED) detail::check(status);
        return status != RUSHES_ERROR_ENDED;
    }
    // The C handle; the frame still owns it.
    rushes_gpu_frame *get() const noexcept { return handle_.get(); }

private:
    detail::handle<rushes_gpu_frame, rushes_gpu_frame_release> handle_;
    rushes_gpu_frame_view view_;
};

// Sends a source's pictures to every client that connects.
class texture_server {
public:
    // Listens on `local` ("127.0.0.1:7000"); `pictures` is a file or "pattern:3840x2160@60".
    texture_server(const std::string &local, const std::string &pictures,
                   const texture_options &options = {}) {
        detail::check(rushes_texture_serve(local.c_str(), pictures.c_str(), options.get(),
                                           handle_.place()));
    }
    // Sends pictures made by fill(span<std::uint8_t> octets, bool rewind), which returns false at
    // the end.
    template <class F>
    texture_server(const std::string &local, const std::string &format, std::uint32_t width,
                   std::uint32_t height, std::uint32_t frames_per_second, F &&fill,
                   const texture_options &options = {}) {
        using function = std::decay_t<F>;
        detail::check(rushes_texture_serve_from(
            local.c_str(), format.c_str(), width, height, frames_per_second, 1,
            [](void *user, std::uint8_t *octets, std::size_t len, bool rewind) noexcept {
                span<std::uint8_t> picture(octets, len);
                return (*static_cast<function *>(user))(picture, rewind) ? std::int32_t(1)
                                                                         : std::int32_t(0);
            },
            detail::store_hook(std::forward<F>(fill)), detail::release<function>, options.get(),
            handle_.place()));
    }
    // Sends frames that the application draws in memory of a graphics processor, encoded there to `format`, such as
    // "bc1"; see canvas().
    texture_server(const std::string &local, const gpu &device, const std::string &format,
                   std::uint32_t width, std::uint32_t height, std::uint32_t frames_per_second,
                   const texture_options &options = {},
                   memory_handle memory = memory_handle::opaque_fd) {
        detail::check(rushes_texture_serve_gpu(
            local.c_str(), device.get(), static_cast<std::int32_t>(memory), format.c_str(), width,
            height, frames_per_second, 1, options.get(), handle_.place()));
    }
    std::uint16_t port() const {
        std::uint16_t port = 0;
        detail::check(rushes_texture_server_port(handle_.get(), &port));
        return port;
    }
    rushes_texture_server_counts get_statistics() const {
        rushes_texture_server_counts now{};
        detail::check(rushes_texture_server_statistics(handle_.get(), &now, sizeof now));
        return now;
    }
    // Returns memory for the pixels of the next frame: rows of RGBA8 from the top, without gaps. Import it, write all
    // pixels, and call send(); see rushes_texture_server_canvas(). It has no number, no missing packets and no time.
    gpu_frame canvas() const {
        rushes_gpu_frame *raw = nullptr;
        detail::check(rushes_texture_server_canvas(handle_.get(), &raw));
        return gpu_frame(raw);
    }
    // Sets the size of further canvases.
    void resize(std::uint32_t width, std::uint32_t height) {
        detail::check(rushes_texture_server_resize(handle_.get(), width, height));
    }
    void close() { handle_.close(); }

private:
    detail::handle<rushes_texture_server, rushes_texture_server_close> handle_;
};

// Receives a server's frames.
class texture_client {
public:
    // Calls hook(const texture_frame &) for every frame, on a receiving thread.
    template <class F,
              class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &, const texture_frame &>>>
    texture_client(const std::string &address, F &&hook, const texture_options &options = {}) {
        using function = std::decay_t<F>;
        detail::check(rushes_texture_connect(
            address.c_str(), options.get(),
            [](void *user, const rushes_texture_frame *frame) noexcept {
                (*static_cast<function *>(user))(*frame);
            },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>, handle_.place()));
    }
    // Receives frames into memory of a graphics processor, of which last() is the latest.
    texture_client(const std::string &address, const gpu &device,
                   memory_handle memory = memory_handle::opaque_fd,
                   const texture_options &options = {}) {
        connect(address, device, memory, options, nullptr, nullptr, nullptr);
    }
    // The same, and calls hook() for each new frame, on a thread of the client, one call at a time. That may be before
    // this object exists: wake another thread, which calls last().
    template <class F, class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &>>>
    texture_client(const std::string &address, const gpu &device, memory_handle memory, F &&hook,
                   const texture_options &options = {}) {
        using function = std::decay_t<F>;
        connect(
            address, device, memory, options,
            [](void *user) noexcept { (*static_cast<function *>(user))(); },
            detail::store_hook(std::forward<F>(hook)), detail::release<function>);
    }
    // Returns the last complete frame in memory of the graphics processor, the same as before if there is no newer
    // one; none before the first. Throws RUSHES_ERROR_UNSUPPORTED if the client receives elsewhere.
    std::optional<gpu_frame> last() const {
        rushes_gpu_frame *raw = nullptr;
        if (!detail::check(rushes_texture_client_last(handle_.get(), &raw))) return {};
        return gpu_frame(raw);
    }
    // Waits for the end for at most `timeout`; returns why the stream ended, or none if it has not.
    std::optional<std::string> wait(duration timeout) const {
        const rushes_status status =
            rushes_texture_client_wait(handle_.get(), detail::nanos(timeout));
        if (status == RUSHES_ERROR_ENDED) return std::string(rushes_last_error_message());
        detail::check(status);
        return {};
    }
    rushes_texture_client_counts get_statistics() const {
        rushes_texture_client_counts now{};
        detail::check(rushes_texture_client_statistics(handle_.get(), &now, sizeof now));
        return now;
    }
    // Removes and returns the latencies of the frames since the last call, the oldest first; the
    // latest 1024 are kept.
    std::vector<duration> take_latencies() {
        std::vector<std::uint64_t> nanos(1024);
        std::size_t count = 0;
        detail::check(rushes_texture_client_take_latencies(handle_.get(), nanos.data(),
                                                           nanos.size(), &count));
        return std::vector<duration>(nanos.begin(), nanos.begin() + static_cast<std::ptrdiff_t>(count));
    }
    void close() { handle_.close(); }

private:
    void connect(const std::string &address, const gpu &device, memory_handle memory,
                 const texture_options &options, rushes_gpu_hook hook, void *user,
                 void (*release)(void *)) {
        detail::check(rushes_texture_connect_gpu(
            address.c_str(), options.get(), device.get(), static_cast<std::int32_t>(memory), hook,
            user, release, handle_.place()));
    }
    detail::handle<rushes_texture_client, rushes_texture_client_close> handle_;
};

} // namespace rushes

#endif // RUSHES_HPP
