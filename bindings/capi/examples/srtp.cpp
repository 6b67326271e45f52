// One stream encrypted with a key that both ends have, on this machine.
#include <rushes.hpp>

#include <array>
#include <iostream>
#include <random>
#include <string>

int main() try {
    // A real key comes from a secure random number generator and reaches the peer in secret.
    std::array<std::uint8_t, 28> key;
    std::random_device random;
    for (auto &octet : key) octet = static_cast<std::uint8_t>(random());

    rushes::context context;
    auto session = context.create_session("127.0.0.1");
    auto options = session.stream(rushes::codec::generic);
    options.srtp(rushes::srtp_suite::aead_aes_128_gcm, key);
    auto receiver = options.open();
    auto sender = options.remote_port(receiver.local_port()).open();

    const std::string text = "only the peer can read this";
    for (int n = 0; n < 2; ++n) {
        sender.push_frame(reinterpret_cast<const std::uint8_t *>(text.data()), text.size());
    }
    auto frame = receiver.pull_frame(std::chrono::seconds(5));
    if (!frame) throw std::runtime_error("no frame arrived");
    std::cout.write(reinterpret_cast<const char *>(frame->data().data()),
                    static_cast<std::streamsize>(frame->size()))
        << '\n';
} catch (const std::exception &error) {
    std::cerr << "srtp: " << error.what() << '\n';
    return 1;
}
