#include "device/udp/udp_port.hpp"

#include <algorithm>
#include <cerrno>

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
/// Pending errors that one receive() gets out of the way.
constexpr int errors_max = 8;

}  // namespace

// Sending -----------------------------------------------------------------------------------------

/// Not valid: another one answers for the host by now. `to_busy_peer` matters while it is
/// connected.
const Descriptor& UdpPort::socket_for(const datagram::Outgoing& datagram, bool to_busy_peer) const {
    if (datagram.from_host_port) return host_;
    return connection_ == Connection::up && to_busy_peer ? connected_ : data_;
}

/// The common datagram. False: nothing was done, or an error was met that the general way looks at.
bool UdpPort::send_to_busy_peer(const datagram::Outgoing& datagram) {
    if (connection_ != Connection::up || datagram.from_host_port ||
        !(datagram.to == busy_.address()))
        return false;
    if (ethernet_.is_due()) return ethernet_.ask(datagram);
    if (ethernet_.is_ready() && ethernet_.send({&datagram, 1}) == 1) return true;
    if (system_.sendto(connected_.get(), datagram.bytes, datagram.length, nullptr, 0) >= 0)
        return true;
    // An error that was pending: the call took it, so nothing else tells of what it was.
    if (errno != EAGAIN && errno != ENOBUFS) troubles_.read(connected_.get());
    return false;
}

/// All go to the busy peer.
/// Of frames that it cuts the kernel does not ask how long the interface's may be.
bool UdpPort::are_carried(std::span<const datagram::Outgoing> run) const {
    return std::ranges::all_of(
        run, [this](const auto& datagram) { return datagram.length <= datagram_max_; });
}

std::size_t UdpPort::send_connected(std::span<const datagram::Outgoing> run) {
    std::size_t sent = 0;
    if (ethernet_.is_due() && ethernet_.ask(run.front())) sent = 1;
    if (sent < run.size() && ethernet_.is_ready() && are_carried(run.subspan(sent)))
        sent += ethernet_.send(run.subspan(sent));
    if (sent < run.size()) sent += sender_.send(connected_.get(), true, run.subspan(sent));
    return sent;
}

void UdpPort::doubt(const HostAddress& to, Time arrived) {
    if (connection_ == Connection::up && to == busy_.address()) ethernet_.doubt(arrived);
}

std::size_t UdpPort::send(std::span<const datagram::Outgoing> datagrams) {
    sent_since_ = true;
    if (datagrams.size() == 1 && send_to_busy_peer(datagrams.front())) {
        busy_.count(datagrams.front().to);
        return 1;
    }
    std::size_t taken = 0;
    while (taken < datagrams.size()) {
        const datagram::Outgoing& first = datagrams[taken];
        std::size_t end = taken + 1;
        while (end < datagrams.size() && datagrams[end].follows) ++end;
        const bool to_busy_peer =
            !first.from_host_port && busy_.count(first.to, static_cast<std::uint32_t>(end - taken));
        if (connection_ == Connection::up && !busy_.is_there()) {
            connection_ = Connection::going;
            ethernet_.end();
        }
        const Descriptor& socket = socket_for(first, to_busy_peer);
        const std::size_t counted = end;
        while (end < datagrams.size() &&
               (datagrams[end].follows ||
                &socket_for(datagrams[end], datagrams[end].to == busy_.address()) == &socket))
            ++end;
        const auto run = datagrams.subspan(taken, end - taken);
        // Without a socket: what was asked will be asked again.
        const std::size_t sent = !socket.valid()          ? run.size()
                                 : &socket == &connected_ ? send_connected(run)
                                                          : sender_.send(socket.get(), false, run);
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
    if (data_looks_first_ != 0) {
        --data_looks_first_;
        const bool is_over = system_.now() >= data_first_until_;
        // Strangers may fill it without end: then by turns.
        if (is_over && is_connected() && data_looks_first_ % 2 == 0 &&
            find(connected_, &connected_habit_))
            return;
        if (find(data_, &data_habit_)) return;
        if (is_over) {
            data_looks_first_ = 0;
            // What others sent before it was connected is read by the time that it is empty.
            connected_habit_.only_from = &connected_to_;
        }
    }
    if (is_connected()) {
        if (++looks_in_a_row_ > looks_in_a_row_max && connection_ != Connection::gone) {
            looks_in_a_row_ = 0;
            if (find(data_, &data_habit_)) {
                looks_in_a_row_ = looks_in_a_row_max - 1;  // by turns
                return;
            }
        }
        if (find(connected_, &connected_habit_)) return;
        // Who waits for a lone one looks twice: from here back to here takes as long as the call,
        // and what comes meanwhile would wait.
        if (connected_habit_.joining == Receiver::Joining::off &&
            find(connected_, &connected_habit_))
            return;
        looks_in_a_row_ = 0;
        if (connection_ != Connection::up && may_change_sockets() && !disconnect()) return;
        if (is_connected() && !is_data_due()) return;
    }
    if (find(data_, &data_habit_)) {
        data_look_ = {};  // behind one another may come
        return;
    }
    if (busy_.is_there() && !is_connected() && may_change_sockets()) return connect_to_busy_peer();
    if (polls_of_host_-- == 0) find_at_host();
}

bool UdpPort::find_at_host() {
    polls_of_host_ = host_poll_interval;
    full_looks_ = 0;
    return host_.valid() && find(host_, nullptr);
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
        troubles_.read(socket.get());  // also lets the next call succeed
    }
    return receiver_.has_some();
}

bool UdpPort::has_work() {
    if (receiver_.has_some() || !troubles_.empty()) return true;
    std::array<pollfd, 3> entries;
    const std::size_t count = list_sockets(entries);
    if (system_.poll(entries.data(), count) <= 0) return false;
    // What the kernel shows late stands in an error queue, which no look empties.
    bool only_errors = true;
    for (const pollfd& entry : std::span(entries).first(count)) {
        if ((entry.revents & POLLERR) != 0) troubles_.read(entry.fd);
        only_errors = only_errors && (entry.revents & ~POLLERR) == 0;
    }
    if (only_errors && troubles_.empty() && system_.poll(entries.data(), count) <= 0) return false;
    look_everywhere();
    return true;
}

// Listening ---------------------------------------------------------------------------------------

Status UdpPort::listen(const Discriminator& discriminator) {
    if (!listeners_->is_known()) look_at_names(system_.now());
    holder_check_.ask_soon(system_.now());
    const auto listening = listeners_->listen(discriminator);
    if (listening) return Status::success;
    if (config_.report) config_.report(listening.error());
    return Status::error_resource;
}

void UdpPort::unlisten(const Discriminator& discriminator) { listeners_->unlisten(discriminator); }

bool UdpPort::find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                            std::uint64_t& instance) {
    // Who finds nobody at home asks the one that answers.
    holder_check_.ask_soon(system_.now());
    return listeners_->find(discriminator, data_port, instance);
}

// Sleeping ----------------------------------------------------------------------------------------

void UdpPort::arm(Sleep sleep) {
    const bool watched = sleep == Sleep::on_handle;
    if (watched != watched_ || (watched && refused_ >= 0)) set_watched(watched);
    // The kernel did not let us hear: whoever sleeps looks again soon.
    hear_again_ = watched && !watched_ ? system_.now() + milliseconds(10) : Time::never();
    awake_ = sleep == Sleep::awake;
    look_everywhere();  // what wakes us may be anywhere
}

/// While somebody polls, what comes must not wake the agent. A socket that the wait handle knows
/// tells it of each datagram, whether that is heard or not: so it is known only while we sleep.
void UdpPort::set_watched(bool watched) {
    bool done = true;
    for_sockets([&](int socket) { done = set_watched(socket, watched) && done; });
    watched_ = done ? watched : !watched;  // else one more try the next time
}

bool UdpPort::set_watched(int socket, bool watched) {
    epoll_event event{};
    event.events = EPOLLIN | (socket == refused_ ? std::uint32_t{EPOLLOUT} : 0);
    int operation = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    for (int tries = 0; tries < 2; ++tries) {
        if (system_.epoll_ctl(epoll_.get(), operation, socket, &event) == 0) return true;
        if (!watched && errno == ENOENT) return true;
        if (watched && errno == EEXIST) operation = EPOLL_CTL_MOD;
    }
    return false;
}

std::size_t UdpPort::wake_descriptors(std::span<WakeDescriptor> descriptors) const {
    std::size_t count = 0;
    for_sockets([&](int socket) {
        if (count < descriptors.size()) descriptors[count] = {socket, socket == refused_};
        ++count;
    });
    return count;
}

}  // namespace via::device::udp
