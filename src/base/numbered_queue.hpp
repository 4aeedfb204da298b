// A queue whose items have numbers: the first one ever pushed is 0. Grows to its deepest use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.hpp"

namespace via {

template <class T, class Allocator = std::allocator<T>>
class NumberedQueue {
public:
    std::uint64_t begin() const { return begin_; }  ///< number of the oldest item that is there
    std::uint64_t end() const { return end_; }      ///< number that the next item gets
    bool empty() const { return begin_ == end_; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    bool has(std::uint64_t number) const { return number >= begin_ && number < end_; }

    T& operator[](std::uint64_t number) { return items_[slot(number)]; }
    const T& operator[](std::uint64_t number) const { return items_[slot(number)]; }
    T& front() { return items_[slot(begin_)]; }
    T& back() { return items_[slot(end_ - 1)]; }

    /// A new item in its place, with whatever stood there. What is put together elsewhere and then
    /// copied in wider pieces than it was written waits for its own stores.
    T& add() {
        if (end_ - begin_ == room_) grow();
        return items_[slot(end_++)];
    }
    void push_back(const T& item) { add() = item; }
    void pop_front() {
        VIA_ASSERT(!empty());
        ++begin_;
    }
    void clear() { begin_ = end_; }
    /// The first items, `items` of them at least, need no memory.
    void make_room(std::uint64_t items = 1) {
        while (room_ < items) grow();
    }
    /// An empty queue keeps no storage for more than `items`.
    void give_memory_back(std::uint64_t items) {
        if (!empty() || room_ <= items) return;
        std::vector<T, Allocator>().swap(items_);  // to assign {} would keep it
        room_ = 0;
    }
    /// Keeps, in their order, the items for which `keep` is true. They get other numbers.
    template <class Keep>
    void filter(Keep keep) {
        std::uint64_t to = begin_;
        for (std::uint64_t at = begin_; at != end_; ++at)
            if (keep((*this)[at])) (*this)[to++] = (*this)[at];
        end_ = to;
    }

private:
    std::size_t slot(std::uint64_t number) const {
        return static_cast<std::size_t>(number & (room_ - 1));
    }
    void grow() {
        std::vector<T, Allocator> larger(items_.empty() ? 16 : items_.size() * 2);
        for (std::uint64_t n = begin_; n != end_; ++n)
            larger[static_cast<std::size_t>(n & (larger.size() - 1))] = (*this)[n];
        items_ = std::move(larger);
        room_ = items_.size();
    }

    std::vector<T, Allocator> items_;
    std::uint64_t room_ = 0;  ///< how many, a power of two: to ask a vector takes a multiplication
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace via
