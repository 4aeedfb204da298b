// `via bench serve`: the other machine of a run that somebody else makes.
#pragma once

#include <functional>
#include <string>

#include "bench/address.hpp"
#include "bench/types.hpp"

namespace via::bench {

struct ServeOptions {
    Address address;        // to listen at
    int cpu = 0;            // where the processes of all channels are pinned
    int max_seconds = 300;  // of a client, besides a minute for coming and going
    std::function<void(const std::string&)> tell;  // news, a line each
};

// Serves one client after another, each in a process of its own, until a signal ends it. Returns
// only to tell why it cannot serve. Forks: the caller must have one thread only.
Failure serve(const ServeOptions& options);

}  // namespace via::bench
