/* Texture video through the C interface. */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { WIDTH = 64, HEIGHT = 32, PICTURES = 10 };

/* Pictures made, and the frames received. */
struct seen {
    int made;
    atomic_int frames, wrong, released;
    rushes_texture_client *client;
    rushes_texture_server *server;
    atomic_int closing, serving;
};

static void nap(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

/* Only the first status is checked: after another thread closes the client, later ones differ. */
static void answer(atomic_int *to, int32_t answer) {
    int none = 1;
    atomic_compare_exchange_strong(to, &none, answer);
}

static int32_t make(void *user, uint8_t *octets, size_t len, bool rewind) {
    struct seen *seen = user;
    if (len != WIDTH * HEIGHT * 4) return -1;
    if (rewind) seen->made = 0;
    if (seen->made == PICTURES) return 0;
    memset(octets, seen->made++, len);
    if (seen->server) answer(&seen->serving, rushes_texture_server_close(seen->server));
    return 1;
}

static void take(void *user, const rushes_texture_frame *frame) {
    struct seen *seen = user;
    int wrong = frame->len != WIDTH * HEIGHT * 4 || frame->width != WIDTH ||
                frame->height != HEIGHT || strcmp(frame->format, "rgba8") != 0 ||
                frame->colour[0] != 1 || frame->colour[1] != 1;
    /* Packets that did not arrive in time leave octets of the previous picture. */
    for (size_t n = 0; n < frame->len && frame->packets_missing == 0; n++)
        wrong |= frame->data[n] != frame->data[0];
    if (wrong) atomic_fetch_add(&seen->wrong, 1);
    if (seen->client) answer(&seen->closing, rushes_texture_client_close(seen->client));
    atomic_fetch_add(&seen->frames, 1);
}

static void on_release(void *user) { atomic_fetch_add(&((struct seen *)user)->released, 1); }

static void pictures_of_the_application_arrive(const char *transport) {
    struct seen seen = {0};
    char address[32];
    uint16_t port;
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    rushes_texture_client_counts counts;
    rushes_texture_server_counts sent;
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_transport(options, transport));
    OK(rushes_texture_options_timing(options, RUSHES_TEXTURE_TIMING_EVERY_FRAME));
    OK(rushes_texture_options_units(options, 2));
    OK(rushes_texture_serve_from("127.0.0.1:0", "rgba8", WIDTH, HEIGHT, 200, 1, make, &seen,
                                 on_release, options, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, options, take, &seen, on_release, &client));
    EXPECT(rushes_texture_client_wait(client, RUSHES_SECONDS(20)), RUSHES_ERROR_ENDED);
    CHECK(strlen(rushes_last_error_message()) > 0);
    OK(rushes_texture_client_statistics(client, &counts, sizeof counts));
    OK(rushes_texture_server_statistics(server, &sent, sizeof sent));
    CHECK(counts.frames_whole + counts.frames_damaged + counts.frames_lost == PICTURES);
    CHECK(strcmp(transport, "tcp") != 0 || counts.frames_whole == PICTURES);
    CHECK(sent.frames == PICTURES);
    static uint64_t latencies[1024];
    size_t count;
    OK(rushes_texture_client_take_latencies(client, latencies, 1024, &count));
    CHECK(count > 0 && count <= PICTURES && latencies[count - 1] < RUSHES_SECONDS(60));
    OK(rushes_texture_client_take_latencies(client, NULL, 0, &count));
    CHECK(count == 0);
    EXPECT(rushes_texture_client_take_latencies(client, NULL, 1, &count), RUSHES_ERROR_NULL);
    OK(rushes_texture_client_close(client));
    EXPECT(rushes_texture_client_close(client), RUSHES_ERROR_CLOSED);
    OK(rushes_texture_server_close(server));
    EXPECT(rushes_texture_server_close(server), RUSHES_ERROR_CLOSED);
    CHECK(atomic_load(&seen.wrong) == 0 && atomic_load(&seen.released) == 2);
    CHECK((unsigned)atomic_load(&seen.frames) == counts.frames_whole + counts.frames_damaged);
    OK(rushes_texture_options_close(options));
}

/* A picture that stays as it is, and what is seen of it. */
struct still {
    atomic_int wrong, frames;
    uint8_t colour[4];
    int made;
};

static int32_t repeat(void *user, uint8_t *octets, size_t len, bool rewind) {
    struct still *still = user;
    (void)rewind;
    memset(octets, 0x40, len);
    return still->made++ < PICTURES;
}

static void compare(void *user, const rushes_texture_frame *frame) {
    struct still *still = user;
    int wrong = memcmp(frame->colour, still->colour, 4) != 0;
    for (size_t n = 0; n < frame->len; n++) wrong |= frame->data[n] != 0x40;
    if (wrong) atomic_fetch_add(&still->wrong, 1);
    atomic_fetch_add(&still->frames, 1);
}

static void unchanged_stripes_are_left_out(bool server_packs, bool client_unpacks) {
    /* HDR10: BT.2020, PQ, full range, chroma at the top left. */
    const uint8_t hdr[4] = {9, 16, 9, 0x82};
    struct still still = {.colour = {9, 16, 9, 0x82}}, served = {0};
    const bool packs = server_packs && client_unpacks;
    char address[32];
    uint16_t port;
    rushes_texture_options *here, *there;
    rushes_texture_server *server;
    rushes_texture_client *client;
    rushes_texture_client_counts counts;
    OK(rushes_texture_options_new(&here));
    OK(rushes_texture_options_new(&there));
    OK(rushes_texture_options_transport(here, "tcp"));
    OK(rushes_texture_options_timing(here, RUSHES_TEXTURE_TIMING_EVERY_FRAME));
    OK(rushes_texture_options_units(here, 2));
    OK(rushes_texture_options_packing(here, server_packs));
    OK(rushes_texture_options_colour(here, hdr));
    OK(rushes_texture_options_packing(there, client_unpacks));
    OK(rushes_texture_serve_from("127.0.0.1:0", "yuv420", WIDTH, HEIGHT, 200, 1, repeat, &served,
                                 NULL, here, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, there, compare, &still, NULL, &client));
    EXPECT(rushes_texture_client_wait(client, RUSHES_SECONDS(20)), RUSHES_ERROR_ENDED);
    OK(rushes_texture_client_statistics(client, &counts, sizeof counts));
    CHECK(atomic_load(&still.frames) == PICTURES && atomic_load(&still.wrong) == 0);
    /* Every stripe of the first frame comes, and none of the others. */
    CHECK((counts.stripes_unpacked > 0) == packs && (counts.stripes_unchanged > 0) == packs);
    CHECK(counts.stripes_unchanged % (PICTURES - 1) == 0 && counts.stripes_stale == 0);
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(server));
    OK(rushes_texture_options_close(here));
    OK(rushes_texture_options_close(there));
}

static void count(void *user, const rushes_texture_frame *frame) {
    CHECK(frame->len == WIDTH / 4 * HEIGHT / 4 * 8 && strcmp(frame->format, "bc1") == 0);
    take(user, frame);
}

static void a_pattern_is_encoded_and_secured(bool zrtp) {
    struct seen seen = {0}, other = {0};
    uint8_t key[28] = {1};
    char address[32];
    uint16_t port;
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    rushes_sas here, there;
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_format(options, "bc1"));
    OK(rushes_texture_options_units(options, 1));
    if (zrtp) {
        OK(rushes_texture_options_zrtp(options, NULL));
    } else {
        OK(rushes_texture_options_srtp(options, RUSHES_SRTP_SUITE_AEAD_AES128_GCM, key, 28));
    }
    OK(rushes_texture_serve("127.0.0.1:0", "pattern:64x32@100", options, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, options, count, &seen, NULL, &client));
    for (int n = 0; n < 20000 && atomic_load(&seen.frames) < 5; n++) nap();
    CHECK(atomic_load(&seen.frames) >= 5);
    if (zrtp) {
        OK(rushes_texture_client_sas(client, &here, sizeof here));
        OK(rushes_texture_server_sas(server, 0, &there, sizeof there));
        CHECK(here.text[0] != 0 && strcmp(here.text, there.text) == 0);
    } else {
        EXPECT(rushes_texture_client_sas(client, &here, sizeof here), RUSHES_TIMEOUT);
        EXPECT(rushes_texture_server_sas(server, 0, &there, sizeof there), RUSHES_TIMEOUT);
    }
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(server));
    OK(rushes_texture_options_close(options));
    (void)other;
}

static void count_small(void *user, const rushes_texture_frame *frame) {
    struct seen *seen = user;
    if (frame->width != 32 || frame->height != 16) atomic_fetch_add(&seen->wrong, 1);
    atomic_fetch_add(&seen->frames, 1);
}

static void pictures_are_scaled_for_a_client_that_asks(bool scaling) {
    struct seen seen = {0};
    char address[32];
    uint16_t port;
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    OK(rushes_texture_options_new(&options));
    EXPECT(rushes_texture_options_size_max(options, 0, 16), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_options_size_max(options, 16, 32769), RUSHES_ERROR_ARGUMENT);
    OK(rushes_texture_options_size_max(options, 64, 16));
    OK(rushes_texture_options_scaling(options, scaling));
    OK(rushes_texture_serve("127.0.0.1:0", "pattern:64x32@100", options, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, options, count_small, &seen, NULL, &client));
    for (int n = 0; n < 20000 && atomic_load(&seen.frames) < 5; n++) nap();
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(server));
    OK(rushes_texture_options_close(options));
    CHECK(atomic_load(&seen.frames) >= 5 && (atomic_load(&seen.wrong) == 0) == scaling);
}

/* A format that changes while a hook is slow. */
struct change {
    rushes_texture_server *server;
    atomic_int inside, overlaps, wrong, before, after;
};

static void is_slow_once(void *user, const rushes_texture_frame *frame) {
    struct change *change = user;
    const bool is_new = strcmp(frame->format, "bc1") == 0;
    const size_t len = is_new ? WIDTH / 4 * HEIGHT / 4 * 8 : WIDTH * HEIGHT * 3;
    if (atomic_fetch_add(&change->inside, 1) != 0) atomic_fetch_add(&change->overlaps, 1);
    if (frame->len != len) atomic_fetch_add(&change->wrong, 1);
    if (!is_new && atomic_load(&change->after) > 0) atomic_fetch_add(&change->wrong, 1);
    if (atomic_fetch_add(is_new ? &change->after : &change->before, 1) == 0 && !is_new) {
        OK(rushes_texture_server_set_format(change->server, "bc1"));
        /* Sleeps for longer than the library waits for the hook. */
        for (int n = 0; n < 2000; n++) nap();
    }
    atomic_fetch_sub(&change->inside, 1);
}

static void a_format_changes_between_two_calls(void) {
    struct change change = {0};
    char address[32];
    uint16_t port;
    rushes_texture_options *options;
    rushes_texture_client *client;
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_recovery_off(options));
    OK(rushes_texture_options_fec(options, RUSHES_FEC_MODE_PERCENT, 20));
    OK(rushes_texture_options_units(options, 2));
    OK(rushes_texture_serve("127.0.0.1:0", "pattern:64x32@100", options, &change.server));
    OK(rushes_texture_server_port(change.server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, options, is_slow_once, &change, NULL, &client));
    for (int n = 0; n < 20000 && atomic_load(&change.after) < 5; n++) nap();
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(change.server));
    OK(rushes_texture_options_close(options));
    CHECK(atomic_load(&change.before) > 0 && atomic_load(&change.after) >= 5);
    CHECK(atomic_load(&change.overlaps) == 0 && atomic_load(&change.wrong) == 0);
}

static void hooks_cannot_close_what_calls_them(void) {
    struct seen seen = {0}, served = {0};
    char address[32];
    uint16_t port;
    OK(rushes_texture_serve_from("127.0.0.1:0", "rgba8", WIDTH, HEIGHT, 100, 1, make, &served,
                                 NULL, NULL, &served.server));
    OK(rushes_texture_server_port(served.server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    atomic_store(&served.serving, 1);
    atomic_store(&seen.closing, 1);
    OK(rushes_texture_connect(address, NULL, take, &seen, NULL, &seen.client));
    for (int n = 0; n < 20000 && atomic_load(&seen.closing) == 1; n++) nap();
    OK(rushes_texture_client_close(seen.client));
    OK(rushes_texture_server_close(served.server));
    CHECK(atomic_load(&served.serving) == RUSHES_ERROR_BUSY);
    /* The first frame may arrive before the client's handle is written. */
    CHECK(atomic_load(&seen.closing) == RUSHES_ERROR_BUSY || atomic_load(&seen.closing) == 1);
}

struct first {
    uint8_t blocks[WIDTH / 4 * HEIGHT / 4 * 8];
    atomic_int arrived;
};

static void keep_first(void *user, const rushes_texture_frame *frame) {
    struct first *first = user;
    if (frame->number != 0 || frame->packets_missing != 0 || frame->len != sizeof first->blocks) return;
    memcpy(first->blocks, frame->data, frame->len);
    atomic_store(&first->arrived, 1);
}

/* The first frame of the pattern in BC1. */
static void first_frame(const char *quality, struct first *first) {
    char address[32];
    uint16_t port;
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_format(options, "bc1"));
    OK(rushes_texture_options_transport(options, "tcp"));
    OK(rushes_texture_options_timing(options, RUSHES_TEXTURE_TIMING_EVERY_FRAME));
    if (quality != NULL) OK(rushes_texture_options_quality(options, quality));
    OK(rushes_texture_serve("127.0.0.1:0", "pattern:64x32@100,frames=1", options, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(rushes_texture_connect(address, options, keep_first, first, NULL, &client));
    EXPECT(rushes_texture_client_wait(client, RUSHES_SECONDS(20)), RUSHES_ERROR_ENDED);
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(server));
    OK(rushes_texture_options_close(options));
    CHECK(atomic_load(&first->arrived) == 1);
}

static void the_quality_changes_the_blocks(void) {
    static struct first by_default, fast, high;
    first_frame(NULL, &by_default);
    first_frame("fast", &fast);
    first_frame("high", &high);
    CHECK(memcmp(by_default.blocks, fast.blocks, sizeof fast.blocks) == 0);
    CHECK(memcmp(high.blocks, fast.blocks, sizeof fast.blocks) != 0);
}

static void what_cannot_be_is_told(void) {
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    OK(rushes_texture_options_new(&options));
    EXPECT(rushes_texture_options_quality(options, "best"), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_options_format(options, "gif"), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_options_units(options, 65), RUSHES_ERROR_ARGUMENT);
    const uint8_t unknown[4] = {1, 1, 0, 0};
    EXPECT(rushes_texture_options_colour(options, unknown), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_options_colour(options, NULL), RUSHES_ERROR_NULL);
    EXPECT(rushes_texture_serve("nowhere", "pattern:", NULL, &server), RUSHES_ERROR_TEXTURE);
    EXPECT(rushes_texture_serve("127.0.0.1", "pattern:64x32", NULL, &server),
           RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_serve("127.0.0.1:0", "/no/such.y4m", NULL, &server),
           RUSHES_ERROR_TEXTURE);
    CHECK(server == NULL);
    EXPECT(rushes_texture_connect("127.0.0.1:1", NULL, take, NULL, NULL, &client),
           RUSHES_ERROR_NET);
    CHECK(client == NULL);
    OK(rushes_texture_options_close(options));
    EXPECT(rushes_texture_options_close(options), RUSHES_ERROR_CLOSED);
}

int main(void) {
    pictures_of_the_application_arrive("tcp");
    pictures_of_the_application_arrive("udp");
    unchanged_stripes_are_left_out(true, true);
    unchanged_stripes_are_left_out(true, false);
    unchanged_stripes_are_left_out(false, true);
    a_pattern_is_encoded_and_secured(false);
    a_pattern_is_encoded_and_secured(true);
    pictures_are_scaled_for_a_client_that_asks(true);
    pictures_are_scaled_for_a_client_that_asks(false);
    a_format_changes_between_two_calls();
    hooks_cannot_close_what_calls_them();
    the_quality_changes_the_blocks();
    what_cannot_be_is_told();
    return 0;
}
