#include "bench/places.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace via::bench {

namespace {

constexpr std::size_t udp_headers_bytes = 28;  // of IPv4 and UDP
constexpr std::size_t line_bytes = 64;

Status move_to(const std::string& name) {
    const FileHandle file(::open(fmt::format("/run/netns/{}", name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno(fmt::format("network namespace {}", name));
    if (::setns(file.get(), CLONE_NEWNET) < 0)
        return fail_errno(fmt::format("entering network namespace {}", name));
    return {};
}

// Does `act` in that namespace, and comes back.
template <class Act>
Status visit(const std::string& name, Act act) {
    const FileHandle home(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!home) return fail_errno("the own network namespace");
    if (auto moved = move_to(name); !moved) return moved;
    const Status done = act();
    if (::setns(home.get(), CLONE_NEWNET) < 0) return fail_errno("leaving a network namespace");
    return done;
}

struct Interface {
    in_addr address{};
    std::size_t mtu = 0;
};

Status find_interface(const std::string& name, Interface& found) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) < 0) return fail_errno("getifaddrs");
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
    const FileHandle any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!any || ::ioctl(any.get(), SIOCGIFMTU, &request) < 0) return fail_errno("SIOCGIFMTU");
    found.mtu = static_cast<std::size_t>(request.ifr_mtu);
    return {};
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
        places.addresses_[side] = found.address;
        const std::size_t fits = (found.mtu - udp_headers_bytes) / line_bytes * line_bytes;
        places.datagram_bytes_ = std::min(places.datagram_bytes_, fits);
    }
    return places;
}

std::string Places::address_text(std::size_t side) const {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &addresses_[side], text.data(), text.size());
    return text.data();
}

Status Places::enter(std::size_t side) const { return apart() ? move_to(names_[side]) : Status{}; }

Result<FileHandle> Places::make_socket(std::size_t side, int type) const {
    FileHandle made;
    const auto make = [&]() -> Status {
        made = FileHandle(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
        return made ? Status{} : fail_errno("socket");
    };
    if (auto done = apart() ? visit(names_[side], make) : make(); !done)
        return std::unexpected(done.error());
    return made;
}

}  // namespace via::bench
