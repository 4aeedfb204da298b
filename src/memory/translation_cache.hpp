// The NIC's own table when it shall be small: a set-associative cache of lines of pages over the
// full table, which stays with the agent and where rights are checked (docs/design/memory.md). What
// is in it is locked in memory; on a miss the agent loads the line while the frame waits.
//
// Threads: the holder of the turn.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/counters.hpp"
#include "base/random.hpp"
#include "memory/table.hpp"

namespace via::memory {

enum class Replacement : std::uint8_t { lru, fifo, random };

/// Size and shape. An entry is a page of a region, a line so many neighbouring pages of one.
struct CacheShape {
    std::uint32_t entries = 0;  ///< 0: no cache, every page of every region is in the NIC's table
    std::uint32_t line = 8;     ///< entries; a power of two, at most line_max
    std::uint32_t ways = 4;     ///< lines of a set
    Replacement replacement = Replacement::lru;
    std::uint64_t seed = 1;  ///< of Replacement::random

    static constexpr std::uint32_t entries_max = 1U << 20;
    static constexpr std::uint32_t line_max = 512;
    static constexpr std::uint32_t ways_max = 64;
};

/// nullptr, or what is wrong with the shape.
const char* fault_of(const CacheShape& shape);

struct LineName {
    MemoryHandle handle = 0;
    std::uint64_t number = 0;  ///< address / bytes of a line
    auto operator<=>(const LineName&) const = default;
};

/// A line and its pages; at the ends of a region they are fewer.
struct Line {
    LineName name;
    std::uint64_t begin = 0;   ///< address of the first page
    std::uint64_t length = 0;  ///< bytes, whole pages
    Bounds region;             ///< of which they are pages
};

/// The agent's side: it has the full table, and locks memory.
class LineLoader {
public:
    virtual ~LineLoader() = default;
    /// The line is about to enter the NIC's table: its pages shall stay in memory until evicted()
    /// or forget(). May take other lines back from the cache (TranslationCache::take_back()).
    /// False: the NIC may not touch it.
    virtual bool load(const Line& line) = 0;
    /// The line left the NIC's table for another one.
    virtual void evicted(const LineName& line) = 0;
    /// The region is gone, and all its lines.
    virtual void forget(MemoryHandle handle) = 0;
};

class TranslationCache {
public:
    /// A shape without fault. Table, counters and loader outlive the cache.
    TranslationCache(const CacheShape& shape, const MemoryTable& table, Counters& counters,
                     LineLoader& loader);

    /// Brings what is needed of [address, address + length), which the table allowed, into the
    /// NIC's table. False: the agent refused a line. A run may be longer than the cache.
    bool reach(MemoryHandle handle, std::uint64_t address, std::uint64_t length);
    /// The region, suspended, is about to be removed from the full table.
    void forget(MemoryHandle handle);
    /// The agent needs the room: the line is no longer in the NIC's table. No evicted() follows.
    void take_back(const LineName& line);

    /// Bytes of all entries together.
    std::uint64_t capacity() const { return ways_.size() << line_bits_; }

private:
    struct Way {
        LineName line;  ///< no handle: free. Handles never repeat: a stale line is never found
        std::uint64_t used = 0;  ///< lru: when it was looked up last; fifo: when it came
    };

    std::uint64_t line_mask() const { return (std::uint64_t{1} << line_bits_) - 1; }
    Way* set_of(const LineName& line);
    Way* find(Way* set, const LineName& line) const;
    Way& victim(Way* set);
    bool load(Way* set, const LineName& line);

    const MemoryTable& table_;
    Counters& counters_;
    LineLoader& loader_;
    std::uint32_t line_bits_;  ///< of a line's bytes
    std::uint32_t ways_per_set_;
    std::uint32_t sets_;
    Replacement replacement_;
    Random random_;
    std::uint64_t clock_ = 0;  ///< counts look-ups
    std::vector<Way> ways_;    ///< set by set
};

}  // namespace via::memory
