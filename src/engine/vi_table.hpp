// The VIs of a NIC, by index.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic.hpp"
#include "engine/mutation.hpp"
#include "engine/vi.hpp"

namespace via::engine {

/// Owns the VIs: made as they are needed, never given back, used again last.
class ViTable {
public:
    ViTable(std::uint32_t vis_max, std::uint32_t first_generation);
    ~ViTable();
    ViTable(const ViTable&) = delete;
    ViTable& operator=(const ViTable&) = delete;

    /// The VI at `index`, existing or not; nullptr beyond the table. Any thread.
    Vi* at(std::uint32_t index) const {
        if (index >= vis_max_) return nullptr;
        Vi* const chunk = chunks_[index / vis_per_chunk].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : chunk + index % vis_per_chunk;
    }
    /// One that is there: made() are.
    Vi& operator[](std::uint32_t index) const { return *at(index); }
    std::uint32_t made() const { return made_; }
    /// Those that exist.
    std::uint32_t count() const { return count_; }

    /// Which open() takes next; nullptr: there are as many as may be, or no memory.
    Vi* next_free();
    /// next_free(), which exists from now on.
    void open(Vi& vi);
    void close(Vi& vi);
    static bool exists(const Vi& vi) {
        return (vi.generation.load(std::memory_order_relaxed) & 1) != 0;
    }

    /// The VI by which a peer's frames name a connection on that path that stands, or nullptr.
    Vi* connected(PathId path, std::uint32_t number) const {
        Vi* vi = at(number & 0xFFFF);
        return vi != nullptr && vi->path == path &&
                       (vi->number() == number || mutated(Mutation::take_former_connection)) &&
                       vi->state_now() == ViState::connected
                   ? vi
                   : nullptr;
    }
    /// Does the connection of that number stand?
    bool is_connected(std::uint32_t number) const {
        const Vi* vi = at(number & 0xFFFF);
        return vi != nullptr && vi->number() == number && vi->state_now() == ViState::connected;
    }

private:
    static constexpr std::uint32_t vis_per_chunk = 64;

    std::uint32_t vis_max_;
    std::uint32_t first_generation_;  ///< of VI handles, so that another NIC's do not fit
    std::unique_ptr<Atomic<Vi*>[]> chunks_;
    std::uint32_t made_ = 0;
    std::uint32_t count_ = 0;
    std::vector<std::uint32_t> free_;
};

}  // namespace via::engine
