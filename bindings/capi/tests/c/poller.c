/* Many streams on one thread, through the C interface. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { STREAMS = 8 };

/* Pulls a frame of a poller, which must be `text`; returns its token. */
static uint64_t pull_of(rushes_poller *poller, const char *text) {
    uint64_t token;
    rushes_frame *frame;
    rushes_frame_view view;
    OK(rushes_poller_pull(poller, RUSHES_SECONDS(10), &token, &frame));
    OK(rushes_frame_look(frame, &view, sizeof view));
    CHECK(view.len == strlen(text) && memcmp(view.data, text, view.len) == 0);
    OK(rushes_frame_release(frame));
    return token;
}

static rushes_push push_of(rushes_stream *stream, const char *text) {
    rushes_push push = {stream, (const uint8_t *)text, strlen(text), NULL};
    return push;
}

static void frames_arrive_with_the_tokens_of_their_streams(void) {
    struct pair pairs[STREAMS];
    rushes_push frames[STREAMS];
    rushes_status results[STREAMS];
    rushes_poller *poller;
    rushes_frame *frame;
    uint64_t token, seen = 0;
    OK(rushes_poller_new(&poller));
    for (uint64_t n = 0; n < STREAMS; n++) {
        pairs[n] = pair_open();
        OK(rushes_poller_add(poller, pairs[n].receiver, n));
        OK(rushes_poller_add_sender(poller, pairs[n].sender, 100 + n));
        frames[n] = push_of(pairs[n].sender, "frame");
    }
    OK(rushes_push_many(frames, STREAMS, results));
    for (int n = 0; n < STREAMS; n++) {
        CHECK(results[n] == RUSHES_OK);
        seen |= (uint64_t)1 << pull_of(poller, "frame");
    }
    CHECK(seen == (1 << STREAMS) - 1);
    EXPECT(rushes_poller_pull(poller, 0, &token, &frame), RUSHES_TIMEOUT);
    CHECK(frame == NULL);
    OK(rushes_poller_timeout(poller, &token));
    OK(rushes_poller_close(poller));
    EXPECT(rushes_poller_close(poller), RUSHES_ERROR_CLOSED);
    for (int n = 0; n < STREAMS; n++) pair_close(&pairs[n]);
}

static void a_stream_is_in_one_place_at_a_time(void) {
    struct pair pair = pair_open(), other = pair_open();
    rushes_poller *poller, *second;
    rushes_frame *frame;
    rushes_statistics statistics;
    OK(rushes_poller_new(&poller));
    OK(rushes_poller_new(&second));
    OK(rushes_poller_add(poller, pair.receiver, UINT64_MAX));
    EXPECT(rushes_stream_pull_frame(pair.receiver, 0, &frame), RUSHES_ERROR_HOOKED);
    CHECK(strstr(rushes_last_error_message(), "poller") != NULL);
    EXPECT(rushes_poller_add(second, pair.receiver, 1), RUSHES_ERROR_HOOKED);
    EXPECT(rushes_poller_add(poller, other.receiver, UINT64_MAX), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_poller_add_sender(poller, other.sender, UINT64_MAX), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_pull_frame(other.receiver, 0, &frame), RUSHES_TIMEOUT);

    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"one", 3, NULL));
    CHECK(pull_of(poller, "one") == UINT64_MAX);
    OK(rushes_stream_statistics(pair.receiver, &statistics, sizeof statistics));
    CHECK(statistics.frames_received == 1);
    EXPECT(rushes_poller_remove(poller, 7), RUSHES_ERROR_ARGUMENT);
    OK(rushes_poller_remove(poller, UINT64_MAX));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"two", 3, NULL));
    CHECK(pull(pair.receiver, &frame).len == 3);
    OK(rushes_frame_release(frame));

    /* A poller that is closed gives its streams back. */
    OK(rushes_poller_add(second, pair.receiver, 1));
    OK(rushes_poller_close(second));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"three", 5, NULL));
    CHECK(pull(pair.receiver, &frame).len == 5);
    OK(rushes_frame_release(frame));

    /* A stream that is closed leaves the poller, and its token is free. */
    OK(rushes_poller_add(poller, pair.receiver, 2));
    OK(rushes_stream_close(pair.receiver));
    pair.receiver = NULL;
    OK(rushes_poller_add(poller, other.receiver, 2));
    OK(rushes_stream_push_frame(other.sender, (const uint8_t *)"four", 4, NULL));
    CHECK(pull_of(poller, "four") == 2);
    OK(rushes_poller_close(poller));
    pair_close(&pair);
    pair_close(&other);
}

static atomic_int is_received;

static void *wait_for_three(void *user) {
    uint64_t token;
    rushes_frame *frame;
    EXPECT(rushes_poller_pull(user, RUSHES_FOREVER, &token, &frame), RUSHES_TIMEOUT);
    CHECK(pull_of(user, "frame") == 5);
    atomic_store(&is_received, 1);
    EXPECT(rushes_poller_pull(user, RUSHES_FOREVER, &token, &frame), RUSHES_ERROR_CLOSED);
    return NULL;
}

static void a_wait_can_be_ended_and_used_by_another_thread(void) {
    struct pair pair = pair_open();
    rushes_poller *poller;
    pthread_t thread;
    OK(rushes_poller_new(&poller));
    CHECK(pthread_create(&thread, NULL, wait_for_three, poller) == 0);
    OK(rushes_poller_wake(poller));
    OK(rushes_poller_add(poller, pair.receiver, 5));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"frame", 5, NULL));
    while (!atomic_load(&is_received)) OK(rushes_stream_wait(pair.sender, RUSHES_MILLISECONDS(1)));
    OK(rushes_poller_close(poller));
    CHECK(pthread_join(thread, NULL) == 0);
    pair_close(&pair);
}

static void on_event(void *user, const rushes_event *event) {
    uint64_t token;
    rushes_frame *frame;
    (void)event;
    /* This runs within the pull. */
    EXPECT(rushes_poller_pull(user, 0, &token, &frame), RUSHES_ERROR_BUSY);
    EXPECT(rushes_poller_remove(user, 1), RUSHES_ERROR_BUSY);
    EXPECT(rushes_poller_close(user), RUSHES_ERROR_BUSY);
}

static void the_descriptor_is_readable_while_there_is_something_to_do(void) {
    struct pair pair = pair_open();
    rushes_poller *poller;
    int descriptor;
    OK(rushes_poller_new(&poller));
    OK(rushes_stream_on_event(pair.receiver, on_event, poller, NULL));
    OK(rushes_poller_add(poller, pair.receiver, 1));
    rushes_status status = rushes_poller_descriptor(poller, &descriptor);
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"frame", 5, NULL));
    if (status != RUSHES_ERROR_UNSUPPORTED) {
        struct pollfd waiting = {.fd = descriptor, .events = POLLIN};
        CHECK(status == RUSHES_OK && poll(&waiting, 1, 10000) == 1);
    }
    CHECK(pull_of(poller, "frame") == 1);
    OK(rushes_poller_close(poller));
    pair_close(&pair);
}

static void each_frame_has_a_result(void) {
    struct pair pair = pair_open(), closed = pair_open();
    rushes_stream *gone = closed.sender;
    rushes_frame *frame;
    rushes_status results[5];
    uint32_t timestamp = 7;
    OK(rushes_stream_close(gone));
    closed.sender = NULL;
    rushes_push frames[5] = {
        push_of(pair.sender, "one"), push_of(gone, "two"),    push_of(NULL, "three"),
        push_of(pair.sender, ""),    push_of(pair.sender, "four"),
    };
    frames[4].timestamp = &timestamp;
    EXPECT(rushes_push_many(frames, 5, results), RUSHES_ERROR_CLOSED);
    CHECK(results[0] == RUSHES_OK && results[1] == RUSHES_ERROR_CLOSED);
    CHECK(results[2] == RUSHES_ERROR_NULL && results[3] == RUSHES_ERROR_FRAME);
    CHECK(results[4] == RUSHES_OK);
    CHECK(pull(pair.receiver, &frame).len == 3);
    OK(rushes_frame_release(frame));
    CHECK(pull(pair.receiver, &frame).timestamp == 7);
    OK(rushes_frame_release(frame));
    OK(rushes_push_many(frames, 1, NULL));
    OK(rushes_push_many(NULL, 0, NULL));
    EXPECT(rushes_push_many(NULL, 1, results), RUSHES_ERROR_NULL);
    pair_close(&pair);
    pair_close(&closed);
}

int main(void) {
    frames_arrive_with_the_tokens_of_their_streams();
    a_stream_is_in_one_place_at_a_time();
    a_wait_can_be_ended_and_used_by_another_thread();
    the_descriptor_is_readable_while_there_is_something_to_do();
    each_frame_has_a_result();
    return 0;
}
