// Two ends on this machine agree on a key and compare the short authentication strings.
#include <rushes.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <thread>

int main() try {
    rushes::context context;
    auto alice = context.create_session("127.0.0.1"), bob = context.create_session("127.0.0.1");
    std::string seen_by_alice, seen_by_bob;

    // Bob waits for any peer. In practice he would read his string to Alice.
    auto opening = bob.stream(rushes::codec::generic)
                       .zrtp_sas_hook([&](const std::string &sas, bool) {
                           seen_by_bob = sas;
                           return rushes::sas_answer::not_compared;
                       })
                       .begin();
    std::optional<rushes::media_stream> sender;
    std::string failure;
    std::thread calling([&] {
        try {
            sender = alice.stream(rushes::codec::generic)
                         .zrtp_sas_hook([&](const std::string &sas, bool) {
                             seen_by_alice = sas;
                             return rushes::sas_answer::not_compared;
                         })
                         .remote_port(opening.local_port())
                         .open();
        } catch (const rushes::error &error) {
            failure = error.what();
        }
    });
    auto receiver = opening.wait(std::chrono::seconds(30));
    calling.join();
    if (!sender || !receiver) throw std::runtime_error("no key agreement: " + failure);

    std::cout << "alice sees: " << seen_by_alice << "\nbob sees:   " << seen_by_bob << '\n';
    const bool are_equal = seen_by_alice == seen_by_bob;
    alice.verify_sas(are_equal);
    bob.verify_sas(are_equal);
    if (!are_equal) throw std::runtime_error("the strings differ: there is a man in the middle");

    const std::string text = "for bob only";
    for (int n = 0; n < 2; ++n) {
        sender->push_frame(reinterpret_cast<const std::uint8_t *>(text.data()), text.size());
    }
    auto frame = receiver->pull_frame(std::chrono::seconds(5));
    if (!frame) throw std::runtime_error("no frame arrived");
    std::cout << frame->size() << " octets received\n";
} catch (const std::exception &error) {
    std::cerr << "zrtp: " << error.what() << '\n';
    return 1;
}
