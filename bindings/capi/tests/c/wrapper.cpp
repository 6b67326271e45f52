// The C++ wrapper: ownership, exceptions, hooks.
#include <rushes.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "check.h"

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<rushes::media_stream>);
static_assert(!std::is_copy_constructible_v<rushes::frame>);
static_assert(std::is_nothrow_move_constructible_v<rushes::media_stream>);
static_assert(std::is_nothrow_move_assignable_v<rushes::frame>);

static rushes::bytes bytes_of(const std::string &text) {
    return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

static std::string text_of(const rushes::frame &frame) {
    return {reinterpret_cast<const char *>(frame.data().data()), frame.size()};
}

// The status that a call throws; RUSHES_OK if it throws none.
template <class F> static rushes_status thrown(F &&call) {
    try {
        call();
    } catch (const rushes::error &error) {
        CHECK(std::string(error.what()).size() > 0);
        return error.code();
    }
    return RUSHES_OK;
}

struct ends {
    rushes::media_stream receiver;
    rushes::media_stream sender;
};

static ends open(const rushes::session &session) {
    auto options = session.stream(rushes::codec::generic);
    options.probation(1).reorder_time(20ms);
    auto receiver = options.open();
    auto sender = options.remote_port(receiver.local_port()).open();
    return {std::move(receiver), std::move(sender)};
}

static void a_session_receives_on_a_local_address() {
    rushes::context context;
    CHECK(thrown([&] { (void)context.create_session("0.0.0.0"); }) == RUSHES_ERROR_ARGUMENT);
    auto options = context.receive_on("0.0.0.0").stream(rushes::codec::generic);
    auto receiver = options.probation(1).open();
    auto sending = context.create_session("127.0.0.1").stream(rushes::codec::generic);
    auto sender = sending.remote_port(receiver.local_port()).open();
    sender.push_frame(bytes_of("one"));
    auto frame = receiver.pull_frame(10s);
    CHECK(frame && text_of(*frame) == "one");
}

static void one_stream_reaches_several_destinations() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::generic);
    options.probation(1);
    auto left = options.open();
    auto right = options.open();
    auto sending = session.stream(rushes::codec::generic);
    sending.remote_port(left.local_port()).also_to("127.0.0.1", right.local_port());
    auto sender = sending.open();
    sender.push_frame(bytes_of("both"));
    for (auto *receiver : {&left, &right}) {
        auto frame = receiver->pull_frame(10s);
        CHECK(frame && text_of(*frame) == "both");
    }
    sending.also_to("127.0.0.1", right.local_port());
    CHECK(thrown([&] { (void)sending.open(); }) == RUSHES_ERROR_ARGUMENT);
}

static void objects_move_and_close() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1", "127.0.0.1");
    auto [receiver, sender] = open(session);
    rushes::media_stream moved = std::move(sender);
    CHECK(sender.get() == nullptr);
    CHECK(thrown([&] { sender.push_frame(bytes_of("x")); }) == RUSHES_ERROR_NULL);
    const std::string head = "head", tail = " and tail";
    moved.push_frame(bytes_of("one"), 1000);
    moved.push_frame({bytes_of(head), bytes_of(tail)});
    const std::vector<rushes::bytes> parts(40, bytes_of(head));
    moved.push_frame_parts(rushes::span<const rushes::bytes>(parts.data(), parts.size()));
    auto first = receiver.pull_frame(10s);
    auto second = receiver.pull_frame(10s);
    CHECK(first && text_of(*first) == "one" && first->timestamp() == 1000);
    CHECK(second && text_of(*second) == "head and tail");
    auto third = receiver.pull_frame(10s);
    CHECK(third && third->size() == 40 * head.size());
    CHECK(first->ssrc() == moved.get_ssrc());
    CHECK(!receiver.pull_frame(1ms));
    CHECK(receiver.get_statistics().frames_received == 3 && receiver.sources().size() == 1);
    first = std::move(second);
    receiver.close();
    receiver.close();
    CHECK(thrown([&] { receiver.pull_frame(1ms); }) == RUSHES_ERROR_CLOSED);
    CHECK(thrown([&] { receiver.sources(); }) == RUSHES_ERROR_CLOSED);
    CHECK(thrown([&] { receiver.get_rtcp().peers(); }) == RUSHES_ERROR_CLOSED);
    CHECK(text_of(*first) == "head and tail");
    CHECK(thrown([&] { moved.push_frame(bytes_of("")); }) == RUSHES_ERROR_FRAME);
    CHECK(thrown([] { rushes::context(std::string(300, 'x')); }) == RUSHES_ERROR_ARGUMENT);
}

static void a_target_rate_is_set_and_read() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::generic);
    options.rate_control(100000, 200000, 300000, rushes::rate_mark::l4s).rate_priority(2);
    std::atomic<std::uint64_t> target{0};
    auto stream = options.open();
    stream.get_rtcp().install_hook([&](const rushes::rtcp_event &event) {
        if (event.kind == RUSHES_RTCP_EVENT_KIND_TARGET_RATE) target = event.bit_rate;
    });
    CHECK(stream.get_rtcp().target_rate() == 200000 && target == 200000);
    auto plain = session.stream(rushes::codec::generic).open();
    CHECK(plain.get_rtcp().target_rate() == 0);
    CHECK(thrown([&] { options.rate_control(3, 2, 1); }) == RUSHES_ERROR_ARGUMENT);
    CHECK(thrown([&] { options.rate_priority(0).open(); }) == RUSHES_ERROR_ARGUMENT);
}

static void repair_packets_are_set_and_counted() {
    rushes::context context;
    auto options = context.create_session("127.0.0.1").stream(rushes::codec::generic);
    auto receiver = options.probation(1).fec(rushes::fec::receive).open();
    options.remote_port(receiver.local_port()).fec(rushes::fec::percent, 50);
    auto sender = options.open();
    sender.push_frame(bytes_of("frame"));
    sender.send_keep_alive();
    CHECK(sender.get_statistics().repairs_sent > 0);
    options.fec(rushes::fec::percent, 50, rushes::fec_format::ulpfec);
    auto within_red = options.open();
    within_red.push_frame(bytes_of("frame"));
    within_red.send_keep_alive();
    CHECK(within_red.get_statistics().repairs_sent > 0);
    CHECK(thrown([&] { options.fec(rushes::fec::by_loss, 101).open(); }) == RUSHES_ERROR_ARGUMENT);
}

static void lambdas_are_hooks_and_released() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto [receiver, sender] = open(session);
    auto shared = std::make_shared<std::atomic<int>>(0);
    std::atomic<bool> bye{false}, started{false};
    std::optional<rushes::frame> kept;
    receiver.install_event_hook([&](const rushes::event &event) {
        if (event.kind == RUSHES_EVENT_KIND_SOURCE_STARTED) started = true;
    });
    receiver.get_rtcp().install_hook([&](const rushes::rtcp_event &event) {
        if (event.kind == RUSHES_RTCP_EVENT_KIND_BYE) bye = true;
    });
    receiver.install_receive_hook([shared, &kept](rushes::frame frame) {
        if (*shared == 0) kept = std::move(frame);
        ++*shared;
    });
    CHECK(thrown([&] { receiver.install_receive_hook([](rushes::frame) {}); }) ==
          RUSHES_ERROR_HOOKED);
    CHECK(shared.use_count() == 2);
    for (int n = 0; n < 3; ++n) sender.push_frame(bytes_of("frame"));
    sender.get_rtcp().send_bye_packet("over");
    for (int n = 0; n < 10000 && (*shared < 3 || !bye); ++n) std::this_thread::sleep_for(1ms);
    CHECK(*shared == 3 && bye && started);
    receiver.close();
    CHECK(shared.use_count() == 1);
    CHECK(kept && text_of(*kept) == "frame");
}

static void two_ends_agree_on_keys() {
    rushes::context context;
    auto here = context.create_session("127.0.0.1"), there = context.create_session("127.0.0.1");
    std::string seen_here, seen_there;
    auto hook = [](std::string &seen) {
        return [&seen](const std::string &sas, bool) {
            seen = sas;
            return rushes::sas_answer::equal;
        };
    };
    auto opening = there.stream(rushes::codec::generic).zrtp_sas_hook(hook(seen_there)).begin();
    std::optional<rushes::media_stream> sender;
    std::thread other([&] {
        sender = here.stream(rushes::codec::generic)
                     .zrtp_sas_hook(hook(seen_here))
                     .zrtp_timeout(20s)
                     .remote_port(opening.local_port())
                     .open();
    });
    auto receiver = opening.wait(20s);
    other.join();
    CHECK(receiver && sender && !seen_here.empty() && seen_here == seen_there);
    CHECK(here.get_sas() && here.get_sas()->text == seen_here && here.get_sas()->is_verified);
    sender->push_frame(bytes_of("only you"));
    sender->push_frame(bytes_of("only you"));
    auto frame = receiver->pull_frame(10s);
    CHECK(frame && text_of(*frame) == "only you");
}

static void a_secret_lets_in_only_those_that_know_it() {
    rushes::context context;
    auto open = [&](const char *secret) {
        auto here = context.create_session("127.0.0.1"), there = context.create_session("127.0.0.1");
        auto options = there.stream(rushes::codec::generic);
        auto opening = options.zrtp_aux_secret(bytes_of("sixteen octets.."))
                           .zrtp_policy(rushes::zrtp_policy::require_secret)
                           .begin();
        std::optional<rushes::media_stream> sender;
        std::thread other([&] {
            try {
                sender = here.stream(rushes::codec::generic)
                             .zrtp_aux_secret(bytes_of(secret))
                             .zrtp_timeout(5s)
                             .remote_port(opening.local_port())
                             .open();
            } catch (const rushes::error &) {
            }
        });
        bool has_receiver = false;
        try {
            has_receiver = bool(opening.wait(20s));
        } catch (const rushes::error &) {
        }
        other.join();
        return std::pair(has_receiver, bool(sender));
    };
    CHECK(open("sixteen octets..") == std::pair(true, true));
    CHECK(open("fifteen octets.") == std::pair(false, false));
}

static void textures_arrive() {
    std::atomic<int> frames{0};
    rushes::texture_options options;
    options.transport("tcp").units(2).timing(RUSHES_TEXTURE_TIMING_EVERY_FRAME).quality("high");
    options.packing().colour({9, 16, 1, 1});
    int made = 0;
    rushes::texture_server server(
        "127.0.0.1:0", "rgba8", 64, 32, 100,
        [&](rushes::span<std::uint8_t> picture, bool) {
            for (auto &octet : picture) octet = static_cast<std::uint8_t>(made);
            return ++made <= 5;
        },
        options);
    rushes::texture_client client(
        "127.0.0.1:" + std::to_string(server.port()),
        [&](const rushes::texture_frame &frame) {
            const bool is_hdr = frame.colour[0] == 9 && frame.colour[1] == 16;
            if (is_hdr && frame.len == 64 * 32 * 4 && frame.data[0] == frame.number) ++frames;
        },
        options);
    CHECK(client.wait(20s));
    const auto latencies = client.take_latencies();
    CHECK(!latencies.empty() && latencies.size() <= 5 && client.take_latencies().empty());
    CHECK(client.get_statistics().stripes_unpacked > 0);
    client.close();
    CHECK(frames == 5);
}

static void frames_carry_their_capture_time() {
    rushes::context context;
    rushes::session session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::generic);
    options.probation(1).extension(rushes::extension::abs_capture_time, 1);
    options.extension_uri("urn:example:seat", 2).extmap_allow_mixed().mid("0").rid("hi");
    const auto numbers =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
    options.extension_uri(numbers, 3).report_transport_wide();
    auto receiver = options.open();
    auto sender = options.remote_port(receiver.local_port()).open();
    sender.push_frame_captured(bytes_of("frame"), 30ms);
    auto frame = receiver.pull_frame(10s);
    CHECK(frame && frame->capture_time());
    const auto latency = receiver.get_rtcp().frame_latency(*frame);
    CHECK(latency && *latency >= 29ms);
    CHECK(!frame->element(2));
    sender.push_frame_with(bytes_of("frame"), {{rushes::placement::last, 2, bytes_of("12A")}});
    frame = receiver.pull_frame(10s);
    CHECK(frame && frame->element(2, true) && frame->element(2, true)->size() == 3);
}

static void uncompressed_video_says_what_is_missing() {
    rushes::context context;
    rushes::session session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::uncompressed);
    CHECK(thrown([&] { options.open(); }) == RUSHES_ERROR_ARGUMENT);
    rushes::raw_video video{};
    video.width = 4;
    video.height = 2;
    video.sampling = RUSHES_SAMPLING_RGB;
    CHECK(thrown([&] { options.raw_video(video); }) == RUSHES_ERROR_ARGUMENT);
    video.depth = 8;
    video.scan = RUSHES_SCAN_INTERLACED;
    CHECK(rushes::frame_len(video) == 12);
    auto receiver = options.raw_video(video).incomplete_frames(true).probation(1).open();
    auto sender = options.remote_port(receiver.local_port()).open();
    for (const char *field : {"first field.", "secondfield."}) sender.push_frame(bytes_of(field));
    auto first = receiver.pull_frame(10s), second = receiver.pull_frame(10s);
    CHECK(first && first->missing().empty() && !first->is_second_field());
    CHECK(second && second->missing().empty() && second->is_second_field());
}

static void files_are_loops_over_frames() {
    const std::string clip = MEDIA "/hevc_192x128_90f_tiny_nals.265";
    std::ifstream file(clip, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    rushes::media_reader reader(clip);
    CHECK(!reader.is_live() && !reader.has_ended());
    CHECK(reader.frame_rate() == std::pair(std::uint32_t(30), std::uint32_t(1)));
    std::string read;
    int frames = 0;
    for (const rushes::media_frame &frame : reader) {
        read.append(reinterpret_cast<const char *>(frame.data().data()), frame.size());
        CHECK(frame.position() && !frame.age() && !frame.duration() && !frame.is_field());
        ++frames;
    }
    CHECK(frames == 90 && read == whole && reader.has_ended());
    CHECK(reader.begin() == reader.end());
    CHECK(thrown([&] { rushes::media_reader("nothing.265"); }) == RUSHES_ERROR_FILE);
    CHECK(thrown([&] { rushes::media_reader("-"); }) == RUSHES_ERROR_ARGUMENT);
    rushes::read_options options{};
    options.frame_len = 1000;
    rushes::media_reader pieces(clip, rushes::codec::generic, options);
    auto first = pieces.next();
    CHECK(first && first->size() == 1000 && !first->position());
}

static void two_peers_exchange_streams() {
    rushes::context context;
    auto alice = context.create_peer_connection("127.0.0.1");
    auto bob = context.create_peer_connection("127.0.0.1");
    alice.add(rushes::codec::vp8);
    bob.add(rushes::codec::h264);
    for (auto *peer : {&alice, &bob}) {
        auto options = peer->stream(rushes::codec::opus);
        peer->add(options.frame_rate(50), rushes::direction::send_recv);
    }
    CHECK(!alice.is_connected() && !alice.ended());
    CHECK(thrown([&] { alice.set_answer("v=0"); }) == RUSHES_ERROR_UNSUPPORTED);
    const auto offer = alice.offer();
    alice.set_answer(bob.answer(offer));
    CHECK(thrown([&] { alice.offer(); }) == RUSHES_ERROR_UNSUPPORTED);
    CHECK(!alice.add_fragment("a=ice-options:trickle\r\n"));
    std::optional<std::vector<rushes::peer_stream>> theirs;
    std::thread other([&] { theirs = bob.connect(20s); });
    auto ours = alice.connect(20s);
    other.join();
    CHECK(ours && theirs && ours->size() == 1 && theirs->size() == 1);
    auto &mine = ours->front(), &their = theirs->front();
    CHECK(mine.index == 1 && mine.codec == rushes::codec::opus && mine.mid == their.mid);
    CHECK(mine.sends && mine.receives && !mine.mid.empty() && alice.is_connected());
    const std::uint8_t packet[] = {0xf8, 7, 0xfe};
    for (int n = 0; n < 3; ++n) mine.stream.push_frame(packet, sizeof packet);
    auto frame = their.stream.pull_frame(20s);
    CHECK(frame && frame->size() == 3 && frame->data()[1] == 7);
    const auto first = bob.answer(offer), second = bob.answer(offer);
    CHECK(first.find("a=ice-ufrag:") != std::string::npos && first != second);
    CHECK(thrown([&] { alice.set_restart_answer(""); }) == RUSHES_ERROR_UNSUPPORTED);
    const auto reply = bob.add_fragment(alice.offer_restart());
    CHECK(reply && alice.silence());
    alice.set_restart_answer(*reply);
    mine.stream.push_frame(packet, sizeof packet);
    CHECK(their.stream.pull_frame(20s));
    frame.reset();
    ours.reset();
    alice.close();
    while (!bob.ended()) their.stream.pull_frame(10ms);
    CHECK(bob.ended()->code() == RUSHES_ERROR_ENDED && !bob.is_connected());
    theirs.reset();
}

// Octets of any type can be passed.
static void bytes_are_made_of_any_octets() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto [receiver, sender] = open(session);
    const std::array<std::byte, 3> array{std::byte('o'), std::byte('n'), std::byte('e')};
    const std::vector<std::byte> vector(array.begin(), array.end());
    const std::vector<std::uint8_t> octets{'o', 'n', 'e'};
    sender.push_frame(array);
    sender.push_frame(vector);
    sender.push_frame(octets);
    sender.push_frame({vector.data(), vector.size()});
    std::size_t frames = 4;
#ifdef __cpp_lib_span
    sender.push_frame(std::span<const std::byte>(vector));
    sender.push_frame(std::span<const std::uint8_t>(octets), 1000);
    std::vector<std::byte> own = vector;
    sender.push_frame(std::span<std::byte>(own));
    sender.push_frame({std::span<const std::byte>(vector).first(1), std::span(octets).subspan(1)});
    frames += 4;
#else
    static_assert(__cplusplus < 202002L, "C++20 has std::span");
#endif
    for (std::size_t n = 0; n < frames; ++n) {
        auto frame = receiver.pull_frame(10s);
        CHECK(frame && text_of(*frame) == "one");
#ifdef __cpp_lib_span
        const std::span<const std::uint8_t> view = frame->data();
        CHECK(std::as_bytes(view).size() == 3 && std::span(frame->data()).front() == 'o');
#endif
    }
}

static void messages_reach_a_function_object() {
    rushes::context context;
    auto options = context.create_session("127.0.0.1").stream(rushes::codec::generic);
    options.socket_buffer(2'000'000'000);
    auto texts = std::make_shared<std::string>();
    const std::function<void(rushes::log_level, std::string_view)> hook =
        [texts](rushes::log_level level, std::string_view text) {
            if (level == rushes::log_level::warning) texts->append(text);
        };
    rushes::set_log(rushes::log_level::warning, hook);
    CHECK(texts.use_count() == 3);
    options.open();
    rushes::set_log_off();
    CHECK(texts.use_count() == 2);
    CHECK(texts->find("sysctl -w net.core.rmem_max=1073741823") != std::string::npos);
}

// A log hook that throws ends the process: nothing unwinds through the library.
static void a_log_hook_that_throws_ends_the_process() {
    std::fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        alarm(20);
        rushes::context context;
        auto options = context.create_session("127.0.0.1").stream(rushes::codec::generic);
        auto hook = [](rushes::log_level, std::string_view) { throw std::runtime_error("no"); };
        rushes::set_log(rushes::log_level::trace, hook);
        options.socket_buffer(2'000'000'000).open();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

// A hook that throws ends the process, as documented.
static void a_hook_that_throws_ends_the_process() {
    std::fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        alarm(20);
        rushes::context context;
        auto session = context.create_session("127.0.0.1");
        auto [receiver, sender] = open(session);
        receiver.install_receive_hook([](rushes::frame) { throw std::runtime_error("no"); });
        sender.push_frame(bytes_of("frame"));
        std::this_thread::sleep_for(30s);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

// Destroying a stream that cannot be closed ends the process, because its hooks would outlive it.
static void a_stream_that_goes_in_its_hook_ends_the_process() {
    std::fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        alarm(20);
        rushes::context context;
        auto session = context.create_session("127.0.0.1");
        auto [receiver, sender] = open(session);
        std::optional<rushes::media_stream> stream(std::move(receiver));
        stream->install_event_hook([&](const rushes::event &) { stream.reset(); });
        sender.push_frame(bytes_of("frame"));
        stream->pull_frame(15s);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

// A plain C hook that throws ends the process, too, without the wrapper.
static void a_bare_hook_that_throws_ends_the_process() {
    std::fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        alarm(20);
        rushes::context context;
        auto session = context.create_session("127.0.0.1");
        auto [receiver, sender] = open(session);
        auto hook = [](void *, rushes_frame *) { throw std::runtime_error("no"); };
        CHECK(rushes_stream_on_frame(receiver.get(), hook, nullptr, nullptr) == RUSHES_OK);
        sender.push_frame(bytes_of("frame"));
        std::this_thread::sleep_for(30s);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void pacing_is_changed() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto ends = open(session);
    CHECK(thrown([&] { ends.sender.set_pacing_share(0); }) == RUSHES_ERROR_ARGUMENT);
    CHECK(thrown([&] { ends.sender.set_pacing_rate(0); }) == RUSHES_ERROR_ARGUMENT);
    ends.sender.set_pacing_share(0.5f);
    ends.sender.set_pacing_rate(100'000'000);
    ends.sender.set_pacing_off();
    ends.sender.push_frame(bytes_of("frame"));
    CHECK(ends.receiver.pull_frame(10s));
}

static void one_thread_receives_from_many_streams() {
    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto first = open(session), second = open(session);
    rushes::poller poller;
    poller.add(first.receiver, 1);
    poller.add(second.receiver, 2);
    poller.add_sender(first.sender, 3);
    CHECK(thrown([&] { poller.add(first.receiver, 4); }) == RUSHES_ERROR_HOOKED);
    const std::string one = "one", two = "two";
    const std::array<rushes::frame_push, 3> frames = {
        {{first.sender, bytes_of(one)}, {second.sender, bytes_of(two)}, {second.sender, {}}}};
    const auto results = rushes::push_many(frames);
    CHECK(results.size() == 3 && results[0] == RUSHES_OK && results[1] == RUSHES_OK);
    CHECK(results[2] == RUSHES_ERROR_FRAME);
    for (int n = 0; n < 2; ++n) {
        auto pulled = poller.pull(10s);
        CHECK(pulled && text_of(pulled->second) == (pulled->first == 1 ? "one" : "two"));
    }
    poller.wake();
    CHECK(!poller.pull());
    CHECK(poller.timeout() >= 0s && poller.get() != nullptr);
    poller.remove(1);
    poller.close();
    first.sender.push_frame(bytes_of("three"));
    second.sender.push_frame(bytes_of("three"));
    CHECK(first.receiver.pull_frame(10s) && second.receiver.pull_frame(10s));
}

int main(int argc, char **) {
    // This test comes first, because a forked child would not have other threads.
    if (argc == 1) {
        a_hook_that_throws_ends_the_process();
        a_stream_that_goes_in_its_hook_ends_the_process();
        a_bare_hook_that_throws_ends_the_process();
        a_log_hook_that_throws_ends_the_process();
    }
    a_session_receives_on_a_local_address();
    one_stream_reaches_several_destinations();
    objects_move_and_close();
    one_thread_receives_from_many_streams();
    pacing_is_changed();
    frames_carry_their_capture_time();
    a_target_rate_is_set_and_read();
    repair_packets_are_set_and_counted();
    lambdas_are_hooks_and_released();
    two_ends_agree_on_keys();
    a_secret_lets_in_only_those_that_know_it();
    textures_arrive();
    two_peers_exchange_streams();
    files_are_loops_over_frames();
    uncompressed_video_says_what_is_missing();
    bytes_are_made_of_any_octets();
    messages_reach_a_function_object();
}
