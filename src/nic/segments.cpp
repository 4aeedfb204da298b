// Memory that processes share: segments of ours that peers attach to, and theirs that we have.
#include <algorithm>
#include <new>
#include <utility>

#include "nic/nic.hpp"
#include "wire/frame.hpp"

namespace via::nic {

// Ours --------------------------------------------------------------------------------------------

Result<memory::MemoryHandle> Nic::add_segment(const SharedMemory& memory,
                                              const memory::MemoryAttributes& attributes) {
    return with_turn([&] {
        segments_.push_back({memory, 0, {}});  // first what needs memory
        const auto handle =
            memory_.add(reinterpret_cast<std::uint64_t>(memory.base), memory.length, attributes);
        if (!handle) {
            segments_.pop_back();
            return handle;
        }
        counters_.add(Counter::regions_open);
        segments_.back().handle = *handle;
        return handle;
    });
}

Result<Nic::RemovedSegment> Nic::remove_segment(const std::byte* base) {
    return with_turn([&]() -> Result<RemovedSegment> {
        const auto segment =
            std::find_if(segments_.begin(), segments_.end(),
                         [base](const Segment& at) { return at.memory.base == base; });
        if (segment == segments_.end()) return std::unexpected(Status::invalid_parameter);
        const memory::MemoryHandle handle = segment->handle;
        if (handle != 0) {
            const Status status = end_region(handle, reinterpret_cast<std::uint64_t>(base));
            if (status != Status::success) return std::unexpected(status);
        }
        RemovedSegment removed{handle, std::move(segment->memory.owner)};
        segments_.erase(segment);
        return removed;
    });
}

/// Peers that attached to the region begin nothing any more. `registered`: it goes on.
void Nic::revoke(memory::MemoryHandle handle, bool registered) {
    for (Segment& segment : segments_) {
        if (segment.handle != handle) continue;
        for (const Grant& grant : segment.grants)
            paths_[grant.path].device->revoke(paths_[grant.path].local, grant.id);
        segment.grants.clear();
        segment.handle = registered ? handle : 0;
    }
}

void Nic::answer_questions() {
    engine::AttachQuestion question;
    while (engine_.segments().next_question(question)) offer(question);
    std::uint32_t vi = 0;
    while (engine_.segments().next_parted(vi)) end_grants(vi);
}

void Nic::end_grants(std::uint32_t vi) {
    for (Segment& segment : segments_)
        std::erase_if(segment.grants, [&](const Grant& grant) {
            if (grant.vi != vi) return false;
            paths_[grant.path].device->revoke(paths_[grant.path].local, grant.id);
            return true;
        });
}

void Nic::offer(const engine::AttachQuestion& question) {
    const auto segment = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& at) {
        return at.handle == question.handle;
    });
    if (!engine_.segments().is_current(question)) return;
    if (segment == segments_.end())
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::no_right);
    // It got the right to be written after it was sealed against that: by frames only.
    if (question.writable && !segment->memory.writable)
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::not_supported);
    const engine::PathId id = question.vi->path;
    device::Device& device = *paths_[id].device;
    // The peer's VI comes back with the answer. Who asks again gets the same grant.
    const std::uint64_t cookie =
        (std::uint64_t{question.message} << 32) | question.vi->remote_number;
    const auto known =
        std::find_if(segment->grants.begin(), segment->grants.end(), [&](const Grant& grant) {
            return grant.vi == question.number && grant.writable == question.writable;
        });
    device::GrantId grant = known == segment->grants.end() ? device::no_grant : known->id;
    const Status status =
        device.offer(paths_[id].local, segment->memory, question.writable, cookie, grant);
    if (status == Status::error_not_supported)
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::not_supported);
    if (status != Status::success)
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::no_resource);
    if (known == segment->grants.end())
        segment->grants.push_back({question.number, id, grant, question.writable});
    question.vi->has_grants = true;
}

// Theirs ------------------------------------------------------------------------------------------

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
            imports_.push_back(import.attachment);
        } catch (const std::bad_alloc&) {
            engine_.segments().release_import(import.attachment.base);
            return Status::error_resource;
        }
        memory = std::move(import.attachment);
        return status;
    });
}

Status Nic::release_import(const std::byte* base) {
    return with_turn([&] {
        const auto import = std::find_if(imports_.begin(), imports_.end(),
                                         [base](const Attachment& at) { return at.base == base; });
        if (import == imports_.end()) return Status::invalid_parameter;
        engine_.segments().release_import(base);
        imports_.erase(import);
        return Status::success;
    });
}

}  // namespace via::nic
