#include "device/udp/host_port.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include "device/udp/because.hpp"

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

std::expected<void, std::string> HostPort::open() {
    const std::string place = "udp: " + config_.place.interface;
    try_to_take(system_.now());
    if (is_ours()) return {};
    if (errno != EADDRINUSE)
        return std::unexpected(place + ": cannot take the port that NICs are asked at " +
                               "(socket, bind)" + because(errno));
    if (is_answered()) return {};
    return std::unexpected(place + ": UDP port " + std::to_string(port_of(address())) +
                           " at its address is taken, " + who_has_it() +
                           ", or choose another port for all hosts: udp:" + host_text(address()) +
                           ":PORT");
}

/// By nobody who is known here, and what to do about it.
std::string HostPort::who_has_it() const {
    // A program of the same user may join one that allows it, as NICs do.
    if (bind_socket(system_, address(), config_.place.index, SharesPort::yes).valid())
        return "by a program of this user that is known as no NIC in " + config_.directory +
               "; a NIC whose names were taken away is known again within five seconds, one with "
               "another XDG_RUNTIME_DIR needs the same; otherwise end that program";
    return "and not by a NIC of this user" +
           (config_.shared ? ", nor by one that another user shows in " +
                                 config_.directory.substr(0, config_.directory.rfind('/'))
                           : std::string()) +
           "; end that program";
}

/// Another user's NIC that just took the port may not have said so yet, or it ended meanwhile.
bool HostPort::is_answered() {
    for (int tries = 0; tries < tries_before_stranger; ++tries) {
        if (presence_.listeners().has_others()) return true;
        if (tries != 0 && take(SharesPort::no)) return true;
        system_.yield();
    }
    return false;
}

/// `beside`: another socket of this user keeps it, and gets nothing any more.
bool HostPort::take(SharesPort beside) {
    Descriptor socket = bind_socket(system_, address(), config_.place.index, beside);
    if (!socket.valid() || (wait_set_.is_watching() && !wait_set_.watch(socket.get())))
        return false;
    // Binding was the lock: without the option nobody binds there while we do. With it one may who
    // asked us several times without an answer. Without it, he cannot, which is all that fails.
    if (beside == SharesPort::no) system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
    socket_ = std::move(socket);
    next_try_ = Time::never();
    presence_.listeners().note_holder();
    const int error = errno;
    inotify_.reset();
    check_.end();
    errno = error;
    return true;
}

void HostPort::try_to_take(Time now) {
    if (take(SharesPort::no)) return;
    const int error = errno;
    // Another one is known to have it; or it is between two, or a stranger's.
    const bool watched = error == EADDRINUSE && watch_holder();
    if (watched && take(SharesPort::no)) return;  // it ended before we watched
    if (!check_.is_on()) check_holder_from(now + check_interval());
    try_interval_ = watched ? host_try_least
                            : std::clamp({try_interval_.ns * 2}, host_try_least, host_try_longest);
    next_try_ = now + (watched ? host_try_watched : try_interval_);
    errno = error;
}

bool HostPort::watch_holder() {
    if (!inotify_.valid()) {
        Descriptor made(system_, system_.inotify_init());
        if (!made.valid() || !wait_set_.add(made.get())) return false;
        inotify_ = std::move(made);
    }
    return presence_.listeners().watch_holder(inotify_.get());
}

/// It ended: we try at once, and soon again while its socket is still being closed.
void HostPort::hear_of_holder(Time now) {
    if (!inotify_.valid()) return;
    alignas(8) std::byte events[4096];
    bool heard = false;
    while (system_.read(inotify_.get(), events, sizeof events) > 0) heard = true;
    if (!heard) return;
    try_interval_ = host_try_least;
    next_try_ = now;
}

// One that stands still ---------------------------------------------------------------------------

Duration HostPort::check_interval() const {
    return is_looked_for() ? check_looked_for : check_otherwise;
}

void HostPort::check_holder_from(Time due) {
    holder_ = presence_.listeners().holder();
    check_.begin(due);
}

void HostPort::service(Time now) {
    hear_of_holder(now);
    if (now >= next_try_) try_to_take(now);
    if (socket_.valid() && now >= replaced_look_) {
        replaced_look_ = now + replaced_interval;
        if (presence_.listeners().is_replaced()) leave(now);
    }
    if (!check_.is_silent(now, check_interval(), address(), config_.place.index)) return;
    if (socket_.valid()) {
        // Questions go to another one of those that share the port.
        chosen_ = (chosen_ + 1) % sockets_max;
        system_.choose_socket(socket_.get(), chosen_);
        check_holder_from(now);
    } else if (holder_ != presence_.listeners().holder()) {
        next_try_ = now;  // that one is watched from then on
        check_holder_from(now);
    } else {
        replace_holder(now);
    }
}

/// The one that has the host's port does not answer, though it lives: we do from now on.
void HostPort::replace_holder(Time now) {
    const std::string silent = holder_.empty() ? "a NIC" : holder_;
    const bool done = take(SharesPort::yes);
    const std::string why = done ? "this NIC answers for it now"
                                 : "its port is not to be had (socket, bind)" + because(errno) +
                                       "; other hosts find no listener here; let that process go "
                                       "on, or end it";
    if (done) {
        chosen_ = second_socket;
        system_.choose_socket(socket_.get(), chosen_);
        check_holder_from(now);  // do we hear what comes there?
    }
    const auto& tell = done ? config_.mention : config_.report;
    if (tell && (done || !told_of_silence_))
        tell("udp: " + config_.place.interface + ": " + silent + " has UDP port " +
             std::to_string(port_of(address())) +
             " and does not answer for the host (is it stopped?): " + why);
    told_of_silence_ = !done;
}

/// We stood still, and another one has taken our place.
void HostPort::leave(Time now) {
    socket_.reset();
    check_.end();
    try_to_take(now);
}

}  // namespace via::device::udp
