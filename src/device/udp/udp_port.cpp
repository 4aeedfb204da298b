#include "device/udp/udp_port.hpp"

#include <algorithm>
#include <cerrno>

#include "device/udp/because.hpp"

namespace via::device::udp {

namespace {

/// Of polls that find nothing, until one looks at the host's socket, too: questions for the host
/// can wait a bit. Of those that find something the same: however busy we are, somebody answers
/// there.
constexpr unsigned host_poll_interval = 32;
/// Beside a connected socket, from one look at the data socket to the next: some polls. By time, so
/// that who stood still looks everywhere before he takes anybody for silent.
constexpr Duration data_interval = microseconds(2);
/// Looks in a row that found something for the busy peer, until others are looked for first.
constexpr unsigned looks_in_a_row_max = 8;
/// Looks that take one small datagram each, until a full socket is empty.
constexpr unsigned data_looks_first_max = 8192;
/// So long may the kernel carry to the data socket what it looked up before there was another.
constexpr Duration under_way_max = milliseconds(1);
/// Pending errors that one receive() gets out of the way.
constexpr int errors_max = 8;
/// The kernel counts whole buffers: 1500 bytes on the wire cost 2304, 8 bytes 768.
constexpr int room_divisor = 3;
constexpr std::uint32_t datagram_longest = 65507;
constexpr Duration mtu_interval = seconds(1);

}  // namespace

// Opening -----------------------------------------------------------------------------------------

UdpPort::UdpPort(const UdpConfig& config)
    : config_(config),
      system_(*config.system),
      network_errors_(system_),
      receiver_(system_),
      sender_(system_, network_errors_, config.place.index),
      busy_(system_, config_, network_errors_, sender_),
      wait_set_(system_),
      presence_(system_, config_),
      host_(system_, config_, presence_, wait_set_) {}

std::expected<std::unique_ptr<UdpPort>, std::string> UdpPort::open(const UdpConfig& config) {
    std::unique_ptr<UdpPort> port(new UdpPort(config));
    if (auto opened = port->open_all(); !opened) return std::unexpected(std::move(opened.error()));
    return port;
}

bool UdpPort::set_up_data_socket() {
    int bytes = 0;
    SocketAddress bound;
    bound.length = sizeof bound.ipv6;
    if (!set_up_socket(system_, data_, is_ipv6(nic_address())) ||
        system_.getsockopt(data_.get(), SOL_SOCKET, SO_RCVBUF, &bytes) < 0 ||
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
    if (!wait_set_.open()) return failed("cannot make a wait handle (epoll_create1)");
    look_at_mtu(system_.now());
    if (datagram_max_ == 0) return failed("cannot see its MTU (ioctl)");
    if (config_.only_data) return {};
    if (auto opened = presence_.open(port_of(data_address_)); !opened) return opened;
    return host_.open();
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

// Sending -----------------------------------------------------------------------------------------

/// Not valid: another one answers for the host by now.
const Descriptor& UdpPort::socket_for(const datagram::Outgoing& datagram) const {
    if (datagram.from_host_port) return host_.socket();
    return busy_.is_for(datagram.to) ? busy_.socket() : data_;
}

/// Returns how many were taken.
std::size_t UdpPort::send_run(const Descriptor& socket, std::span<const datagram::Outgoing> run) {
    if (!socket.valid()) return run.size();  // what was asked will be asked again
    if (&socket == &busy_.socket()) return busy_.send(run, datagram_max_);
    return sender_.send(socket.get(), false, run);
}

std::size_t UdpPort::send(std::span<const datagram::Outgoing> datagrams) {
    sent_since_ = true;
    if (datagrams.size() == 1 && !datagrams.front().from_host_port &&
        busy_.is_for(datagrams.front().to) && busy_.send(datagrams.front())) {
        busy_.count(datagrams.front().to);
        return 1;
    }
    std::size_t taken = 0;
    while (taken < datagrams.size()) {
        const datagram::Outgoing& first = datagrams[taken];
        std::size_t end = taken + 1;
        while (end < datagrams.size() && datagrams[end].follows) ++end;
        if (!first.from_host_port) busy_.count(first.to, static_cast<std::uint32_t>(end - taken));
        busy_.leave_if_idle();
        const Descriptor& socket = socket_for(first);
        const std::size_t counted = end;
        while (end < datagrams.size() &&
               (datagrams[end].follows || &socket_for(datagrams[end]) == &socket))
            ++end;
        const auto run = datagrams.subspan(taken, end - taken);
        const std::size_t sent = send_run(socket, run);
        for (std::size_t n = counted; n < taken + sent; ++n)
            if (!datagrams[n].from_host_port) busy_.count(datagrams[n].to);
        taken += sent;
        if (sent == run.size()) continue;
        refused_ = socket.get();
        break;
    }
    if (sender_.met_too_long()) look_at_mtu(system_.now());
    return taken;
}

bool UdpPort::has_room() {
    if (refused_ < 0) return true;
    bool is_open = false;
    for_sockets([&](int socket) { is_open = is_open || socket == refused_; });
    pollfd entry{refused_, POLLOUT, 0};
    if (is_open && system_.poll(&entry, 1) < 0) return false;
    // An error leaves room, too: the next call takes it away.
    if (!is_open || entry.revents != 0) refused_ = -1;
    return refused_ < 0;
}

std::size_t UdpPort::list_sockets(std::span<pollfd, 3> entries) const {
    std::size_t count = 0;
    for_sockets([&](int socket) { entries[count++] = {socket, POLLIN, 0}; });
    return count;
}

// Receiving ---------------------------------------------------------------------------------------

std::size_t UdpPort::receive(std::span<datagram::Incoming> datagrams) {
    if (!receiver_.has_some()) {
        look();
        if (receiver_.has_some()) ++full_looks_;
    }
    return receiver_.take(datagrams);
}

void UdpPort::look() {
    looked_ = Time::never();
    if (full_looks_ > host_poll_interval && find_at_host()) return;
    if (data_looks_first_ != 0 && look_at_data_first()) return;
    if (is_connected() && look_at_busy_socket()) return;
    if (find_at_data()) {
        data_look_ = {};  // behind one another may come
        return;
    }
    if (busy_.is_wanted() && may_change_sockets()) return connect_to_busy_peer();
    if (polls_of_host_-- == 0) find_at_host();
}

/// What was sent before there was a connected socket is read before what comes to that. True: that
/// was the look.
bool UdpPort::look_at_data_first() {
    --data_looks_first_;
    const bool is_over = system_.now() >= data_first_until_;
    // Strangers may fill it without end: then by turns.
    if (is_over && is_connected() && data_looks_first_ % 2 == 0 && find_at_busy()) return true;
    if (find_at_data()) return true;
    if (is_over) {
        data_looks_first_ = 0;
        busy_.expect_only_peer();
    }
    return false;
}

/// True: that was the look.
bool UdpPort::look_at_busy_socket() {
    if (++looks_in_a_row_ > looks_in_a_row_max && !busy_.is_gone()) {
        looks_in_a_row_ = 0;
        if (find_at_data()) {
            looks_in_a_row_ = looks_in_a_row_max - 1;  // by turns
            return true;
        }
    }
    if (find_at_busy()) return true;
    // Who waits for a lone one looks twice: from here back to here takes as long as the call, and
    // what comes meanwhile would wait.
    if (busy_.finds_lone_ones() && find_at_busy()) return true;
    looks_in_a_row_ = 0;
    if (!busy_.is_up() && may_change_sockets() && !disconnect()) return true;
    return is_connected() && !is_data_due();
}

void UdpPort::connect_to_busy_peer() {
    if (!busy_.connect(data_, data_address_)) return;
    looks_in_a_row_ = 0;
    data_look_ = {};
    data_looks_first_ = data_looks_first_max;
    data_first_until_ = system_.now() + under_way_max;
}

/// False: it was not yet empty.
bool UdpPort::disconnect() {
    if (busy_.is_gone()) {
        busy_.close();
        return true;
    }
    busy_.disconnect(data_address_);
    return !find_at_busy();
}

bool UdpPort::find_at_host() {
    polls_of_host_ = host_poll_interval;
    full_looks_ = 0;
    return host_.is_ours() && find(host_.socket(), nullptr);
}

bool UdpPort::is_data_due() {
    looked_ = system_.now();
    if (looked_ < data_look_) return false;
    data_look_ = looked_ + data_interval;
    return true;
}

void UdpPort::look_everywhere() {
    data_look_ = {};
    polls_of_host_ = 0;
}

bool UdpPort::find(const Descriptor& socket, Receiver::Habit* habit) {
    for (int errors = 0; errors < errors_max; ++errors) {
        if (receiver_.read(socket.get(), habit) == 0) break;
        network_errors_.read(socket.get());  // also lets the next call succeed
    }
    return receiver_.has_some();
}

bool UdpPort::has_work() {
    if (receiver_.has_some() || !network_errors_.empty()) return true;
    std::array<pollfd, 3> entries;
    const std::size_t count = list_sockets(entries);
    if (system_.poll(entries.data(), count) <= 0) return false;
    // What the kernel shows late stands in an error queue, which no look empties.
    bool only_errors = true;
    for (const pollfd& entry : std::span(entries).first(count)) {
        if ((entry.revents & POLLERR) != 0) network_errors_.read(entry.fd);
        only_errors = only_errors && (entry.revents & ~POLLERR) == 0;
    }
    if (only_errors && network_errors_.empty() && system_.poll(entries.data(), count) <= 0)
        return false;
    look_everywhere();
    return true;
}

// Listening ---------------------------------------------------------------------------------------

Status UdpPort::listen(const Discriminator& discriminator) {
    host_.ask_soon();
    return presence_.listen(discriminator, host_.is_ours());
}

bool UdpPort::find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                            std::uint64_t& instance) {
    // Who finds nobody at home asks the one that answers.
    host_.ask_soon();
    return presence_.listeners().find(discriminator, data_port, instance);
}

// Sleeping ----------------------------------------------------------------------------------------

void UdpPort::arm(Sleep sleep) {
    wait_set_.arm(sleep == Sleep::on_handle, refused_, [this](auto call) { for_sockets(call); });
    awake_ = sleep == Sleep::awake;
    look_everywhere();  // what wakes us may be anywhere
}

std::size_t UdpPort::wake_descriptors(std::span<WakeDescriptor> descriptors) const {
    std::size_t count = 0;
    for_sockets([&](int socket) {
        if (count < descriptors.size()) descriptors[count] = {socket, socket == refused_};
        ++count;
    });
    return count;
}

void UdpPort::service(Time now) {
    network_errors_.read(data_.get());
    if (is_connected()) network_errors_.read(busy_.socket().get());
    look_everywhere();
    if (!config_.only_data) host_.service(now);
    if (now >= mtu_looked_ + mtu_interval) look_at_mtu(now);
    if (!config_.only_data && presence_.is_due(now)) presence_.look(now, host_.is_ours());
}

Time UdpPort::next_deadline() const {
    Time soon = wait_set_.next_deadline();
    if (!config_.only_data) soon = earlier(soon, host_.next_deadline());
    if (!config_.only_data && host_.is_looked_for()) soon = earlier(soon, presence_.next_look());
    // Who sends nothing need not know how long a datagram may be.
    return sent_since_ ? earlier(soon, mtu_looked_ + mtu_interval) : soon;
}

}  // namespace via::device::udp
