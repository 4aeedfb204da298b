// The UDP port's life: opening, taking over the host's port, looking at the interface.
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
/// Between two tries to get the host's port: while its owner is known and watched; and while it is
/// not, where the tries begin soon one behind the other.
constexpr Duration host_try_watched = seconds(5);
constexpr Duration host_try_least = milliseconds(1);
constexpr Duration host_try_longest = milliseconds(400);
constexpr int tries_before_stranger = 64;
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
      ethernet_(system_, troubles_, sender_) {}

std::expected<std::unique_ptr<UdpPort>, std::string> UdpPort::open(const UdpConfig& config) {
    std::unique_ptr<UdpPort> port(new UdpPort(config));
    if (auto opened = port->open_all(); !opened) return std::unexpected(std::move(opened.error()));
    return port;
}

UdpPort::~UdpPort() { host_.reset(); }  // before our file is closed, by which others hear of it

/// At our address; not valid and errno: why not.
Descriptor UdpPort::make_socket(std::uint16_t port) {
    const HostAddress address = with_port(config_.place.address, port);
    const SocketAddress at = to_socket(address, config_.place.index);
    Descriptor socket(system_, system_.socket(is_ipv6(address) ? AF_INET6 : AF_INET));
    if (!socket.valid()) return socket;
    if (system_.bind(socket.get(), &at.any, at.length) == 0) return socket;
    const int error = errno;
    socket.reset();
    errno = error;
    return socket;
}

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
    data_ = make_socket(0);
    if (!data_.valid()) return failed("cannot bind a socket to its address");
    if (!set_up_data_socket()) return failed("cannot set a socket up");
    epoll_ = Descriptor(system_, system_.epoll_create());
    if (!epoll_.valid()) return failed("cannot make a wait handle (epoll)");
    look_at_mtu(system_.now());
    names_look_ = system_.now() + names_interval;
    if (datagram_max_ == 0) return failed("cannot see its MTU");
    auto listeners = Listeners::open(system_, config_.directory, config_.shared,
                                     port_of(data_address_), config_.instance);
    if (!listeners) return std::unexpected(std::move(listeners.error()));
    listeners_ = std::make_unique<Listeners>(std::move(*listeners));
    try_host_port(system_.now());
    if (host_.valid()) return {};
    if (errno != EADDRINUSE) return failed("cannot take the port that NICs are asked at");
    if (host_answers()) return {};
    return std::unexpected(place + ": UDP port " + std::to_string(port_of(nic_address())) +
                           " at its address is taken, and not by a NIC of this user" +
                           (config_.shared
                                ? ", nor by one that another user shows in " +
                                      config_.directory.substr(0, config_.directory.rfind('/'))
                                : std::string()) +
                           "; end that program, or choose another port for all hosts: udp:" +
                           host_text(nic_address()) + ":PORT");
}

/// Another user's NIC that just took the port may not have said so yet, or it ended meanwhile.
bool UdpPort::host_answers() {
    for (int tries = 0; tries < tries_before_stranger; ++tries) {
        if (listeners_->has_others()) return true;
        if (tries != 0 && take_host_port()) return true;
        system_.yield();
    }
    return false;
}

bool UdpPort::take_host_port() {
    Descriptor socket = make_socket(port_of(nic_address()));
    if (!socket.valid() || (watched_ && !set_watched(socket.get(), true))) return false;
    host_ = std::move(socket);
    host_try_ = Time::never();
    listeners_->note_holder();
    const int error = errno;
    inotify_.reset();
    errno = error;
    return true;
}

void UdpPort::try_host_port(Time now) {
    if (take_host_port()) return;
    const int error = errno;
    // Another one is known to have it; or it is between two, or a stranger's.
    const bool watched = error == EADDRINUSE && watch_holder();
    if (watched && take_host_port()) return;  // it ended before we watched
    host_try_interval_ =
        watched ? host_try_least
                : std::clamp({host_try_interval_.ns * 2}, host_try_least, host_try_longest);
    host_try_ = now + (watched ? host_try_watched : host_try_interval_);
    errno = error;
}

bool UdpPort::watch_holder() {
    if (!inotify_.valid()) {
        Descriptor made(system_, system_.inotify_init());
        epoll_event event{};
        event.events = EPOLLIN;
        if (!made.valid() || system_.epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made.get(), &event) < 0)
            return false;
        inotify_ = std::move(made);
    }
    return listeners_->watch_holder(inotify_.get());
}

/// It ended: we try at once, and soon again while its socket is still being closed.
void UdpPort::hear_of_holder(Time now) {
    if (!inotify_.valid()) return;
    alignas(8) std::byte events[4096];
    bool heard = false;
    while (system_.read(inotify_.get(), events, sizeof events) > 0) heard = true;
    if (!heard) return;
    host_try_interval_ = host_try_least;
    host_try_ = now;
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
    hear_of_holder(now);
    if (now >= host_try_) try_host_port(now);
    if (now >= mtu_looked_ + mtu_interval) look_at_mtu(now);
    if (now >= names_look_) look_at_names(now);
}

Time UdpPort::next_deadline() const {
    // Who sends nothing need not know how long a datagram may be.
    Time soon = earlier(host_try_, hear_again_);
    if (is_looked_for()) soon = earlier(soon, names_look_);
    return sent_since_ ? earlier(soon, mtu_looked_ + mtu_interval) : soon;
}

}  // namespace via::device::udp
