// Where the two processes of a pair live on the network: on this host, or each in a network
// namespace of its own, which is another host for everything that is measured.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <string>

#include "bench/address.hpp"
#include "bench/file_handle.hpp"
#include "bench/types.hpp"

namespace via::bench {

class Places {
public:
    // Both on this host; the network between them is loopback.
    Places() = default;
    // In the namespaces of these names (as `ip netns` makes them), at the first IPv4 address of
    // each that is not loopback's. Fails without the right to enter them.
    static Result<Places> in_namespaces(const std::string& first, const std::string& second);

    // `own` side here and the other one on another machine; the addresses are those by which the
    // two know each other.
    static Result<Places> between_machines(std::size_t own, const Address& own_address,
                                           const Address& peer_address);

    // Each side has a network of its own.
    bool apart() const { return remote() || !names_[0].empty(); }
    // Between machines, and which side is here.
    bool remote() const { return own_ >= 0; }
    std::size_t own() const { return static_cast<std::size_t>(own_); }
    // No port is set.
    const Address& address(std::size_t side) const { return addresses_[side]; }
    std::string address_text(std::size_t side) const { return addresses_[side].machine_text(); }
    // What the network between them carries in one piece of UDP payload, in whole cache lines.
    std::size_t datagram_bytes() const { return datagram_bytes_; }

    // The calling process moves there for good. Its threads that exist already stay.
    Status enter(std::size_t side) const;
    using SocketCall = int (*)(int domain, int type, int protocol) noexcept;
    // A socket of that side's network, made by a process that stays where it is.
    Result<FileHandle> make_socket(std::size_t side, int type, SocketCall call = ::socket) const;

private:
    int own_ = -1;
    std::array<std::string, 2> names_;
    std::array<Address, 2> addresses_{Address(in_addr{htonl(INADDR_LOOPBACK)}),
                                      Address(in_addr{htonl(INADDR_LOOPBACK)})};
    std::size_t datagram_bytes_ = 65472;  // the most of whole cache lines that fits into one
};

}  // namespace via::bench
