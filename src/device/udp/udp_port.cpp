#include "device/udp/udp_port.hpp"

#include <cerrno>

namespace via::device::udp {

namespace {

/// Of polls, until one looks at the host's socket, too: questions for the host can wait a bit.
constexpr unsigned host_poll_interval = 32;
/// Pending errors that one receive() gets out of the way.
constexpr int errors_max = 8;

}  // namespace

// Sending -----------------------------------------------------------------------------------------

std::size_t UdpPort::send(std::span<const datagram::Outgoing> datagrams) {
    std::size_t taken = 0;
    sent_since_ = true;
    while (taken < datagrams.size()) {
        const bool from_host_port = datagrams[taken].from_host_port;
        std::size_t end = taken + 1;
        while (end < datagrams.size() && datagrams[end].from_host_port == from_host_port) ++end;
        const auto run = datagrams.subspan(taken, end - taken);
        // Another one answers for the host by now: what was asked will be asked again.
        const bool gone = from_host_port && !host_.valid();
        const int socket = from_host_port ? host_.get() : data_.get();
        const std::size_t sent = gone ? run.size() : sender_.send(socket, run);
        taken += sent;
        if (sent == run.size()) continue;
        awaits_room_ = true;
        break;
    }
    if (sender_.met_too_long()) look_at_mtu(system_.now());
    return taken;
}

bool UdpPort::has_room() {
    if (!awaits_room_) return true;
    std::array<pollfd, 2> entries{{{data_.get(), POLLOUT, 0}, {host_.get(), POLLOUT, 0}}};
    if (system_.poll(entries.data(), host_.valid() ? 2 : 1) < 0) return false;
    // An error leaves room, too: the next call takes it away.
    awaits_room_ = entries[0].revents == 0 || (host_.valid() && entries[1].revents == 0);
    return !awaits_room_;
}

// Receiving ---------------------------------------------------------------------------------------

std::size_t UdpPort::receive(std::span<datagram::Incoming> datagrams) {
    if (!receiver_.has_some()) read(data_, false);
    if (!receiver_.has_some() && host_.valid() && polls_of_host_-- == 0) {
        polls_of_host_ = host_poll_interval;
        read(host_, true);
    }
    return receiver_.take(datagrams);
}

void UdpPort::read(const Descriptor& socket, bool is_host_port) {
    for (int errors = 0; errors < errors_max; ++errors) {
        if (receiver_.read(socket.get(), is_host_port) == 0) return;
        troubles_.read(socket.get());  // also lets the next call succeed
    }
}

bool UdpPort::has_work() {
    if (receiver_.has_some() || !troubles_.empty()) return true;
    std::array<pollfd, 2> entries{{{data_.get(), POLLIN, 0}, {host_.get(), POLLIN, 0}}};
    if (system_.poll(entries.data(), host_.valid() ? 2 : 1) <= 0) return false;
    if (entries[1].revents != 0) polls_of_host_ = 0;
    return true;
}

// Listening ---------------------------------------------------------------------------------------

Status UdpPort::listen(const Discriminator& discriminator) {
    return listeners_->listen(discriminator);
}

void UdpPort::unlisten(const Discriminator& discriminator) { listeners_->unlisten(discriminator); }

bool UdpPort::find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                            std::uint64_t& instance) {
    return listeners_->find(discriminator, data_port, instance);
}

// Sleeping ----------------------------------------------------------------------------------------

void UdpPort::arm(Sleep sleep) {
    const bool watched = sleep == Sleep::on_handle;
    if (watched != watched_ || (watched && awaits_room_)) set_watched(watched);
    // The kernel did not let us hear: whoever sleeps looks again soon.
    hear_again_ = watched && !watched_ ? system_.now() + milliseconds(10) : Time::never();
    polls_of_host_ = 0;  // what wakes us may be there
}

/// While somebody polls, what comes must not wake the agent. A socket that the wait handle knows
/// tells it of each datagram, whether that is heard or not: so it is known only while we sleep.
void UdpPort::set_watched(bool watched) {
    bool done = true;
    for (const Descriptor* socket : {&data_, &host_})
        if (socket->valid()) done = set_watched(socket->get(), watched) && done;
    watched_ = done ? watched : !watched;  // else one more try the next time
}

bool UdpPort::set_watched(int socket, bool watched) {
    epoll_event event{};
    event.events = EPOLLIN | (awaits_room_ ? std::uint32_t{EPOLLOUT} : 0);
    int operation = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    for (int tries = 0; tries < 2; ++tries) {
        if (system_.epoll_ctl(epoll_.get(), operation, socket, &event) == 0) return true;
        if (!watched && errno == ENOENT) return true;
        if (watched && errno == EEXIST) operation = EPOLL_CTL_MOD;
    }
    return false;
}

std::size_t UdpPort::wake_descriptors(std::span<WakeDescriptor> descriptors) const {
    const std::size_t count = host_.valid() ? 2 : 1;
    if (descriptors.size() < count) return count;
    descriptors[0] = {data_.get(), awaits_room_};
    if (count == 2) descriptors[1] = {host_.get(), awaits_room_};
    return count;
}

}  // namespace via::device::udp
