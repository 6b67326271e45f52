/* Media files, live sources, counters by reason, and messages through the C interface. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define CLIP MEDIA "/hevc_192x128_90f_tiny_nals.265"

static rushes_media_reader *reader_of(const char *path, int32_t codec) {
    rushes_media_reader *reader;
    OK(rushes_media_reader_open(path, codec, NULL, 0, &reader));
    return reader;
}

static rushes_media_frame next(rushes_media_reader *reader, rushes_status wanted) {
    rushes_media_frame frame;
    EXPECT(rushes_media_reader_next(reader, RUSHES_SECONDS(20), &frame, sizeof frame), wanted);
    return frame;
}

static void a_file_is_read_frame_by_frame(void) {
    rushes_media_reader *reader = reader_of(CLIP, 0);
    rushes_media_frame frame;
    FILE *file = fopen(CLIP, "rb");
    bool is_live = true;
    uint32_t rate[2];
    CHECK(file != NULL);
    OK(rushes_media_reader_is_live(reader, &is_live));
    CHECK(!is_live);
    OK(rushes_media_reader_frame_rate(reader, &rate[0], &rate[1]));
    CHECK(rate[0] == 30 && rate[1] == 1);
    for (int n = 0; n < 90; n++) {
        frame = next(reader, RUSHES_OK);
        uint8_t *octets = malloc(frame.len);
        CHECK(fread(octets, 1, frame.len, file) == frame.len);
        CHECK(memcmp(octets, frame.data, frame.len) == 0);
        free(octets);
        CHECK(frame.is_picture && !frame.is_field && frame.position % 120 == 0);
        CHECK(frame.rate_frames == 30 && frame.rate_seconds == 1);
        CHECK(frame.age == UINT64_MAX && frame.duration == 0 && frame.is_ahead);
    }
    CHECK(fgetc(file) == EOF);
    fclose(file);
    next(reader, RUSHES_ERROR_ENDED);
    next(reader, RUSHES_ERROR_ENDED);
    OK(rushes_media_reader_close(reader));
    next(reader, RUSHES_ERROR_CLOSED);
}

static void samples_say_how_they_are_sampled(void) {
    char path[] = "/tmp/rushes-XXXXXX";
    int file = mkstemp(path);
    // 1 024 samples of 16 bits of one channel at 32 000 Hz.
    uint8_t octets[44 + 2048] = "RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\1\0\1\0"
                                "\0\x7d\0\0\0\xfa\0\0\2\0\x10\0data\0\x08\0";
    rushes_read_options options = {.packet_time = RUSHES_SECONDS(1) / 100};
    rushes_media_reader *reader;
    uint32_t rate;
    uint8_t channels;
    octets[44] = 1;
    CHECK(write(file, octets, sizeof octets) == sizeof octets);
    close(file);
    OK(rushes_media_reader_open(path, RUSHES_CODEC_L16, &options, sizeof options, &reader));
    OK(rushes_media_reader_sampling(reader, &rate, &channels));
    CHECK(rate == 32000 && channels == 1);
    rushes_media_frame frame = next(reader, RUSHES_OK);
    CHECK(frame.len == 640 && frame.duration == 320 && frame.data[0] == 0 && frame.data[1] == 1);
    OK(rushes_media_reader_close(reader));
    reader = reader_of(CLIP, 0);
    EXPECT(rushes_media_reader_sampling(reader, &rate, &channels), RUSHES_TIMEOUT);
    OK(rushes_media_reader_close(reader));
    remove(path);
}

static void a_generic_file_is_cut_at_a_length(void) {
    char path[] = "/tmp/rushes-XXXXXX";
    int file = mkstemp(path);
    uint8_t octets[2500] = {1};
    rushes_read_options options = {.frame_len = 1000};
    rushes_media_reader *reader;
    CHECK(file >= 0 && write(file, octets, sizeof octets) == sizeof octets);
    close(file);
    OK(rushes_media_reader_open(path, RUSHES_CODEC_GENERIC, &options, sizeof options, &reader));
    CHECK(next(reader, RUSHES_OK).len == 1000);
    CHECK(!next(reader, RUSHES_OK).is_picture);
    CHECK(next(reader, RUSHES_OK).len == 500);
    next(reader, RUSHES_ERROR_ENDED);
    OK(rushes_media_reader_close(reader));
    /* The file is not H.265. */
    EXPECT(rushes_media_reader_open(path, RUSHES_CODEC_H265, NULL, 0, &reader), RUSHES_ERROR_FILE);
    CHECK(strstr(rushes_last_error_message(), path) != NULL && reader == NULL);
    unlink(path);
}

static void uncompressed_video_is_sent_from_a_file(void) {
    char path[] = "/tmp/rushes-XXXXXX";
    int file = mkstemp(path);
    static const char film[] = "YUV4MPEG2 W4 H2 F25:1 Ip C420jpeg\nFRAME\nabcdefgh1278";
    rushes_read_options options = {
        .raw_video = {.width = 3, .height = 1, .sampling = RUSHES_SAMPLING_RGB, .depth = 8}};
    rushes_raw_video video;
    rushes_media_reader *reader;
    size_t len = 0;
    CHECK(file >= 0 && write(file, film, sizeof film - 1) == sizeof film - 1);
    OK(rushes_media_reader_open(path, RUSHES_CODEC_UNCOMPRESSED, NULL, 0, &reader));
    OK(rushes_media_reader_raw_video(reader, &video, sizeof video));
    CHECK(video.width == 4 && video.height == 2 && video.depth == 8);
    CHECK(video.sampling == RUSHES_SAMPLING_YCBCR420 && video.scan == RUSHES_SCAN_PROGRESSIVE);
    OK(rushes_raw_video_frame_len(&video, sizeof video, &len));
    CHECK(len == 12 && memcmp(next(reader, RUSHES_OK).data, "abef17cdgh28", 12) == 0);
    OK(rushes_media_reader_close(reader));
    /* The same octets as frames without a header. */
    CHECK(pwrite(file, "no header", 9, 0) == 9 && ftruncate(file, 9) == 0);
    close(file);
    OK(rushes_media_reader_open(path, RUSHES_CODEC_UNCOMPRESSED, &options, sizeof options, &reader));
    CHECK(next(reader, RUSHES_OK).len == 9);
    OK(rushes_media_reader_close(reader));
    options.raw_video.depth = 9;
    EXPECT(rushes_media_reader_open(path, RUSHES_CODEC_UNCOMPRESSED, &options, sizeof options, &reader),
           RUSHES_ERROR_ARGUMENT);
    reader = reader_of(CLIP, 0);
    EXPECT(rushes_media_reader_raw_video(reader, &video, sizeof video), RUSHES_TIMEOUT);
    OK(rushes_media_reader_close(reader));
    unlink(path);
}

static void wrong_files_and_settings_are_errors(void) {
    rushes_media_reader *reader;
    rushes_media_frame frame;
    rushes_read_options options = {.rate_frames = 25};
    EXPECT(rushes_media_reader_open(MEDIA "/none.265", 0, NULL, 0, &reader), RUSHES_ERROR_FILE);
    CHECK(strstr(rushes_last_error_message(), "none.265") != NULL);
    EXPECT(rushes_media_reader_open(MEDIA, 0, NULL, 0, &reader), RUSHES_ERROR_ARGUMENT);
    CHECK(strstr(rushes_last_error_message(), "specify the codec") != NULL);
    EXPECT(rushes_media_reader_open("-", 0, NULL, 0, &reader), RUSHES_ERROR_ARGUMENT);
    CHECK(strstr(rushes_last_error_message(), "the standard input") != NULL);
    EXPECT(rushes_media_reader_open(CLIP, 77, NULL, 0, &reader), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_media_reader_open(CLIP, 0, &options, sizeof options, &reader),
           RUSHES_ERROR_ARGUMENT);
    CHECK(strstr(rushes_last_error_message(), "frame rate") != NULL);
    EXPECT(rushes_media_reader_open(NULL, 0, NULL, 0, &reader), RUSHES_ERROR_NULL);
    EXPECT(rushes_media_reader_open(CLIP, 0, NULL, 0, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_media_reader_next(NULL, 0, &frame, sizeof frame), RUSHES_ERROR_NULL);
    reader = reader_of(CLIP, RUSHES_CODEC_H265);
    EXPECT(rushes_media_reader_next(reader, 0, NULL, 0), RUSHES_ERROR_NULL);
    OK(rushes_media_reader_close(reader));
    EXPECT(rushes_media_reader_close(reader), RUSHES_ERROR_CLOSED);
}

/* An access unit of H.265. */
static const uint8_t UNIT[] = {0, 0, 0, 1, 0x26, 1, 0x80, 'x'};

static void a_pipe_is_waited_for_no_longer_than_asked(void) {
    int ends[2], stdin_before = dup(0);
    bool is_live = false;
    uint32_t rate[2];
    rushes_media_frame frame;
    CHECK(stdin_before >= 0 && pipe(ends) == 0 && dup2(ends[0], 0) == 0);
    close(ends[0]);
    rushes_media_reader *reader = reader_of("-", RUSHES_CODEC_H265);
    OK(rushes_media_reader_is_live(reader, &is_live));
    CHECK(is_live);
    EXPECT(rushes_media_reader_next(reader, 0, &frame, sizeof frame), RUSHES_TIMEOUT);
    EXPECT(rushes_media_reader_frame_rate(reader, &rate[0], &rate[1]), RUSHES_TIMEOUT);
    for (int n = 0; n < 3; n++) {
        /* The next frame is written only after this one was read. */
        CHECK(write(ends[1], UNIT, sizeof UNIT) == sizeof UNIT);
        frame = next(reader, RUSHES_OK);
        CHECK(frame.len == sizeof UNIT && memcmp(frame.data, UNIT, sizeof UNIT) == 0);
        CHECK(frame.age < RUSHES_SECONDS(60) && !frame.is_ahead);
    }
    close(ends[1]);
    next(reader, RUSHES_ERROR_ENDED);
    OK(rushes_media_reader_close(reader));
    CHECK(dup2(stdin_before, 0) == 0);
    close(stdin_before);
}

static void *wait_for_frame(void *reader) {
    rushes_media_frame frame;
    rushes_status status;
    /* The reader is busy while the other thread polls it. */
    do {
        status = rushes_media_reader_next(reader, RUSHES_FOREVER, &frame, sizeof frame);
    } while (status == RUSHES_ERROR_BUSY);
    CHECK(status == RUSHES_ERROR_CLOSED);
    return NULL;
}

static void closing_ends_a_wait(void) {
    char folder[] = "/tmp/rushes-XXXXXX", path[64];
    pthread_t thread;
    rushes_media_frame frame;
    rushes_status status = RUSHES_TIMEOUT;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/camera.264", folder);
    CHECK(mkfifo(path, 0600) == 0);
    rushes_media_reader *reader = reader_of(path, 0);
    CHECK(pthread_create(&thread, NULL, wait_for_frame, reader) == 0);
    /* Repeated until the other thread waits. */
    for (int n = 0; n < 1000000 && status != RUSHES_ERROR_BUSY; n++) {
        status = rushes_media_reader_next(reader, 0, &frame, sizeof frame);
        /* Valgrind runs one thread at a time. */
        if (n % 100 == 0) sched_yield();
    }
    CHECK(status == RUSHES_ERROR_BUSY);
    OK(rushes_media_reader_close(reader));
    CHECK(pthread_join(thread, NULL) == 0);
    /* Ends the thread that waits for the pipe to be opened. */
    close(open(path, O_WRONLY));
    unlink(path);
    rmdir(folder);
}

/* What an event hook and a log hook received. */
struct seen {
    atomic_int payload_type, advice, malformed, released;
    uint64_t packets;
    char address[64];
    rushes_stream_options *options;
};

static void on_event(void *user, const rushes_event *event) {
    struct seen *seen = user;
    if (event->kind == RUSHES_EVENT_KIND_OTHER_PAYLOAD_TYPE) {
        CHECK(event->address != NULL && strlen(event->address) < sizeof seen->address);
        strcpy(seen->address, event->address);
        seen->packets = event->count;
        seen->payload_type = event->payload_type;
    }
}

static void on_log(void *user, int32_t level, const char *text) {
    struct seen *seen = user;
    if (strstr(text, "sysctl -w net.core.rmem_max=1073741823") != NULL) {
        CHECK(level == RUSHES_LOG_LEVEL_WARNING && strstr(text, " of 2000000000 octets") != NULL);
        EXPECT(rushes_stream_options_probation(seen->options, 1), RUSHES_ERROR_BUSY);
        EXPECT(rushes_set_log(RUSHES_LOG_LEVEL_OFF, NULL, NULL, NULL), RUSHES_ERROR_BUSY);
        CHECK(strstr(rushes_last_error_message(), "log hook") != NULL);
        seen->advice++;
    }
    if (strstr(text, "not RTCP") != NULL) {
        CHECK(level == RUSHES_LOG_LEVEL_DEBUG);
        seen->malformed++;
    }
}

static void on_release(void *user) { ((struct seen *)user)->released++; }

static rushes_statistics counters(rushes_stream *stream) {
    rushes_statistics statistics;
    OK(rushes_stream_statistics(stream, &statistics, sizeof statistics));
    return statistics;
}

static void send_to(uint16_t port, int socket, const void *octets, size_t len) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(sendto(socket, octets, len, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)len);
}

/* Reads the stream's port; no frame is expected. */
static void read_port(rushes_stream *stream) {
    rushes_frame *frame;
    EXPECT(rushes_stream_pull_frame(stream, RUSHES_MILLISECONDS(5), &frame), RUSHES_TIMEOUT);
}

static void discarded_datagrams_are_counted_by_reason(void) {
    struct pair pair = pair_open();
    struct seen seen = {.payload_type = -1};
    const uint8_t other[] = {0x80, 33, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 'x'};
    char own[64];
    uint16_t port;
    struct sockaddr_in from = {.sin_family = AF_INET};
    socklen_t len = sizeof from;
    int stranger = socket(AF_INET, SOCK_DGRAM, 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(stranger, (struct sockaddr *)&from, sizeof from) == 0);
    CHECK(getsockname(stranger, (struct sockaddr *)&from, &len) == 0);
    OK(rushes_stream_local_port(pair.receiver, &port));
    OK(rushes_stream_on_event(pair.receiver, on_event, &seen, NULL));
    send_to(port, stranger, "", 0);
    send_to(port, stranger, "noise", 5);
    send_to(port, stranger, "noise", 5);
    send_to(port, stranger, other, sizeof other);
    for (int n = 0; n < 4000 && counters(pair.receiver).discarded < 4; n++) {
        read_port(pair.receiver);
    }
    rushes_statistics now = counters(pair.receiver);
    CHECK(now.discarded == 4 && now.discarded_keep_alive == 1 && now.discarded_not_rtp == 2);
    CHECK(now.discarded_payload_type == 1 && now.discarded_late == 0);
    CHECK(now.received_datagrams >= 4 && now.received_octets >= 10 + sizeof other);
    snprintf(own, sizeof own, "127.0.0.1:%d", (int)ntohs(from.sin_port));
    CHECK(seen.payload_type == 33 && seen.packets == 1 && strcmp(seen.address, own) == 0);
    close(stranger);
    pair_close(&pair);
}

static void sources_that_have_ended_are_kept(void) {
    struct pair pair = pair_open();
    rushes_frame *frame;
    rushes_source source;
    char own[64];
    uint32_t ssrc;
    OK(rushes_stream_ssrc(pair.sender, &ssrc));
    OK(rushes_stream_local_address(pair.sender, own, sizeof own));
    OK(rushes_stream_push_frame(pair.sender, (const uint8_t *)"x", 1, NULL));
    pull(pair.receiver, &frame);
    OK(rushes_frame_release(frame));
    OK(rushes_stream_source(pair.receiver, 0, &source, sizeof source));
    CHECK(source.ssrc == ssrc && strcmp(source.address, own) == 0);
    EXPECT(rushes_stream_ended_source(pair.receiver, 0, &source, sizeof source),
           RUSHES_ERROR_ARGUMENT);
    OK(rushes_stream_send_bye(pair.sender, NULL));
    rushes_status status = RUSHES_ERROR_ARGUMENT;
    for (int n = 0; n < 4000 && status != RUSHES_OK; n++) {
        read_port(pair.receiver);
        status = rushes_stream_ended_source(pair.receiver, 0, &source, sizeof source);
    }
    CHECK(status == RUSHES_OK && source.ssrc == ssrc && source.packets == 1);
    CHECK(source.packets_unusable == 0 && source.packets_congested == 0);
    CHECK(source.age >= source.silence);
    pair_close(&pair);
}

static void messages_reach_the_hook(void) {
    struct pair pair = pair_open();
    struct seen seen = {.payload_type = -1};
    rushes_rtcp_statistics rtcp;
    rushes_stream *stream;
    uint16_t port;
    int stranger = socket(AF_INET, SOCK_DGRAM, 0);
    seen.options = generic_options(&pair);
    OK(rushes_stream_options_socket_buffer(seen.options, 2000000000));
    EXPECT(rushes_set_log(6, on_log, &seen, on_release), RUSHES_ERROR_ARGUMENT);
    CHECK(seen.released == 1);
    OK(rushes_set_log(RUSHES_LOG_LEVEL_ERROR, on_log, &seen, on_release));
    OK(rushes_stream_open(seen.options, &stream));
    OK(rushes_stream_close(stream));
    CHECK(seen.advice == 0);
    OK(rushes_set_log(RUSHES_LOG_LEVEL_DEBUG, on_log, &seen, on_release));
    CHECK(seen.released == 2);
    OK(rushes_stream_open(seen.options, &stream));
    OK(rushes_stream_close(stream));
    CHECK(seen.advice >= 1);
    /* Sent to the next port, where reports are expected. */
    OK(rushes_stream_local_port(pair.receiver, &port));
    send_to((uint16_t)(port + 1), stranger, "noise", 5);
    for (int n = 0; n < 4000 && !seen.malformed; n++) read_port(pair.receiver);
    CHECK(seen.malformed == 1);
    OK(rushes_stream_rtcp_statistics(pair.receiver, &rtcp, sizeof rtcp));
    CHECK(rtcp.malformed == 1 && rtcp.received >= 1 && rtcp.members >= 1 && rtcp.unauthentic == 0);
    OK(rushes_set_log(RUSHES_LOG_LEVEL_OFF, NULL, NULL, NULL));
    CHECK(seen.released == 3);
    seen.advice = 0;
    OK(rushes_stream_open(seen.options, &stream));
    OK(rushes_stream_close(stream));
    CHECK(seen.advice == 0);
    OK(rushes_stream_options_close(seen.options));
    close(stranger);
    pair_close(&pair);
}

int main(void) {
    a_file_is_read_frame_by_frame();
    samples_say_how_they_are_sampled();
    a_generic_file_is_cut_at_a_length();
    uncompressed_video_is_sent_from_a_file();
    wrong_files_and_settings_are_errors();
    a_pipe_is_waited_for_no_longer_than_asked();
    closing_ends_a_wait();
    discarded_datagrams_are_counted_by_reason();
    sources_that_have_ended_are_kept();
    messages_reach_the_hook();
    return 0;
}
