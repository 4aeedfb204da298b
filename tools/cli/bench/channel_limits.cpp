// The small limits: a line, a copy in and out, a queue of slots, a futex hand-over, a memcpy.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <new>

#include "bench/end.hpp"
#include "bench/limit_channel.hpp"

namespace via::bench {

namespace {

std::string latency_only(const Question& question) {
    return question.bench == Bench::latency ? "" : "has a latency only";
}

// A cache line each way, another one each time, and nothing in it but the flag.
class LineEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::write;
    static std::string refuses(const Question& question) { return latency_only(question); }
    static std::size_t area_bytes(std::uint64_t) { return sizeof(Lines); }

    LineEnd(Link& link, std::byte* area) : End(link), lines_(*reinterpret_cast<Lines*>(area)) {}

    bool begin(const Question& question, std::uint64_t messages) {
        lines_.clear(link_.own());
        return End::begin(question, messages);
    }
    bool send(std::uint64_t i) {
        lines_.word(link_.own(), i).store(i + 1, std::memory_order_release);
        return true;
    }
    bool receive(std::uint64_t i) {
        while (lines_.word(link_.other(), i).load(std::memory_order_acquire) != i + 1) {
        }
        return true;
    }

private:
    Lines& lines_;
};

// A bare futex hand-over: the flag again, but the receiver sleeps and the sender wakes it.
class FutexEnd : public End {
public:
    static constexpr Wait wait = Wait::block;
    static constexpr Op op = Op::write;
    static std::string refuses(const Question& question) { return latency_only(question); }
    static std::size_t area_bytes(std::uint64_t) { return 2 * sizeof(Word); }

    FutexEnd(Link& link, std::byte* area)
        : End(link),
          out_(reinterpret_cast<Word*>(area)[link.own()].value),
          in_(reinterpret_cast<Word*>(area)[link.other()].value) {}

    bool begin(const Question& question, std::uint64_t messages) {
        out_.store(0, std::memory_order_relaxed);
        return End::begin(question, messages);
    }
    bool send(std::uint64_t i) {
        out_.store(static_cast<std::uint32_t>(i + 1), std::memory_order_release);
        if (::syscall(SYS_futex, &out_, FUTEX_WAKE, 1, nullptr, nullptr, 0) < 0) {
            return give_up_errno("futex wake");
        }
        return true;
    }
    bool receive(std::uint64_t i) {
        const auto wanted = static_cast<std::uint32_t>(i + 1);
        for (;;) {
            const std::uint32_t seen = in_.load(std::memory_order_acquire);
            if (seen == wanted) return true;
            const long woken = ::syscall(SYS_futex, &in_, FUTEX_WAIT, seen, nullptr, nullptr, 0);
            if (woken < 0 && errno != EAGAIN && errno != EINTR) return give_up_errno("futex wait");
        }
    }

private:
    struct alignas(128) Word {
        std::atomic<std::uint32_t> value{0};
    };
    std::atomic<std::uint32_t>& out_;
    std::atomic<std::uint32_t>& in_;
};

// Copied in, flagged, copied out, one message after the other: the floor of any two-copy message.
// A message that fits shares the flag's line.
class TwoCopyEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::send;
    static std::string refuses(const Question&) { return {}; }
    static std::size_t area_bytes(std::uint64_t max_size) { return 2 * lane_bytes(max_size); }

    TwoCopyEnd(Link& link, std::byte* area) : End(link), area_(area) {}

    bool begin(const Question& question, std::uint64_t messages) {
        out_ = reinterpret_cast<Lane*>(area_ + lane_bytes(question.size) * link_.own());
        in_ = reinterpret_cast<Lane*>(area_ + lane_bytes(question.size) * link_.other());
        std::memset(static_cast<void*>(out_), 0, sizeof(Lane));
        at_ = question.size <= inline_bytes ? sizeof(std::uint64_t) : sizeof(Lane);
        return End::begin(question, messages);
    }
    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        while (is_stream() && out_->taken.load(std::memory_order_acquire) != i) {
        }
        std::memcpy(reinterpret_cast<std::byte*>(out_) + at_, from, question_.size);
        out_->full.store(i + 1, std::memory_order_release);
        return true;
    }
    bool receive(std::uint64_t i) {
        while (in_->full.load(std::memory_order_acquire) != i + 1) {
        }
        std::memcpy(pools_.receive.at(i), reinterpret_cast<std::byte*>(in_) + at_, question_.size);
        if (is_stream()) in_->taken.store(i + 1, std::memory_order_release);
        return check(i);
    }

private:
    static constexpr std::size_t inline_bytes = 56;
    struct Lane {
        alignas(128) std::atomic<std::uint64_t> full{0};
        alignas(128) std::atomic<std::uint64_t> taken{0};
    };
    // Of one direction, for messages of this size.
    static std::size_t lane_bytes(std::uint64_t size) {
        return sizeof(Lane) + (size + 127) / 128 * 128;
    }

    std::byte* area_;
    Lane* out_ = nullptr;
    Lane* in_ = nullptr;
    std::size_t at_ = 0;
};

// A queue of 64-byte slots, one producer and one consumer, payload in the flag's line. The
// producer looks at the consumer's index only when its copy of it says full.
class SpscEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::send;
    static constexpr std::size_t payload_bytes = 56;
    static std::string refuses(const Question& question) {
        return question.size <= payload_bytes ? "" : "carries at most 56 bytes a slot";
    }
    static std::size_t area_bytes(std::uint64_t) { return 2 * sizeof(Ring); }

    SpscEnd(Link& link, std::byte* area)
        : End(link),
          out_(reinterpret_cast<Ring*>(area)[link.own()]),
          in_(reinterpret_cast<Ring*>(area)[link.other()]) {}

    bool begin(const Question& question, std::uint64_t messages) {
        for (Slot& slot : in_.slots) slot.full.store(0, std::memory_order_relaxed);
        in_.taken.value.store(0, std::memory_order_relaxed);
        taken_seen_ = 0;
        return End::begin(question, messages);
    }
    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        while (i - taken_seen_ >= slot_count) {
            taken_seen_ = out_.taken.value.load(std::memory_order_acquire);
        }
        Slot& slot = out_.slots[i % slot_count];
        std::memcpy(slot.payload, from, question_.size);
        slot.full.store(i + 1, std::memory_order_release);
        return true;
    }
    bool receive(std::uint64_t i) {
        Slot& slot = in_.slots[i % slot_count];
        while (slot.full.load(std::memory_order_acquire) != i + 1) {
        }
        std::memcpy(pools_.receive.at(i), slot.payload, question_.size);
        if (i % taken_every == taken_every - 1) {
            in_.taken.value.store(i + 1, std::memory_order_release);
        }
        return check(i);
    }

private:
    static constexpr std::uint64_t slot_count = 1024;
    static constexpr std::uint64_t taken_every = 64;
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> full{0};
        std::byte payload[payload_bytes];
    };
    struct Ring {
        Line taken;
        Slot slots[slot_count];
    };
    Ring& out_;
    Ring& in_;
    std::uint64_t taken_seen_ = 0;
};

// Copied once, straight into the other's buffer: the floor of an RDMA write into shared memory. The
// last word goes last, because memcpy shows tails before bodies.
class PutEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::write;
    static std::string refuses(const Question& question) {
        if (question.reuse) return "has its buffers in turn";
        return question.size > 0 ? "" : "leaves nothing to poll for at 0 bytes";
    }
    static std::size_t area_bytes(std::uint64_t max_size) {
        Question widest;  // no question has larger pools than the one with the widest messages
        std::size_t bytes = 0;
        for (widest.size = 1; widest.size <= std::max<std::uint64_t>(max_size, 1); widest.size *= 2)
            bytes = std::max(bytes, pool_bytes(widest));
        widest.size = max_size;
        return 2 * sizeof(Line) + 2 * std::max(bytes, pool_bytes(widest));
    }

    PutEnd(Link& link, std::byte* area)
        : End(link),
          credits_out_(reinterpret_cast<Line*>(area)[link.own()].value),
          credits_in_(reinterpret_cast<Line*>(area)[link.other()].value),
          area_(area + 2 * sizeof(Line)) {}

    bool begin(const Question& question, std::uint64_t messages) {
        if (!End::begin(question, messages)) return false;
        const std::size_t bytes = pools_.receive.bytes();
        target_ = pools_.receive;
        target_.base = area_ + bytes * link_.other();
        pools_.receive.base = area_ + bytes * link_.own();
        wipe(pools_.receive, question.size);
        credits_out_.store(0, std::memory_order_relaxed);
        return true;
    }
    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        while (is_stream() && i - credits_in_.load(std::memory_order_acquire) >= target_.count) {
        }
        std::byte* to = target_.at(i);
        const std::size_t tail = question_.size >= 8 ? 8 : 1;
        const std::size_t body = question_.size - tail;
        std::memcpy(to, from, body);
        std::atomic_thread_fence(std::memory_order_release);
        if (tail == 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, from + body, 8);
            __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + body), word, __ATOMIC_RELAXED);
        } else {
            to[body] = from[body];
        }
        return true;
    }
    bool receive(std::uint64_t i) {
        const Pool& pool = pools_.receive;
        while (!tail_arrived(pool.at(i), question_.size, i, pool.count)) {
        }
        if (!check(i)) return false;
        if (is_stream()) credits_out_.store(i + 1, std::memory_order_release);
        return true;
    }

private:
    static std::size_t pool_bytes(Question question) {
        std::size_t bytes = 0;
        for (const Bench bench : {Bench::latency, Bench::bandwidth, Bench::rate}) {
            question.bench = bench;
            bytes = std::max<std::size_t>(bytes, stride_for(question) * buffers_for(question));
        }
        return bytes;
    }
    std::atomic<std::uint64_t>& credits_out_;
    std::atomic<std::uint64_t>& credits_in_;
    std::byte* area_;
    Pool target_;
};

// One process copies, nobody receives. Both sides call it, only the first works.
class MemcpyEndpoint final : public Endpoint {
public:
    MemcpyEndpoint(Link& link, std::byte*) : link_(link) {}

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        const Pools pools = pools_of(link_.arena, question);
        Reading reading;
        if (!link_.meet()) return fail("{}", called_off);
        if (link_.is_first()) {
            timed_exchanges(link_, effort, reading, [&](std::uint64_t i) {
                std::memcpy(pools.receive.at(i), pools.send.at(i), question.size);
                asm volatile("" ::: "memory");
                return true;
            });
        }
        if (!link_.meet()) return fail("{}", called_off);
        return reading;
    }

private:
    Link& link_;
};

struct MemcpyEnd {
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::write;
    static std::string refuses(const Question& question) {
        return question.size > 0 ? "" : "copies nothing at 0 bytes";
    }
    static std::size_t area_bytes(std::uint64_t) { return sizeof(Line); }
};

}  // namespace

std::unique_ptr<Channel> make_line() { return std::make_unique<LimitChannel<LineEnd>>("line"); }
std::unique_ptr<Channel> make_futex() { return std::make_unique<LimitChannel<FutexEnd>>("futex"); }
std::unique_ptr<Channel> make_two_copy() {
    return std::make_unique<LimitChannel<TwoCopyEnd>>("two-copy");
}
std::unique_ptr<Channel> make_spsc() { return std::make_unique<LimitChannel<SpscEnd>>("spsc"); }
std::unique_ptr<Channel> make_put() { return std::make_unique<LimitChannel<PutEnd>>("put"); }
std::unique_ptr<Channel> make_memcpy() {
    return std::make_unique<LimitChannel<MemcpyEnd, MemcpyEndpoint>>("memcpy");
}

}  // namespace via::bench
