// Names of hosts to NIC addresses and back (VIPL 4.5): the hosts files first, then the own host and
// its neighbours on this machine, then the system's resolver, which may take seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/configuration.hpp"
#include "base/address.hpp"
#include "base/status.hpp"

namespace via::agent {

/// Other NICs that can be found without asking anybody. Each may be empty. Any thread.
struct Neighbours {
    std::function<std::optional<HostAddress>(std::string_view name)> find;
    std::function<std::string(const HostAddress& address)> name;  ///< empty: nobody
    std::function<std::vector<HostAddress>()> list;
    /// All places with NICs of that address that are not met from here; empty: nowhere.
    std::function<std::string(const HostAddress& address)> elsewhere = {};
};

/// The interface of a NIC between hosts: behind the % of an IPv6 address stands its name or number.
struct Link {
    std::string name;
    std::uint32_t index = 0;
};

/// Constant after it was made; any thread, no lock.
class NameService {
public:
    /// What the system's resolver says.
    struct Resolver {
        /// `length` of the addresses wanted: 6 or 18.
        std::function<std::vector<HostAddress>(const std::string& name, std::uint16_t length)> find;
        std::function<std::string(const HostAddress& address)> name;
    };
    static Resolver system_resolver();

    NameService(const HostAddress& own, std::vector<std::string> own_names, HostTable hosts,
                Neighbours neighbours, Link link = {}, Resolver resolver = system_resolver());

    /// Address number `index` of host `name`; only addresses as long as the own one, since the
    /// caller has room for no other. error_name_service: no such name or index. May block.
    Status resolve(std::string_view name, std::uint32_t index, HostAddress& address) const;
    /// error_name_service: no name is known. May block.
    Status name_of(const HostAddress& address, std::string& name) const;
    /// NICs that are there now, the own one included.
    std::vector<HostAddress> discover() const;
    /// As Neighbours::elsewhere.
    std::string elsewhere(const HostAddress& address) const;

private:
    std::vector<HostAddress> all_of(std::string_view name) const;
    std::optional<std::string> on_own_link(std::string_view name) const;

    HostAddress own_;
    std::vector<std::string> own_names_;
    HostTable hosts_;
    Neighbours neighbours_;
    Link link_;
    Resolver resolver_;
};

}  // namespace via::agent
