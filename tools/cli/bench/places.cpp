#include "bench/places.hpp"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace via::bench {

namespace {

constexpr std::size_t udp_headers_bytes = 28;  // of IPv4 and UDP
constexpr std::size_t ipv6_udp_headers_bytes = 48;
constexpr std::size_t line_bytes = 64;

// What of `bytes` is whole cache lines.
std::size_t lines_of(std::size_t bytes) { return bytes / line_bytes * line_bytes; }

Status move_to(const std::string& name) {
    const FileHandle file(::open(fmt::format("/run/netns/{}", name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno(fmt::format("cannot open network namespace {} (open)", name));
    if (::setns(file.get(), CLONE_NEWNET) < 0)
        return fail_errno(fmt::format("cannot enter network namespace {} (setns)", name));
    return {};
}

// Does `act` in that namespace, and comes back.
template <class Act>
Status visit(const std::string& name, Act act) {
    const FileHandle home(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!home) return fail_errno("cannot open our own network namespace (open)");
    if (auto moved = move_to(name); !moved) return moved;
    const Status done = act();
    if (::setns(home.get(), CLONE_NEWNET) < 0)
        return fail_errno("cannot go back to our own network namespace (setns)");
    return done;
}

struct Interface {
    in_addr address{};
    std::size_t mtu = 0;
};

// Of the interface that is named in `request`.
Result<std::size_t> mtu_of(ifreq& request) {
    constexpr int least_mtu = 576;
    const FileHandle any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!any || ::ioctl(any.get(), SIOCGIFMTU, &request) < 0)
        return fail_errno(
            fmt::format("cannot see the MTU of {} (socket, ioctl)", request.ifr_name));
    return static_cast<std::size_t>(std::max(request.ifr_mtu, least_mtu));
}

Status find_interface(const std::string& name, Interface& found) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) < 0) return fail_errno("cannot list the interfaces (getifaddrs)");
    ifreq request{};
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET ||
            (at->ifa_flags & IFF_LOOPBACK) != 0 || (at->ifa_flags & IFF_UP) == 0)
            continue;
        found.address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr;
        std::strncpy(request.ifr_name, at->ifa_name, sizeof request.ifr_name - 1);
        break;
    }
    ::freeifaddrs(list);
    if (request.ifr_name[0] == '\0')
        return fail("network namespace {} has no interface that is up and has an IPv4 address",
                    name);
    const auto mtu = mtu_of(request);
    if (!mtu) return std::unexpected(mtu.error());
    found.mtu = *mtu;
    return {};
}

// Of the interface that has this address.
Result<std::size_t> mtu_at(const Address& address) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) < 0) return fail_errno("cannot list the interfaces (getifaddrs)");
    ifreq request{};
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || !address.is_machine(*at->ifa_addr)) continue;
        std::strncpy(request.ifr_name, at->ifa_name, sizeof request.ifr_name - 1);
    }
    ::freeifaddrs(list);
    if (request.ifr_name[0] == '\0') {
        return fail("no interface here has the address {}", address.machine_text());
    }
    return mtu_of(request);
}

}  // namespace

Result<Places> Places::in_namespaces(const std::string& first, const std::string& second) {
    Places places;
    places.names_ = {first, second};
    for (std::size_t side = 0; side < 2; ++side) {
        Interface found;
        const std::string& name = places.names_[side];
        if (auto looked = visit(name, [&] { return find_interface(name, found); }); !looked)
            return std::unexpected(looked.error());
        places.addresses_[side] = Address(found.address);
        places.datagram_bytes_ =
            std::min(places.datagram_bytes_, lines_of(found.mtu - udp_headers_bytes));
    }
    return places;
}

Result<Places> Places::between_machines(std::size_t own, const Address& own_address,
                                        const Address& peer_address) {
    Places places;
    places.own_ = static_cast<int>(own);
    places.addresses_[own] = own_address.with_port(0);
    places.addresses_[1 - own] = peer_address.with_port(0);
    const auto mtu = mtu_at(own_address);
    if (!mtu) return std::unexpected(mtu.error());
    const std::size_t headers =
        own_address.family() == AF_INET6 ? ipv6_udp_headers_bytes : udp_headers_bytes;
    places.datagram_bytes_ = std::min(places.datagram_bytes_, lines_of(*mtu - headers));
    return places;
}

Status Places::enter(std::size_t side) const {
    return names_[side].empty() ? Status{} : move_to(names_[side]);
}

Result<FileHandle> Places::make_socket(std::size_t side, int type, SocketCall call) const {
    FileHandle made;
    const auto make = [&]() -> Status {
        made = FileHandle(call(addresses_[side].family(), type | SOCK_CLOEXEC, 0));
        return made ? Status{} : fail_errno("socket");
    };
    if (auto done = names_[side].empty() ? make() : visit(names_[side], make); !done)
        return std::unexpected(done.error());
    return made;
}

}  // namespace via::bench
