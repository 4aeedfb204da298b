#include "relay/streams.hpp"

namespace via::relay {

/// nullptr: it is one too many.
device::Way* Streams::find(const Forwarder::Onward& onward) {
    if (last_ < ways_.size() && same_host(ways_[last_].own, onward.source) &&
        same_host(ways_[last_].peer, onward.destination))
        return &ways_[last_];
    const std::pair pair{HostOnly(onward.source), HostOnly(onward.destination)};
    if (const auto found = places_.find(pair); found != places_.end())
        return &ways_[last_ = found->second];
    if (ways_.size() == streams_max) return nullptr;
    last_ = ways_.size();
    places_.emplace(pair, last_);
    device::Way& made = ways_.emplace_back();
    made.path = static_cast<device::PathId>(last_);
    made.state = device::WayState::passed_on;
    made.own = with_port(onward.source, 0);
    made.peer = with_port(onward.destination, 0);
    if (!same_host(onward.to, onward.destination)) made.over = onward.to;
    return &made;
}

void Streams::note(const Forwarder::Onward& onward, std::size_t bytes) {
    device::Way* const way = find(onward);
    if (way == nullptr) return;
    ++way->packets;
    way->bytes += bytes;
}

}  // namespace via::relay
