#include "device/datagram/rails_port.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace via::device::datagram {

RailsPort::RailsPort(std::vector<std::unique_ptr<Port>> ports) : ports_(std::move(ports)) {
    VIA_ASSERT(!ports_.empty() && ports_.size() <= rails_max);
}

std::uint32_t RailsPort::datagram_max() const {
    std::uint32_t least = first().datagram_max();
    for (const auto& port : ports_) least = std::min(least, port->datagram_max());
    return least;
}

std::uint32_t RailsPort::receive_room() const {
    std::uint32_t least = first().receive_room();
    for (const auto& port : ports_) least = std::min(least, port->receive_room());
    return least;
}

std::uint32_t RailsPort::rail_to(const HostAddress& host) const {
    for (std::uint32_t rail = 0; rail < rails(); ++rail)
        if (ports_[rail]->is_near(host)) return rail;
    return 0;
}

// Sending -----------------------------------------------------------------------------------------

std::size_t RailsPort::send(std::span<const Outgoing> datagrams) {
    std::size_t taken = 0;
    while (taken < datagrams.size()) {
        const std::uint32_t rail = rail_to(datagrams[taken].to);
        std::size_t end = taken + 1;
        while (end < datagrams.size() &&
               (datagrams[end].follows || rail_to(datagrams[end].to) == rail))
            ++end;
        const std::size_t sent = ports_[rail]->send(datagrams.subspan(taken, end - taken));
        taken += sent;
        if (taken != end) break;
    }
    return taken;
}

bool RailsPort::has_room() {
    return std::ranges::all_of(ports_, [](const auto& port) { return port->has_room(); });
}

// Receiving ---------------------------------------------------------------------------------------

std::size_t RailsPort::receive(std::span<Incoming> datagrams) {
    const auto all = static_cast<std::uint32_t>(ports_.size());
    std::size_t count = 0;
    came_ = Time::never();
    look_first_ = (look_first_ + 1) % all;
    for (std::size_t n = 0; n < all && count < datagrams.size(); ++n) {
        const auto rail = static_cast<std::uint32_t>((look_first_ + n) % all);
        const std::size_t found = ports_[rail]->receive(datagrams.subspan(count));
        if (found == 0) continue;
        came_ = earlier(came_, ports_[rail]->came());
        for (Incoming& in : datagrams.subspan(count, found)) in.buffer = in.buffer * all + rail;
        count += found;
    }
    return count;
}

void RailsPort::release() {
    for (const auto& port : ports_) port->release();
}

bool RailsPort::keep(std::uint32_t buffer) {
    return ports_[buffer % ports_.size()]->keep(buffer / rails());
}

void RailsPort::let_go(std::uint32_t buffer) {
    ports_[buffer % ports_.size()]->let_go(buffer / rails());
}

std::uint32_t RailsPort::keeps_left() const {
    std::uint32_t all = 0;
    for (const auto& port : ports_) all += port->keeps_left();
    return all;
}

/// Each is asked: some learn of network errors so.
bool RailsPort::has_work() {
    bool any = false;
    for (const auto& port : ports_) any = port->has_work() || any;
    return any;
}

bool RailsPort::next_network_error(NetworkError& error) {
    return std::ranges::any_of(ports_,
                               [&](const auto& port) { return port->next_network_error(error); });
}

// Sleeping ----------------------------------------------------------------------------------------

void RailsPort::service(Time now) {
    for (const auto& port : ports_) port->service(now);
}

void RailsPort::arm(Sleep sleep) {
    for (const auto& port : ports_) port->arm(sleep);
}

std::size_t RailsPort::wake_descriptors(std::span<WakeDescriptor> descriptors) const {
    std::size_t count = 0;
    for (const auto& port : ports_)
        count += port->wake_descriptors(descriptors.subspan(std::min(count, descriptors.size())));
    return count;
}

Time RailsPort::next_deadline() const {
    Time next = Time::never();
    for (const auto& port : ports_) next = earlier(next, port->next_deadline());
    return next;
}

}  // namespace via::device::datagram
