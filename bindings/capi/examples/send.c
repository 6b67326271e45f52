/* Sends a file, or what a program writes into a pipe:
     send HOST PORT FILE [FPS] [zrtp]
     ffmpeg -i CAMERA -c:v libx265 -tune zerolatency -f hevc - | send HOST PORT -
   Both are H.265. */
#include <rushes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(rushes_status status, const char *what) {
    if (status >= 0) return;
    fprintf(stderr, "send: %s: %s\n", what, rushes_last_error_message());
    exit(1);
}

/* Both ends show the same string, unless there is a man in the middle. */
static int32_t compare(void *user, const char *sas, bool is_verified) {
    (void)user;
    printf("agreed: %s%s\n", sas, is_verified ? " (compared before)" : "");
    return 0;
}

/* Prints messages of the library, for example that the system limits a buffer. */
static void show(void *user, int32_t level, const char *text) {
    (void)user, (void)level;
    fprintf(stderr, "send: %s\n", text);
}

/* Sends a frame of a file at the time given by its place in the file, and a live one at once. */
static void send_frame(rushes_stream *stream, const rushes_media_frame *frame, uint32_t start,
                       uint32_t fps) {
    if (frame->age != UINT64_MAX) {
        check(rushes_stream_push_frame_captured(stream, frame->data, frame->len, NULL, frame->age),
              "frame");
        return;
    }
    /* Timestamps follow the order of presentation, not that of the file, at 90 kHz for video. */
    uint32_t timestamp = start + (uint32_t)(frame->position * 90000 / (120 * (int64_t)fps));
    check(rushes_stream_push_frame(stream, frame->data, frame->len,
                                   frame->is_picture ? &timestamp : NULL),
          "frame");
    /* Waits, and answers requests and reports meanwhile. */
    check(rushes_stream_wait(stream, RUSHES_SECONDS(1) / fps), "wait");
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: send HOST PORT FILE|- [FPS] [zrtp]\n");
        return 2;
    }
    uint32_t fps = argc > 4 ? (uint32_t)atoi(argv[4]) : 30, start;
    if (fps == 0) {
        fprintf(stderr, "send: %s frames per second: try 30\n", argv[4]);
        return 2;
    }
    rushes_media_reader *reader;
    check(rushes_set_log(RUSHES_LOG_LEVEL_WARNING, show, NULL, NULL), "log");
    check(rushes_media_reader_open(argv[3], RUSHES_CODEC_H265, NULL, 0, &reader), "file");

    rushes_context *context;
    rushes_session *session;
    rushes_stream_options *options;
    rushes_stream *stream;
    check(rushes_context_new(NULL, &context), "context");
    check(rushes_session_new(context, argv[1], NULL, &session), "session");
    check(rushes_stream_options_new(session, RUSHES_CODEC_H265, &options), "options");
    check(rushes_stream_options_remote_port(options, (uint16_t)atoi(argv[2])), "port");
    check(rushes_stream_options_frame_rate(options, fps, 1), "frame rate");
    if (argc > 5 && strcmp(argv[5], "zrtp") == 0) {
        check(rushes_stream_options_zrtp_sas_hook(options, compare, NULL, NULL), "ZRTP");
    }
    check(rushes_stream_open(options, &stream), "stream");
    check(rushes_stream_next_timestamp(stream, &start), "timestamp");

    rushes_media_frame frame;
    rushes_status status;
    do {
        status = rushes_media_reader_next(reader, RUSHES_MILLISECONDS(10), &frame, sizeof frame);
        if (status == RUSHES_OK) send_frame(stream, &frame, start, fps);
        /* A live source has no frame yet. */
        if (status == RUSHES_TIMEOUT) check(rushes_stream_wait(stream, 0), "wait");
    } while (status >= 0);
    if (status != RUSHES_ERROR_ENDED) check(status, "file");

    rushes_statistics statistics;
    check(rushes_stream_statistics(stream, &statistics, sizeof statistics), "statistics");
    printf("%llu frames in %llu packets\n", (unsigned long long)statistics.frames_sent,
           (unsigned long long)statistics.packets_sent);
    check(rushes_stream_close(stream), "close");
    rushes_stream_options_close(options);
    rushes_session_close(session);
    rushes_context_close(context);
    rushes_media_reader_close(reader);
    return 0;
}
