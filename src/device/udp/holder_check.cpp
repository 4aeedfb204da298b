#include "device/udp/holder_check.hpp"

#include <algorithm>
#include <array>

#include "device/datagram/host_question.hpp"
#include "device/udp/socket_address.hpp"

namespace via::device::udp {

namespace {

/// The first answer is looked for after that, each further one after twice the time.
constexpr Duration answer_first = milliseconds(50);
/// Together 750 ms: long for a process that runs, short for somebody who looks for a listener.
constexpr unsigned unanswered_max = 4;
/// Datagrams that one look takes: more than come, unless somebody of this host floods us.
constexpr int reads_max = 32;

}  // namespace

void HolderCheck::begin(Time due) {
    is_asked_ = false;
    unanswered_ = 0;
    due_ = due;
}

void HolderCheck::end() {
    begin(Time::never());
    socket_.reset();
}

void HolderCheck::ask_soon(Time now) {
    if (is_on() && !is_asked_) due_ = std::min(due_, now);
}

bool HolderCheck::ask(const HostAddress& host, unsigned scope) {
    if (!socket_.valid()) socket_ = bind_socket(system_, with_port(host, 0), scope, SharesPort::no);
    datagram::HostQuestion question;
    if (++number_ == 0) ++number_;
    const std::uint32_t length = datagram::emit_host_question(number_, question);
    const SocketAddress to = to_socket(host, scope);
    return socket_.valid() &&
           system_.sendto(socket_.get(), question.data(), length, &to.any, to.length) >= 0;
}

bool HolderCheck::is_answered(const HostAddress& host) {
    datagram::HostQuestion answer;
    for (int reads = 0; reads < reads_max; ++reads) {
        SocketAddress from;
        from.length = sizeof from.ipv6;
        const ssize_t length =
            system_.recvfrom(socket_.get(), answer.data(), answer.size(), &from.any, &from.length);
        if (length < 0) return false;
        const auto size = std::min(static_cast<std::size_t>(length), answer.size());
        const std::uint64_t number = datagram::answered_question(std::span(answer).first(size));
        // Who is late with an answer is none the less there.
        if (from_socket(from.any) == host && number != 0 && number_ - number < unanswered_max)
            return true;
    }
    return false;
}

bool HolderCheck::is_silent(Time now, Duration interval, const HostAddress& host, unsigned scope) {
    if (now < due_) return false;
    if (is_asked_ && is_answered(host)) {
        begin(now + interval);
        return false;
    }
    if (is_asked_ && ++unanswered_ == unanswered_max) {
        begin(now + interval);
        return true;
    }
    // What could not be asked proves nothing.
    is_asked_ = ask(host, scope);
    due_ = now + (is_asked_ ? Duration{answer_first.ns << unanswered_} : interval);
    return false;
}

}  // namespace via::device::udp
