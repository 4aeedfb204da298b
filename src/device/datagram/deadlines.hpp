// When which path wants to be looked at: a heap of moments, one for each path that has one. Moving
// a moment back is free, as it is done with each packet; it is noticed when the earlier one has
// come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace via::device::datagram {

class Deadlines {
public:
    using Id = std::uint32_t;

    Time next() const { return heap_.empty() ? Time::never() : heap_.front().moment; }
    /// `id` is given out by take_due() at `moment` or before.
    void at_latest(Id id, Time moment);
    /// One whose moment has come, and is forgotten.
    bool take_due(Time now, Id& id);
    void remove(Id id);

private:
    struct Entry {
        Time moment;
        Id id;
    };
    static constexpr std::size_t nowhere = ~std::size_t{0};

    void put(std::size_t at, const Entry& entry);
    void up(std::size_t at, const Entry& entry);
    void down(std::size_t at, const Entry& entry);
    void erase(std::size_t at);

    std::vector<Entry> heap_;
    std::vector<std::size_t> places_;  ///< in the heap, by id
};

}  // namespace via::device::datagram
