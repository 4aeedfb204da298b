// For this folder's tests only: ports on loopback addresses that no other test has.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/udp/socket_address.hpp"
#include "device/udp/udp_port.hpp"

namespace via::device::udp::test {

/// Only ends a test that hangs; nothing is synchronised by it.
constexpr int watchdog_ms = 20'000;

/// Host `number` of this process: an address of the loopback's that its process number makes.
inline HostAddress test_address(std::uint8_t number = 0) {
    const auto pid = static_cast<std::uint32_t>(::getpid());
    HostAddress address;
    address.length = 6;
    address.bytes = {127, static_cast<std::uint8_t>(64 + (pid >> 16)),
                     static_cast<std::uint8_t>(pid >> 8), static_cast<std::uint8_t>(pid)};
    return with_port(address, static_cast<std::uint16_t>(9741 + number));
}

/// The same of ::1, of which there is one: the process number makes the port.
inline HostAddress ipv6_address(std::uint8_t number = 0) {
    HostAddress address;
    address.length = 18;
    address.bytes[15] = 1;
    const int ports = ::getpid() % 2500 * 8;
    return with_port(address, static_cast<std::uint16_t>(10'000 + ports + number));
}

/// Past UDP and IP, over the loopback.
inline bool may_send_frames() {
    System& system = System::real();
    const Descriptor packets(system, system.socket(AF_PACKET));
    const Descriptor socket(system, system.socket(AF_INET6));
    const SocketAddress here = to_socket(with_port(ipv6_address(), 0), 1);
    return packets.valid() && socket.valid() &&
           system.bind(socket.get(), &here.any, here.length) == 0;
}

inline Discriminator discriminator(const std::string& text) {
    Discriminator result;
    std::memcpy(result.bytes.data(), text.data(), text.size());
    result.length = static_cast<std::uint16_t>(text.size());
    return result;
}

inline std::size_t count_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Where the processes of one address meet.
class Directory {
public:
    Directory() {
        if (::mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path;
    }
    ~Directory() { std::filesystem::remove_all(path); }
    Directory(const Directory&) = delete;

    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::directory_iterator(path))
            all.push_back(entry.path().filename());
        return all;
    }
    std::string path = "/tmp/via-udp-test-XXXXXX";
    bool shared = false;

protected:
    Directory(const std::string& parent, int /*user*/)
        : path(parent + "/host-XXXXXX"), shared(true) {
        if (::mkdtemp(path.data()) == nullptr || ::chmod(path.c_str(), 0711) != 0)
            ADD_FAILURE() << "mkdtemp " << path;
    }
};

/// Directories of users, as they lie beside each other.
class Place {
public:
    Place() {
        if (::mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path;
    }
    ~Place() { std::filesystem::remove_all(path); }
    Place(const Place&) = delete;
    std::string path = "/dev/shm/via-udp-users-XXXXXX";
};

struct User : Directory {
    explicit User(const Place& place) : Directory(place.path, 0) {}
};

inline std::expected<std::unique_ptr<UdpPort>, std::string> open(
    const Directory& directory, const HostAddress& address, std::uint64_t instance,
    System& system = System::real(), std::uint32_t busy_after = 512, bool own_frames = false,
    Counters* counters = nullptr) {
    return UdpPort::open({{"lo", 1, address},
                          directory.path,
                          instance,
                          directory.shared,
                          &system,
                          busy_after,
                          own_frames,
                          counters});
}

/// A port and what came to it.
class Node {
public:
    struct Datagram {
        std::string bytes;
        HostAddress from;
        bool to_host_port;
    };

    explicit Node(const Directory& directory, const HostAddress& address = test_address(),
                  std::uint64_t instance = 1, System& system = System::real(),
                  std::uint32_t busy_after = 512, bool own_frames = false,
                  Counters* counters = nullptr) {
        auto opened = open(directory, address, instance, system, busy_after, own_frames, counters);
        if (!opened) throw std::runtime_error(opened.error());
        port = std::move(*opened);
    }
    explicit Node(std::unique_ptr<UdpPort> opened) : port(std::move(opened)) {}
    UdpPort* operator->() const { return port.get(); }

    void take_all() {
        for (;;) {
            std::array<datagram::Incoming, 16> incoming;
            const std::size_t count = port->receive(incoming);
            for (std::size_t n = 0; n < count; ++n) {
                const auto* bytes = reinterpret_cast<const char*>(incoming[n].bytes);
                came.push_back(
                    {{bytes, incoming[n].length}, incoming[n].from, incoming[n].to_host_port});
            }
            port->release();
            if (count == 0) return;
        }
    }
    /// Takes datagrams until there are so many; false: they do not come.
    bool hear(std::size_t count) {
        for (int idle = 0; came.size() < count && idle < 100; ++idle) {
            take_all();
            std::array<WakeDescriptor, 3> wake{};
            const std::size_t wakes = port->wake_descriptors(wake);
            std::array<pollfd, 3> entries{};
            for (std::size_t n = 0; n < wakes; ++n) entries[n] = {wake[n].descriptor, POLLIN, 0};
            if (came.size() < count) ::poll(entries.data(), wakes, watchdog_ms / 100);
            port->arm(Sleep::awake);  // looks at the host's port, too
        }
        return came.size() >= count;
    }

    std::unique_ptr<UdpPort> port;
    std::vector<Datagram> came;
};

/// The bytes are the caller's.
inline datagram::Outgoing outgoing(const HostAddress& to, std::string_view bytes) {
    datagram::Outgoing datagram;
    datagram.to = to;
    datagram.bytes = reinterpret_cast<const std::byte*>(bytes.data());
    datagram.length = static_cast<std::uint32_t>(bytes.size());
    return datagram;
}

inline std::size_t send(Node& from, const HostAddress& to, const std::string& bytes) {
    const datagram::Outgoing one = outgoing(to, bytes);
    return from->send({&one, 1});
}

/// Text of that length that says its number everywhere.
inline std::string text(std::size_t length, std::size_t number) {
    std::string all;
    while (all.size() < length) all += std::to_string(number) + ",";
    all.resize(length);
    return all;
}

}  // namespace via::device::udp::test
