// The CPU time for a gigabyte through C++: the counterpart of throughput.rs, line by line.
// `throughput OCTETS FRAMES` prints CPU seconds per gigabyte.
#include <rushes.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

static double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval &time) { return time.tv_sec + time.tv_usec / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int main(int argc, char **argv) try {
    const std::size_t len = argc > 1 ? std::stoul(argv[1]) : 667000;
    const int frames = argc > 2 ? std::stoi(argv[2]) : 1000;
    std::vector<std::uint8_t> frame(len, 0x55);
    const std::uint8_t head[] = {0, 0, 0, 1, 0x26, 1, 0x80};
    std::copy(std::begin(head), std::end(head), frame.begin());

    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::h265);
    options.pacing_off().deliver_units();
    auto receiver = options.open();
    auto sender = options.remote_port(receiver.local_port()).open();
    const double before = cpu_seconds();
    int received = 0;
    // One frame at a time, so that no socket buffer overflows.
    for (int n = 0; n < frames; ++n) {
        sender.push_frame(frame);
        if (auto got = receiver.pull_frame(std::chrono::seconds(1))) {
            received += got->size() == len;
        }
    }
    const double gigabytes = static_cast<double>(len) * frames / 1e9;
    std::printf("%.4f\n", (cpu_seconds() - before) / gigabytes);
    return received == frames ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
