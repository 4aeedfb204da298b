// How roles tell each other values.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/stage.hpp"

namespace conformance {

Lines::Lines(const std::vector<RolePlan>& plans) : ends_(plans.size() * plans.size(), -1) {
    static unsigned runs = 0;
    run_id_ = std::to_string(getpid()) + "." + std::to_string(++runs);
    for (const RolePlan& plan : plans) roles_.push_back(plan.name);
    for (std::size_t a = 0; a < plans.size(); ++a) {
        for (std::size_t b = a + 1; b < plans.size(); ++b) {
            int pair[2];
            // One message a value: SEQPACKET keeps their bounds.
            require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0,
                    "a line between two roles can be made");
            ends_[a * plans.size() + b] = pair[0];
            ends_[b * plans.size() + a] = pair[1];
        }
    }
}

Lines::~Lines() {
    for (const int end : ends_)
        if (end >= 0) close(end);
}

void Lines::hang_up(std::size_t role) {
    for (std::size_t other = 0; other < roles_.size(); ++other)
        if (end(role, other) >= 0) shutdown(end(role, other), SHUT_RDWR);
}

void Lines::keep_only(std::size_t role) {
    for (std::size_t from = 0; from < roles_.size(); ++from) {
        for (std::size_t to = 0; to < roles_.size(); ++to) {
            int& fd = ends_[from * roles_.size() + to];
            if (from == role || fd < 0) continue;
            close(fd);
            fd = -1;
        }
    }
}

int Role::line_to(std::string_view role, Where where) const {
    const auto& roles = lines_.roles();
    const auto found = std::find(roles.begin(), roles.end(), role);
    require(found != roles.end() && *found != name(), "there is another role " + std::string(role),
            where);
    return lines_.end(index_, static_cast<std::size_t>(found - roles.begin()));
}

/// Two NICs of one process share rings by two mappings, through which the thread sanitizer does not
/// see that one role's access to plain memory comes before the other's. Taking our NIC's turn tells
/// it: before we say something, and after we heard something.
void Role::pass_turn() {
    if (!under_tsan || !nic_ || nic_->handle() == nullptr) return;
    EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic_->handle(), nullptr, 0));
}

void Role::send_bytes(std::string_view role, const void* bytes, std::size_t length, Where where) {
    pass_turn();
    // A role that has ended needs no news; it is missed where something is expected of it.
    const ssize_t sent = send(line_to(role, where), bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    require(sent == static_cast<ssize_t>(length) || errno == EPIPE || errno == ECONNRESET,
            "the line to role " + std::string(role) + " takes what it is told", where);
}

/// True when something is there to be read, or the other end was hung up.
static bool is_readable(int fd, int timeout_ms) {
    pollfd entry{fd, POLLIN, 0};
    int found = 0;
    do found = poll(&entry, 1, timeout_ms);
    while (found < 0 && errno == EINTR);
    return found > 0;
}

bool Role::was_told_by(std::string_view role, Where where) const {
    return is_readable(line_to(role, where), 0);
}

void Role::receive_bytes(std::string_view role, void* bytes, std::size_t length, Where where) {
    const int fd = line_to(role, where);
    const std::string other(role);
    if (stage_.by_turns()) {
        until([fd] { return is_readable(fd, 0); }, "another role tells something", where);
    } else if (!is_readable(fd, static_cast<int>(patience_ms) * 2)) {
        throw Abandoned{where, "role " + other + " tells nothing"};
    }
    const ssize_t got = recv(fd, bytes, length, MSG_TRUNC);
    if (got <= 0) throw Abandoned{where, "role " + other + " has ended"};
    require(got == static_cast<ssize_t>(length),
            "role " + other + " tells what is expected: " + std::to_string(length) +
                " bytes, not " + std::to_string(got),
            where);
    pass_turn();
}

void Role::wait_for_end_of(std::string_view role, Where where) {
    const int fd = line_to(role, where);
    char byte = 0;
    if (stage_.by_turns()) {
        until([fd] { return is_readable(fd, 0); }, "another role ends", where);
    } else {
        require(is_readable(fd, static_cast<int>(patience_ms)), "the other role ends", where);
    }
    const ssize_t got = recv(fd, &byte, 1, 0);
    require(got <= 0, "role " + std::string(role) + " has told nothing more", where);
    pass_turn();
}

}  // namespace conformance
