/* Sends a file of H.265: send HOST PORT FILE [FPS] [zrtp] */
#include <rushes.h>
#include <string.h>

#include "nal_file.h"

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

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: send HOST PORT FILE [FPS] [zrtp]\n");
        return 2;
    }
    uint32_t fps = argc > 4 ? (uint32_t)atoi(argv[4]) : 30;
    struct nal_file file;
    if (!nal_file_open(&file, argv[3])) {
        fprintf(stderr, "send: %s cannot be read\n", argv[3]);
        return 1;
    }

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

    const uint8_t *data;
    size_t len;
    while (nal_file_next(&file, &data, &len)) {
        check(rushes_stream_push_frame(stream, data, len, NULL), "frame");
        /* Answers requests and reports meanwhile. */
        check(rushes_stream_wait(stream, RUSHES_SECONDS(1) / fps), "wait");
    }

    rushes_statistics statistics;
    check(rushes_stream_statistics(stream, &statistics, sizeof statistics), "statistics");
    printf("%llu frames in %llu packets\n", (unsigned long long)statistics.frames_sent,
           (unsigned long long)statistics.packets_sent);
    check(rushes_stream_close(stream), "close");
    rushes_stream_options_close(options);
    rushes_session_close(session);
    rushes_context_close(context);
    nal_file_close(&file);
    return 0;
}
