// Messages of every size over one channel, which chooses how each travels. In two terminals, in any
// order:
//     messages answer
//     messages ask LENGTH...      sends messages of so many bytes, and gets each back reversed
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "messages: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void answer(via::Nic& nic) {
    auto vi = must(via::Vi::create(nic, via::MessageChannel::vi_options()));
    must(via::Listener(nic, "messages").accept(vi, 10s));
    auto channel = must(via::MessageChannel::create(nic, std::move(vi)));

    std::vector<std::byte> bytes;
    for (;;) {
        bytes.resize(must(channel.wait(10s)));  // of any length
        must(channel.receive(bytes));
        if (bytes.empty()) return;  // the last one
        std::ranges::reverse(bytes);
        must(channel.send(bytes));
    }
}

std::size_t length_of(std::string_view text) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), length);
    if (error == std::errc{} && end == text.end() && length <= 1UL << 30)
        return std::max<std::size_t>(1, length);
    std::fprintf(stderr, "messages: no length up to 1 GiB: %s\n", text.data());
    std::exit(2);
}

void ask(via::Nic& nic, std::span<char* const> texts) {
    std::vector<std::size_t> lengths;
    for (const char* const text : texts) lengths.push_back(length_of(text));
    auto vi = must(via::Vi::create(nic, via::MessageChannel::vi_options()));
    must(
        vi.connect(must(nic.find_host("localhost")).with("messages"), {.wait_for_listener = true}));
    auto channel = must(via::MessageChannel::create(nic, std::move(vi)));
    std::printf("up to %zu bytes by stores, up to %zu as messages, the rest by RDMA\n",
                channel.stores_max(), channel.message_max());

    for (const std::size_t wanted : lengths) {
        std::vector<std::byte> bytes(wanted);
        for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::byte>(n % 251);
        must(channel.send(bytes));
        std::vector<std::byte> back(bytes.size());
        const std::size_t length = must(channel.receive(back, 10s));
        std::ranges::reverse(back);
        if (length != bytes.size() || back != bytes) {
            std::fprintf(stderr, "messages: wrong bytes came back\n");
            std::exit(1);
        }
        std::printf("%zu bytes back\n", length);
    }
    must(channel.send({}));
    const via::MessageCounts& sent = channel.counts().sent;
    std::printf("sent: %ju by stores, %ju as messages, %ju by RDMA\n", std::uintmax_t{sent.stored},
                std::uintmax_t{sent.posted}, std::uintmax_t{sent.written});
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    if (!(role == "answer" && argc == 2) && !(role == "ask" && argc > 2)) {
        std::fputs("usage: messages answer\n       messages ask LENGTH...\n", stderr);
        return 2;
    }
    via::Nic nic = must(via::Nic::open("shm"));
    must(nic.on_error([](const via::AsyncError&) {}));  // who leaves first is no news
    role == "answer" ? answer(nic)
                     : ask(nic, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
}
