#include "sim/agenda.hpp"

#include <utility>

#include "base/assert.hpp"

namespace via::sim {

void Agenda::set(std::size_t node, Time moment) {
    while (node >= tree_.size() / 2) grow(tree_.size());
    std::size_t at = tree_.size() / 2 + node;
    tree_[at] = moment;
    while (at > 1) {
        at /= 2;
        const Time now = earlier(tree_[2 * at], tree_[2 * at + 1]);
        if (tree_[at] == now) return;
        tree_[at] = now;
    }
}

std::size_t Agenda::first() const {
    VIA_ASSERT(!earliest().is_never());
    std::size_t at = 1;
    while (at < tree_.size() / 2) at = 2 * at + (tree_[2 * at] == tree_[at] ? 0 : 1);
    return at - tree_.size() / 2;
}

/// To so many, a power of two.
void Agenda::grow(std::size_t nodes) {
    const std::size_t before = tree_.size() / 2;
    std::vector<Time> wider(2 * nodes, Time::never());
    for (std::size_t node = 0; node < before; ++node) wider[nodes + node] = tree_[before + node];
    for (std::size_t at = nodes - 1; at > 0; --at)
        wider[at] = earlier(wider[2 * at], wider[2 * at + 1]);
    tree_ = std::move(wider);
}

}  // namespace via::sim
