// Receives H.265 into a file by a hook, until the sender sends BYE:
// receive_hook PORT FILE [zrtp]
#include <rushes.hpp>

#include <atomic>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

int main(int argc, char **argv) try {
    if (argc < 3) {
        std::cerr << "usage: receive_hook PORT FILE [zrtp]\n";
        return 2;
    }
    std::ofstream file(argv[2], std::ios::binary);
    file.exceptions(std::ios::failbit | std::ios::badbit);
    std::atomic<int> frames{0};
    std::atomic<bool> is_over{false};

    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::h265);
    options.local_port(static_cast<std::uint16_t>(std::stoul(argv[1])));
    if (argc > 3 && std::string(argv[3]) == "zrtp") {
        options.zrtp_sas_hook([](const std::string &sas, bool is_verified) {
            std::cout << "agreed: " << sas << (is_verified ? " (compared before)\n" : "\n");
            return rushes::sas_answer::not_compared;
        });
    }
    auto stream = options.open();
    stream.get_rtcp().install_hook([&](const rushes::rtcp_event &event) {
        if (event.kind == RUSHES_RTCP_EVENT_KIND_BYE) is_over = true;
    });
    // The frame may be kept as long as needed; its destruction returns the memory to the stream.
    stream.install_receive_hook([&](rushes::frame frame) {
        file.write(reinterpret_cast<const char *>(frame.data().data()),
                   static_cast<std::streamsize>(frame.size()));
        ++frames;
    });

    // Until ten seconds have passed without a frame, or half a second since BYE.
    for (int idle = 0, seen = 0; idle < (is_over ? 5 : 100); ++idle) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (frames != seen) idle = 0;
        seen = frames;
    }
    stream.close();
    std::cout << frames << " frames\n";
} catch (const std::exception &error) {
    std::cerr << "receive_hook: " << error.what() << '\n';
    return 1;
}
