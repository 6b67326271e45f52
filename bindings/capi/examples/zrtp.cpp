// Two ends on this machine agree on a key with nobody's help, and compare what they see.
#include <rushes.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <thread>

int main() try {
    rushes::context context;
    auto alice = context.create_session("127.0.0.1"), bob = context.create_session("127.0.0.1");
    std::string seen_by_alice, seen_by_bob;

    // Bob waits for whoever speaks to him. What he is shown he would read out to Alice.
    auto opening = bob.stream(rushes::codec::generic)
                       .zrtp_sas_hook([&](const std::string &sas, bool) {
                           seen_by_bob = sas;
                           return rushes::sas_answer::not_compared;
                       })
                       .begin();
    std::optional<rushes::media_stream> sender;
    std::string trouble;
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
            trouble = error.what();
        }
    });
    auto receiver = opening.wait(std::chrono::seconds(30));
    calling.join();
    if (!sender || !receiver) throw std::runtime_error("no agreement " + trouble);

    std::cout << "alice sees: " << seen_by_alice << "\nbob sees:   " << seen_by_bob << '\n';
    const bool are_equal = seen_by_alice == seen_by_bob;
    alice.verify_sas(are_equal);
    bob.verify_sas(are_equal);
    if (!are_equal) throw std::runtime_error("somebody is in between");

    const std::string words = "for bob only";
    for (int n = 0; n < 2; ++n) {
        sender->push_frame(reinterpret_cast<const std::uint8_t *>(words.data()), words.size());
    }
    auto frame = receiver->pull_frame(std::chrono::seconds(5));
    if (!frame) throw std::runtime_error("nothing came");
    std::cout << frame->size() << " octets came\n";
} catch (const std::exception &error) {
    std::cerr << "zrtp: " << error.what() << '\n';
    return 1;
}
