// Sends a file of H.265: send_cpp HOST PORT FILE [FPS] [zrtp]
#include <rushes.hpp>

#include <iostream>
#include <string>

#include "nal_file.h"

int main(int argc, char **argv) try {
    if (argc < 4) {
        std::cerr << "usage: send_cpp HOST PORT FILE [FPS] [zrtp]\n";
        return 2;
    }
    const std::uint32_t fps = argc > 4 ? static_cast<std::uint32_t>(std::stoul(argv[4])) : 30;
    nal_file file;
    if (!nal_file_open(&file, argv[3])) throw std::runtime_error("the file cannot be read");

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

    const std::uint8_t *data;
    std::size_t len;
    while (nal_file_next(&file, &data, &len)) {
        stream.push_frame(data, len);
        // Answers requests and reports meanwhile.
        stream.wait(std::chrono::seconds(1) / fps);
    }
    const auto statistics = stream.get_statistics();
    std::cout << statistics.frames_sent << " frames in " << statistics.packets_sent
              << " packets\n";
    stream.close();
    nal_file_close(&file);
} catch (const std::exception &error) {
    std::cerr << "send_cpp: " << error.what() << '\n';
    return 1;
}
