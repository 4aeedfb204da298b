// A program to record: messages to and fro over one channel, one at a time, so that what is posted
// depends on the device alone.
//     record_exchange answer|ask DEVICE
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t lengths[] = {5, 500, 20'000, 300'000, 8, 0};

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "record_exchange: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

via::MessageChannel connected(via::Nic& nic, bool asks) {
    auto vi = must(via::Vi::create(nic, via::MessageChannel::vi_options()));
    if (asks) {
        must(vi.connect(must(nic.find_host("localhost")).with("exchange"),
                        {.wait_for_listener = true}));
    } else {
        must(via::Listener(nic, "exchange").accept(vi, 10s));
    }
    return must(via::MessageChannel::create(nic, std::move(vi)));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const bool asks = std::string_view(argv[1]) == "ask";
    via::Nic nic = must(via::Nic::open(argv[2]));
    must(nic.on_error([](const via::AsyncError&) {}));  // the one that ends first is no error
    via::MessageChannel channel = connected(nic, asks);
    for (const std::size_t length : lengths) {
        std::vector<std::byte> bytes(length, std::byte{1});
        if (asks) must(channel.send(bytes));
        if (must(channel.receive(bytes, 10s)) != length) return 1;
        if (!asks) must(channel.send(bytes));
    }
    std::printf("%ju by stores\n", std::uintmax_t{channel.counts().sent.stored});
}
