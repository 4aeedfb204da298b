// Is the NIC heard that answers for the host? One that stands still (in a debugger) has the host's
// port all the same. So it is asked now and then as other hosts ask it, by a socket of its own.
#pragma once

#include "base/address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class HolderCheck {
public:
    /// `number`: of the first question; others cannot tell it.
    HolderCheck(System& system, std::uint64_t number) : system_(system), number_(number) {}

    /// It is another one from now on, which is asked at `due` first.
    void begin(Time due);
    void end();
    bool is_on() const { return !due_.is_never(); }
    /// Somebody needs it: it is asked at once, unless it is being asked.
    void ask_soon(Time now);
    Time next() const { return due_; }
    /// Due or not: looks for an answer and asks again, `interval` after one that came. `host`:
    /// whom, which port; `scope`: as in to_socket(). True: several questions in a row were not
    /// answered.
    bool is_silent(Time now, Duration interval, const HostAddress& host, unsigned scope);

private:
    bool ask(const HostAddress& host, unsigned scope);
    bool is_answered(const HostAddress& host);

    System& system_;
    Descriptor socket_;
    std::uint64_t number_;
    bool is_asked_ = false;
    unsigned unanswered_ = 0;
    Time due_ = Time::never();
};

}  // namespace via::device::udp
