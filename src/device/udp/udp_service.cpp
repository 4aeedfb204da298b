// The UDP port's life: opening, looking at the interface and at our names.
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "device/udp/because.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/udp_port.hpp"

#include <netinet/udp.h>

namespace via::device::udp {

namespace {

/// The kernel counts whole buffers: 1500 bytes on the wire cost 2304, 8 bytes 768.
constexpr int room_divisor = 3;
constexpr std::uint32_t datagram_longest = 65507;
constexpr Duration mtu_interval = seconds(1);
constexpr Duration names_interval = seconds(5);

}  // namespace

UdpPort::UdpPort(const UdpConfig& config)
    : config_(config),
      system_(*config.system),
      troubles_(system_),
      receiver_(system_),
      sender_(system_, troubles_, config.place.index),
      busy_(config.busy_after),
      holder_check_(system_, config.instance),
      ethernet_(system_, troubles_, sender_) {}

std::expected<std::unique_ptr<UdpPort>, std::string> UdpPort::open(const UdpConfig& config) {
    std::unique_ptr<UdpPort> port(new UdpPort(config));
    if (auto opened = port->open_all(); !opened) return std::unexpected(std::move(opened.error()));
    return port;
}

UdpPort::~UdpPort() { host_.reset(); }  // before our file is closed, by which others hear of it

/// Of those that connections' datagrams come to.
bool UdpPort::set_up(const Descriptor& socket) {
    const int fd = socket.get();
    const bool ipv6 = is_ipv6(nic_address());
    // Less room, or no joined datagrams: it works nevertheless.
    system_.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, socket_bytes_wanted);
    system_.setsockopt(fd, SOL_SOCKET, SO_SNDBUF, socket_bytes_wanted);
    system_.setsockopt(fd, SOL_UDP, UDP_GRO, 1);
    return system_.setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, 1) ==
               0 &&
           system_.setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP,
                              ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                              ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE) == 0;
}

bool UdpPort::set_up_data_socket() {
    int bytes = 0;
    SocketAddress bound;
    bound.length = sizeof bound.ipv6;
    if (!set_up(data_) || system_.getsockopt(data_.get(), SOL_SOCKET, SO_RCVBUF, &bytes) < 0 ||
        system_.getsockname(data_.get(), &bound.any, &bound.length) < 0)
        return false;
    receive_room_ = static_cast<std::uint32_t>(bytes / room_divisor);
    data_address_ = from_socket(bound.any);
    return true;
}

std::expected<void, std::string> UdpPort::open_all() {
    const std::string place = "udp: " + config_.place.interface;
    const auto failed = [&](const std::string& what) {
        return std::unexpected(place + ": " + what + because(errno));
    };
    data_ = bind_socket(system_, with_port(nic_address(), 0), config_.place.index, SharesPort::no);
    if (!data_.valid()) return failed("cannot bind a socket to its address (socket, bind)");
    if (!set_up_data_socket()) return failed("cannot set a socket up (setsockopt, getsockname)");
    epoll_ = Descriptor(system_, system_.epoll_create());
    if (!epoll_.valid()) return failed("cannot make a wait handle (epoll_create1)");
    look_at_mtu(system_.now());
    names_look_ = system_.now() + names_interval;
    if (datagram_max_ == 0) return failed("cannot see its MTU (ioctl)");
    auto listeners = Listeners::open(system_, config_.directory, config_.shared,
                                     port_of(data_address_), config_.instance);
    if (!listeners) return std::unexpected(std::move(listeners.error()));
    listeners_ = std::make_unique<Listeners>(std::move(*listeners));
    try_host_port(system_.now());
    if (host_.valid()) return {};
    if (errno != EADDRINUSE)
        return failed("cannot take the port that NICs are asked at (socket, bind)");
    if (host_answers()) return {};
    return std::unexpected(
        place + ": UDP port " + std::to_string(port_of(nic_address())) +
        " at its address is taken, " + who_has_host_port() +
        ", or choose another port for all hosts: udp:" + host_text(nic_address()) + ":PORT");
}

/// By nobody who is known here, and what to do about it.
std::string UdpPort::who_has_host_port() const {
    // A program of the same user may join one that allows it, as NICs do.
    if (bind_socket(system_, nic_address(), config_.place.index, SharesPort::yes).valid())
        return "by a program of this user that is known as no NIC in " + config_.directory +
               "; a NIC whose names were taken away is known again within five seconds, one with "
               "another XDG_RUNTIME_DIR needs the same; otherwise end that program";
    return "and not by a NIC of this user" +
           (config_.shared ? ", nor by one that another user shows in " +
                                 config_.directory.substr(0, config_.directory.rfind('/'))
                           : std::string()) +
           "; end that program";
}

void UdpPort::look_at_mtu(Time now) {
    mtu_looked_ = now;
    sent_since_ = false;
    ifreq request{};
    config_.place.interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    // An interface that is gone for the moment keeps what it had.
    if (system_.interface_mtu(data_.get(), &request) < 0) return;
    const auto mtu = static_cast<std::uint32_t>(std::max(request.ifr_mtu, 0));
    const std::uint32_t headers = headers_length(is_ipv6(nic_address()));
    if (mtu > headers) datagram_max_ = std::min(mtu - headers, datagram_longest);
}

/// A host may be given another address while we live: then no peer is reached.
void UdpPort::look_at_address() {
    const bool here = is_here(system_, nic_address()).value_or(address_is_here_);
    if (std::exchange(address_is_here_, here) == here || !config_.report) return;
    config_.report("udp: " + config_.place.interface + ": the address " + host_text(nic_address()) +
                   (here ? " is there again"
                         : " is on no interface any more that is up, so no other host is reached; "
                           "give it back, or close this NIC and open one at another"));
}

/// A cleaner of temporary files may take our names away while we live.
void UdpPort::look_at_names(Time now) {
    names_look_ = now + names_interval;
    look_at_address();
    if (listeners_->is_known()) return;
    UdpConfig::Meeting at{config_.directory, config_.shared};
    std::string why;
    if (config_.directory_again) {
        if (auto again = config_.directory_again()) {
            at = std::move(*again);
        } else {
            why = again.error();
        }
    }
    if (why.empty()) {
        const auto made = listeners_->make_known(at.directory, at.shared, port_of(data_address_),
                                                 config_.instance);
        if (!made) why = made.error();
        if (host_.valid()) listeners_->note_holder();
    }
    if (!config_.report) return;
    config_.report("udp: our names were taken away; " +
                   (why.empty() ? "others find us in " + at.directory + " again" : why));
}

void UdpPort::service(Time now) {
    troubles_.read(data_.get());
    if (is_connected()) troubles_.read(connected_.get());
    look_everywhere();
    look_at_host_port(now);
    if (now >= mtu_looked_ + mtu_interval) look_at_mtu(now);
    if (now >= names_look_) look_at_names(now);
}

Time UdpPort::next_deadline() const {
    // Who sends nothing need not know how long a datagram may be.
    Time soon = earlier(earlier(host_try_, hear_again_), holder_check_.next());
    if (is_looked_for()) soon = earlier(soon, names_look_);
    return sent_since_ ? earlier(soon, mtu_looked_ + mtu_interval) : soon;
}

}  // namespace via::device::udp
