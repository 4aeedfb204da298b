// Where NICs may write, as a checker heard of it.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "sim/history.hpp"

namespace via::sim {

class OpenRanges {
public:
    struct Range {
        std::uint64_t id;
        std::uint64_t begin;
        std::uint64_t end;
        bool remote;
        bool atomic;
    };

    void add(const Opened& opened) {
        node_of_[opened.id] = opened.node;
        if (nodes_.size() <= opened.node) nodes_.resize(opened.node + 1);
        nodes_[opened.node].push_back(
            {opened.id, opened.begin, opened.begin + opened.length, opened.remote, opened.atomic});
    }
    void remove(std::uint64_t id) {
        const auto found = node_of_.find(id);
        if (found == node_of_.end()) return;
        std::erase_if(nodes_[found->second], [&](const Range& range) { return range.id == id; });
        node_of_.erase(found);
    }
    std::span<const Range> of(NodeNumber node) const {
        if (node >= nodes_.size()) return {};
        return nodes_[node];
    }

private:
    std::vector<std::vector<Range>> nodes_;
    std::unordered_map<std::uint64_t, NodeNumber> node_of_;
};

}  // namespace via::sim
