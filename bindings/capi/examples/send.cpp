// Sends a file of H.265, or with - the standard input: send_cpp HOST PORT FILE|- [FPS] [zrtp]
#include <rushes.hpp>

#include <iostream>
#include <string>

int main(int argc, char **argv) try {
    if (argc < 4) {
        std::cerr << "usage: send_cpp HOST PORT FILE|- [FPS] [zrtp]\n";
        return 2;
    }
    const std::uint32_t fps = argc > 4 ? static_cast<std::uint32_t>(std::stoul(argv[4])) : 30;
    if (fps == 0) throw std::runtime_error("0 frames per second: try 30");
    rushes::set_log(rushes::log_level::warning, [](rushes::log_level, std::string_view text) {
        std::cerr << "send_cpp: " << text << '\n';
    });
    rushes::media_reader reader(argv[3], rushes::codec::h265);

    rushes::context context;
    rushes::session session = context.create_session(argv[1]);
    auto options = session.stream(rushes::codec::h265);
    options.remote_port(static_cast<std::uint16_t>(std::stoul(argv[2]))).frame_rate(fps);
    if (argc > 5 && std::string(argv[5]) == "zrtp") {
        options.zrtp_sas_hook([](const std::string &sas, bool is_verified) {
            std::cout << "agreed: " << sas << (is_verified ? " (compared before)\n" : "\n");
            return rushes::sas_answer::not_compared;
        });
    }
    rushes::media_stream stream = options.open();

    const std::uint32_t start = stream.next_timestamp();
    for (const rushes::media_frame &frame : reader) {
        if (frame.age()) {
            stream.push_frame_captured(frame.data(), *frame.age());
            continue;
        }
        // Timestamps follow the order of presentation, not that of the file, at 90 kHz for video.
        const std::int64_t ticks = frame.position().value_or(0) * 90000 / (120 * std::int64_t(fps));
        stream.push_frame(frame.data(), start + static_cast<std::uint32_t>(ticks));
        // Waits, and answers requests and reports meanwhile.
        stream.wait(std::chrono::seconds(1) / fps);
    }
    const auto statistics = stream.get_statistics();
    std::cout << statistics.frames_sent << " frames in " << statistics.packets_sent
              << " packets\n";
    stream.close();
} catch (const std::exception &error) {
    std::cerr << "send_cpp: " << error.what() << '\n';
    return 1;
}
