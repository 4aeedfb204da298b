// By which neighbours datagrams reach hosts that are not in a network of ours: a host's part of
// what `via topology` found (docs/design/relay.md).
#pragma once

#include <compare>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"

namespace via::relay {

/// Where relays take datagrams that are to be passed on.
constexpr std::uint16_t relay_port = 9742;
/// Relays between two hosts.
constexpr std::uint8_t hops_max = 8;

/// A host's address, whatever the port.
class HostOnly {
public:
    explicit HostOnly(const HostAddress& address) : address_(with_port(address, 0)) {}
    friend bool operator==(const HostOnly&, const HostOnly&) = default;
    friend bool operator<(const HostOnly& a, const HostOnly& b) {
        if (a.address_.length != b.address_.length) return a.address_.length < b.address_.length;
        return std::memcmp(a.address_.bytes.data(), b.address_.bytes.data(), a.address_.length) < 0;
    }

private:
    HostAddress address_;
};

/// From an address of ours to one of another host. Ports mean nothing.
struct Way {
    HostAddress own;
    HostAddress to;
    HostAddress next;      ///< a relay in our network, or `to`, which is there itself
    std::uint64_t ns = 0;  ///< that a short message takes
};

class Ways {
public:
    using ParseAddress = std::function<std::optional<HostAddress>(std::string_view)>;
    /// Lines "way OWN TO NEXT NS" and "relay ADDRESS", or none; behind # nothing counts. Error:
    /// what is wrong, with `file` and line.
    static std::expected<Ways, std::string> parse(std::string_view text, const std::string& file,
                                                  const ParseAddress& address);
    static constexpr std::size_t ways_max = 1 << 20;

    /// From that address of ours: for each other one the next hosts, the fastest way first.
    using Nexts = std::map<HostOnly, std::vector<HostAddress>>;
    Nexts from(const HostAddress& own) const;
    /// Of all addresses of ours the one from which it is fastest.
    const Way* fastest(const HostAddress& to) const;
    /// Is it the address of a relay that we may believe who made what it passes on?
    bool is_relay(const HostAddress& address) const {
        return address.length > 2 && port_of(address) == relay_port &&
               relays_.contains(HostOnly(address));
    }
    /// At which a relay listens, each once.
    std::span<const HostAddress> own() const { return own_; }
    std::size_t size() const { return ways_.size(); }

private:
    std::string take(std::span<const std::string_view> words, const ParseAddress& address);

    std::vector<Way> ways_;
    std::vector<HostAddress> own_;
    std::set<HostOnly> relays_;
    std::map<HostOnly, std::size_t> fastest_;  ///< places of ways
};

}  // namespace via::relay
