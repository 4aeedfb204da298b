// The NIC's own table of translations, where it does not hold every page of every region.
#pragma once

#include <cstdint>

#include "memory/translation_cache.hpp"
#include "queue/byte_walk.hpp"

namespace via::engine {

/// Owns the question whether the NIC can reach bytes that the table of regions allowed.
class Translations {
public:
    void set(memory::TranslationCache& cache) { cache_ = &cache; }
    /// The NIC's table holds every page.
    bool hold_all() const { return cache_ == nullptr; }

    /// Before bytes are touched: are their pages in the NIC's table, or come they now? Nothing is
    /// touched when not.
    bool reach(memory::MemoryHandle handle, std::uint64_t address, std::uint64_t length) const {
        if (cache_ == nullptr) [[likely]]
            return true;
        return cache_->reach(handle, address, length);
    }
    /// The same for the next bytes of a descriptor's segments.
    bool reach(const queue::ByteWalk& walk, std::uint64_t length) const {
        if (cache_ == nullptr) [[likely]]
            return true;
        return reach_segments(walk, length);
    }

private:
    [[gnu::noinline]] bool reach_segments(queue::ByteWalk walk, std::uint64_t length) const;

    memory::TranslationCache* cache_ = nullptr;
};

}  // namespace via::engine
