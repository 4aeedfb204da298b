#include "base/numbered_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace via::numbered_queue_test {
namespace {

/// Items of the storage that a queue has.
std::size_t stored = 0;

/// One whose storage is counted.
template <class T>
struct Counted {
    using value_type = T;
    Counted() = default;
    template <class U>
    explicit(false) Counted(const Counted<U>&) {}
    T* allocate(std::size_t count) {
        stored += count;
        return std::allocator<T>().allocate(count);
    }
    void deallocate(T* items, std::size_t count) {
        stored -= count;
        std::allocator<T>().deallocate(items, count);
    }
    friend bool operator==(const Counted&, const Counted&) { return true; }
};

TEST(NumberedQueue, an_empty_one_gives_its_storage_back) {
    NumberedQueue<int, Counted<int>> queue;
    for (int n = 0; n < 1000; ++n) queue.push_back(n);
    queue.give_memory_back(0);
    EXPECT_EQ(stored, 1024U) << "it is not empty";
    for (int n = 0; n < 1000; ++n) queue.pop_front();
    queue.give_memory_back(1024);
    EXPECT_EQ(stored, 1024U) << "so much it may keep";
    queue.give_memory_back(64);
    EXPECT_EQ(stored, 0U);
    queue.push_back(7);
    EXPECT_EQ(queue.front(), 7);
    EXPECT_EQ(queue.begin(), 1000U);
}

}  // namespace
}  // namespace via::numbered_queue_test
