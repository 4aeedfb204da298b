// One resolve() under way, and a frame to be handed up: parts of DatagramDevice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/datagram/constants.hpp"
#include "device/datagram/path.hpp"

namespace via::device::datagram {

/// First the host is asked where the listener is (path: none); then a path is waited for.
struct DatagramDevice::Search {
    static constexpr PathId no_path = ~PathId{0};

    std::uint64_t cookie = 0;
    NetAddress remote;
    std::uint64_t question = 0;  ///< identifier of the query
    PathId path = no_path;
    Time asked{};  ///< the last time
    Time next_try{};
    Time give_up{};
    /// Its host has said that nobody is at its port: who is silent until then has no NIC.
    Time refused_until = Time::never();
    Duration interval = try_first;
    /// Queries that met a port where nobody is, or found no way there. The one that answers for the
    /// host may just have ended, and another take its place, or a way may just be changed: a few in
    /// a row mean that nobody does.
    int refusals = 0;
    bool refused = false;  ///< the last one
};

/// Those for which which(search) is true get `event`, each with its own cookie.
template <class Which>
void DatagramDevice::end_searches(Which which, PathEvent event) {
    std::erase_if(searches_, [&](Search& search) {
        if (!which(search)) return false;
        event.cookie = search.cookie;
        push_event(event);
        questions_.erase(search.question);
        return true;
    });
}

struct DatagramDevice::Ready {
    PathId path = 0;
    FrameOrder::Held frame;
    std::uint32_t count;               ///< frames of a run, of which this is the first
    const std::byte* const* payloads;  ///< theirs, when there are several
};

}  // namespace via::device::datagram
