/* Misuse returns an error code and has no other effect. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static void nulls_are_answered(void) {
    struct pair pair = pair_open();
    rushes_frame *frame;
    rushes_frame_view view;
    uint16_t port;
    EXPECT(rushes_context_new(NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_context_close(NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_session_new(NULL, "127.0.0.1", NULL, &pair.session), RUSHES_ERROR_NULL);
    CHECK(pair.session == NULL);
    /* No datagram comes from 0.0.0.0, so a session with it would be silent. */
    EXPECT(rushes_session_new(pair.context, "0.0.0.0", NULL, &pair.session), RUSHES_ERROR_ARGUMENT);
    CHECK(strstr(rushes_last_error_message(), "receive_on") != NULL);
    EXPECT(rushes_session_receive_on(pair.context, NULL, &pair.session), RUSHES_ERROR_NULL);
    OK(rushes_session_receive_on(pair.context, "0.0.0.0", &pair.session));
    OK(rushes_session_close(pair.session));
    OK(rushes_session_new(pair.context, NULL, NULL, &pair.session));
    EXPECT(rushes_stream_open(NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_push_frame(NULL, (const uint8_t *)"x", 1, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_push_frame(pair.sender, NULL, 1, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_push_frame_parts(pair.sender, NULL, 2, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_pull_frame(pair.receiver, 0, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_pull_frame(NULL, 0, &frame), RUSHES_ERROR_NULL);
    CHECK(frame == NULL);
    EXPECT(rushes_stream_on_frame(pair.receiver, NULL, NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_on_event(pair.receiver, NULL, NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_on_rtcp(pair.receiver, NULL, NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_local_port(pair.receiver, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_local_port(NULL, &port), RUSHES_ERROR_NULL);
    EXPECT(rushes_frame_look(NULL, &view, sizeof view), RUSHES_ERROR_NULL);
    EXPECT(rushes_frame_release(NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_stream_statistics(pair.receiver, NULL, 8), RUSHES_ERROR_NULL);
    EXPECT(rushes_texture_connect(NULL, NULL, NULL, NULL, NULL, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_texture_serve("127.0.0.1:0", NULL, NULL, NULL), RUSHES_ERROR_NULL);
    CHECK(strlen(rushes_last_error_message()) > 0);
    pair_close(&pair);
}

static void handles_of_another_kind_are_recognised(void) {
    struct pair pair = pair_open();
    int number = 0;
    rushes_stream *wrong = (rushes_stream *)(void *)pair.session;
    EXPECT(rushes_stream_close(wrong), RUSHES_ERROR_HANDLE);
    EXPECT(rushes_stream_push_frame(wrong, (const uint8_t *)"x", 1, NULL), RUSHES_ERROR_HANDLE);
    EXPECT(rushes_stream_close((rushes_stream *)(void *)&number), RUSHES_ERROR_HANDLE);
    EXPECT(rushes_stream_close((rushes_stream *)UINTPTR_MAX), RUSHES_ERROR_HANDLE);
    CHECK(strcmp(rushes_last_error_message(), "invalid handle of a stream") == 0);
    pair_close(&pair);
}

static void what_is_closed_is_gone(void) {
    struct pair pair = pair_open();
    rushes_frame *frame;
    rushes_frame_view view;
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"kept", 4, NULL));
    view = pull(pair.receiver, &frame);
    OK(rushes_stream_close(pair.receiver));
    EXPECT(rushes_stream_close(pair.receiver), RUSHES_ERROR_CLOSED);
    EXPECT(rushes_stream_pull_frame(pair.receiver, 0, &frame), RUSHES_ERROR_CLOSED);
    CHECK(frame == NULL);
    EXPECT(rushes_stream_request_key_frame(pair.receiver, 1), RUSHES_ERROR_CLOSED);
    pair.receiver = NULL;
    /* The frame belongs to the application, even after its stream is closed. */
    CHECK(view.len == 4 && memcmp(view.data, "kept", 4) == 0);
    pair_close(&pair);
    EXPECT(rushes_session_close(pair.session), RUSHES_ERROR_CLOSED);
    EXPECT(rushes_context_close(pair.context), RUSHES_ERROR_CLOSED);
}

static void frames_are_released_once(void) {
    struct pair pair = pair_open();
    rushes_frame *first, *second;
    rushes_frame_view view;
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"one", 3, NULL));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"two", 3, NULL));
    pull(pair.receiver, &first);
    OK(rushes_frame_release(first));
    EXPECT(rushes_frame_release(first), RUSHES_ERROR_CLOSED);
    EXPECT(rushes_frame_look(first, &view, sizeof view), RUSHES_ERROR_CLOSED);
    view = pull(pair.receiver, &second);
    EXPECT(rushes_frame_release(first), RUSHES_ERROR_CLOSED);
    CHECK(memcmp(view.data, "two", 3) == 0);
    OK(rushes_stream_close(pair.receiver));
    pair.receiver = NULL;
    CHECK(memcmp(view.data, "two", 3) == 0);
    OK(rushes_frame_release(second));
    pair_close(&pair);
}

static void arguments_out_of_range_are_told(void) {
    struct pair pair = pair_sessions();
    rushes_stream_options *options;
    rushes_stream *stream;
    uint8_t key[28] = {0};
    char text[4];
    EXPECT(rushes_stream_options_new(pair.session, 99, &options), RUSHES_ERROR_ARGUMENT);
    CHECK(options == NULL);
    options = generic_options(&pair);
    EXPECT(rushes_stream_options_payload_type(options, 128), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_clock_rate(options, 0), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_frame_rate(options, 0, 1), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_send_path(options, "pigeon"), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_multicast(options, 1, true), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_recovery(options, 7, 0), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_fec(options, 7, 20, RUSHES_FEC_FORMAT_FLEXFEC), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_fec(options, RUSHES_FEC_MODE_PERCENT, 20, 3), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_interface(options, "\xff"), RUSHES_ERROR_TEXT);
    EXPECT(rushes_stream_options_srtp(options, 0, key, 28), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_srtp(options, INT32_MIN, key, 28), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_options_srtp(options, RUSHES_SRTP_SUITE_AEAD_AES128_GCM, key, 27),
           RUSHES_ERROR_KEY);
    OK(rushes_stream_options_rtx_ssrc(options, 8));
    OK(rushes_stream_options_remote_rtx_ssrc(options, 9));
    EXPECT(rushes_stream_open(options, &stream), RUSHES_ERROR_ARGUMENT);
    CHECK(stream == NULL && strstr(rushes_last_error_message(), "SSRC of retransmissions") != NULL);
    OK(rushes_stream_options_recovery(options, RUSHES_RECOVERY_MODE_RTX, 0));
    OK(rushes_stream_options_mtu(options, 99));
    EXPECT(rushes_stream_open(options, &stream), RUSHES_ERROR_ARGUMENT);
    CHECK(stream == NULL && strstr(rushes_last_error_message(), "MTU of 99") != NULL);
    OK(rushes_stream_options_mtu(options, 1500));
    OK(rushes_stream_open(options, &stream));
    EXPECT(rushes_stream_push_frame(stream, key, 28, NULL), RUSHES_ERROR_NO_DESTINATION);
    EXPECT(rushes_stream_local_address(stream, text, sizeof text), RUSHES_ERROR_BUFFER);
    EXPECT(rushes_stream_send_app(stream, 0, "long name", NULL, 0), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_stream_begin(options, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_session_verify_sas(pair.session, true), RUSHES_ERROR_UNSUPPORTED);
    OK(rushes_stream_close(stream));
    OK(rushes_stream_options_close(options));
    EXPECT(rushes_stream_options_mtu(options, 1500), RUSHES_ERROR_CLOSED);
    pair_close(&pair);
}

static void every_source_of_a_group_counts(void) {
    struct pair pair = pair_sessions();
    rushes_session *session;
    rushes_stream_options *options;
    rushes_stream *stream;
    OK(rushes_session_new(pair.context, "232.255.82.84", NULL, &session));
    OK(rushes_stream_options_new(session, RUSHES_CODEC_GENERIC, &options));
    OK(rushes_stream_options_multicast_source(options, "::1"));
    OK(rushes_stream_options_multicast_source(options, "127.0.0.1"));
    CHECK(rushes_stream_open(options, &stream) != RUSHES_OK);
    CHECK(strstr(rushes_last_error_message(), "::1 is no host that can send") != NULL);
    OK(rushes_stream_options_close(options));
    OK(rushes_session_close(session));
    pair_close(&pair);
}

static void nap(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

static void *pulls_for_ever(void *user) {
    rushes_frame *frame;
    rushes_status status;
    do {
        status = rushes_stream_pull_frame(user, RUSHES_FOREVER, &frame);
    } while (status == RUSHES_ERROR_BUSY);
    return (void *)(intptr_t)status;
}

static void one_thread_pulls_and_closing_wakes_it(void) {
    struct pair pair = pair_open();
    rushes_frame *frame;
    pthread_t thread;
    void *status;
    CHECK(pthread_create(&thread, NULL, pulls_for_ever, pair.receiver) == 0);
    /* Repeated until that thread pulls. */
    while (rushes_stream_pull_frame(pair.receiver, 0, &frame) == RUSHES_TIMEOUT) nap();
    EXPECT(rushes_stream_pull_frame(pair.receiver, 0, &frame), RUSHES_ERROR_BUSY);
    EXPECT(rushes_stream_on_frame(pair.receiver, (rushes_frame_hook)abort, NULL, NULL),
           RUSHES_ERROR_BUSY);
    OK(rushes_stream_close(pair.receiver));
    CHECK(pthread_join(thread, &status) == 0);
    CHECK((intptr_t)status == RUSHES_ERROR_CLOSED);
    pair.receiver = NULL;
    pair_close(&pair);
}

static void *waits_for_ever(void *user) {
    rushes_stream *stream;
    rushes_status status;
    do {
        status = rushes_opening_wait(user, RUSHES_FOREVER, &stream);
    } while (status == RUSHES_ERROR_BUSY);
    return (void *)(intptr_t)status;
}

static void closing_an_opening_wakes_who_waits(void) {
    struct pair pair = pair_sessions();
    rushes_stream_options *options = generic_options(&pair);
    rushes_opening *opening;
    rushes_stream *stream;
    pthread_t thread;
    void *status;
    OK(rushes_stream_options_zrtp(options));
    OK(rushes_stream_begin(options, &opening));
    CHECK(pthread_create(&thread, NULL, waits_for_ever, opening) == 0);
    while (rushes_opening_wait(opening, 0, &stream) == RUSHES_TIMEOUT) nap();
    EXPECT(rushes_opening_wait(opening, 0, &stream), RUSHES_ERROR_BUSY);
    OK(rushes_opening_close(opening));
    EXPECT(rushes_opening_close(opening), RUSHES_ERROR_CLOSED);
    CHECK(pthread_join(thread, &status) == 0);
    CHECK((intptr_t)status == RUSHES_ERROR_CLOSED);
    OK(rushes_stream_options_close(options));
    pair_close(&pair);
}

/* The results of calls made within a hook. */
struct tried {
    rushes_stream *stream;
    rushes_stream *sender;
    atomic_int calls;
    atomic_int released;
    rushes_status push, pull, close, hook;
};

static void released(void *user) { atomic_fetch_add(&((struct tried *)user)->released, 1); }

static void closes_itself(void *user, rushes_frame *frame) {
    struct tried *tried = user;
    rushes_frame *none;
    tried->push = rushes_stream_push_frame(tried->sender, (const uint8_t *)"echo", 4, NULL);
    tried->pull = rushes_stream_pull_frame(tried->stream, 0, &none);
    tried->close = rushes_stream_close(tried->stream);
    CHECK(atomic_load(&tried->released) == 0);
    /* A hook may release the frame that it was lent. */
    OK(rushes_frame_release(frame));
    atomic_fetch_add(&tried->calls, 1);
}

static void wait_for(atomic_int *number, int wanted) {
    for (int n = 0; n < 10000 && atomic_load(number) < wanted; n++) nap();
    CHECK(atomic_load(number) == wanted);
}

static void a_receive_hook_may_close_its_own_stream(void) {
    struct pair pair = pair_open();
    struct tried tried = {.stream = pair.receiver, .sender = pair.sender};
    OK(rushes_stream_on_frame(pair.receiver, closes_itself, &tried, released));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"x", 1, NULL));
    wait_for(&tried.released, 1);
    CHECK(atomic_load(&tried.calls) == 1);
    CHECK(tried.push == RUSHES_OK && tried.close == RUSHES_OK);
    CHECK(tried.pull == RUSHES_ERROR_HOOKED);
    EXPECT(rushes_stream_close(pair.receiver), RUSHES_ERROR_CLOSED);
    pair.receiver = NULL;
    pair_close(&pair);
}

static void on_rtcp(void *user, const rushes_rtcp_event *event) {
    struct tried *tried = user;
    rushes_frame *none;
    CHECK(event->kind >= 0);
    tried->close = rushes_stream_close(tried->stream);
    tried->hook = rushes_stream_on_rtcp(tried->stream, on_rtcp, NULL, NULL);
    tried->pull = rushes_stream_pull_frame(tried->stream, 0, &none);
    atomic_fetch_add(&tried->calls, 1);
}

static void an_rtcp_hook_is_busy_rather_than_stuck(void) {
    struct pair pair = pair_open();
    struct tried tried = {.stream = pair.receiver};
    rushes_frame *frame;
    OK(rushes_stream_on_rtcp(pair.receiver, on_rtcp, &tried, released));
    OK(rushes_stream_send_app(pair.sender, 1, "test", NULL, 0));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"x", 1, NULL));
    OK(rushes_stream_send_bye(pair.sender, "done"));
    for (int n = 0; n < 200 && atomic_load(&tried.calls) == 0; n++) {
        rushes_status status =
            rushes_stream_pull_frame(pair.receiver, RUSHES_MILLISECONDS(50), &frame);
        if (status == RUSHES_OK) OK(rushes_frame_release(frame));
    }
    CHECK(atomic_load(&tried.calls) > 0);
    CHECK(tried.close == RUSHES_ERROR_BUSY && tried.pull == RUSHES_ERROR_BUSY);
    CHECK(tried.hook == RUSHES_ERROR_BUSY);
    CHECK(atomic_load(&tried.released) == 0);
    OK(rushes_stream_close(pair.receiver));
    CHECK(atomic_load(&tried.released) == 1);
    pair.receiver = NULL;
    pair_close(&pair);
}

static void a_refused_hook_is_released_at_once(void) {
    struct pair pair = pair_open();
    struct tried tried = {0};
    OK(rushes_stream_on_frame(pair.receiver, closes_itself, &tried, NULL));
    EXPECT(rushes_stream_on_frame(pair.receiver, closes_itself, &tried, released),
           RUSHES_ERROR_HOOKED);
    CHECK(atomic_load(&tried.released) == 1);
    EXPECT(rushes_stream_on_event(pair.receiver, (rushes_event_hook)abort, &tried, released),
           RUSHES_ERROR_HOOKED);
    CHECK(atomic_load(&tried.released) == 2);
    pair_close(&pair);
}

static void closes_the_stream(void *user, const rushes_event *event) {
    struct tried *tried = user;
    (void)event;
    tried->close = rushes_stream_close(tried->stream);
    atomic_fetch_add(&tried->calls, 1);
}

static void is_given_a_frame(void *user, rushes_frame *frame) {
    (void)frame;
    atomic_fetch_add(&((struct tried *)user)->calls, 100);
}

static void an_event_hook_that_closes_is_the_last_to_be_called(void) {
    struct pair pair = pair_open();
    struct tried tried = {.stream = pair.receiver};
    OK(rushes_stream_on_event(pair.receiver, closes_the_stream, &tried, released));
    /* The datagrams are read together: the event that the source has started comes with a frame. */
    for (int n = 0; n < 5; n++) {
        OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"x", 1, NULL));
    }
    OK(rushes_stream_on_frame(pair.receiver, is_given_a_frame, &tried, released));
    wait_for(&tried.released, 2);
    CHECK(tried.close == RUSHES_OK && atomic_load(&tried.calls) == 1);
    pair.receiver = NULL;
    pair_close(&pair);
}

/* A release function may make every call that its caller may. */
static void pulls_on_release(void *user) {
    struct tried *tried = user;
    rushes_frame *none;
    tried->pull = rushes_stream_pull_frame(tried->stream, 0, &none);
    released(user);
}

static rushes_stream_options *options_of_release;

static void sets_on_release(void *user) {
    ((struct tried *)user)->push = rushes_stream_options_mtu(options_of_release, 1400);
    released(user);
}

static void a_release_is_called_without_locks(void) {
    struct pair pair = pair_open();
    struct tried tried = {.stream = pair.receiver};
    OK(rushes_stream_on_event(pair.receiver, closes_the_stream, &tried, pulls_on_release));
    OK(rushes_stream_on_event(pair.receiver, closes_the_stream, &tried, NULL));
    CHECK(atomic_load(&tried.released) == 1 && tried.pull == RUSHES_TIMEOUT);
    options_of_release = generic_options(&pair);
    EXPECT(rushes_stream_options_zrtp_sas_hook(options_of_release, NULL, &tried, sets_on_release),
           RUSHES_ERROR_NULL);
    CHECK(atomic_load(&tried.released) == 2 && tried.push == RUSHES_OK);
    OK(rushes_stream_options_zrtp_sas_hook(options_of_release, (rushes_sas_hook)abort, &tried,
                                           sets_on_release));
    CHECK(atomic_load(&tried.released) == 2);
    OK(rushes_stream_options_zrtp_sas_hook(options_of_release, (rushes_sas_hook)abort, NULL, NULL));
    CHECK(atomic_load(&tried.released) == 3 && tried.push == RUSHES_OK);
    OK(rushes_stream_options_close(options_of_release));
    pair_close(&pair);
}

static void *message_length(void *user) {
    (void)user;
    return (void *)(intptr_t)strlen(rushes_last_error_message());
}

static void messages_are_each_threads_own(void) {
    pthread_t thread;
    void *len;
    EXPECT(rushes_context_close(NULL), RUSHES_ERROR_NULL);
    CHECK(pthread_create(&thread, NULL, message_length, NULL) == 0);
    CHECK(pthread_join(thread, &len) == 0 && len == NULL);
    CHECK(strcmp(rushes_last_error_message(), "the handle of a context is null") == 0);
    CHECK(strcmp(rushes_status_name(RUSHES_ERROR_NULL), "null pointer") == 0);
    CHECK(strcmp(rushes_status_name(12345), "unknown") == 0);
    CHECK(strcmp(rushes_version(), RUSHES_VERSION) == 0);
}

int main(void) {
    nulls_are_answered();
    handles_of_another_kind_are_recognised();
    what_is_closed_is_gone();
    frames_are_released_once();
    arguments_out_of_range_are_told();
    every_source_of_a_group_counts();
    one_thread_pulls_and_closing_wakes_it();
    closing_an_opening_wakes_who_waits();
    a_receive_hook_may_close_its_own_stream();
    an_rtcp_hook_is_busy_rather_than_stuck();
    a_refused_hook_is_released_at_once();
    an_event_hook_that_closes_is_the_last_to_be_called();
    a_release_is_called_without_locks();
    messages_are_each_threads_own();
    return 0;
}
