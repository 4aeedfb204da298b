// A set-associative cache of lines of handles, by LRU, shared by all processes: the set is chosen
// by the low bits of a line's number, and the tag is the rest and the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <vector>

#include "lab/lookup.hpp"

namespace via::lab::design {

class HandleCache {
public:
    /// `entries` is a multiple of `line` times `ways`.
    HandleCache(std::int64_t entries, std::int64_t line, std::int64_t ways)
        : line_(line),
          ways_(static_cast<std::size_t>(ways)),
          sets_(static_cast<std::size_t>(entries / (line * ways))) {}

    /// The first of the line that it lies in.
    Handle line_of(Handle handle) const { return {handle.process, handle.key / line_ * line_}; }
    std::int64_t line_entries() const { return line_; }

    struct Found {
        bool hit = false;
        std::int64_t tags = 0;  ///< that were compared
    };
    /// Of a hit, its line is the one used last from now on.
    Found use(Handle handle) {
        const Handle line = line_of(handle);
        Set& set = set_of(line);
        std::int64_t tags = 0;
        for (auto at = set.begin(); at != set.end(); ++at) {
            ++tags;
            if (*at != line) continue;
            set.splice(set.begin(), set, at);
            return {true, tags};
        }
        return {false, std::max<std::int64_t>(tags, 1)};
    }
    bool holds(Handle handle) const {
        const Handle line = line_of(handle);
        const Set& set = sets_[index_of(line)];
        return std::ranges::find(set, line) != set.end();
    }
    /// Puts the line in, in place of the one of its set that was used longest ago: that comes back.
    std::optional<Handle> fill(Handle handle) {
        const Handle line = line_of(handle);
        Set& set = set_of(line);
        set.remove(line);
        set.push_front(line);
        known_.insert(line);
        if (set.size() <= ways_) return std::nullopt;
        const Handle dropped = set.back();
        set.pop_back();
        return dropped;
    }
    /// Was it ever in? A miss of one that was not is a cold one.
    bool known(Handle handle) const { return known_.contains(line_of(handle)); }

private:
    using Set = std::list<Handle>;  ///< lines, the last used first

    std::size_t index_of(Handle line) const {
        return static_cast<std::size_t>(line.key / line_) % sets_.size();
    }
    Set& set_of(Handle line) { return sets_[index_of(line)]; }

    std::int64_t line_;
    std::size_t ways_;
    std::vector<Set> sets_;
    std::set<Handle> known_;
};

}  // namespace via::lab::design
