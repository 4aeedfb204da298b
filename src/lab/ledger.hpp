// Where time went: every use of a resource is an entry. Of one message the entries make a path
// from its post to its completion, and the parts of that path add up to the whole, exactly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace via::lab {

/// What a piece of time was spent on.
enum class Share : std::uint8_t {
    user,         ///< the program and the library in it
    system_call,  ///< from user to kernel and back
    kernel,       ///< the driver's work
    interrupt,
    lock,      ///< a spin lock or mutex, and what it costs with two processors
    copy,      ///< memory to memory, by the host's processor
    pio,       ///< words that the host writes to the NIC, or reads from it
    firmware,  ///< steps of the NIC's processor
    dma_start,
    bus,          ///< bytes on the host's bus
    fifo,         ///< bytes on the NIC's internal bus
    link,         ///< bytes on the wire
    switching,    ///< within the switch
    translation,  ///< misses of a translation cache
    completion,   ///< status, length and entries on their way to the program
    waiting,      ///< until a resource came to it
};
constexpr std::size_t share_count = 16;
const char* name_of(Share share);

using ResourceId = std::uint32_t;
using MessageId = std::uint32_t;  ///< 0: no message's
constexpr MessageId no_message = 0;

struct Work {
    Share share;
    const char* what;  ///< of static duration
    MessageId message = no_message;
    bool idle = false;  ///< a look for work while there is none: not counted as busy
};

struct Entry {
    ResourceId resource;
    Work work;
    Time start;
    Time end;
};

class Ledger {
public:
    ResourceId add_resource(std::string name);
    const std::string& name_of(ResourceId resource) const { return resources_[resource].name; }
    std::size_t resource_count() const { return resources_.size(); }
    Duration busy(ResourceId resource) const { return resources_[resource].busy; }
    /// What of it was for that.
    Duration busy(ResourceId resource, Share share) const {
        return resources_[resource].by_share[static_cast<std::size_t>(share)];
    }
    Duration total(Share share) const { return totals_[static_cast<std::size_t>(share)]; }
    /// The resource that was busy longest; ties: the first.
    ResourceId busiest() const;

    /// Entries are kept while `on`; the sums always are.
    void record(bool on) { recording_ = on; }
    void clear_entries() { entries_.clear(); }
    const std::vector<Entry>& entries() const { return entries_; }
    void add(ResourceId resource, const Work& work, Time start, Time end);

    /// The path of a message between two moments: backwards from `end`, always the entry that ended
    /// last before; the time between is waiting for it. In order of time.
    std::vector<Entry> path(MessageId message, Time begin, Time end) const;
    /// The same as sums per share. The parts' sum is end - begin.
    std::array<Duration, share_count> breakdown(MessageId message, Time begin, Time end) const;

private:
    struct Resource {
        std::string name;
        Duration busy{};
        std::array<Duration, share_count> by_share{};
    };
    std::vector<Resource> resources_;
    std::array<Duration, share_count> totals_{};
    std::vector<Entry> entries_;
    bool recording_ = false;
};

}  // namespace via::lab
