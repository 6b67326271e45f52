/* Receives H.265 into a file until the sender sends BYE: receive PORT FILE [zrtp] */
#include <rushes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(rushes_status status, const char *what) {
    if (status >= 0) return;
    fprintf(stderr, "receive: %s: %s\n", what, rushes_last_error_message());
    exit(1);
}

static int32_t compare(void *user, const char *sas, bool is_verified) {
    (void)user;
    printf("agreed: %s%s\n", sas, is_verified ? " (compared before)" : "");
    return 0;
}

/* Called on the thread that reads the port. */
static void on_rtcp(void *user, const rushes_rtcp_event *event) {
    if (event->kind == RUSHES_RTCP_EVENT_KIND_BYE) atomic_store((atomic_int *)user, 1);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: receive PORT FILE [zrtp]\n");
        return 2;
    }
    FILE *file = fopen(argv[2], "wb");
    if (!file) {
        perror(argv[2]);
        return 1;
    }

    static atomic_int is_over;
    rushes_context *context;
    rushes_session *session;
    rushes_stream_options *options;
    rushes_stream *stream;
    check(rushes_context_new(NULL, &context), "context");
    check(rushes_session_new(context, "127.0.0.1", NULL, &session), "session");
    check(rushes_stream_options_new(session, RUSHES_CODEC_H265, &options), "options");
    check(rushes_stream_options_local_port(options, (uint16_t)atoi(argv[1])), "port");
    if (argc > 3 && strcmp(argv[3], "zrtp") == 0) {
        check(rushes_stream_options_zrtp_sas_hook(options, compare, NULL, NULL), "ZRTP");
    }
    check(rushes_stream_open(options, &stream), "stream");
    check(rushes_stream_on_rtcp(stream, on_rtcp, &is_over, NULL), "RTCP hook");

    /* Until ten seconds have passed without a frame, or half a second since BYE. */
    int frames = 0, idle = 0;
    while (idle < (atomic_load(&is_over) ? 5 : 100)) {
        rushes_frame *frame;
        rushes_frame_view view;
        rushes_status status = rushes_stream_pull_frame(stream, RUSHES_MILLISECONDS(100), &frame);
        check(status, "frame");
        if (status == RUSHES_TIMEOUT) {
            idle++;
            continue;
        }
        /* The octets are in memory of the library, which reuses it after the release. */
        check(rushes_frame_look(frame, &view, sizeof view), "view");
        fwrite(view.data, 1, view.len, file);
        check(rushes_frame_release(frame), "release");
        frames++;
        idle = 0;
    }

    printf("%d frames\n", frames);
    check(rushes_stream_close(stream), "close");
    rushes_stream_options_close(options);
    rushes_session_close(session);
    rushes_context_close(context);
    return fclose(file) == 0 ? 0 : 1;
}
