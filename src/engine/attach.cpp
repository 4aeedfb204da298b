// Shared segments. A VI asks for a segment by the same handle and address, and with the same
// rights, as RDMA needs; from then on its RDMA to it is carried out here, by plain loads and
// stores, in the order of its other messages.
#include <utility>

#include "base/assert.hpp"
#include "engine/engine.hpp"
#include "memory/copy.hpp"

namespace via::engine {

// Asking ------------------------------------------------------------------------------------------

Result<std::uint32_t> Engine::begin_attach(Vi& vi, memory::MemoryHandle handle,
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
void Engine::emit_attach(Vi& vi, const FrameRoom& room) {
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

void Engine::attach_ended(Vi& vi, Status status) {
    if (!vi.attach || vi.attach->status != Status::not_done) return;
    vi.attach->status = status;
    vi.attach_due = false;
    vi.attaches_decided.store(vi.attach->number, std::memory_order_release);
    news_.progressed();
    if (vi.path != no_path) paths_.activate(vi);  // RDMA was held back meanwhile
}

/// The VI whose question stands that an offer with `cookie` answers.
Vi* Engine::asker(PathId path, std::uint64_t cookie) {
    Vi* vi = vis_.connected(path, static_cast<std::uint32_t>(cookie));
    const bool asks = vi != nullptr && vi->attach && vi->attach->number == cookie >> 32 &&
                      vi->attach->status == Status::not_done;
    return asks ? vi : nullptr;
}

void Engine::on_attached(PathId path, std::uint64_t cookie, Attachment attachment) {
    Vi* vi = asker(path, cookie);
    if (vi == nullptr) return;  // given up meanwhile, or never asked for: the mapping ends here
    if (attachment.base == nullptr) return attach_ended(*vi, Status::error_resource);
    if (attachment.writable != vi->attach->wanted.attachment.writable)
        return attach_ended(*vi, Status::reject);
    vi->attach->wanted.attachment = std::move(attachment);
    // Another import of the same segment, or of one whose handle came back, has had its time.
    std::erase_if(vi->imports,
                  [&](const Import& import) { return import.handle == vi->attach->wanted.handle; });
    vi->imports.push_back(vi->attach->wanted);
    vi->write_by_frames.reset();  // the question followed it
    attach_ended(*vi, Status::success);
}

FrameVerdict Engine::on_attach_refuse(Vi& vi, const wire::Header& header) {
    if (!vi.attach || vi.attach->number != header.message) return FrameVerdict::stale;
    switch (static_cast<wire::AttachRefusal>(header.immediate_or_code)) {
        case wire::AttachRefusal::not_supported:
            attach_ended(vi, Status::error_not_supported);
            break;
        case wire::AttachRefusal::no_resource:
            attach_ended(vi, Status::error_resource);
            break;
        default:
            attach_ended(vi, Status::reject);
    }
    return FrameVerdict::taken;
}

Status Engine::take_attach(Vi& vi, std::uint32_t number, Import& import) {
    if (!vi.attach || vi.attach->number != number) return Status::invalid_state;
    const Status status =
        vi.attach->status == Status::not_done ? Status::timeout : vi.attach->status;
    import = std::move(vi.attach->wanted);
    vi.attach.reset();
    vi.attach_due = false;
    if (vi.state_now() == ViState::connected) paths_.activate(vi);
    return status;
}

void Engine::release_import(const std::byte* base) {
    for (std::uint32_t index = 0; index < vis_.made(); ++index)
        std::erase_if(vis_[index].imports,
                      [base](const Import& import) { return import.attachment.base == base; });
}

void Engine::release_imports() {
    for (std::uint32_t index = 0; index < vis_.made(); ++index) vis_[index].imports.clear();
}

// Being asked -------------------------------------------------------------------------------------

/// Whoever may map a segment may read it; to write, both rights are needed.
FrameVerdict Engine::on_attach_request(Vi& vi, const wire::Header& header, std::size_t length) {
    if (header.flags != (wire::flag::extent | wire::flag::remote) || length != 0 ||
        header.immediate_or_code > 1)
        return break_rule(vi, header, "a question for a segment that makes no sense");
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
        return FrameVerdict::taken;
    }
    questions_.push_back(question);
    news_.chore_came();
    return FrameVerdict::taken;
}

bool Engine::next_question(AttachQuestion& question) {
    if (questions_.empty()) [[likely]]
        return false;
    question = questions_.back();
    questions_.pop_back();
    return true;
}

void Engine::refuse_attach(const AttachQuestion& question, wire::AttachRefusal why) {
    if (!is_current(question)) return;
    const Vi& vi = *question.vi;
    counters_.add(Counter::rdma_refused);
    paths_.notify(vi.path, wire::FrameKind::attach_refuse, vi.remote_number, question.message,
                  static_cast<std::uint32_t>(why));
}

// Using -------------------------------------------------------------------------------------------

std::byte* Engine::imported(const Vi& vi, const queue::WorkEntry& entry) {
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

/// Moves the bytes of the current message to or from the segment.
void Engine::copy_imported(Vi& vi, const queue::WorkEntry& entry) {
    VIA_ASSERT(direct_ != nullptr);
    std::byte* remote = std::exchange(direct_, nullptr);
    const bool write = operation_of(entry) == queue::control::rdma_write;
    const std::uint32_t less = mutated(Mutation::direct_too_little) && entry.length != 0 ? 1 : 0;
    vi.gather.take(entry.length - less, [&](std::byte* local, std::size_t length) {
        if (write)
            memory::place(remote, local, length);
        else
            memory::place(local, remote, length);
        remote += length;
    });
    counters_.add(Counter::direct_transfers);
    counters_.add(write ? Counter::bytes_sent : Counter::bytes_received, entry.length);
}

void Engine::carry_out(PathId id) {
    Path& path = paths_[id];
    Vi& vi = *path.active.front();
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = work.current().cell();
    copy_imported(vi, entry);
    entry.message = vi.next_message;  // it takes none: only its place in the order
    entry.status = queue::status::done;
    work.start_next();
    drain_sends(vi);
    if (static_cast<ActiveLink&>(vi).linked()) path.active.pop_front();
    if (has_to_send(vi) && vi.state_now() == ViState::connected) path.active.push_back(vi);
}

}  // namespace via::engine
