#include "device/udp/udp_rails.hpp"

#include <cerrno>
#include <utility>

#include "device/udp/because.hpp"
#include "device/udp/socket_address.hpp"

namespace via::device::udp {

std::string what_is_wrong_with_rails(const std::vector<Place>& places) {
    constexpr std::size_t rails_max = datagram::RailsPort::rails_max;
    if (places.size() > rails_max)
        return "udp: a NIC is in at most " + std::to_string(rails_max) + " networks, not " +
               std::to_string(places.size());
    for (std::size_t n = 0; n < places.size(); ++n)
        for (std::size_t before = 0; before < n; ++before) {
            const Place& one = places[before];
            const Place& other = places[n];
            const std::string both = "udp: " + one.interface + " (" + host_text(one.address) +
                                     ") and " + other.interface + " (" + host_text(other.address) +
                                     ") ";
            if (is_ipv6(one.address) != is_ipv6(other.address))
                return both + "are of two kinds: all rails of a NIC are IPv4, or all IPv6";
            if (is_in_network_of(one, other.address) || is_in_network_of(other, one.address))
                return both + "are in one network: each rail of a NIC needs one of its own";
        }
    return {};
}

std::expected<std::unique_ptr<UdpRails>, std::string> UdpRails::open(
    System& system, std::vector<std::unique_ptr<datagram::Port>> ports) {
    std::unique_ptr<UdpRails> rails(new UdpRails(system, std::move(ports)));
    bool done = rails->wait_set_.open();
    for (std::uint32_t rail = 0; done && rail < rails->rails(); ++rail)
        done = rails->wait_set_.add(rails->port(rail).wait_handle());
    if (!done)
        return std::unexpected("udp: cannot make a wait handle for all rails (epoll)" +
                               because(errno));
    return rails;
}

}  // namespace via::device::udp
