// Who answers for the host: the one that has its port. The others watch whether it ends, and ask
// now and then whether it answers.
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include "device/udp/because.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/udp_port.hpp"

namespace via::device::udp {

namespace {

/// Between two tries to get the host's port: while its owner is known and watched; and while it is
/// not, where the tries begin soon one behind the other.
constexpr Duration host_try_watched = seconds(5);
constexpr Duration host_try_least = milliseconds(1);
constexpr Duration host_try_longest = milliseconds(400);
constexpr int tries_before_stranger = 64;
/// Between two questions to the one that has it: of a NIC that somebody may look for, of others.
constexpr Duration check_looked_for = seconds(3);
constexpr Duration check_otherwise = seconds(5);
/// Who has it looks so often, at most, whether another one took it over while it stood still.
constexpr Duration replaced_interval = milliseconds(100);
/// Of the sockets at the host's port, when one joins another one.
constexpr std::uint32_t second_socket = 1;
constexpr std::uint32_t sockets_max = 8;

}  // namespace

/// Another user's NIC that just took the port may not have said so yet, or it ended meanwhile.
bool UdpPort::host_answers() {
    for (int tries = 0; tries < tries_before_stranger; ++tries) {
        if (listeners_->has_others()) return true;
        if (tries != 0 && take_host_port(SharesPort::no)) return true;
        system_.yield();
    }
    return false;
}

/// `beside`: another socket of this user keeps it, and gets nothing any more.
bool UdpPort::take_host_port(SharesPort beside) {
    Descriptor socket = bind_socket(system_, nic_address(), config_.place.index, beside);
    if (!socket.valid() || (watched_ && !set_watched(socket.get(), true))) return false;
    // Binding was the lock: without the option nobody binds there while we do. With it one may who
    // asked us several times without an answer. Without it, he cannot, which is all that fails.
    if (beside == SharesPort::no) system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
    host_ = std::move(socket);
    host_try_ = Time::never();
    listeners_->note_holder();
    const int error = errno;
    inotify_.reset();
    holder_check_.end();
    errno = error;
    return true;
}

void UdpPort::try_host_port(Time now) {
    if (take_host_port(SharesPort::no)) return;
    const int error = errno;
    // Another one is known to have it; or it is between two, or a stranger's.
    const bool watched = error == EADDRINUSE && watch_holder();
    if (watched && take_host_port(SharesPort::no)) return;  // it ended before we watched
    if (!holder_check_.is_on()) check_holder_from(now + check_interval());
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

// One that stands still ---------------------------------------------------------------------------

Duration UdpPort::check_interval() const {
    return is_looked_for() ? check_looked_for : check_otherwise;
}

void UdpPort::check_holder_from(Time due) {
    holder_ = listeners_->holder();
    holder_check_.begin(due);
}

void UdpPort::look_at_host_port(Time now) {
    hear_of_holder(now);
    if (now >= host_try_) try_host_port(now);
    if (host_.valid() && now >= replaced_look_) {
        replaced_look_ = now + replaced_interval;
        if (listeners_->is_replaced()) leave_host_port(now);
    }
    if (!holder_check_.is_silent(now, check_interval(), nic_address(), config_.place.index)) return;
    if (host_.valid()) {
        // Questions go to another one of those that share the port.
        chosen_ = (chosen_ + 1) % sockets_max;
        system_.choose_socket(host_.get(), chosen_);
        check_holder_from(now);
    } else if (holder_ != listeners_->holder()) {
        host_try_ = now;  // that one is watched from then on
        check_holder_from(now);
    } else {
        replace_holder(now);
    }
}

/// The one that has the host's port does not answer, though it lives: we do from now on.
void UdpPort::replace_holder(Time now) {
    const std::string silent = holder_.empty() ? "a NIC" : holder_;
    const bool done = take_host_port(SharesPort::yes);
    const std::string why = done ? "this NIC answers for it now"
                                 : "its port is not to be had (socket, bind)" + because(errno) +
                                       "; other hosts find no listener here; let that process go "
                                       "on, or end it";
    if (done) {
        chosen_ = second_socket;
        system_.choose_socket(host_.get(), chosen_);
        check_holder_from(now);  // do we hear what comes there?
    }
    const auto& tell = done ? config_.mention : config_.report;
    if (tell && (done || !told_of_silence_))
        tell("udp: " + config_.place.interface + ": " + silent + " has UDP port " +
             std::to_string(port_of(nic_address())) +
             " and does not answer for the host (is it stopped?): " + why);
    told_of_silence_ = !done;
}

/// We stood still, and another one has taken our place.
void UdpPort::leave_host_port(Time now) {
    host_.reset();
    holder_check_.end();
    try_host_port(now);
}

}  // namespace via::device::udp
