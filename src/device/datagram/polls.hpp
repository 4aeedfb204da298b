// Looks at the port: which are worth making, and since when what they find may have waited.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

/// Owns when the port was looked at, whether it will be again, and for how long nobody did.
class Polls {
public:
    /// A look may be a system call. Where many found nothing, others may have more to do (a NIC
    /// over shared memory and the network): only some are made until something is sent or heard of.
    bool is_worthwhile(bool owes_acks) {
        if (empty_ < empty_polls_max || owes_acks) return true;
        return ++left_out_ % polls_left_out_max == 0;
    }
    /// Something may come.
    void expect_news() { empty_ = 0; }

    void found_nothing(Time now) {
        ++number_;
        ++empty_;
        left_ = Time::never();
        at_ = now;
    }
    /// `told`: when the first of it came, as the port says; never(): it does not know.
    void found(Time now, Time told) {
        ++number_;
        empty_ = 0;
        came_ = came_since(at_, now, told);
        at_ = now;
    }
    /// Nobody looked, but was not away either.
    void passed(Time now) { at_ = now; }
    void set_asleep(bool asleep) { asleep_ = asleep; }

    std::uint64_t number() const { return number_; }
    Time at() const { return at_; }
    /// Not before that did come what the last look found.
    Time came() const { return came_; }
    bool is_asleep() const { return asleep_; }  ///< nobody looks by itself

private:
    /// Behind an absence what waited is read by many looks: until one finds nothing, or they take
    /// as long as the absence did. Who cannot keep up is not absent.
    Time came_since(Time before, Time now, Time told) {
        if (!told.is_never()) return told;
        if (asleep_) return now;  // whom it wakes
        if (now - before >= absence_least) {
            left_ = before;
            returned_ = now;
        } else if (!left_.is_never() && now - returned_ > returned_ - left_) {
            left_ = Time::never();
        }
        return left_.is_never() ? now : left_;
    }

    std::uint64_t number_ = 0;
    Time at_{};
    Time left_ = Time::never();  ///< the last look before an absence whose packets are being read
    Time returned_{};            ///< from it
    Time came_{};
    std::uint32_t empty_ = 0;  ///< in a row
    std::uint32_t left_out_ = 0;
    bool asleep_ = false;
};

}  // namespace via::device::datagram
