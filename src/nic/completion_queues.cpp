#include "nic/completion_queues.hpp"

#include <new>

namespace via::nic {

CompletionQueues::CompletionQueues(std::uint32_t queues_max, std::uint32_t first_generation)
    : max_(queues_max), slots_(std::make_unique<Slot[]>(queues_max)) {
    for (std::uint32_t n = 0; n < queues_max; ++n)
        slots_[n].generation.store(first_generation, std::memory_order_relaxed);
}

Result<std::uint64_t> CompletionQueues::open(std::uint32_t entries) {
    if (free_.empty()) {
        if (made_ == max_) return std::unexpected(Status::error_resource);
        free_.push_back(made_);
        ++made_;
    }
    const std::uint32_t index = free_.front();
    Slot& slot = slots_[index];
    if (!slot.queue) slot.queue.reset(new (std::nothrow) queue::CompletionQueue);
    if (!slot.queue || !slot.queue->prepare(entries))
        return std::unexpected(Status::error_resource);
    free_.pop_front();
    const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
    slot.generation.store(generation, std::memory_order_release);
    return (std::uint64_t{generation} << 16) | index;
}

queue::CompletionQueue* CompletionQueues::find(std::uint64_t name) const {
    const std::uint64_t index = name & 0xFFFF;
    if (index >= max_) return nullptr;
    const Slot& slot = slots_[index];
    const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
    return (generation & 1) != 0 && generation == name >> 16 ? slot.queue.get() : nullptr;
}

std::uint64_t CompletionQueues::name_of(const queue::CompletionQueue& queue) const {
    for (std::uint32_t index = 0; index < made_; ++index)
        if (slots_[index].queue.get() == &queue)
            return (std::uint64_t{slots_[index].generation.load()} << 16) | index;
    return 0;
}

void CompletionQueues::close(std::uint64_t name) {
    free_.push_back(static_cast<std::uint32_t>(name & 0xFFFF));  // first what needs memory
    Slot& slot = slots_[name & 0xFFFF];
    slot.generation.store(slot.generation.load() + 1, std::memory_order_release);
}

}  // namespace via::nic
