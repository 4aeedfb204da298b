// Two hosts on one machine: network namespaces that a cable (veth) joins. The parent makes them,
// children enter them. Names carry the parent's process number, so that tests do not meet.
#pragma once

#include <string>
#include <vector>

#include "support/child.hpp"

namespace system_test {

class Networks {
public:
    Networks();
    ~Networks();
    Networks(const Networks&) = delete;
    Networks& operator=(const Networks&) = delete;

    /// Empty, or why there are none here: a reason to skip the test.
    const std::string& why_not() const { return why_not_; }
    /// Of host 0 or 1.
    const std::string& name(int host) const { return names_[host]; }
    static std::string address(int host) { return "10.97.42." + std::to_string(host + 1); }
    /// Its interface is called via0. Runs "ip -n NAME arguments" of that host.
    void ip(int host, const std::vector<std::string>& arguments) const;
    void set_up(int host, bool up) const;
    void set_mtu(int host, int mtu) const;
    void remove(int host) const;

private:
    std::string names_[2];
    std::string why_not_;
};

/// In a child, before it opens a NIC: it is on that host from now on.
void enter_network(const std::string& name);

}  // namespace system_test
