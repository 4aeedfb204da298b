// What the caches of one processor hold: of all memory that it used, what it used last.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "lab/packet.hpp"

namespace via::lab {

/// Bytes of a process's own memory, or of what it shares with one that sends to it.
struct Place {
    NodeId of = 0;
    std::optional<NodeId> sender;
    std::int64_t address = 0;
    std::int64_t length = 0;
};

/// Lines that lie beside each other, and come and go together here.
struct Block {
    static constexpr std::int64_t bytes = 4096;
    NodeId of = 0;
    std::optional<NodeId> sender;
    std::int64_t number = 0;
    auto operator<=>(const Block&) const = default;
};

class ProcessorCache {
public:
    explicit ProcessorCache(std::int64_t bytes) : most_(bytes / Block::bytes) {}

    bool holds(const Block& block) const { return places_.contains(block); }
    /// The block is the one used last; the one used longest ago may have to go for it.
    void use(const Block& block) {
        drop(block);
        blocks_.push_front(block);
        places_[block] = blocks_.begin();
        if (static_cast<std::int64_t>(blocks_.size()) > most_) drop(Block(blocks_.back()));
    }
    void drop(const Block& block) {
        const auto found = places_.find(block);
        if (found == places_.end()) return;
        blocks_.erase(found->second);
        places_.erase(found);
    }
    std::int64_t bytes() const { return static_cast<std::int64_t>(blocks_.size()) * Block::bytes; }

private:
    std::int64_t most_;
    std::list<Block> blocks_;  ///< the last used first
    std::map<Block, std::list<Block>::iterator> places_;
};

}  // namespace via::lab
