// VIs in the order of a moment that each of them has, of equal moments by their index. A binary
// heap in which each VI knows its place, so that any of them moves or leaves in a few steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/time.hpp"
#include "engine/vi.hpp"

namespace via::engine {

template <Time Vi::* moment, std::uint32_t Vi::* place>
class Moments {
public:
    /// Room for so many VIs: none that comes needs memory.
    void reserve(std::size_t vis) { vis_.reserve(vis); }
    bool empty() const { return vis_.empty(); }
    Time earliest() const { return vis_.empty() ? Time::never() : vis_.front()->*moment; }
    /// The earliest one; nullptr: none is there.
    Vi* first() const { return vis_.empty() ? nullptr : vis_.front(); }
    /// All, in no order.
    const std::vector<Vi*>& all() const { return vis_; }

    /// The VI comes in with that moment, or moves to it.
    void set(Vi& vi, Time when) {
        vi.*moment = when;
        if (vi.*place == Vi::nowhere) {
            vi.*place = static_cast<std::uint32_t>(vis_.size());
            vis_.push_back(&vi);
        }
        settle(vi.*place);
    }
    void remove(Vi& vi) {
        VIA_ASSERT(vi.*place < vis_.size() && vis_[vi.*place] == &vi);
        const std::uint32_t at = std::exchange(vi.*place, Vi::nowhere);
        vi.*moment = Time::never();
        Vi* const last = vis_.back();
        vis_.pop_back();
        if (last == &vi) return;
        put(*last, at);
        settle(at);
    }
    /// Calls look(vi) for each whose moment has come; it changes nothing here.
    template <class Look>
    void each_due(Time now, Look look, std::size_t at = 0) const {
        if (at >= vis_.size() || now < vis_[at]->*moment) return;
        look(*vis_[at]);
        each_due(now, look, 2 * at + 1);
        each_due(now, look, 2 * at + 2);
    }
    /// Comparisons of two VIs so far.
    std::uint64_t comparisons() const { return comparisons_; }

private:
    bool is_before(std::size_t a, std::size_t b) {
        ++comparisons_;
        const Vi& first = *vis_[a];
        const Vi& second = *vis_[b];
        return first.*moment != second.*moment ? first.*moment < second.*moment
                                               : first.index < second.index;
    }
    void put(Vi& vi, std::size_t at) {
        vis_[at] = &vi;
        vi.*place = static_cast<std::uint32_t>(at);
    }
    void swap(std::size_t a, std::size_t b) {
        Vi& other = *vis_[a];
        put(*vis_[b], a);
        put(other, b);
    }
    /// The one that stands there goes up or down to where it belongs.
    void settle(std::size_t at) {
        for (; at != 0 && is_before(at, (at - 1) / 2); at = (at - 1) / 2) swap(at, (at - 1) / 2);
        for (std::size_t child = 2 * at + 1; child < vis_.size(); child = 2 * at + 1) {
            if (child + 1 < vis_.size() && is_before(child + 1, child)) ++child;
            if (!is_before(child, at)) return;
            swap(at, child);
            at = child;
        }
    }

    std::vector<Vi*> vis_;
    std::uint64_t comparisons_ = 0;
};

}  // namespace via::engine
