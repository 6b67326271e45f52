/* Connections by offer and answer through the C interface. */
#include <pthread.h>

#include "check.h"

static rushes_peer_connection *peer_of(rushes_context *context) {
    rushes_peer_connection *peer;
    rushes_peer_options options = {.local_address = "127.0.0.1"};
    OK(rushes_peer_connection_new(context, &options, sizeof options, &peer));
    return peer;
}

static void add(rushes_peer_connection *peer, int32_t codec, int32_t direction) {
    rushes_stream_options *options;
    OK(rushes_peer_stream_options_new(peer, codec, &options));
    OK(rushes_peer_connection_add(peer, options, direction));
    OK(rushes_stream_options_close(options));
}

static void *connected(void *peer) {
    OK(rushes_peer_connection_connect(peer, RUSHES_SECONDS(20)));
    return NULL;
}

/* Exchanges the descriptions, and connects both ends. */
static void connect_both(rushes_peer_connection *ends[2]) {
    const char *offer, *answer;
    pthread_t other;
    OK(rushes_peer_connection_offer(ends[0], &offer));
    OK(rushes_peer_connection_answer(ends[1], offer, &answer));
    OK(rushes_peer_connection_set_answer(ends[0], answer));
    CHECK(pthread_create(&other, NULL, connected, ends[1]) == 0);
    connected(ends[0]);
    CHECK(pthread_join(other, NULL) == 0);
}

static void frames_go_both_ways(void) {
    uint8_t picture[5000] = {0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xd9, 0, 0, 0, 1, 0x68,
                             0xce, 0x38, 0x80, 0, 0, 0, 1, 0x65};
    uint8_t packet[3] = {0xf8, 0, 0xfe};
    rushes_context *context;
    rushes_peer_connection *ends[2];
    rushes_stream *streams[2][2];
    const char *offer, *answer;
    uint16_t port;
    OK(rushes_context_new(NULL, &context));
    for (int end = 0; end < 2; end++) {
        ends[end] = peer_of(context);
        add(ends[end], RUSHES_CODEC_H264, RUSHES_DIRECTION_SEND_RECV);
        add(ends[end], RUSHES_CODEC_OPUS, RUSHES_DIRECTION_SEND_RECV);
    }
    connect_both(ends);
    for (int end = 0; end < 2; end++) {
        for (size_t n = 0; n < 2; n++) {
            rushes_peer_stream about;
            OK(rushes_peer_connection_look(ends[end], n, &about, sizeof about));
            CHECK(about.codec == (n == 0 ? RUSHES_CODEC_H264 : RUSHES_CODEC_OPUS));
            CHECK(about.sends && about.receives && about.mid[0] != 0);
            OK(rushes_peer_connection_open(ends[end], n, &streams[end][n]));
        }
    }
    memset(picture + 22, 0x81, sizeof picture - 22);
    for (int end = 0; end < 2; end++) {
        for (int n = 0; n < 5; n++) {
            rushes_frame *frame;
            rushes_frame_view view;
            packet[1] = (uint8_t)n;
            picture[100] = (uint8_t)(0x80 | n);
            OK(rushes_stream_push_frame(streams[end][0], picture, sizeof picture, NULL));
            OK(rushes_stream_push_frame(streams[end][1], packet, sizeof packet, NULL));
            view = pull(streams[1 - end][0], &frame);
            CHECK(view.len == sizeof picture && memcmp(view.data, picture, view.len) == 0);
            OK(rushes_frame_release(frame));
            view = pull(streams[1 - end][1], &frame);
            CHECK(view.len == sizeof packet && memcmp(view.data, packet, view.len) == 0);
            OK(rushes_frame_release(frame));
        }
    }
    OK(rushes_peer_connection_offer_restart(ends[0], &offer));
    OK(rushes_peer_connection_add_fragment(ends[1], offer, &answer));
    CHECK(answer != NULL && strstr(answer, "a=ice-ufrag:") != NULL);
    OK(rushes_peer_connection_set_restart_answer(ends[0], answer));
    // The old path carries the media until there is a new one.
    {
        rushes_frame *frame;
        uint64_t silence;
        OK(rushes_peer_connection_silence(ends[0], &silence));
        CHECK(silence != UINT64_MAX);
        OK(rushes_stream_push_frame(streams[0][0], picture, sizeof picture, NULL));
        CHECK(pull(streams[1][0], &frame).len == sizeof picture);
        OK(rushes_frame_release(frame));
    }
    for (int end = 0; end < 2; end++) {
        bool is_connected = false;
        OK(rushes_peer_connection_is_connected(ends[end], &is_connected));
        CHECK(is_connected);
        OK(rushes_peer_connection_check(ends[end]));
    }
    for (int n = 0; n < 2; n++) OK(rushes_stream_close(streams[0][n]));
    OK(rushes_peer_connection_close(ends[0]));
    while (rushes_peer_connection_check(ends[1]) == RUSHES_OK) {
        OK(rushes_stream_wait(streams[1][0], RUSHES_MILLISECONDS(5)));
    }
    EXPECT(rushes_peer_connection_check(ends[1]), RUSHES_ERROR_ENDED);
    CHECK(strstr(rushes_last_error_message(), "the peer has closed the connection") != NULL);
    OK(rushes_peer_connection_close(ends[1]));
    // The streams are still there, and may be closed later.
    OK(rushes_stream_local_port(streams[1][0], &port));
    for (int n = 0; n < 2; n++) OK(rushes_stream_close(streams[1][n]));
    OK(rushes_context_close(context));
}

static void a_stream_that_the_peer_lacks_is_told(void) {
    rushes_context *context;
    rushes_peer_connection *ends[2];
    rushes_stream_options *options;
    rushes_stream *stream;
    rushes_peer_stream about;
    OK(rushes_context_new(NULL, &context));
    for (int end = 0; end < 2; end++) ends[end] = peer_of(context);
    OK(rushes_peer_stream_options_new(ends[0], RUSHES_CODEC_VP8, &options));
    EXPECT(rushes_peer_connection_add_alternative(ends[0], options), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_peer_connection_add(ends[0], options, 4), RUSHES_ERROR_ARGUMENT);
    add(ends[0], RUSHES_CODEC_AV1, RUSHES_DIRECTION_SEND_ONLY);
    OK(rushes_peer_connection_add_alternative(ends[0], options));
    OK(rushes_stream_options_close(options));
    add(ends[0], RUSHES_CODEC_OPUS, RUSHES_DIRECTION_SEND_ONLY);
    add(ends[1], RUSHES_CODEC_VP8, RUSHES_DIRECTION_RECV_ONLY);
    EXPECT(rushes_peer_connection_open(ends[0], 0, &stream), RUSHES_ERROR_UNSUPPORTED);
    connect_both(ends);
    OK(rushes_peer_connection_look(ends[0], 0, &about, sizeof about));
    CHECK(about.codec == RUSHES_CODEC_VP8 && about.sends && !about.receives);
    EXPECT(rushes_peer_connection_look(ends[0], 1, &about, sizeof about), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_peer_connection_look(ends[0], 2, &about, sizeof about), RUSHES_ERROR_ARGUMENT);
    OK(rushes_peer_connection_open(ends[0], 0, &stream));
    OK(rushes_stream_close(stream));
    EXPECT(rushes_peer_connection_open(ends[0], 0, &stream), RUSHES_ERROR_UNSUPPORTED);
    CHECK(stream == NULL);
    // A stream that was not opened is closed with its connection.
    for (int end = 0; end < 2; end++) OK(rushes_peer_connection_close(ends[end]));
    OK(rushes_context_close(context));
}

static void offers_and_answers_have_an_order(void) {
    rushes_context *context;
    rushes_peer_connection *alice;
    const char *offer, *answer;
    OK(rushes_context_new(NULL, &context));
    alice = peer_of(context);
    add(alice, RUSHES_CODEC_H264, RUSHES_DIRECTION_SEND_RECV);
    EXPECT(rushes_peer_connection_connect(alice, 0), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_peer_connection_set_answer(alice, ""), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_peer_connection_offer_restart(alice, &offer), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_peer_connection_set_restart_answer(alice, ""), RUSHES_ERROR_UNSUPPORTED);
    {
        uint64_t silence = 0;
        OK(rushes_peer_connection_silence(alice, &silence));
        CHECK(offer == NULL && silence == UINT64_MAX);
    }
    EXPECT(rushes_peer_connection_answer(alice, "v=1", &answer), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_peer_connection_answer(alice, NULL, &answer), RUSHES_ERROR_NULL);
    CHECK(answer == NULL);
    OK(rushes_peer_connection_offer(alice, &offer));
    CHECK(strncmp(offer, "v=0\r\n", 5) == 0);
    EXPECT(rushes_peer_connection_offer(alice, &answer), RUSHES_ERROR_UNSUPPORTED);
    CHECK(answer == NULL && strncmp(offer, "v=0\r\n", 5) == 0);
    EXPECT(rushes_peer_connection_set_answer(alice, "v=1"), RUSHES_ERROR_ARGUMENT);
    // Addresses that cannot be used are left out.
    OK(rushes_peer_connection_add_candidate(alice, "nonsense"));
    OK(rushes_peer_connection_close(alice));
    EXPECT(rushes_peer_connection_close(alice), RUSHES_ERROR_CLOSED);
    OK(rushes_context_close(context));
}

/* Waits without end for a peer that does not answer. */
static void *waits(void *peer) {
    EXPECT(rushes_peer_connection_connect(peer, RUSHES_FOREVER), RUSHES_ERROR_CLOSED);
    return NULL;
}

static void closing_ends_a_wait(void) {
    rushes_context *context;
    rushes_peer_connection *ends[2];
    const char *offer, *answer;
    pthread_t other;
    OK(rushes_context_new(NULL, &context));
    for (int end = 0; end < 2; end++) {
        ends[end] = peer_of(context);
        add(ends[end], RUSHES_CODEC_OPUS, RUSHES_DIRECTION_SEND_RECV);
    }
    OK(rushes_peer_connection_offer(ends[0], &offer));
    OK(rushes_peer_connection_answer(ends[1], offer, &answer));
    OK(rushes_peer_connection_set_answer(ends[0], answer));
    EXPECT(rushes_peer_connection_connect(ends[0], 0), RUSHES_TIMEOUT);
    CHECK(pthread_create(&other, NULL, waits, ends[0]) == 0);
    OK(rushes_peer_connection_close(ends[0]));
    CHECK(pthread_join(other, NULL) == 0);
    OK(rushes_peer_connection_close(ends[1]));
    OK(rushes_context_close(context));
}

int main(void) {
    frames_go_both_ways();
    a_stream_that_the_peer_lacks_is_told();
    offers_and_answers_have_an_order();
    closing_ends_a_wait();
}
