/* Texture video in memory of a graphics processor, through the C interface. */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { WIDTH = 64, HEIGHT = 32, PICTURES = 20, LENGTH = WIDTH * HEIGHT / 2 };

struct seen {
    int made;
    atomic_int frames, released, closing;
    _Atomic(rushes_texture_client *) client;
};

static int32_t make(void *user, uint8_t *octets, size_t len, bool rewind) {
    struct seen *seen = user;
    (void)rewind;
    memset(octets, 0x55, len);
    return seen->made++ < PICTURES;
}

static void on_frame(void *user) {
    struct seen *seen = user;
    rushes_texture_client *client = atomic_load(&seen->client);
    /* The stream goes on: a client is not closed by its own hook. */
    if (client) atomic_store(&seen->closing, rushes_texture_client_close(client));
    atomic_fetch_add(&seen->frames, 1);
}

static void on_release(void *user) { atomic_fetch_add(&((struct seen *)user)->released, 1); }

static void ignore(void *user, const rushes_texture_frame *frame) { (void)user, (void)frame; }

static void serve(struct seen *seen, rushes_texture_options *options, rushes_texture_server **server,
                  char address[32]) {
    uint16_t port;
    OK(rushes_texture_serve_from("127.0.0.1:0", "rgba8", WIDTH, HEIGHT, 200, 1, make, seen, NULL, options, server));
    OK(rushes_texture_server_port(*server, &port));
    snprintf(address, 32, "127.0.0.1:%u", port);
}

static void look(const rushes_gpu_frame *frame, rushes_gpu_frame_view *view) {
    OK(rushes_gpu_frame_look(frame, view, sizeof *view));
    CHECK(view->len == LENGTH && view->width == WIDTH && view->height == HEIGHT);
    CHECK(strcmp(view->format, "bc1") == 0 && view->number < PICTURES && view->packets_missing == 0);
}

static void frames_are_held_and_exported(const rushes_gpu *gpu) {
    struct seen seen = {.closing = 1};
    char address[32];
    rushes_texture_options *options;
    rushes_texture_server *server;
    rushes_texture_client *client;
    rushes_gpu_frame *last, *same;
    rushes_gpu_frame_view view, again;
    rushes_gpu_memory memory = {.fd = -1}, second = {.fd = -1};
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_format(options, "bc1"));
    OK(rushes_texture_options_transport(options, "tcp"));
    serve(&seen, options, &server, address);
    EXPECT(rushes_texture_connect_gpu(address, options, gpu, 7, NULL, &seen, on_release, &client), RUSHES_ERROR_ARGUMENT);
    CHECK(client == NULL && atomic_load(&seen.released) == 1);
    OK(rushes_texture_connect_gpu(address, options, gpu, RUSHES_MEMORY_HANDLE_OPAQUE_FD, on_frame, &seen, on_release, &client));
    atomic_store(&seen.client, client);
    EXPECT(rushes_texture_client_wait(client, RUSHES_SECONDS(20)), RUSHES_ERROR_ENDED);
    CHECK(atomic_load(&seen.frames) > 0 && atomic_load(&seen.closing) != RUSHES_OK);

    OK(rushes_texture_client_last(client, &last));
    OK(rushes_texture_client_last(client, &same));
    look(last, &view);
    look(same, &again);
    CHECK(view.memory == again.memory && view.number == again.number);
    EXPECT(rushes_gpu_frame_export(last, &memory, 8), RUSHES_ERROR_BUFFER);
    EXPECT(rushes_gpu_frame_export(last, NULL, sizeof memory), RUSHES_ERROR_NULL);
    OK(rushes_gpu_frame_export(last, &memory, sizeof memory));
    OK(rushes_gpu_frame_export(same, &second, sizeof second));
    CHECK(memory.fd >= 0 && second.fd >= 0 && memory.fd != second.fd && memory.size >= LENGTH);
    CHECK(memory.size == second.size && memory.memory_type == second.memory_type);
    CHECK(close(memory.fd) == 0 && close(second.fd) == 0);

    OK(rushes_texture_client_close(client));
    CHECK(atomic_load(&seen.released) == 2);
    EXPECT(rushes_texture_client_last(client, &same), RUSHES_ERROR_CLOSED);
    CHECK(same == NULL);
    /* Frames outlive their client. */
    look(last, &view);
    OK(rushes_gpu_frame_export(last, &memory, sizeof memory));
    CHECK(close(memory.fd) == 0);
    OK(rushes_gpu_frame_release(last));
    EXPECT(rushes_gpu_frame_release(last), RUSHES_ERROR_CLOSED);
    EXPECT(rushes_gpu_frame_look(last, &view, sizeof view), RUSHES_ERROR_CLOSED);
    OK(rushes_texture_server_close(server));
    OK(rushes_texture_options_close(options));
}

static void clients_of_the_main_processor_have_no_such_frames(void) {
    struct seen seen = {.closing = 1};
    char address[32];
    rushes_texture_server *server;
    rushes_texture_client *client;
    rushes_gpu_frame *frame;
    serve(&seen, NULL, &server, address);
    OK(rushes_texture_connect(address, NULL, ignore, NULL, NULL, &client));
    EXPECT(rushes_texture_client_last(client, &frame), RUSHES_ERROR_UNSUPPORTED);
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_server_close(server));
}

static void frames_are_drawn_and_sent(const rushes_gpu *gpu) {
    char address[32];
    uint16_t port;
    struct seen seen = {.closing = 1};
    rushes_texture_options *options;
    rushes_texture_server *server, *other;
    rushes_texture_client *client;
    rushes_gpu_frame *frame, *spare, *none;
    rushes_gpu_frame_view view;
    rushes_gpu_memory memory = {.fd = -1};
    const int32_t fd = RUSHES_MEMORY_HANDLE_OPAQUE_FD;
    const char *local = "127.0.0.1:0";
    EXPECT(rushes_texture_serve_gpu(local, gpu, 7, "bc1", WIDTH, HEIGHT, 60, 1, NULL, &server), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_serve_gpu(local, gpu, fd, "bc1", WIDTH, HEIGHT, 0, 1, NULL, &server), RUSHES_ERROR_ARGUMENT);
    EXPECT(rushes_texture_serve_gpu(local, gpu, fd, "rgb24", WIDTH, HEIGHT, 60, 1, NULL, &server), RUSHES_ERROR_UNSUPPORTED);
    EXPECT(rushes_texture_serve_gpu(local, NULL, fd, "bc1", WIDTH, HEIGHT, 60, 1, NULL, &server), RUSHES_ERROR_NULL);
    CHECK(server == NULL);
    const uint8_t pq[4] = {9, 16, 9, 1};
    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_colour(options, pq));
    EXPECT(rushes_texture_serve_gpu(local, gpu, fd, "bc1", WIDTH, HEIGHT, 60, 1, options, &server), RUSHES_ERROR_ARGUMENT);
    OK(rushes_texture_options_close(options));
    OK(rushes_texture_serve_gpu(local, gpu, fd, "bc1", WIDTH, HEIGHT, 60, 1, NULL, &server));
    OK(rushes_texture_server_port(server, &port));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);

    OK(rushes_texture_server_canvas(server, &spare));
    OK(rushes_texture_server_canvas(server, &frame));
    OK(rushes_gpu_frame_look(frame, &view, sizeof view));
    CHECK(view.len == WIDTH * HEIGHT * 4 && view.width == WIDTH && view.height == HEIGHT);
    CHECK(strcmp(view.format, "rgba8") == 0);
    OK(rushes_gpu_frame_export(frame, &memory, sizeof memory));
    CHECK(memory.fd >= 0 && memory.size >= view.len && close(memory.fd) == 0);
    OK(rushes_gpu_frame_send(frame));
    EXPECT(rushes_gpu_frame_send(frame), RUSHES_ERROR_CLOSED);
    OK(rushes_gpu_frame_release(spare));
    EXPECT(rushes_texture_server_resize(server, 0, 8), RUSHES_ERROR_TEXTURE);
    OK(rushes_texture_server_resize(server, WIDTH / 2, HEIGHT * 2));
    OK(rushes_texture_server_canvas(server, &frame));
    OK(rushes_gpu_frame_look(frame, &view, sizeof view));
    CHECK(view.width == WIDTH / 2 && view.height == HEIGHT * 2);
    OK(rushes_gpu_frame_send(frame));

    OK(rushes_texture_options_new(&options));
    OK(rushes_texture_options_transport(options, "tcp"));
    OK(rushes_texture_connect_gpu(address, options, gpu, fd, on_frame, &seen, NULL, &client));
    for (int tries = 0; atomic_load(&seen.frames) == 0 && tries < 400; tries++) {
        const struct timespec pause = {.tv_nsec = 50000000};
        CHECK(nanosleep(&pause, NULL) == 0);
        OK(rushes_texture_server_canvas(server, &frame));
        OK(rushes_gpu_frame_send(frame));
    }
    OK(rushes_texture_client_last(client, &frame));
    OK(rushes_gpu_frame_look(frame, &view, sizeof view));
    CHECK(strcmp(view.format, "bc1") == 0);
    EXPECT(rushes_gpu_frame_send(frame), RUSHES_ERROR_UNSUPPORTED);
    OK(rushes_gpu_frame_release(frame));
    OK(rushes_texture_client_close(client));
    OK(rushes_texture_options_close(options));

    serve(&seen, NULL, &other, address);
    EXPECT(rushes_texture_server_canvas(other, &frame), RUSHES_ERROR_UNSUPPORTED);
    OK(rushes_texture_server_close(other));
    /* Frames to draw outlive their server. */
    OK(rushes_texture_server_canvas(server, &frame));
    OK(rushes_texture_server_canvas(server, &spare));
    OK(rushes_texture_server_close(server));
    EXPECT(rushes_texture_server_canvas(server, &none), RUSHES_ERROR_CLOSED);
    OK(rushes_gpu_frame_look(frame, &view, sizeof view));
    EXPECT(rushes_gpu_frame_send(frame), RUSHES_ERROR_ENDED);
    EXPECT(rushes_gpu_frame_look(frame, &view, sizeof view), RUSHES_ERROR_CLOSED);
    OK(rushes_gpu_frame_release(spare));
}

int main(void) {
    rushes_gpu *gpu;
    rushes_gpu_description description;
    rushes_status status = rushes_gpu_open(&gpu);
    if (status == RUSHES_ERROR_UNSUPPORTED) {
        fprintf(stderr, "no graphics: %s\n", rushes_last_error_message());
        return 77;
    }
    OK(status);
    OK(rushes_gpu_describe(gpu, &description, sizeof description));
    const uint8_t none[16] = {0};
    CHECK(strlen(description.name) > 0 && memcmp(description.driver_uuid, none, 16) != 0);
    frames_are_held_and_exported(gpu);
    clients_of_the_main_processor_have_no_such_frames();
    frames_are_drawn_and_sent(gpu);
    OK(rushes_gpu_close(gpu));
    EXPECT(rushes_gpu_close(gpu), RUSHES_ERROR_CLOSED);
    EXPECT(rushes_gpu_describe(gpu, &description, sizeof description), RUSHES_ERROR_CLOSED);
    return 0;
}
