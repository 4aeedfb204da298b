// An address of a machine and a TCP or UDP port, of IPv4 or IPv6.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/types.hpp"

namespace via::bench {

class Address {
public:
    Address() = default;
    explicit Address(in_addr address);
    // "HOST", "HOST:PORT", "[IPv6]:PORT" or ":PORT"; HOST is a name or an address. Without HOST,
    // or of nothing: all addresses of this machine, for a listener.
    static Result<Address> resolve(const std::string& text, std::uint16_t default_port);
    // Of a connected socket.
    static Result<Address> own_of(int socket);
    static Result<Address> peer_of(int socket);

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
    socklen_t bytes() const { return bytes_; }
    bool is_any() const;
    Address any_ipv4() const;  // all addresses of IPv4, the same port
    int family() const { return storage_.ss_family; }
    std::uint16_t port() const;
    Address with_port(std::uint16_t port) const;
    bool is_machine(const sockaddr& other) const;
    bool same_machine(const Address& other) const { return machine_text() == other.machine_text(); }

    std::string machine_text() const;  // "10.0.0.1" or "[fd00::1]"
    std::string text() const;          // with the port

private:
    void unmap();

    sockaddr_storage storage_{};
    socklen_t bytes_ = 0;
};

}  // namespace via::bench
