// The C++ wrapper with frames in memory of a graphics processor. The argument is the program that imports one into
// OpenGL; without it, frames are exported only.
#include <rushes.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<rushes::gpu_frame>);
static_assert(!std::is_copy_constructible_v<rushes::gpu_memory>);
static_assert(std::is_nothrow_move_constructible_v<rushes::gpu_frame>);
static_assert(std::is_nothrow_move_assignable_v<rushes::gpu_memory>);
static_assert(std::is_constructible_v<rushes::texture_client, std::string, rushes::gpu &>);

static constexpr std::uint32_t width = 35, height = 21, pictures = 12;

static std::uint8_t octet_of(std::uint64_t number, std::size_t at) {
    return static_cast<std::uint8_t>(number * 7 + at % 251);
}

static rushes::texture_server serve() {
    auto fill = [number = 0u](rushes::span<std::uint8_t> picture, bool) mutable {
        for (std::size_t at = 0; at < picture.size(); ++at) picture[at] = octet_of(number, at);
        return number++ < pictures;
    };
    rushes::texture_options options;
    options.transport("tcp").timing(RUSHES_TEXTURE_TIMING_EVERY_FRAME);
    return {"127.0.0.1:0", "rgb24", width, height, 200, fill, options};
}

static std::string address_of(const rushes::texture_server &server) {
    return "127.0.0.1:" + std::to_string(server.port());
}

// The octets of a frame as another program has them, which imports its memory into OpenGL.
static std::vector<std::uint8_t> imported(const char *program, const rushes::gpu_frame &frame,
                                          bool draws = false) {
    auto memory = frame.export_memory();
    const std::string size = std::to_string(memory.size()), len = std::to_string(frame.size());
    const char *is_dedicated = memory.is_dedicated() ? "1" : "0";
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(memory.fd(), STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]), close(ends[1]);
        const std::string wide = std::to_string(frame.width()), high = std::to_string(frame.height());
        execl(program, program, size.c_str(), len.c_str(), is_dedicated, draws ? wide.c_str() : nullptr, high.c_str(),
              nullptr);
        _exit(127);
    }
    close(ends[1]);
    std::vector<std::uint8_t> octets;
    std::uint8_t part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) {
        octets.insert(octets.end(), part, part + got);
    }
    close(ends[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return octets;
}

static void draw(const char *program, const rushes::gpu_frame &canvas) { imported(program, canvas, true); }

static void a_descriptor_has_one_owner(const rushes::gpu_frame &frame) {
    // Programs that this one starts do not inherit it.
    const auto is_open = [](int fd) { return fcntl(fd, F_GETFD) == FD_CLOEXEC; };
    int closed = -1, released = -1;
    {
        auto memory = frame.export_memory();
        closed = memory.fd();
        auto moved = std::move(memory);
        CHECK(memory.fd() == -1 && moved.fd() == closed && is_open(closed));
        auto other = frame.export_memory();
        released = other.fd();
        CHECK(released != closed && moved.size() == other.size());
        CHECK(moved.buffer_size() <= moved.size() && moved.memory_type() == other.memory_type());
        CHECK(other.release_fd() == released && other.fd() == -1);
    }
    CHECK(!is_open(closed) && is_open(released));
    CHECK(close(released) == 0);
}

static void frames_are_held_and_imported(const rushes::gpu &gpu, const char *program) {
    auto server = serve();
    std::atomic<int> frames{0};
    std::optional<rushes::gpu_frame> last;
    {
        rushes::texture_client client(
            address_of(server), gpu, rushes::memory_handle::opaque_fd, [&] { ++frames; },
            rushes::texture_options().transport("tcp"));
        CHECK(client.wait(20s));
        last = client.last();
        auto same = client.last();
        CHECK(last && same && last->memory() == same->memory() && last->get() != same->get());
        CHECK(frames > 0 && client.get_statistics().frames_whole > 0);
    }
    // Frames outlive their client.
    CHECK(last->format() == "rgb24" && last->width() == width && last->height() == height);
    CHECK(last->size() == width * height * 3 && last->number() < pictures);
    CHECK(last->packets_missing() == 0 && last->took() >= 0s && last->colour()[0] == 1);
    a_descriptor_has_one_owner(*last);
    if (!program) return;
    const auto octets = imported(program, *last);
    CHECK(octets.size() == last->size());
    for (std::size_t at = 0; at < octets.size(); ++at) {
        CHECK(octets[at] == octet_of(last->number(), at));
    }
}

static void the_last_frame_is_taken_without_a_hook(rushes::gpu &gpu) {
    auto server = serve();
    rushes::texture_client client(address_of(server), gpu);
    CHECK(client.wait(20s));
    CHECK(client.last());
    client.close();
    try {
        client.last();
        CHECK(false);
    } catch (const rushes::error &error) {
        CHECK(error.code() == RUSHES_ERROR_CLOSED);
    }
}

// Frames that another program draws by OpenGL, and which are encoded and received.
static void frames_are_drawn_and_sent(const rushes::gpu &gpu, const char *program) {
    rushes::texture_server server("127.0.0.1:0", gpu, "bc1", width, height, 60);
    std::atomic<std::uint64_t> red_above{0};
    rushes::texture_client client(
        address_of(server),
        [&](const rushes::texture_frame &frame) {
            // The first block is red in both of its colours: 5 bits of the highest value.
            const auto octets = rushes::span<const std::uint8_t>(frame.data, frame.len);
            if (octets[1] >> 3 == 31 && octets[3] >> 3 == 31) ++red_above;
        },
        rushes::texture_options().transport("tcp"));
    for (int tries = 0; red_above == 0 && tries < 200; ++tries) {
        auto canvas = server.canvas();
        CHECK(canvas.format() == "rgba8" && canvas.size() == width * height * 4);
        if (program) draw(program, canvas);
        CHECK(canvas.send());
        if (!program) return;
        std::this_thread::sleep_for(50ms);
    }
    CHECK(red_above > 0);
    server.resize(64, 64);
    auto canvas = server.canvas();
    CHECK(canvas.width() == 64 && canvas.height() == 64);
    server.close();
    CHECK(!canvas.send());
}

static void clients_of_the_main_processor_have_no_such_frames() {
    auto server = serve();
    rushes::texture_client client(address_of(server), [](const rushes::texture_frame &) {});
    try {
        client.last();
        CHECK(false);
    } catch (const rushes::error &error) {
        CHECK(error.code() == RUSHES_ERROR_UNSUPPORTED);
    }
}

static void test(rushes::gpu &gpu, const char *program) {
    const auto uuid = gpu.driver_uuid();
    CHECK(!gpu.name().empty() && gpu.device_uuid().size() == 16 && uuid.size() == 16);
    CHECK(std::any_of(uuid.begin(), uuid.end(), [](std::uint8_t octet) { return octet != 0; }));
    (void)gpu.is_software();
    frames_are_held_and_imported(gpu, program);
    the_last_frame_is_taken_without_a_hook(gpu);
    frames_are_drawn_and_sent(gpu, program);
    clients_of_the_main_processor_have_no_such_frames();
}

// Returns the device, or none without a driver.
static std::optional<rushes::gpu> opened() try {
    return rushes::gpu();
} catch (const rushes::error &error) {
    std::fprintf(stderr, "gpu: %s\n", error.what());
    if (error.code() != RUSHES_ERROR_UNSUPPORTED) throw;
    return std::nullopt;
}

int main(int count, char **words) try {
    auto gpu = opened();
    if (!gpu) return 77;
    test(*gpu, count > 1 ? words[1] : nullptr);
} catch (const rushes::error &error) {
    std::fprintf(stderr, "gpu: %s\n", error.what());
    return 1;
}
