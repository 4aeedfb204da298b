// The NIC's calls that wait for the turn: connecting, completion queues, deregistration.
#include <new>

#include "nic/nic.hpp"

namespace via::nic {

Status Nic::connect(engine::Vi& vi, const NetAddress& local, const NetAddress& remote,
                    Time deadline, std::span<const std::byte> data, Asking asking,
                    std::uint32_t* number) {
    return with_turn([&] {
        const Status status = engine_.connecting().begin_connect(vi, local, remote, deadline, data);
        if (status != Status::success) return status;
        if (number != nullptr) *number = vi.requests.load(std::memory_order_relaxed);
        if (asking == Asking::insisting) engine_.connecting().insist(vi);
        if (asking == Asking::briefly) engine_.connecting().look_again(vi, attendant_.now());
        if (devices_.empty()) {
            engine_.connecting().connect_failed(vi, Status::not_reachable);
            return Status::success;
        }
        try {
            devices_.front()->resolve(remote, vi.number());
        } catch (const std::bad_alloc&) {
            engine_.connecting().connect_failed(vi, Status::error_resource);
        }
        return Status::success;
    });
}

/// Of the two VIs the one with the later address asks. Those with the same address ask, too, and
/// look_for_peers() has one of them wait.
Status Nic::connect_peer(engine::Vi& vi, const NetAddress& local, const NetAddress& remote,
                         Time deadline, std::span<const std::byte> data) {
    return with_turn([&] {
        if (vi.state_now() != engine::ViState::idle) return Status::invalid_state;
        if (devices_.empty()) return Status::not_reachable;
        const NetAddress own{devices_.front()->address(), local.discriminator};
        const bool asks = !is_before(own, remote);
        if (!asks) {
            const Status status = listen(own.discriminator);
            if (status != Status::success) return status;
        }
        try {
            engine_.connecting().begin_peer_connect(vi, own, remote, deadline, asks, data);
        } catch (const std::bad_alloc&) {
            for (auto& device : devices_)
                if (!asks) device->unlisten(own.discriminator);
            return Status::error_resource;
        }
        if (!asks) engine_.connecting().set_listening(vi);
        return Status::success;
    });
}

void Nic::look_for_peers(Time now) {
    Discriminator discriminator;
    while (engine_.connecting().attempts().next_forgotten(discriminator))
        for (auto& device : devices_) device->unlisten(discriminator);
    while (engine::Vi* vi = engine_.connecting().attempts().next_search(now)) {
        // Of those with equal addresses one waits, who finds the name free, and the others ask.
        // Looked at each time: that one meets another, or gives up, and then nobody waits.
        if (vi->peer && vi->local_address == vi->remote_address &&
            !engine_.connecting().is_awaited(vi->local_address, vi->remote_address) &&
            listen(vi->local_address.discriminator) == Status::success)
            engine_.connecting().set_listening(*vi);
        else if (!devices_.empty())  // the process ends: nobody is found, nor said not to be there
            devices_.front()->resolve(vi->remote_address, vi->number());
    }
}

Status Nic::listen(const Discriminator& discriminator) {
    for (std::size_t index = 0; index < devices_.size(); ++index) {
        Status status = Status::success;
        try {
            status = devices_[index]->listen(discriminator);
        } catch (const std::bad_alloc&) {
            status = Status::error_resource;
        }
        if (status == Status::success) continue;
        while (index-- != 0) devices_[index]->unlisten(discriminator);
        return status;
    }
    return Status::success;
}

Status Nic::listen(engine::Listener& listener) {
    return with_turn([&] {
        const Status status = listen(listener.discriminator);
        if (status == Status::success) engine_.requests().listen(listener);
        return status;
    });
}

bool Nic::unlisten(engine::Listener& listener) {
    return with_turn([&] {
        engine_.requests().unlisten(listener);
        for (auto& device : devices_) device->unlisten(listener.discriminator);
        return listener.given.load();
    });
}

HostAddress Nic::peer_address(engine::PathId path) const {
    if (path >= paths_.size() || paths_[path].device == nullptr) return {};
    return paths_[path].device->peer_address(paths_[path].local);
}

// Completion queues -------------------------------------------------------------------------------

Result<std::uint64_t> Nic::create_completion_queue(std::uint32_t entries) {
    if (entries == 0 || entries > limits_.completion_queue_entries_max)
        return std::unexpected(Status::invalid_parameter);
    return with_turn([&]() -> Result<std::uint64_t> {
        if (free_completion_queues_.empty()) {
            if (completion_queues_made_ == limits_.completion_queues_max)
                return std::unexpected(Status::error_resource);
            free_completion_queues_.push_back(completion_queues_made_);
            ++completion_queues_made_;
        }
        const std::uint32_t index = free_completion_queues_.front();
        CompletionQueueSlot& slot = completion_queues_[index];
        if (!slot.queue) slot.queue.reset(new (std::nothrow) queue::CompletionQueue);
        if (!slot.queue || !slot.queue->prepare(entries))
            return std::unexpected(Status::error_resource);
        free_completion_queues_.pop_front();
        const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
        slot.generation.store(generation, std::memory_order_release);
        return (std::uint64_t{generation} << 16) | index;
    });
}

queue::CompletionQueue* Nic::completion_queue(std::uint64_t name) const {
    const std::uint64_t index = name & 0xFFFF;
    if (index >= limits_.completion_queues_max) return nullptr;
    const CompletionQueueSlot& slot = completion_queues_[index];
    const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
    return (generation & 1) != 0 && generation == name >> 16 ? slot.queue.get() : nullptr;
}

std::uint64_t Nic::completion_queue_name(const queue::CompletionQueue& queue) const {
    for (std::uint32_t index = 0; index < completion_queues_made_; ++index)
        if (completion_queues_[index].queue.get() == &queue)
            return (std::uint64_t{completion_queues_[index].generation.load()} << 16) | index;
    return 0;
}

Status Nic::destroy_completion_queue(std::uint64_t name) {
    return with_turn([&] {
        queue::CompletionQueue* queue = completion_queue(name);
        if (queue == nullptr) return Status::invalid_parameter;
        if (engine_.is_bound(*queue)) return Status::error_resource;
        // First what needs memory.
        free_completion_queues_.push_back(static_cast<std::uint32_t>(name & 0xFFFF));
        engine_.completions().forget(*queue);
        CompletionQueueSlot& slot = completion_queues_[name & 0xFFFF];
        slot.generation.store(slot.generation.load() + 1, std::memory_order_release);
        attendant_.queue_goes(*queue);  // before somebody else's takes its place
        queue->reset();
        return Status::success;
    });
}

Status Nic::resize_completion_queue(std::uint64_t name, std::uint32_t entries) {
    if (entries == 0 || entries > limits_.completion_queue_entries_max)
        return Status::invalid_parameter;
    return with_turn([&] {
        queue::CompletionQueue* queue = completion_queue(name);
        if (queue == nullptr) return Status::invalid_parameter;
        const Status status = queue->resize(entries);
        if (queue->waiting() != 0) engine_.watch(*queue);
        return status;
    });
}

Result<memory::MemoryHandle> Nic::register_memory(std::uint64_t address, std::uint64_t length,
                                                  const memory::MemoryAttributes& attributes) {
    return holding_turn([&] {
        const auto handle = memory_.add(address, length, attributes);
        if (handle) counters_.add(Counter::regions_open);
        return handle;
    });
}

Status Nic::change_region(memory::MemoryHandle handle, std::uint64_t address,
                          const memory::MemoryAttributes& attributes) {
    return with_turn([&] {
        if (!memory_.is_region(handle, address)) return Status::invalid_parameter;
        // Before anything is taken from peers: a call that fails changes nothing.
        if (attributes.tag != memory::no_tag && !memory_.is_tag(attributes.tag))
            return Status::invalid_ptag;
        // Posted work was checked against the old attributes. The first look disturbs no post.
        if (engine_.uses_region(handle)) return Status::error_resource;
        memory_.suspend(handle);
        Status status = Status::error_resource;
        if (!engine_.uses_region(handle)) {
            revoke(handle, true);  // peers attached by the old rights
            status = memory_.change(handle, attributes);
        }
        memory_.resume(handle);
        return status;
    });
}

Status Nic::allow_atomics(memory::MemoryHandle handle, std::uint64_t address, bool allowed) {
    return holding_turn([&] {
        if (!memory_.is_region(handle, address)) return Status::invalid_parameter;
        return memory_.allow_atomics(handle, allowed);
    });
}

Status Nic::deregister(memory::MemoryHandle handle, std::uint64_t address) {
    return holding_turn([&] { return end_region(handle, address); });
}

Status Nic::end_region(memory::MemoryHandle handle, std::uint64_t address) {
    if (!memory_.is_region(handle, address)) return Status::invalid_parameter;
    if (engine_.uses_region(handle)) return Status::error_resource;
    memory_.suspend(handle);
    if (engine_.uses_region(handle)) {
        memory_.resume(handle);
        return Status::error_resource;
    }
    revoke(handle, false);
    if (translations_ != nullptr) translations_->forget(handle);
    memory_.remove(handle);
    counters_.subtract(Counter::regions_open);
    return Status::success;
}

}  // namespace via::nic
