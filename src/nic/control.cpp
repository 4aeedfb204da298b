// The NIC's calls that wait for the turn: connecting, completion queues, regions, segments.
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "nic/nic.hpp"

namespace via::nic {

Nic::Nic(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
         std::uint32_t first_generation)
    : Turns(std::move(name), limits, counters, attendant, first_generation),
      first_generation_(first_generation & ~1U) {
    VIA_ASSERT(limits.segments_per_descriptor_max <= queue::segments_max);
}

Nic::~Nic() = default;

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
            devices_.front().resolve(remote, vi.number());
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
        const NetAddress own{devices_.front().address(), local.discriminator};
        const bool asks = !is_before(own, remote);
        if (!asks) {
            const Status status = devices_.listen(own.discriminator);
            if (status != Status::success) return status;
        }
        try {
            engine_.connecting().begin_peer_connect(vi, own, remote, deadline, asks, data);
        } catch (const std::bad_alloc&) {
            if (!asks) devices_.unlisten(own.discriminator);
            return Status::error_resource;
        }
        if (!asks) engine_.connecting().set_listening(vi);
        return Status::success;
    });
}

Status Nic::listen(engine::Listener& listener) {
    return with_turn([&] {
        const Status status = devices_.listen(listener.discriminator);
        if (status == Status::success) engine_.requests().listen(listener);
        return status;
    });
}

bool Nic::unlisten(engine::Listener& listener) {
    return with_turn([&] {
        engine_.requests().unlisten(listener);
        devices_.unlisten(listener.discriminator);
        return listener.given.load();
    });
}

// Completion queues -------------------------------------------------------------------------------

Result<std::uint64_t> Nic::create_completion_queue(std::uint32_t entries) {
    if (entries == 0 || entries > limits_.completion_queue_entries_max)
        return std::unexpected(Status::invalid_parameter);
    return with_turn([&] { return completion_queues_.open(entries); });
}

Status Nic::destroy_completion_queue(std::uint64_t name) {
    return with_turn([&] {
        queue::CompletionQueue* queue = completion_queue(name);
        if (queue == nullptr) return Status::invalid_parameter;
        if (engine_.is_bound(*queue)) return Status::error_resource;
        completion_queues_.close(name);
        engine_.completions().forget(*queue);
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
            segments_.revoke(handle, true);  // peers attached by the old rights
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

Result<memory::MemoryHandle> Nic::bind_window(memory::MemoryHandle region, std::uint64_t address,
                                              std::uint64_t length,
                                              const memory::MemoryAttributes& attributes) {
    return holding_turn([&] {
        const auto handle = memory_.bind_window(region, address, length, attributes);
        if (handle) counters_.add(Counter::windows_open);
        return handle;
    });
}

/// What peers do there is done within turns, each piece behind a check of its own.
Status Nic::end_window(memory::MemoryHandle handle) {
    return holding_turn([&] {
        const Status status = memory_.end_window(handle);
        if (status == Status::success) counters_.subtract(Counter::windows_open);
        return status;
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
    segments_.revoke(handle, false);
    if (translations_ != nullptr) translations_->forget(handle);
    memory_.remove(handle);
    counters_.subtract(Counter::regions_open);
    return Status::success;
}

// Shared segments ---------------------------------------------------------------------------------

Result<memory::MemoryHandle> Nic::add_segment(const SharedMemory& memory,
                                              const memory::MemoryAttributes& attributes) {
    return with_turn([&] {
        SharedSegments::Segment& segment = segments_.add(memory);  // first what needs memory
        const auto handle =
            memory_.add(reinterpret_cast<std::uint64_t>(memory.base), memory.length, attributes);
        if (!handle) {
            segments_.remove(segment);
            return handle;
        }
        counters_.add(Counter::regions_open);
        segment.handle = *handle;
        return handle;
    });
}

Result<Nic::RemovedSegment> Nic::remove_segment(const std::byte* base) {
    return with_turn([&]() -> Result<RemovedSegment> {
        SharedSegments::Segment* const segment = segments_.find(base);
        if (segment == nullptr) return std::unexpected(Status::invalid_parameter);
        const memory::MemoryHandle handle = segment->handle;
        if (handle != 0) {
            const Status status = end_region(handle, reinterpret_cast<std::uint64_t>(base));
            if (status != Status::success) return std::unexpected(status);
        }
        RemovedSegment removed{handle, std::move(segment->memory.owner)};
        segments_.remove(*segment);
        return removed;
    });
}

Result<std::uint32_t> Nic::begin_import(engine::Vi& vi, memory::MemoryHandle handle,
                                        std::uint64_t address, bool writable) {
    return with_turn(
        [&] { return engine_.segments().begin_attach(vi, handle, address, writable); });
}

Status Nic::finish_import(engine::Vi& vi, std::uint32_t number, Attachment& memory) {
    return with_turn([&] {
        engine::Import import;
        const Status status = engine_.segments().take_attach(vi, number, import);
        if (status != Status::success) return status;
        try {
            segments_.keep(import.attachment);
        } catch (const std::bad_alloc&) {
            engine_.segments().release_import(import.attachment.base);
            return Status::error_resource;
        }
        memory = std::move(import.attachment);
        return status;
    });
}

Status Nic::release_import(const std::byte* base) {
    return with_turn(
        [&] { return segments_.release(base) ? Status::success : Status::invalid_parameter; });
}

}  // namespace via::nic
