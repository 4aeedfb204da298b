#include "engine/segments.hpp"

#include <utility>

namespace via::engine {

// Asking ------------------------------------------------------------------------------------------

Result<std::uint32_t> Segments::begin_attach(Vi& vi, memory::MemoryHandle handle,
                                             std::uint64_t address, bool writable) {
    if (vi.state_now() != ViState::connected) return std::unexpected(Status::invalid_state);
    if (vi.attach) return std::unexpected(Status::error_resource);
    vi.attach = std::make_unique<Attach>();
    vi.attach->wanted = {handle, address, {}};
    vi.attach->wanted.attachment.writable = writable;
    vi.attach->number = ++vi.attaches;
    vi.attach_due = true;
    paths_.activate(vi);
    return vi.attach->number;
}

/// Not within a message, so that the question follows whatever this VI wrote by frames before.
void Segments::emit(Vi& vi, const FrameRoom& room) {
    wire::Header header;
    header.kind = wire::FrameKind::attach_request;
    header.flags = wire::flag::extent | wire::flag::remote;
    header.vi = vi.remote_number;
    header.message = vi.attach->number;
    header.immediate_or_code = vi.attach->wanted.attachment.writable ? 1 : 0;
    header.remote_address = vi.attach->wanted.remote_address;
    header.remote_handle = vi.attach->wanted.handle;
    wire::emit(header, room.header);
    vi.attach_due = false;
}

void Segments::end_question(Vi& vi, Status status) {
    if (!vi.attach || vi.attach->status != Status::not_done) return;
    vi.attach->status = status;
    vi.attach_due = false;
    vi.attaches_decided.store(vi.attach->number, std::memory_order_release);
    news_.progressed();
    if (vi.path != no_path) paths_.activate(vi);  // RDMA was held back meanwhile
}

/// The VI whose question stands that an offer with `cookie` answers.
Vi* Segments::asker(PathId path, std::uint64_t cookie) const {
    Vi* vi = vis_.connected(path, static_cast<std::uint32_t>(cookie));
    const bool asks = vi != nullptr && vi->attach && vi->attach->number == cookie >> 32 &&
                      vi->attach->status == Status::not_done;
    return asks ? vi : nullptr;
}

void Segments::on_attached(PathId path, std::uint64_t cookie, Attachment attachment) {
    Vi* vi = asker(path, cookie);
    if (vi == nullptr) return;  // given up meanwhile, or never asked for: the mapping ends here
    if (attachment.base == nullptr) return end_question(*vi, Status::error_resource);
    if (attachment.writable != vi->attach->wanted.attachment.writable)
        return end_question(*vi, Status::reject);
    vi->attach->wanted.attachment = std::move(attachment);
    // Another import of the same segment, or of one whose handle came back, has had its time.
    std::erase_if(vi->imports,
                  [&](const Import& import) { return import.handle == vi->attach->wanted.handle; });
    vi->imports.push_back(vi->attach->wanted);
    vi->write_by_frames.reset();  // the question followed it
    end_question(*vi, Status::success);
}

FrameVerdict Segments::on_refuse(Vi& vi, const wire::Header& header) {
    if (!vi.attach || vi.attach->number != header.message) return FrameVerdict::stale;
    switch (static_cast<wire::AttachRefusal>(header.immediate_or_code)) {
        case wire::AttachRefusal::not_supported:
            end_question(vi, Status::error_not_supported);
            break;
        case wire::AttachRefusal::no_resource:
            end_question(vi, Status::error_resource);
            break;
        default:
            end_question(vi, Status::reject);
    }
    return FrameVerdict::taken;
}

Status Segments::take_attach(Vi& vi, std::uint32_t number, Import& import) {
    if (!vi.attach || vi.attach->number != number) return Status::invalid_state;
    const Status status =
        vi.attach->status == Status::not_done ? Status::timeout : vi.attach->status;
    import = std::move(vi.attach->wanted);
    vi.attach.reset();
    vi.attach_due = false;
    if (vi.state_now() == ViState::connected) paths_.activate(vi);
    return status;
}

void Segments::release_import(const std::byte* base) {
    for (std::uint32_t index = 0; index < vis_.made(); ++index)
        std::erase_if(vis_[index].imports,
                      [base](const Import& import) { return import.attachment.base == base; });
}

void Segments::release_imports() {
    for (std::uint32_t index = 0; index < vis_.made(); ++index) vis_[index].imports.clear();
}

void Segments::leave(Vi& vi) {
    end_question(vi, Status::invalid_state);
    vi.imports.clear();
    vi.write_by_frames.reset();
    if (!std::exchange(vi.has_grants, false)) return;
    parted_.push_back(vi.number());
    news_.chore_came();
}

// Being asked -------------------------------------------------------------------------------------

/// Whoever may map a segment may read it; to write, both rights are needed.
bool Segments::on_request(Vi& vi, const wire::Header& header, std::size_t length) {
    if (header.flags != (wire::flag::extent | wire::flag::remote) || length != 0 ||
        header.immediate_or_code > 1)
        return false;
    const bool writable = header.immediate_or_code == 1;
    const bool allowed =
        vi.attributes.rdma_read && (!writable || vi.attributes.rdma_write) &&
        memory_.is_region(header.remote_handle, header.remote_address) &&
        memory_.check(header.remote_handle, header.remote_address, 1, vi.attributes.tag,
                      memory::Access::remote_read) &&
        (!writable || memory_.check(header.remote_handle, header.remote_address, 1,
                                    vi.attributes.tag, memory::Access::remote_write));
    const AttachQuestion question{&vi, vi.number(), header.message, header.remote_handle, writable};
    if (!allowed) {
        refuse_attach(question, wire::AttachRefusal::no_right);
        return true;
    }
    questions_.push_back(question);
    news_.chore_came();
    return true;
}

bool Segments::next_question(AttachQuestion& question) {
    if (questions_.empty()) [[likely]]
        return false;
    question = questions_.back();
    questions_.pop_back();
    return true;
}

void Segments::refuse_attach(const AttachQuestion& question, wire::AttachRefusal why) {
    if (!is_current(question)) return;
    const Vi& vi = *question.vi;
    counters_.add(Counter::rdma_refused);
    paths_.notify(vi.path, wire::FrameKind::attach_refuse, vi.remote_number, question.message,
                  static_cast<std::uint32_t>(why));
}

// Using -------------------------------------------------------------------------------------------

std::byte* Segments::imported(const Vi& vi, const queue::WorkEntry& entry) {
    const queue::Segment& remote = entry.segments[0];
    const bool write = operation_of(entry) == queue::control::rdma_write;
    for (const Import& import : vi.imports) {
        if (import.handle != remote.handle) continue;
        const std::uint64_t offset = remote.address - import.remote_address;
        const Attachment& attachment = import.attachment;
        // What does not fit, or is no right any more, goes to the peer, which refuses it.
        if (offset > attachment.length || entry.length > attachment.length - offset ||
            (write && !attachment.writable) ||
            (!attachment.holds() && !mutated(Mutation::direct_without_grant)))
            return nullptr;
        return attachment.base + offset;
    }
    return nullptr;
}

}  // namespace via::engine
