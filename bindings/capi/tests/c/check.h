/* Checks that report the line on failure and end the program. */
#ifndef CHECK_H
#define CHECK_H

#include <rushes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Checks the status of a call. */
#define EXPECT(call, wanted)                                                                       \
    do {                                                                                           \
        rushes_status outcome_ = (call);                                                           \
        if (outcome_ != (wanted)) {                                                                \
            fprintf(stderr, "%s:%d: %s is %d (%s), not %d\n", __FILE__, __LINE__, #call,           \
                    (int)outcome_, rushes_last_error_message(), (int)(wanted));                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) EXPECT(call, RUSHES_OK)

/* A receiver and a sender on this machine. */
struct pair {
    rushes_context *context;
    rushes_session *session;
    rushes_stream *receiver;
    rushes_stream *sender;
};

/* Settings for streams of frames of any kind. */
static inline rushes_stream_options *generic_options(struct pair *pair) {
    rushes_stream_options *options;
    OK(rushes_stream_options_new(pair->session, RUSHES_CODEC_GENERIC, &options));
    return options;
}

static inline struct pair pair_sessions(void) {
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    OK(rushes_context_new("tests@here", &pair.context));
    OK(rushes_session_new(pair.context, "127.0.0.1", "127.0.0.1", &pair.session));
    return pair;
}

static inline struct pair pair_open(void) {
    struct pair pair = pair_sessions();
    uint16_t port;
    rushes_stream_options *options = generic_options(&pair);
    OK(rushes_stream_options_probation(options, 1));
    OK(rushes_stream_open(options, &pair.receiver));
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_options_remote_port(options, port));
    OK(rushes_stream_open(options, &pair.sender));
    OK(rushes_stream_options_close(options));
    return pair;
}

static inline void pair_close(struct pair *pair) {
    if (pair->sender) OK(rushes_stream_close(pair->sender));
    if (pair->receiver) OK(rushes_stream_close(pair->receiver));
    OK(rushes_session_close(pair->session));
    OK(rushes_context_close(pair->context));
}

static inline rushes_frame_view pull(rushes_stream *stream, rushes_frame **frame) {
    rushes_frame_view view;
    OK(rushes_stream_pull_frame(stream, RUSHES_SECONDS(10), frame));
    OK(rushes_frame_look(*frame, &view, sizeof view));
    return view;
}

#endif
