// What the ends of all channels have in common: the question, the buffers, the failure.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "bench/link.hpp"
#include "bench/payload.hpp"
#include "bench/types.hpp"

namespace via::bench {

class End {
public:
    explicit End(Link& link) : link_(link) {}

    const std::string& failure() const { return failure_; }

    // Derived ends extend this one and call it first.
    bool begin(const Question& question, std::uint64_t messages) {
        question_ = question;
        messages_ = messages;
        pools_ = pools_of(link_.arena, question);
        if (is_verifying()) {
            std::memset(pools_.receive.base, std::to_integer<int>(untouched_byte),
                        pools_.receive.bytes());
        } else {
            wipe(pools_.receive, question.size);
        }
        return true;
    }
    bool finish() { return true; }

protected:
    template <class... Args>
    bool give_up(fmt::format_string<Args...> text, Args&&... args) {
        if (failure_.empty()) failure_ = fmt::format(text, std::forward<Args>(args)...);
        return false;
    }
    bool give_up_errno(const char* call) {
        const int code = errno;
        return give_up("{}: {}", call, std::strerror(code));
    }

    // Message i's buffer, with proof number `proof` in it. Small messages prove their number by how
    // often their buffer came round, so there the two are the same.
    std::byte* stamped(std::uint64_t i) { return stamped(pools_.send.at(i), i); }
    std::byte* stamped(std::byte* buffer, std::uint64_t proof) {
        if (is_verifying()) {
            fill(buffer, question_.size, proof, link_.own());
        } else {
            stamp(buffer, question_.size, proof, pools_.send.count);
        }
        return buffer;
    }
    bool check(std::uint64_t i) { return check(i, i); }
    bool check(std::uint64_t i, std::uint64_t proof) {
        const Pool& pool = pools_.receive;
        if (is_verifying()) {
            const std::uint64_t wrong =
                first_wrong_byte(pool.at(i), question_.size, pool.stride, proof, link_.other());
            if (wrong == pool.stride) return true;
            return give_up("byte {} of message {} of {} bytes is wrong", wrong, i, question_.size);
        }
        if (read_and_check(pool.at(i), question_.size, proof, pool.count)) return true;
        return give_up("message {} of {} bytes arrived with wrong bytes", i, question_.size);
    }
    bool is_stream() const { return via::bench::is_stream(question_); }
    bool is_verifying() const { return question_.bench == Bench::verify; }

    Link& link_;
    Question question_;
    Pools pools_;
    std::uint64_t messages_ = 0;

private:
    std::string failure_;
};

}  // namespace via::bench
