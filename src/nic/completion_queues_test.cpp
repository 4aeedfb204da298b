#include "nic/completion_queues.hpp"

#include <gtest/gtest.h>

namespace via::nic::completion_queues_test {
namespace {

TEST(CompletionQueues, a_name_finds_its_queue_until_that_is_closed) {
    CompletionQueues queues(2, 4);
    const std::uint64_t first = queues.open(8).value();
    queue::CompletionQueue* const queue = queues.find(first);
    ASSERT_NE(queue, nullptr);
    EXPECT_EQ(queues.name_of(*queue), first);
    queues.close(first);
    EXPECT_EQ(queues.find(first), nullptr);
    queue->reset();
    EXPECT_EQ(queues.find(first + (std::uint64_t{1} << 16)), nullptr) << "nobody has that name";
    EXPECT_EQ(queues.find(0xFFFF), nullptr);
}

TEST(CompletionQueues, a_place_has_another_name_the_next_time_and_there_is_a_last_one) {
    CompletionQueues queues(2, 0);
    const std::uint64_t first = queues.open(8).value();
    const std::uint64_t second = queues.open(8).value();
    EXPECT_EQ(queues.open(8).error(), Status::error_resource);
    queues.find(first)->reset();
    queues.close(first);
    const std::uint64_t again = queues.open(8).value();
    EXPECT_NE(again, first);
    EXPECT_EQ(again & 0xFFFF, first & 0xFFFF);
    EXPECT_EQ(queues.find(first), nullptr);
    EXPECT_NE(queues.find(second), queues.find(again));
}

}  // namespace
}  // namespace via::nic::completion_queues_test
