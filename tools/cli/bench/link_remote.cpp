// Meeting over a TCP connection. Both processes spin on it, as those of one machine spin on a cache
// line; nothing of this is inside what is timed.
#include <sys/socket.h>

#include <cerrno>

#include "bench/bytes.hpp"
#include "bench/clock.hpp"
#include "bench/link.hpp"

namespace via::bench {

namespace {

// The best of so many tells how the clocks stand; on a long way fewer have to do.
constexpr int most_exchanges = 16;
constexpr std::int64_t exchanging_ns = 20'000'000;

Writer written(std::uint64_t meeting, const Published& published) {
    Writer writer;
    writer.number(meeting);
    writer.number(published.arena);
    writer.number(published.memory_handle);
    writer.number(published.host_bytes);
    for (const std::uint8_t byte : published.host) writer.number(byte);
    writer.number(published.port);
    writer.number(published.datagram_bytes);
    writer.number(published.buffer_bytes);
    return writer;
}

bool understood(std::span<const std::byte> bytes, std::uint64_t meeting, Published& published) {
    Reader reader(bytes);
    const bool same = reader.number<std::uint64_t>() == meeting;
    published.arena = reader.number<std::uint64_t>();
    published.memory_handle = reader.number<std::uint32_t>();
    published.host_bytes = reader.number<std::uint32_t>();
    for (std::uint8_t& byte : published.host) byte = reader.number<std::uint8_t>();
    published.port = reader.number<std::uint32_t>();
    published.datagram_bytes = reader.number<std::uint32_t>();
    published.buffer_bytes = reader.number<std::uint64_t>();
    return same && reader.is_done() && published.host_bytes <= published.host.size() &&
           published.port <= 65535;
}

}  // namespace

bool Link::put(std::span<const std::byte> bytes) {
    // A few bytes that the other side waits for always fit into the socket.
    const ssize_t sent = ::send(wire_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == static_cast<ssize_t>(bytes.size());
}

bool Link::get(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::recv(wire_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(got));
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        if (shared_.abort.value.load(std::memory_order_relaxed) != 0) return false;
    }
    return true;
}

bool Link::meet_over_wire() {
    const Writer ours = written(meetings_, mine());
    std::vector<std::byte> theirs(ours.bytes().size());
    return put(ours.bytes()) && get(theirs) &&
           understood(theirs, meetings_, shared_.published[other()]);
}

// The first side asks for the time until it says that it was the last question.
bool Link::compare_clocks(ClockGap& gap) {
    gap = {};
    std::array<std::byte, 1> question{};
    std::array<std::byte, sizeof(std::int64_t)> answer{};
    const std::int64_t start_ns = now_ns();
    for (int exchange = 1;; ++exchange) {
        if (!is_first()) {
            if (!get(question)) return false;
            Writer writer;
            writer.number(now_ns());
            if (!put(writer.bytes())) return false;
            if (question[0] != std::byte{0}) return true;
            continue;
        }
        const std::int64_t asked_ns = now_ns();
        const bool last = exchange == most_exchanges || asked_ns - start_ns > exchanging_ns;
        question[0] = std::byte{last};
        if (!put(question) || !get(answer)) return false;
        const std::int64_t within_ns = (now_ns() - asked_ns) / 2;
        if (exchange == 1 || within_ns < gap.within_ns) {
            // Unsigned: a clock that lies must not overflow here.
            const auto theirs_ns = Reader(answer).number<std::uint64_t>();
            const auto ours_ns = static_cast<std::uint64_t>(asked_ns + within_ns);
            gap = {static_cast<std::int64_t>(theirs_ns - ours_ns), within_ns};
        }
        if (last) return true;
    }
}

}  // namespace via::bench
