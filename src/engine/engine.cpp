#include "engine/engine.hpp"

#include "base/assert.hpp"
#include "engine/fast_path.hpp"
#include "engine/mutation.hpp"

namespace via::engine {

Engine::Engine(const NicLimits& limits, memory::MemoryTable& memory, Counters& counters,
               std::uint32_t first_generation)
    : limits_(limits),
      memory_(memory),
      counters_(counters),
      vis_(limits.vis_max, first_generation),
      completions_(limits_, memory, counters, vis_),
      paths_(limits.connections_waiting_max, counters),
      refusals_(counters),
      requests_(limits_, paths_, completions_.news(), refusals_),
      shared_receives_(limits_, completions_.news(), first_generation),
      credits_(paths_, shared_receives_),
      segments_(memory, counters, vis_, paths_, completions_.news()),
      connections_(counters, paths_, completions_, segments_, credits_, refusals_),
      outbound_(limits_, memory, counters, translations_, vis_, paths_, completions_, segments_,
                credits_, connections_),
      inbound_(memory, counters, translations_, vis_, paths_, completions_, shared_receives_,
               credits_, connections_),
      connecting_(vis_, paths_, completions_, connections_, requests_, refusals_) {}

Result<Vi*> Engine::create_vi(const ViAttributes& attributes, queue::CompletionQueue* send_queue,
                              queue::CompletionQueue* receive_queue) {
    Vi* const free = vis_.next_free();
    if (free == nullptr) return std::unexpected(Status::error_resource);
    connecting_.attempts().make_room(vis_.made());
    Vi& vi = *free;
    if (!vi.send.work.prepare() || !vi.receive.work.prepare())
        return std::unexpected(Status::error_resource);
    vi.attributes = attributes;
    vi.send.completions = send_queue;
    vi.receive.completions = receive_queue;
    vi.connect_status = Status::success;
    vi.state.store(ViState::idle, std::memory_order_relaxed);
    vis_.open(vi);
    counters_.add(Counter::vis_open);
    return &vi;
}

Status Engine::destroy_vi(Vi& vi) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    // A post is there before, or finds nothing.
    const queue::WorkQueue::Lock::Guard senders(vi.send.work.post_lock());
    const queue::WorkQueue::Lock::Guard receivers(vi.receive.work.post_lock());
    if (!vi.send.work.empty() || !vi.receive.work.empty()) return Status::error_resource;
    shared_receives_.attach(vi, nullptr);
    vis_.close(vi);
    News::forget(vi);
    vi.attach.reset();
    // What it asked for and was told is not the next one's in its place.
    vi.peer = vi.wants_credits = false;
    vi.user_data.store(nullptr, std::memory_order_relaxed);
    vi.own_data.reset();
    vi.remote_data.reset();
    vi.send.work.reset();
    vi.receive.work.reset();
    vi.send_use = vi.receive_use = {};
    counters_.subtract(Counter::vis_open);
    news().progressed();
    return Status::success;
}

namespace {

/// May a VI with that tag use what the posted receives name (VIPL 4.7)?
bool may_use_posted(const memory::MemoryTable& memory, memory::ProtectionTag tag,
                    queue::WorkQueue& work) {
    if (tag == memory::no_tag) return true;
    for (queue::Cursor at = work.oldest(); at.position() != work.posted(); at.pass()) {
        const queue::WorkEntry& entry = at.cell();
        if ((entry.status & queue::status::error_mask) != 0) continue;  // uses nothing
        if (!memory.look(entry.handle).serves(tag)) return false;
        for (queue::SegmentWalk walk(at); !walk.done();) {
            const queue::Segment& segment = walk.next();
            if (segment.length != 0 && !memory.look(segment.handle).serves(tag)) return false;
        }
    }
    return true;
}

}  // namespace

Status Engine::set_attributes(Vi& vi, const ViAttributes& attributes) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    if (vi.shared != nullptr && attributes.tag != vi.attributes.tag) return Status::invalid_ptag;
    const queue::WorkQueue::Lock::Guard senders(vi.send.work.post_lock());
    const queue::WorkQueue::Lock::Guard receivers(vi.receive.work.post_lock());
    // What is posted was checked against the old tag. Sends of an idle VI touch nothing any more.
    if (attributes.tag != vi.attributes.tag &&
        !may_use_posted(memory_, attributes.tag, vi.receive.work))
        return Status::error_resource;
    vi.attributes = attributes;
    return Status::success;
}

std::uint32_t Engine::vis_with_tag(memory::ProtectionTag tag) const {
    std::uint32_t count = shared_receives_.with_tag(tag);
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        const Vi& vi = vis_[index];
        if (ViTable::exists(vi) && vi.attributes.tag == tag) ++count;
    }
    return count;
}

bool Engine::is_bound(const queue::CompletionQueue& queue) const {
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        const Vi& vi = vis_[index];
        if (ViTable::exists(vi) &&
            (vi.send.completions == &queue || vi.receive.completions == &queue))
            return true;
    }
    return false;
}

bool Engine::uses_region(memory::MemoryHandle handle) {
    const bool suspended = !memory_.live(handle);
    bool fenced = false;
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        Vi& vi = vis_[index];
        if (!ViTable::exists(vi)) continue;
        if (suspended) {  // a post that found it is there now
            vi.send.work.wait_for_posters(fenced);
            vi.receive.work.wait_for_posters(fenced);
        }
        if (vi.send_use.uses(vi.send.work, handle, true, news().progress(), looked_at_) ||
            vi.receive_use.uses(vi.receive.work, handle, false, news().progress(), looked_at_))
            return true;
    }
    return shared_receives_.uses(handle, suspended, fenced, looked_at_);
}

// Paths -------------------------------------------------------------------------------------------

void Engine::on_path_up(PathId id, std::uint32_t payload_max, const HostAddress& peer,
                        bool retransmits) {
    paths_.begin(id, payload_max, peer, retransmits);
}

void Engine::on_path_changed(PathId id, std::uint32_t payload_max) {
    VIA_ASSERT(paths_.is_up(id) && payload_max != 0);
    paths_[id].payload_max = payload_max;
}

void Engine::on_path_down(PathId id) {
    if (!paths_.is_up(id)) return;
    Path& path = paths_[id];
    path.up = false;
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        Vi& vi = vis_[index];
        if (vi.path != id) continue;
        if (vi.state_now() == ViState::connected) connections_.lose(vi);
        if (vi.state_now() == ViState::connect_pending)
            connecting_.not_found(vi, Status::not_reachable);
    }
    requests_.withdraw_all(id);
    paths_.end(path);
    news().progressed();
}

void Engine::disconnect_all() {
    for (std::uint32_t index = 0; index < vis_.made(); ++index)
        if (vis_[index].state_now() != ViState::idle) connecting_.disconnect(vis_[index]);
    requests_.unlisten_all();
}

// What comes --------------------------------------------------------------------------------------

namespace {

bool is_of_meeting(wire::FrameKind kind) {
    return kind <= wire::FrameKind::disconnect || kind == wire::FrameKind::peer_request;
}

}  // namespace

void Engine::on_doorbell(Vi& vi) {
    switch (vi.state_now()) {
        case ViState::connected:
            if (vi.send.work.has_current()) paths_.activate(vi);
            if (vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed)
                connections_.complete_faulty_receives(vi);
            if (vi.credits_agreed.load(std::memory_order_relaxed)) credits_.grant(vi);
            return;
        case ViState::idle:
        case ViState::connect_pending:
            completions_.flush_queue(vi, vi.send);
            connections_.complete_faulty_receives(vi);
            return;
        case ViState::error:
            completions_.flush(vi);
            return;
    }
}

FrameVerdict Engine::on_frame(PathId id, const ReceivedFrame& frame) {
    if (wire::is_whole_send(frame.header, frame.header_length)) {
        const std::uint32_t length =
            take_common(id, frame.header, frame.header_length, frame.payload, frame.payload_length);
        if (length != not_common) {
            count_received(1, length);
            return FrameVerdict::taken;
        }
    }
    if (wire::is_inner(frame.header, frame.header_length) && inbound_.take_inner(id, frame))
        return FrameVerdict::taken;
    if (frame.count != 1) return take_singly(id, frame);
    wire::Header header;
    const wire::ParseError error = wire::parse(frame.header, frame.header_length, header);
    if (error != wire::ParseError::none) return refusals_.hostile(wire::to_string(error));
    const std::size_t header_length = wire::header_length(header.flags);
    const std::byte* payload = frame.payload;
    std::size_t length = frame.payload_length;
    if (payload == nullptr) {
        payload = frame.header + header_length;
        length = frame.header_length - header_length;
    } else if (frame.header_length != header_length) {
        return refusals_.hostile("a frame with payload in two places");
    }
    if (!paths_.is_up(id)) return FrameVerdict::stale;
    if (header.kind == wire::FrameKind::skip) return inbound_.on_skip(id, header);
    Path& path = paths_[id];
    if (Paths::is_flooded(path))
        return refusals_.hostile("it asks without end and reads no answer");
    if (is_of_meeting(header.kind)) return take_of_meeting(path, header, payload, length);
    Vi* vi = vis_.connected(id, header.vi);
    if (vi == nullptr || (vi->placing.given_up && header.kind != wire::FrameKind::nak))
        return FrameVerdict::stale;
    switch (header.kind) {
        case wire::FrameKind::send:
        case wire::FrameKind::rdma_write:
            return inbound_.on_message(*vi, header, payload, length);
        case wire::FrameKind::read_request:
            return inbound_.on_read_request(*vi, header, length);
        case wire::FrameKind::read_reply:
            return inbound_.on_read_reply(*vi, header, payload, length);
        case wire::FrameKind::ack:
            return outbound_.on_ack(*vi, header);
        case wire::FrameKind::credit:
            if (credits_.take(*vi, header)) return FrameVerdict::taken;
            return connections_.break_rule(*vi, header, "credits that make no sense");
        case wire::FrameKind::attach_request:
            if (segments_.on_request(*vi, header, length)) return FrameVerdict::taken;
            return connections_.break_rule(*vi, header,
                                           "a question for a segment that makes no sense");
        case wire::FrameKind::attach_refuse:
            return segments_.on_refuse(*vi, header);
        case wire::FrameKind::pulled:
            return outbound_.on_pulled(*vi, header);
        case wire::FrameKind::compare_swap:
        case wire::FrameKind::fetch_add:
            return inbound_.on_atomic(*vi, header, payload, length);
        default:
            return outbound_.on_nak(*vi, header);
    }
}

/// Of meeting and parting: what it has us answer is counted until the peer took it.
FrameVerdict Engine::take_of_meeting(Path& path, const wire::Header& header,
                                     const std::byte* payload, std::size_t length) {
    if (!paths_.may_have_answers(path))
        return refusals_.hostile("it asks without end and takes no answer");
    const std::size_t before = path.notices.size();
    const FrameVerdict verdict = act_on(path, header, payload, length);
    if (path.notices.size() > before) paths_.answer_came(path);  // by one
    return verdict;
}

FrameVerdict Engine::act_on(Path& path, const wire::Header& header, const std::byte* payload,
                            std::size_t length) {
    switch (header.kind) {
        case wire::FrameKind::request:
            return requests_.on_request(path, header, payload, length);
        case wire::FrameKind::accept:
            return connecting_.on_accept(path, header, payload, length);
        case wire::FrameKind::refuse:
            return connecting_.on_refuse(path, header, payload, length);
        case wire::FrameKind::peer_request:
            return connecting_.on_peer_request(path, header, payload, length);
        case wire::FrameKind::withdraw:
            return requests_.on_withdraw(path, header);
        default:
            return outbound_.on_disconnect(path, header);
    }
}

/// Several frames one by one, as if they had come so.
FrameVerdict Engine::take_singly(PathId id, const ReceivedFrame& frame) {
    std::byte header[wire::header_length_remote];
    if (!wire::is_inner(frame.header, frame.header_length) || frame.header_length > sizeof header ||
        frame.payload == nullptr)
        return refusals_.hostile("several frames at once that are no pieces of a message");
    FrameVerdict verdict = FrameVerdict::taken;
    std::memcpy(header, frame.header, frame.header_length);
    for (std::uint32_t n = 0; n < frame.count && verdict != FrameVerdict::hostile; ++n) {
        const auto further = static_cast<std::uint32_t>(
            mutated(Mutation::take_singly_in_one_place) ? 0 : n * frame.payload_length);
        wire::put_offset(header, wire::offset_of(frame.header) + further);
        const FrameVerdict one =
            on_frame(id, {header, frame.header_length, frame.payload_of(n), frame.payload_length});
        verdict = std::max(verdict, one);
    }
    return verdict;
}

}  // namespace via::engine
