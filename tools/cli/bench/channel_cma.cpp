// The kernel's single copy: the sender raises a flag, the receiver fetches the message out of the
// sender's memory with process_vm_readv.
#include <sys/prctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>

#include "bench/end.hpp"
#include "bench/limit_channel.hpp"

namespace via::bench {

namespace {

class CmaEnd : public End {
public:
    static constexpr Wait wait = Wait::poll;
    static constexpr Op op = Op::read;
    static std::string refuses(const Question&) { return {}; }
    static std::size_t area_bytes(std::uint64_t) { return 2 * sizeof(Lane); }

    CmaEnd(Link& link, std::byte* area)
        : End(link),
          out_(reinterpret_cast<Lane*>(area)[link.own()]),
          in_(reinterpret_cast<Lane*>(area)[link.other()]) {
        // Where the system restricts ptrace to descendants, the sibling needs leave to read us.
        ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }

    bool begin(const Question& question, std::uint64_t messages) {
        in_.full.value.store(0, std::memory_order_relaxed);
        in_.taken.value.store(0, std::memory_order_relaxed);
        return End::begin(question, messages);
    }
    bool send(std::uint64_t i) {
        while (is_stream() &&
               i - out_.taken.value.load(std::memory_order_acquire) >= pools_.send.window()) {
        }
        stamped(i);
        out_.full.value.store(i + 1, std::memory_order_release);
        return true;
    }
    bool receive(std::uint64_t i) {
        while (in_.full.value.load(std::memory_order_acquire) < i + 1) {
        }
        // Both arenas are laid out alike.
        const auto offset = static_cast<std::uint64_t>(pools_.send.at(i) - link_.arena.base);
        std::uint64_t done = 0;
        while (done < question_.size) {
            const std::uint64_t left = question_.size - done;
            iovec to{pools_.receive.at(i) + done, left};
            // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
            iovec from{reinterpret_cast<void*>(link_.theirs().arena + offset + done), left};
            const ssize_t got = ::process_vm_readv(link_.theirs().pid, &to, 1, &from, 1, 0);
            if (got <= 0) return give_up_errno("process_vm_readv");
            done += static_cast<std::uint64_t>(got);
        }
        if (is_stream()) in_.taken.value.store(i + 1, std::memory_order_release);
        return check(i);
    }

private:
    struct Lane {
        Line full;
        Line taken;
    };
    Lane& out_;
    Lane& in_;
};

}  // namespace

std::unique_ptr<Channel> make_cma() { return std::make_unique<LimitChannel<CmaEnd>>("cma"); }

}  // namespace via::bench
