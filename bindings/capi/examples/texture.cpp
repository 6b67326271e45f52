// Texture video on this machine: generated pictures, encoded to BC1, received in contiguous memory.
#include <rushes.hpp>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>

int main() try {
    constexpr std::uint32_t width = 640, height = 360;
    std::uint8_t shade = 0;
    rushes::texture_server server(
        "127.0.0.1:0", "rgba8", width, height, 60,
        [&](rushes::span<std::uint8_t> picture, bool) {
            // A camera would write here.
            ++shade;
            for (auto &octet : picture) octet = shade;
            return true;
        },
        rushes::texture_options().format("bc1"));

    std::atomic<int> frames{0};
    rushes::texture_client client(
        "127.0.0.1:" + std::to_string(server.port()), [&](const rushes::texture_frame &frame) {
            // Upload it to the graphics processor: data and len are the texture's octets.
            if (frame.packets_missing == 0 && frame.len == width / 4 * height / 4 * 8) ++frames;
        });
    for (int n = 0; n < 1000 && frames < 30; ++n) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    client.close();
    std::cout << frames << " frames of " << width / 4 * height / 4 * 8 << " octets\n";
    return frames < 30 ? 1 : 0;
} catch (const std::exception &error) {
    std::cerr << "texture: " << error.what() << '\n';
    return 1;
}
