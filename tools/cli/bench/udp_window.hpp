// What the ends over UDP sockets have in common: datagrams can be lost when the receiver's buffer
// is full, so the receiver acknowledges every half window, and the sender never has more than a
// window in flight. Of what the window is counted, the derived end says.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "bench/clock.hpp"
#include "bench/end.hpp"
#include "bench/udp_sockets.hpp"

namespace via::bench {

class UdpWindowEnd : public End {
public:
    UdpWindowEnd(Link& link, int fd) : End(link), fd_(fd) {}

    bool finish() { return !link_.is_first() || !is_stream() || take_outstanding(); }

protected:
    // A message is of `message_units`.
    bool begin(const Question& question, std::uint64_t messages, std::uint64_t half_window,
               std::uint64_t message_units) {
        half_window_ = std::max<std::uint64_t>(half_window, 1);
        sent_ = received_ = acknowledged_ = 0;
        spinning_ = question.wait == Wait::poll;
        if (!End::begin(question, messages)) return false;
        // A ping-pong whose reply proves arrival needs no acknowledgement.
        acknowledging_ = is_stream() || message_units > half_window_;
        return true;
    }

    bool await_room(std::uint64_t units) {
        while (acknowledging_ && sent_ + units > acknowledged_ + 2 * half_window_) {
            if (!take_acknowledgement()) return false;
        }
        sent_ += units;
        return true;
    }
    // In a ping-pong the reply must not be taken for an acknowledgement, nor the reverse: so it
    // takes all of a message's before the reply.
    bool take_outstanding() {
        while (acknowledging_ && sent_ >= acknowledged_ + half_window_) {
            if (!take_acknowledgement()) return false;
        }
        return true;
    }
    bool note_received(std::uint64_t units) {
        const std::uint64_t halves = received_ / half_window_;
        received_ += units;
        for (std::uint64_t due = received_ / half_window_ - halves; acknowledging_ && due > 0;
             --due) {
            if (!put(&acknowledgement_, 1)) return false;
        }
        return true;
    }

    bool put(const std::byte* from, std::size_t bytes) {
        return repeat("send", [&] { return ::send(fd_, from, bytes, flags()); });
    }
    bool get(std::byte* to, std::size_t bytes) {
        const ssize_t got = take([&] { return ::recv(fd_, to, bytes, flags() | MSG_TRUNC); });
        if (got < 0) return false;
        if (static_cast<std::size_t>(got) == bytes) return true;
        return give_up("datagram of {} bytes where {} were due", got, bytes);
    }

    // Until there is room.
    template <class Call>
    bool repeat(const char* name, Call call) {
        while (call() < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) return give_up_errno(name);
        }
        return true;
    }
    // Until something came; -1: see failure().
    template <class Call>
    ssize_t take(Call call) {
        std::int64_t since_ns = 0;
        for (std::uint64_t tries = 1;; ++tries) {
            const ssize_t got = call();
            if (got >= 0) return got;
            if (errno != EAGAIN && errno != EINTR) {
                give_up_errno("recv");
                return -1;
            }
            if (spinning_ || errno == EINTR) {
                if (tries % 65536 != 0) continue;
                if (since_ns == 0) since_ns = now_ns();
                if (now_ns() - since_ns <= udp_lost_after_ns) continue;
            }
            give_up("a datagram was lost");
            return -1;
        }
    }
    int flags() const { return spinning_ ? MSG_DONTWAIT : 0; }

    int fd_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;

private:
    bool take_acknowledgement() {
        std::byte ignored{};
        acknowledged_ += half_window_;
        return get(&ignored, 1);
    }

    std::uint64_t half_window_ = 1;
    std::uint64_t acknowledged_ = 0;
    bool spinning_ = true;
    bool acknowledging_ = false;
    std::byte acknowledgement_{1};
};

}  // namespace via::bench
