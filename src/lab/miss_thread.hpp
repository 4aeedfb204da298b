// The thread of a host's kernel that serves what the NIC's caches of handles miss, one after the
// other: it is woken by the interrupt's handler, pins what is not pinned yet, and writes the line
// to the NIC. What is pinned stays so until there is more of it than the high-water mark.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>

#include "base/random.hpp"
#include "lab/lookup.hpp"
#include "lab/schedule.hpp"

namespace via::lab {

class Host;

class MissThread {
public:
    /// The host outlives the thread.
    MissThread(Host& host, std::uint64_t seed) : host_(host), random_(seed) {}

    /// From the NIC's interrupt on.
    void ask(MissingLine line);
    std::int64_t pinned() const { return static_cast<std::int64_t>(pinned_.size()); }

private:
    Task<> run();
    Task<> serve(const MissingLine& line);
    std::int64_t pin(const MissingLine& line);
    Task<> sweep(const MissingLine& line);

    Host& host_;
    Random random_;  ///< when the kernel lets it run
    std::deque<MissingLine> asked_;
    bool running_ = false;
    std::list<Handle> order_;  ///< pages, those served longest ago first
    std::map<Handle, std::list<Handle>::iterator> pinned_;
    Time swept_{};
};

}  // namespace via::lab
