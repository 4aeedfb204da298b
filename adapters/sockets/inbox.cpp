#include "inbox.hpp"

#include <errno.h>
#include <linux/sockios.h>

#include <cstring>

#include "kernel_socket.hpp"

namespace via::sockets {

namespace {

/// With the lock of reading(): of what hand_back() read from the kernel.
std::size_t take_again(const PipeEnd& end, Buffers& to, Taking how) {
    Pipe::Again& again = end.again();
    std::uint64_t used = again.used;
    std::uint64_t left = again.left();
    std::size_t sum = 0;
    while (!to.done() && left > 0) {
        const std::span<std::byte> piece = to.piece(left);
        if (!how.discard)
            std::memcpy(piece.data(), end.arena().at<std::byte>(again.offset + used), piece.size());
        to.use(piece.size());
        used += piece.size();
        left -= piece.size();
        sum += piece.size();
    }
    if (!how.look_only) again.used = used;
    return sum;
}

}  // namespace

void heard(const PipeEnd& end, long result, int error) {
    if (result == 0) {
        std::uint32_t none = 0;
        end.own().at_end.compare_exchange_strong(none, 1);
    } else if (result < 0 && error != EAGAIN && error != EINTR) {
        end.own().error.store(error);
    }
}

int take_error(const PipeEnd& end) {
    // A look first: the peer looks at the same line with each message.
    return end.own().error.load() == 0 ? 0 : end.own().error.exchange(0);
}

void ask_for_end(int fd, const PipeEnd& end) {
    char byte;
    const long got = raw_receive(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    heard(end, got, errno);
}

/// With the lock of reading(): bytes that the peer sent through the kernel and nobody has read. The
/// kernel is asked once. Nothing: it cannot be told yet.
std::optional<std::size_t> kernel_left(int fd, const PipeEnd& end) {
    ReadEnd& reading = end.reading();
    const std::uint64_t from = end.peer_sending().from.load();
    if (from == 0 || receives_of(end.pipe().word.load(), end.side()) != 0) return std::nullopt;
    if (!reading.left_known) {
        const auto position = received_position(fd, (end.peer_sending().fin.load() & 1) != 0);
        if (!position) return std::nullopt;
        reading.left = *position < from - 1 ? from - 1 - *position : 0;
        reading.left_known = true;
    }
    return static_cast<std::size_t>(reading.left);
}

/// With the lock of reading().
bool kernel_is_empty(int fd, const PipeEnd& end) {
    ReadEnd& reading = end.reading();
    if (reading.kernel_done.load() != 0) return true;
    const auto left = kernel_left(fd, end);
    if (left && *left == 0) reading.kernel_done.store(1);
    return reading.kernel_done.load() != 0;
}

std::uint32_t wakes_left(const PipeEnd& end) {
    return end.peer().wakes_sent.load() - end.own().wakes_drained.load();
}

/// With the lock of reading(), when the kernel has nothing but bytes that wake. true: all of them.
bool drain(int fd, const PipeEnd& end) {
    Side& own = end.own();
    for (;;) {
        const std::uint32_t left = wakes_left(end);
        if (left == 0) return true;
        std::array<char, 256> bytes;
        const long got =
            raw_receive(fd, bytes.data(), std::min<std::size_t>(left, bytes.size()), MSG_DONTWAIT);
        if (got <= 0) {
            heard(end, got, errno);
            return false;
        }
        own.wakes_drained.fetch_add(static_cast<std::uint32_t>(got));
    }
}

/// How many of `got` bytes, just read from the kernel, are the peer's data and not wakes.
long data_among(int fd, const PipeEnd& end, long got, int flags) {
    const std::uint64_t from = end.peer_sending().from.load();
    if (from == 0) return got;
    const auto position = received_position(fd);
    if (!position) return got;
    const auto beyond = static_cast<std::int64_t>(*position - (from - 1));
    if ((flags & MSG_PEEK) != 0) return std::clamp<std::int64_t>(-beyond, 0, got);
    const std::int64_t wakes = std::clamp<std::int64_t>(beyond, 0, got);
    end.own().wakes_drained.fetch_add(static_cast<std::uint32_t>(wakes));
    return got - wakes;
}

/// With the lock of reading().
std::size_t take(int fd, const PipeEnd& end, Buffers& to, int flags, bool& room) {
    const Taking how{(flags & MSG_PEEK) != 0, (flags & MSG_TRUNC) != 0};
    const int kernel_flags = (flags & (MSG_PEEK | MSG_TRUNC)) | MSG_DONTWAIT;
    std::size_t sum = take_again(end, to, how);
    if (to.done() || (how.look_only && sum > 0)) return sum;
    while (!to.done() && !kernel_is_empty(fd, end)) {
        if (receives_of(end.pipe().word.load(), end.side()) != 0) return sum;
        const std::uint64_t from = end.peer_sending().from.load();
        const std::size_t left = from == 0 ? ~std::size_t{0} : kernel_left(fd, end).value_or(0);
        if (left == 0) return sum;
        const std::span<std::byte> piece = to.piece(left);
        const long got = raw_receive(fd, piece.data(), piece.size(), kernel_flags);
        if (got <= 0) {
            const int error = errno;
            if (sum == 0) heard(end, got, error);
            return sum;
        }
        const auto data =
            static_cast<std::size_t>(from != 0 ? got : data_among(fd, end, got, flags));
        if (from != 0 && !how.look_only) end.reading().left -= data;
        to.use(data);
        sum += data;
        if (how.look_only && data < left) return sum;
        if (how.look_only) break;
    }
    if (!to.done()) sum += end.take(to, how, room);
    return sum;
}

void look_at_kernel(int fd, const PipeEnd& end) {
    if (!end.reading().lock.take()) return;
    if (kernel_is_empty(fd, end) && end.pipe().state() == stored) {
        if (end.own().sleepers.load() <= 0) drain(fd, end);
        ask_for_end(fd, end);
    }
    end.reading().lock.let_go();
}

std::size_t unread(int fd, Entry& entry) {
    const PipeEnd end = entry.end();
    if (!end.reading().lock.take()) return 0;
    std::size_t bytes = end.bytes_waiting();
    const auto queued = static_cast<std::size_t>(std::max(queue_of(fd, SIOCINQ), 0));
    if (end.pipe().state() == returned)
        bytes += queued - std::min<std::size_t>(queued, wakes_left(end));
    else if (!kernel_is_empty(fd, end))
        bytes += std::min(queued, kernel_left(fd, end).value_or(queued));
    end.reading().lock.let_go();
    return bytes;
}

}  // namespace via::sockets
