/* Frames, keys, reports and counters through the C interface. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void nap(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

static void frames_arrive_as_they_were_pushed(void) {
    struct pair pair = pair_open();
    enum { LEN = 300000 };
    uint8_t *octets = malloc(LEN);
    uint32_t timestamp = 90000, ssrc;
    uint64_t age;
    rushes_frame *frame;
    rushes_frame_view view;
    rushes_statistics statistics;
    for (size_t n = 0; n < LEN; n++) octets[n] = (uint8_t)(n * 7);
    OK(rushes_stream_push_frame(pair.sender, octets, LEN, &timestamp));
    rushes_part parts[3] = {{octets, 3}, {NULL, 0}, {octets + 3, LEN - 3}};
    timestamp += 3000;
    OK(rushes_stream_push_frame_parts(pair.sender, parts, 3, &timestamp));
    timestamp += 3000;
    OK(rushes_stream_push_frame_captured(pair.sender, octets, 10, &timestamp,
                                         RUSHES_MILLISECONDS(5)));
    OK(rushes_stream_ssrc(pair.sender, &ssrc));
    for (int n = 0; n < 3; n++) {
        view = pull(pair.receiver, &frame);
        CHECK(view.len == (n < 2 ? LEN : 10) && memcmp(view.data, octets, view.len) == 0);
        CHECK(view.timestamp == 90000u + 3000u * (uint32_t)n && view.ssrc == ssrc);
        CHECK(view.marker && view.units == 1);
        OK(rushes_frame_age(frame, &age));
        CHECK(age < RUSHES_SECONDS(60));
        OK(rushes_frame_release(frame));
    }
    OK(rushes_stream_next_timestamp(pair.sender, &timestamp));
    CHECK(timestamp == 96000 + 3000);
    EXPECT(rushes_stream_pull_frame(pair.receiver, RUSHES_MILLISECONDS(1), &frame),
           RUSHES_TIMEOUT);
    CHECK(frame == NULL);
    EXPECT(rushes_stream_push_frame(pair.sender, NULL, 0, NULL), RUSHES_ERROR_FRAME);

    /* A caller with a shorter struct gets only its fields. */
    memset(&statistics, 0xee, sizeof statistics);
    OK(rushes_stream_statistics(pair.sender, &statistics, 8));
    CHECK(statistics.frames_sent == 3 && statistics.packets_sent == 0xeeeeeeeeeeeeeeee);
    OK(rushes_stream_statistics(pair.receiver, &statistics, sizeof statistics));
    CHECK(statistics.frames_received == 3 && statistics.packets_lost == 0);
    rushes_source source;
    OK(rushes_stream_source(pair.receiver, 0, &source, sizeof source));
    CHECK(source.ssrc == ssrc && source.cumulative_lost == 0);
    EXPECT(rushes_stream_source(pair.receiver, 1, &source, sizeof source), RUSHES_ERROR_ARGUMENT);
    free(octets);
    pair_close(&pair);
}

static void frames_carry_their_capture_time(void) {
    struct pair pair = pair_sessions();
    rushes_stream_options *options;
    rushes_frame *frame;
    rushes_statistics statistics;
    uint16_t port;
    int64_t latency;
    uint64_t frames = 0;
    const uint8_t *data;
    size_t len;
    rushes_element elements[2] = {
        {RUSHES_PLACEMENT_FIRST, 4, (const uint8_t *)"12A", 3},
        {RUSHES_PLACEMENT_LAST, 4, (const uint8_t *)"12B", 3},
    };
    OK(rushes_stream_options_new(pair.session, RUSHES_CODEC_GENERIC, &options));
    OK(rushes_stream_options_probation(options, 1));
    OK(rushes_stream_options_extension(options, RUSHES_EXTENSION_NTP64, 3));
    EXPECT(rushes_stream_options_extension(options, RUSHES_EXTENSION_NTP56, 3),
           RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_extension(options, RUSHES_EXTENSION_NTP56, 15),
           RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_extension(options, 4, 5), RUSHES_ERROR_ARGUMENT);
    OK(rushes_stream_options_extension_uri(options, "urn:example:seat", 4));
    OK(rushes_stream_options_extension_uri(options, "urn:ietf:params:rtp-hdrext:sdes:mid", 5));
    OK(rushes_stream_options_extmap_allow_mixed(options, true));
    OK(rushes_stream_options_mid(options, "0"));
    OK(rushes_stream_options_rid(options, "hi"));
    OK(rushes_stream_open(options, &pair.receiver));
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_options_remote_port(options, port));
    OK(rushes_stream_open(options, &pair.sender));
    OK(rushes_stream_push_frame_captured(pair.sender, (const uint8_t *)"frame", 5, NULL,
                                         RUSHES_MILLISECONDS(30)));
    rushes_frame_view view = pull(pair.receiver, &frame);
    /* After 2020. */
    CHECK(view.has_capture_time && view.capture_time >> 32 > 3786825600u);
    OK(rushes_stream_frame_latency(pair.receiver, frame, &latency));
    CHECK(latency >= (int64_t)RUSHES_MILLISECONDS(29) && latency < (int64_t)RUSHES_SECONDS(60));
    OK(rushes_frame_element(frame, 5, true, &data, &len));
    CHECK(data != NULL && len == 1 && *data == '0');
    OK(rushes_frame_element(frame, 4, false, &data, &len));
    CHECK(data == NULL && len == 0);
    OK(rushes_frame_release(frame));
    OK(rushes_stream_push_frame_with(pair.sender, (const uint8_t *)"frame", 5, NULL,
                                     RUSHES_MILLISECONDS(30), elements, 2));
    view = pull(pair.receiver, &frame);
    OK(rushes_frame_element(frame, 4, false, &data, &len));
    CHECK(data != NULL && len == 3 && memcmp(data, "12A", 3) == 0);
    OK(rushes_frame_release(frame));
    elements[0].placement = 3;
    EXPECT(rushes_stream_push_frame_with(pair.sender, (const uint8_t *)"frame", 5, NULL, 0,
                                         elements, 2), RUSHES_ERROR_ARGUMENT);
    OK(rushes_stream_statistics(pair.receiver, &statistics, sizeof statistics));
    for (size_t n = 0; n < 15; n++) frames += statistics.capture_to_delivery[n];
    CHECK(frames == 2 && statistics.capture_to_delivery_sum >= RUSHES_MILLISECONDS(29));
    CHECK(statistics.extensions_malformed == 0);
    OK(rushes_stream_options_close(options));
    pair_close(&pair);
}

static void repair_packets_are_sent_and_counted(void) {
    struct pair pair = pair_sessions();
    rushes_stream_options *options = generic_options(&pair);
    rushes_frame *frame;
    rushes_statistics sent, received;
    uint16_t port;
    OK(rushes_stream_options_probation(options, 1));
    OK(rushes_stream_options_fec(options, RUSHES_FEC_MODE_RECEIVE, 0, RUSHES_FEC_FORMAT_FLEXFEC));
    OK(rushes_stream_open(options, &pair.receiver));
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_options_remote_port(options, port));
    OK(rushes_stream_options_fec(options, RUSHES_FEC_MODE_PERCENT, 0, RUSHES_FEC_FORMAT_FLEXFEC));
    EXPECT(rushes_stream_open(options, &pair.sender), RUSHES_ERROR_ARGUMENT);
    OK(rushes_stream_options_fec(options, RUSHES_FEC_MODE_PERCENT, 100, RUSHES_FEC_FORMAT_FLEXFEC));
    OK(rushes_stream_open(options, &pair.sender));
    OK(rushes_stream_options_close(options));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"frame", 5, NULL));
    OK(rushes_stream_send_keep_alive(pair.sender));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"again", 5, NULL));
    for (int n = 0; n < 2; n++) {
        pull(pair.receiver, &frame);
        OK(rushes_frame_release(frame));
    }
    OK(rushes_stream_statistics(pair.sender, &sent, sizeof sent));
    OK(rushes_stream_statistics(pair.receiver, &received, sizeof received));
    CHECK(sent.packets_sent == 3 && sent.repairs_sent >= 2);
    CHECK(received.repairs_received >= 2 && received.repaired == 0);
    pair_close(&pair);
}

/* What the hooks received. */
struct seen {
    rushes_frame *kept;
    atomic_int frames, started, app, bye, released;
};

static void on_frame(void *user, rushes_frame *frame) {
    struct seen *seen = user;
    if (atomic_load(&seen->frames) == 0) {
        OK(rushes_frame_keep(frame));
        seen->kept = frame;
    }
    atomic_fetch_add(&seen->frames, 1);
}

static void on_event(void *user, const rushes_event *event) {
    struct seen *seen = user;
    if (event->kind == RUSHES_EVENT_KIND_SOURCE_STARTED) atomic_store(&seen->started, 1);
}

static void on_rtcp(void *user, const rushes_rtcp_event *event) {
    struct seen *seen = user;
    if (event->kind == RUSHES_RTCP_EVENT_KIND_APP) {
        CHECK(event->subtype == 5 && strcmp(event->text, "test") == 0);
        CHECK(event->data_len == 4 && memcmp(event->data, "abc", 4) == 0);
        atomic_store(&seen->app, 1);
    }
    if (event->kind == RUSHES_RTCP_EVENT_KIND_BYE) {
        CHECK(strcmp(event->text, "over") == 0);
        atomic_store(&seen->bye, 1);
    }
}

static void on_release(void *user) { atomic_fetch_add(&((struct seen *)user)->released, 1); }

static void hooks_are_called_and_released(void) {
    struct pair pair = pair_open();
    struct seen seen = {0};
    rushes_frame_view view;
    rushes_peer peer;
    uint64_t ntp;
    OK(rushes_stream_on_event(pair.receiver, on_event, &seen, on_release));
    OK(rushes_stream_on_rtcp(pair.receiver, on_rtcp, &seen, on_release));
    OK(rushes_stream_on_frame(pair.receiver, on_frame, &seen, on_release));
    for (int n = 0; n < 5; n++) {
        OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"frame", 5, NULL));
    }
    OK(rushes_stream_send_app(pair.sender, 5, "test", (const uint8_t *)"abc", 3));
    /* Media that is read after the goodbye would count as a return. */
    for (int n = 0; n < 20000 && atomic_load(&seen.frames) < 5; n++) nap();
    OK(rushes_stream_send_bye(pair.sender, "over"));
    for (int n = 0; n < 20000 && !atomic_load(&seen.bye); n++) nap();
    CHECK(atomic_load(&seen.frames) == 5 && atomic_load(&seen.bye));
    CHECK(atomic_load(&seen.started) && atomic_load(&seen.app));
    OK(rushes_stream_peer(pair.receiver, 0, &peer, sizeof peer));
    CHECK(peer.has_left && strcmp(peer.cname, "tests@here") == 0);
    OK(rushes_stream_capture_time(pair.receiver, peer.ssrc, 0, &ntp));
    CHECK(ntp != 0);
    EXPECT(rushes_stream_capture_time(pair.receiver, peer.ssrc + 1, 0, &ntp), RUSHES_TIMEOUT);
    uint32_t timestamp;
    int64_t latency = INT64_MIN;
    OK(rushes_stream_next_timestamp(pair.sender, &timestamp));
    OK(rushes_stream_capture_latency(pair.receiver, peer.ssrc, timestamp, &latency));
    CHECK(latency != INT64_MIN);
    EXPECT(rushes_stream_capture_latency(pair.receiver, peer.ssrc + 1, 0, &latency),
           RUSHES_TIMEOUT);
    CHECK(atomic_load(&seen.released) == 0);
    OK(rushes_stream_close(pair.receiver));
    CHECK(atomic_load(&seen.released) == 3);
    pair.receiver = NULL;
    OK(rushes_frame_look(seen.kept, &view, sizeof view));
    CHECK(view.len == 5 && memcmp(view.data, "frame", 5) == 0);
    OK(rushes_frame_release(seen.kept));
    pair_close(&pair);
}

static void keys_are_given_and_changed(void) {
    struct pair pair = pair_sessions();
    const int32_t suite = RUSHES_SRTP_SUITE_AES_CM128_HMAC_SHA1_TAG80;
    uint8_t key[30], next[30], mki[2] = {0, 1};
    uint16_t port;
    uint32_t roc;
    rushes_statistics statistics;
    rushes_frame *frame;
    rushes_stream *stranger;
    rushes_stream_options *options = generic_options(&pair);
    for (int n = 0; n < 30; n++) key[n] = (uint8_t)n, next[n] = (uint8_t)(n + 1);
    OK(rushes_stream_options_probation(options, 1));
    OK(rushes_stream_options_srtp(options, suite, key, sizeof key));
    OK(rushes_stream_open(options, &pair.receiver));
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_options_remote_port(options, port));
    OK(rushes_stream_open(options, &pair.sender));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"secret", 6, NULL));
    rushes_frame_view view = pull(pair.receiver, &frame);
    CHECK(view.len == 6 && memcmp(view.data, "secret", 6) == 0);
    OK(rushes_frame_release(frame));
    OK(rushes_stream_roll_over_counter(pair.sender, &roc));
    CHECK(roc == 0);
    EXPECT(rushes_stream_set_send_key(pair.sender, suite, next, 30, mki, 2), RUSHES_ERROR_KEY);
    OK(rushes_stream_add_receive_key(pair.receiver, suite, next, 30, NULL, 0));
    OK(rushes_stream_set_send_key(pair.sender, suite, next, 30, NULL, 0));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"other", 5, NULL));
    view = pull(pair.receiver, &frame);
    CHECK(view.len == 5 && memcmp(view.data, "other", 5) == 0);
    OK(rushes_frame_release(frame));
    /* A sender with another key is refused. */
    OK(rushes_stream_options_srtp_separate(options, suite, next + 0, key, sizeof key));
    next[0] ^= 1;
    OK(rushes_stream_options_srtp(options, suite, next, sizeof next));
    OK(rushes_stream_open(options, &stranger));
    OK(rushes_stream_push_frame(stranger, (const uint8_t *)"forged", 6, NULL));
    EXPECT(rushes_stream_pull_frame(pair.receiver, RUSHES_MILLISECONDS(200), &frame),
           RUSHES_TIMEOUT);
    OK(rushes_stream_statistics(pair.receiver, &statistics, sizeof statistics));
    CHECK(statistics.discarded == 1 && statistics.discarded_authentication == 1);
    OK(rushes_stream_close(stranger));
    OK(rushes_stream_options_close(options));
    pair_close(&pair);
}

/* One end of a key agreement, on its own thread. */
struct end {
    rushes_stream_options *options;
    rushes_stream *stream;
    rushes_status status;
    char sas[64];
    int answer;
};

static int32_t compare(void *user, const char *sas, bool is_verified) {
    struct end *end = user;
    CHECK(!is_verified && strlen(sas) < sizeof end->sas);
    strcpy(end->sas, sas);
    return end->answer;
}

static void *open_end(void *user) {
    struct end *end = user;
    end->status = rushes_stream_open(end->options, &end->stream);
    return NULL;
}

/* Both ends agree on keys; `answer` is the result of the sender's SAS hook. */
static void agree(int answer, rushes_status wanted) {
    struct pair here = pair_sessions(), there = pair_sessions();
    struct end sender = {.options = generic_options(&here), .answer = answer};
    struct end receiver = {.options = generic_options(&there), .answer = 1};
    rushes_opening *opening;
    rushes_sas sas;
    uint16_t port;
    pthread_t thread;
    EXPECT(rushes_session_sas(here.session, &sas, sizeof sas), RUSHES_TIMEOUT);
    OK(rushes_stream_options_zrtp_sas_hook(receiver.options, compare, &receiver, NULL));
    OK(rushes_stream_begin(receiver.options, &opening));
    OK(rushes_opening_local_port(opening, &port));
    EXPECT(rushes_opening_wait(opening, 0, &receiver.stream), RUSHES_TIMEOUT);
    OK(rushes_stream_options_zrtp_sas_hook(sender.options, compare, &sender, NULL));
    OK(rushes_stream_options_zrtp_timeout(sender.options, RUSHES_SECONDS(20)));
    OK(rushes_stream_options_remote_port(sender.options, port));
    CHECK(pthread_create(&thread, NULL, open_end, &sender) == 0);
    OK(rushes_opening_wait(opening, RUSHES_SECONDS(20), &receiver.stream));
    EXPECT(rushes_opening_wait(opening, 0, &here.receiver), RUSHES_ERROR_CLOSED);
    OK(rushes_opening_close(opening));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(sender.sas[0] != 0 && strcmp(sender.sas, receiver.sas) == 0);
    CHECK(sender.status == wanted);
    OK(rushes_session_sas(here.session, &sas, sizeof sas));
    CHECK(strcmp(sas.text, sender.sas) == 0);
    if (wanted == RUSHES_OK) {
        rushes_frame *frame;
        CHECK(sas.is_verified);
        OK(rushes_stream_push_frame(sender.stream, (const uint8_t *)"only you", 8, NULL));
        OK(rushes_stream_push_frame(sender.stream, (const uint8_t *)"only you", 8, NULL));
        rushes_frame_view view = pull(receiver.stream, &frame);
        CHECK(view.len == 8 && memcmp(view.data, "only you", 8) == 0);
        OK(rushes_frame_release(frame));
        OK(rushes_stream_close(sender.stream));
    } else {
        CHECK(sender.stream == NULL);
    }
    OK(rushes_stream_close(receiver.stream));
    OK(rushes_stream_options_close(sender.options));
    OK(rushes_stream_options_close(receiver.options));
    pair_close(&here);
    pair_close(&there);
}

static void *push_many(void *user) {
    for (int n = 0; n < 200; n++) {
        OK(rushes_stream_push_frame(user, (const uint8_t *)"frame", 5, NULL));
    }
    return NULL;
}

static void several_threads_may_push(void) {
    struct pair pair = pair_open();
    struct seen seen = {.kept = NULL};
    pthread_t threads[3];
    atomic_store(&seen.frames, 1000);
    OK(rushes_stream_on_frame(pair.receiver, on_frame, &seen, NULL));
    for (int n = 0; n < 3; n++) {
        CHECK(pthread_create(&threads[n], NULL, push_many, pair.sender) == 0);
    }
    OK(rushes_stream_wait(pair.sender, RUSHES_MILLISECONDS(20)));
    for (int n = 0; n < 3; n++) CHECK(pthread_join(threads[n], NULL) == 0);
    for (int n = 0; n < 10000 && atomic_load(&seen.frames) < 1600; n++) nap();
    CHECK(atomic_load(&seen.frames) == 1600);
    pair_close(&pair);
}

static void on_unreadable(void *user, const rushes_event *event) {
    if (event->kind == RUSHES_EVENT_KIND_UNREADABLE) {
        CHECK(event->reason != NULL && strlen(event->reason) > 0);
        atomic_store((atomic_int *)user, 1);
    }
}

static void ignore(void *user, rushes_frame *frame) { (void)user, (void)frame; }

/* The descriptor of this process's socket at a port. */
static int descriptor_of(uint16_t port) {
    for (int found = 3; found < 1024; found++) {
        struct sockaddr_in address = {0};
        socklen_t len = sizeof address;
        if (getsockname(found, (struct sockaddr *)&address, &len) == 0 &&
            ntohs(address.sin_port) == port) {
            return found;
        }
    }
    return -1;
}

static void a_socket_that_breaks_is_told_to_a_hook(void) {
    struct pair pair = pair_open();
    atomic_int reported = 0;
    uint16_t port;
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_on_event(pair.receiver, on_unreadable, &reported, NULL));
    int nothing = open("/dev/null", O_RDWR), broken = descriptor_of(port);
    CHECK(nothing >= 0 && broken >= 0 && dup2(nothing, broken) == broken);
    close(nothing);
    /* A thread that waited before would wait for the socket that was there. */
    OK(rushes_stream_on_frame(pair.receiver, ignore, NULL, NULL));
    for (int n = 0; n < 20000 && !atomic_load(&reported); n++) nap();
    CHECK(atomic_load(&reported));
    pair_close(&pair);
}

int main(void) {
    frames_arrive_as_they_were_pushed();
    frames_carry_their_capture_time();
    repair_packets_are_sent_and_counted();
    hooks_are_called_and_released();
    a_socket_that_breaks_is_told_to_a_hook();
    keys_are_given_and_changed();
    agree(1, RUSHES_OK);
    agree(-1, RUSHES_ERROR_SAS);
    several_threads_may_push();
    return 0;
}
