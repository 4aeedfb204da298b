// Which of many nodes is first: each has a moment, and of several at the earliest one the node with
// the lowest number is first. A tree of the earliest moments, so that a change costs the logarithm
// of how many nodes there are, and a look at the first one as much.
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.hpp"

namespace via::sim {

class Agenda {
public:
    /// Nodes are numbered from 0; those never set have no moment. never(): it has none any more.
    void set(std::size_t node, Time moment);
    /// never(): nobody has one.
    Time earliest() const { return tree_[1]; }
    /// Whose that is, if it is not never().
    std::size_t first() const;

private:
    void grow(std::size_t nodes);

    /// Entry n has the earlier one of entries 2n and 2n + 1; nodes' own moments are the last half.
    std::vector<Time> tree_{Time::never(), Time::never()};
};

}  // namespace via::sim
