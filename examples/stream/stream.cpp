// A stream of large messages, as fast as they go. In two terminals, in any order:
//     stream receive
//     stream send [MIB]
// Many messages are under way at once: the sender fills one buffer while others travel. With
// credits a message waits at its sender until the receiver has room, so nobody counts by hand.
#include <cstdio>
#include <cstdlib>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t message_bytes = 64 << 10;
constexpr std::uint32_t depth = 16;  // buffers on each side

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "stream: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void send(via::Nic& nic, std::uint64_t messages) {
    auto pool = must(via::BufferPool::create(nic, {.buffers = depth, .size = message_bytes}));
    auto vi = must(via::Vi::create(nic, {.max_transfer_bytes = message_bytes, .credits = true}));
    must(vi.connect(must(nic.find_host("localhost")).with("stream"), {.wait_for_listener = true}));

    std::uint64_t under_way = 0;
    // The last message is empty: it says that it is the last.
    for (std::uint64_t n = 0; n <= messages; ++n) {
        via::Buffer buffer = pool.take();
        if (!buffer) {  // all are under way: the oldest comes back first
            buffer = pool.reclaim(must(vi.send_wait(10s)));
            --under_way;
        }
        std::memset(buffer.bytes().data(), static_cast<unsigned char>(n), message_bytes);
        must(vi.post_send(std::move(buffer), n < messages ? message_bytes : 0));
        ++under_way;
    }
    for (; under_way > 0; --under_way) must(vi.send_wait(10s));
}

void receive(via::Nic& nic) {
    auto pool = must(via::BufferPool::create(nic, {.buffers = depth, .size = message_bytes}));
    auto vi = must(via::Vi::create(nic, {.max_transfer_bytes = message_bytes, .credits = true}));
    while (via::Buffer buffer = pool.take()) must(vi.post_receive(std::move(buffer)));
    must(via::Listener(nic, "stream").accept(vi, 10s));

    std::uint64_t messages = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (;; ++messages) {
        const via::Completion message = must(vi.receive_wait(10s));
        if (message.length() == 0) break;
        const auto right = static_cast<std::byte>(messages);
        if (message.bytes().front() != right || message.bytes().back() != right) {
            std::fprintf(stderr, "stream: message %ju has wrong bytes\n", std::uintmax_t{messages});
            std::exit(1);
        }
        must(vi.post_receive(pool.reclaim(message)));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const double mib = static_cast<double>(messages) * message_bytes / (1 << 20);
    std::printf("%.0f MiB in %ju messages, %.0f MiB/s\n", mib, std::uintmax_t{messages},
                mib / taken.count());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    const long mib = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 256;
    if (argc > 3 || (role != "send" && role != "receive") || mib < 1) {
        std::fputs("usage: stream receive\n       stream send [MIB]\n", stderr);
        return 2;
    }
    via::Nic nic = must(via::Nic::open("shm"));
    // The sender leaves first; that is no news.
    must(nic.on_error([](const via::AsyncError&) {}));
    if (role == "receive")
        receive(nic);
    else
        send(nic, static_cast<std::uint64_t>(mib) * (1 << 20) / message_bytes);
}
