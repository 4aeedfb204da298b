#include "nic/shared_segments.hpp"

#include <algorithm>
#include <utility>

#include "wire/frame.hpp"

namespace via::nic {

SharedSegments::Segment& SharedSegments::add(const SharedMemory& memory) {
    return segments_.emplace_back(memory, 0, std::vector<Grant>{});
}

void SharedSegments::remove(const Segment& segment) {
    segments_.erase(segments_.begin() + (&segment - segments_.data()));
}

SharedSegments::Segment* SharedSegments::find(const std::byte* base) {
    const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                      [base](const Segment& at) { return at.memory.base == base; });
    return segment == segments_.end() ? nullptr : &*segment;
}

void SharedSegments::path_went(engine::PathId path) {
    for (Segment& segment : segments_)
        std::erase_if(segment.grants, [path](const Grant& grant) { return grant.path == path; });
}

void SharedSegments::revoke(memory::MemoryHandle handle, bool registered) {
    for (Segment& segment : segments_) {
        if (segment.handle != handle) continue;
        for (const Grant& grant : segment.grants) end(grant);
        segment.grants.clear();
        segment.handle = registered ? handle : 0;
    }
}

void SharedSegments::answer_questions() {
    engine::AttachQuestion question;
    while (engine_.segments().next_question(question)) offer(question);
    std::uint32_t vi = 0;
    while (engine_.segments().next_parted(vi)) end_grants(vi);
}

/// Where the process ends its device is gone, and with it what it granted.
void SharedSegments::end(const Grant& grant) {
    const Path& path = paths_[grant.path];
    if (device::SegmentSharing* const sharing = path.device->sharing())
        sharing->revoke(path.local, grant.id);
}

void SharedSegments::end_grants(std::uint32_t vi) {
    for (Segment& segment : segments_)
        std::erase_if(segment.grants, [&](const Grant& grant) {
            if (grant.vi != vi) return false;
            end(grant);
            return true;
        });
}

void SharedSegments::offer(const engine::AttachQuestion& question) {
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
    device::SegmentSharing* const sharing = paths_[id].device->sharing();
    // The peer's VI comes back with the answer. Who asks again gets the same grant.
    const std::uint64_t cookie =
        (std::uint64_t{question.message} << 32) | question.vi->remote_number;
    const auto known =
        std::find_if(segment->grants.begin(), segment->grants.end(), [&](const Grant& grant) {
            return grant.vi == question.number && grant.writable == question.writable;
        });
    device::GrantId grant = known == segment->grants.end() ? device::no_grant : known->id;
    const Status status = sharing == nullptr ? Status::error_not_supported
                                             : sharing->offer(paths_[id].local, segment->memory,
                                                              question.writable, cookie, grant);
    if (status == Status::error_not_supported)
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::not_supported);
    if (status != Status::success)
        return engine_.segments().refuse_attach(question, wire::AttachRefusal::no_resource);
    if (known == segment->grants.end())
        segment->grants.push_back({question.number, id, grant, question.writable});
    question.vi->has_grants = true;
}

bool SharedSegments::release(const std::byte* base) {
    const auto import = std::find_if(imports_.begin(), imports_.end(),
                                     [base](const Attachment& at) { return at.base == base; });
    if (import == imports_.end()) return false;
    engine_.segments().release_import(base);
    imports_.erase(import);
    return true;
}

}  // namespace via::nic
