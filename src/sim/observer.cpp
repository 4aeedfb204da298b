#include "sim/observer.hpp"

#include <algorithm>
#include <cstring>

namespace via::sim {

namespace status = queue::status;

namespace {

queue::ControlSegment control_of(const Work& work) {
    queue::ControlSegment control;
    std::memcpy(&control, work.vi->node->arena.at(work.descriptor.offset), sizeof control);
    return control;
}

std::uint64_t word_at(const Arena& arena, std::uint64_t offset) {
    std::uint64_t word = 0;
    std::memcpy(&word, arena.bytes(offset, word_length).data(), word_length);
    return word;
}

bool is_at(const Target& target, const Arena& arena) {
    const auto there = arena.bytes(target.offset, target.length);
    return std::equal(there.begin(), there.end(), target.work->bytes.begin(),
                      target.work->bytes.end());
}

}  // namespace

Opened Observer::open(Node& node, std::uint64_t begin, std::uint64_t length, bool remote,
                      bool atomic) {
    const Opened opened{model_.next_opening(), node.number, begin, length, remote, atomic};
    node.arena.open(begin, length);
    tell(opened);
    return opened;
}

void Observer::close(const Opened& opened) {
    model_.nodes[opened.node]->arena.close(opened.begin, opened.length);
    tell(Closed{opened.id});
}

void Observer::end_words(Node& node, const Region& region) {
    for (Word& word : node.words) {
        if (word.region != &region || !word.live) continue;
        look_at(node, word.offset, word_length);
        tell(WordEnded{word.number, word_at(node.arena, word.offset)});
        close(word.opened);
        word.region->blocks.give_back(word.block);
        word.live = false;
    }
}

void Observer::look(Node& node, Cause cause, const Vi* vi) {
    for (Vi* each : node.vis) join(*each);
    if (model_.shares) look_at_shared(node);
    look_at_memory(node);
    look_at_targets(node);
    if (node.shared != nullptr) look_at_shared_receives(node);
    for (Vi* each : node.vis) look_at_queue(each->receive);
    deliver_landed(nullptr, 0, ~WorkNumber{0});
    for (Vi* each : node.vis) look_at_reads(each->send);
    for (Vi* each : node.vis) look_at_queue(each->send);
    for (Vi* each : node.vis)
        look_at_state(*each, vi == nullptr || vi == each ? cause : Cause::turn);
    look_at_errors(node);
    drop_targets(node);
}

void Observer::withdraw(Work& work) {
    for (const Opened& opened : work.opened) close(opened);
    work.opened.clear();
}

void Observer::take_shared(Vi& vi, const void* descriptor) {
    Node& node = *vi.node;
    const auto found = node.by_descriptor.find(node.arena.offset_of(descriptor));
    if (found == node.by_descriptor.end() || node.shared == nullptr ||
        found->second->vi != node.shared->holder)
        return;
    Work& work = *found->second;
    if (!vi.takes_shared || vi.receive.works.size() >= node.shared->shape.quota)
        tell(Called{"a shared receive beyond the quota", Status::success, Status::error_resource});
    std::erase(node.shared->holder->receive.works, &work);
    work.vi = &vi;
    vi.receive.works.push_back(&work);
    node.shared->newest_taken = std::max(node.shared->newest_taken, work.number);
    tell(Posted{work.number, vi.number, true, status::operation_receive, 0, vi.state,
                vi.attributes.reliability});
}

/// Which VI took a receive its own queue tells: Done would, later. The oldest ones go first.
void Observer::look_at_shared_receives(Node& node) {
    for (Vi* vi : node.vis) {
        if (!vi->takes_shared) continue;
        const std::uint32_t posted = vi->vi->receive.work.posted();
        for (queue::Cursor& at = vi->next_receive; at.position() != posted; at.pass())
            take_shared(*vi, at.cell().descriptor);
    }
    SharedQueue& shared = *node.shared;
    const std::deque<Work*>& left = shared.holder->receive.works;
    if (!left.empty() && left.front()->number < shared.newest_taken)
        tell(Called{"the oldest shared receive", Status::not_done, Status::success});
    if (left.size() < shared.limit) {
        shared.limit = 0;
        shared.reached = true;
    }
}

/// A request that was accepted: from now on messages of that connection may arrive.
void Observer::join(Vi& vi) {
    const ViState now = vi.vi->state.load();
    if (vi.state != ViState::connect_pending ||
        (now != ViState::connected && now != ViState::error))
        return;
    joined_ = true;
    Connection* connection = model_.accepted(vi);
    if (connection == nullptr) {
        if (Connection* met = model_.met(vi)) {
            vi.connection = met;
            vi.side = 1;
            return;
        }
    }
    if (connection == nullptr || connection->joined[0])
        return tell(
            Called{"a connection that nobody accepted", Status::success, Status::invalid_state});
    connection->joined[0] = true;
    vi.connection = connection;
    vi.side = 0;
    ++tally_.connections;
}

/// What the node wrote straight to others' memory is there before its descriptors are done.
void Observer::look_at_shared(const Node& node) {
    for (const Vi* each : node.vis) look_at_reads(each->send);
    for (auto& other : model_.nodes) {
        const bool reached =
            std::any_of(other->targets.begin(), other->targets.end(), [&](const auto& target) {
                return target->work->vi->node == &node && target->region->shared;
            });
        if (!reached || other.get() == &node) continue;
        look_at_memory(*other);
        look_at_targets(*other);
        deliver_landed(nullptr, 0, ~WorkNumber{0});
    }
}

void Observer::look_at_memory(Node& node) {
    node.arena.look([&](std::uint64_t begin, std::uint64_t length) {
        tell(Changed{node.number, begin, length});
    });
}

void Observer::look_at(Node& node, std::uint64_t begin, std::uint64_t length) {
    node.arena.look_at(begin, length, [&](std::uint64_t at, std::uint64_t count) {
        tell(Changed{node.number, at, count});
    });
}

/// RDMA writes without immediate data announce themselves by their bytes alone.
void Observer::look_at_targets(Node& node) {
    landed_.clear();
    for (const auto& target : node.targets)
        if (!target->work->immediate && target->length != 0 && is_at(*target, node.arena))
            landed_.push_back(target.get());
    std::sort(landed_.begin(), landed_.end(),
              [](const Target* a, const Target* b) { return a->work->number < b->work->number; });
}

/// Tells of landed writes: of one connection those that were posted before a message that is about
/// to be told of (they have to be there), or of all connections.
void Observer::deliver_landed(const Connection* connection, int side, WorkNumber before) {
    std::erase_if(landed_, [&](Target* target) {
        Work& work = *target->work;
        if (connection != nullptr && (work.connection != connection || work.side != side))
            return false;
        if (work.number >= before) return false;
        Node& node = *target->vi->node;
        deliver(work, node.arena.bytes(target->offset, target->length),
                work.vi->shared.contains(target->region->handle));
        const auto found = std::find_if(node.targets.begin(), node.targets.end(),
                                        [&](const auto& each) { return each.get() == target; });
        close_target(node, static_cast<std::size_t>(found - node.targets.begin()));
        return true;
    });
}

void Observer::close_target(Node& node, std::size_t index) {
    const Target& target = *node.targets[index];
    close(target.opened);
    target.region->blocks.give_back(target.block);
    node.targets.erase(node.targets.begin() + static_cast<std::ptrdiff_t>(index));
}

/// May messages of the VI vanish, or parts of them?
bool Observer::may_lose(const Vi& vi) const {
    return medium_.loses() && vi.attributes.reliability == Reliability::unreliable;
}

/// Targets of connections that are over, or will never be, and of writes that are lost: a later
/// message was there before them.
void Observer::drop_targets(Node& node) {
    for (std::size_t n = 0; n < node.targets.size();) {
        const Target& target = *node.targets[n];
        const Connection& connection = *target.work->connection;
        const int there = 1 - target.work->side;
        const bool may_still_join = there == 0 && !connection.joined[0] &&
                                    target.vi->state == ViState::connect_pending &&
                                    model_.accepted(*target.vi) == &connection;
        const bool lost =
            may_lose(*target.vi) && target.work->number < connection.arrived[target.work->side];
        if (connection.left[there] || lost || (!connection.joined[there] && !may_still_join)) {
            close_target(node, n);
        } else {
            ++n;
        }
    }
}

void Observer::look_at_reads(const Queue& queue) {
    if (!medium_.loses() && !model_.shares) return;
    for (Work* work : queue.works) {
        if (work->completed || work->landed) continue;
        if (work->is_atomic()
                ? word_at(work->vi->node->arena, work->pieces.front().offset) == no_word
                : work->kind != WorkKind::rdma_read ||
                      gather(*work, work->bytes.size()) != work->bytes)
            continue;
        work->landed = true;
        tell(ReadLanded{work->number});
    }
}

void Observer::look_at_queue(Queue& queue) {
    for (Work* work : queue.works) {
        if (work->completed) continue;
        const queue::ControlSegment control = control_of(*work);
        if ((control.status & status::done) != 0) complete(*work, control.status);
    }
}

void Observer::complete(Work& work, std::uint32_t bits) {
    const std::uint32_t errors = bits & status::error_mask;
    if ((errors & status::flushed) != 0) {
        ++tally_.flushed;
    } else if (errors != 0) {
        ++tally_.errors;
    }
    if (work.kind == WorkKind::receive && errors == 0) receive(work, bits);
    if (work.kind == WorkKind::rdma_read && errors == 0) {
        ++tally_.reads;
        const std::vector<std::byte> found = gather(work, work.bytes.size());
        tell(Sent{work.number, ~ChannelNumber{0}, true, work.bytes});
        tell(Delivered{work.number, ~ChannelNumber{0}, found});
    }
    if (work.is_atomic() && errors == 0) {
        ++tally_.reads;
        work.word->guess = word_at(work.vi->node->arena, work.pieces.front().offset);
        tell(WordFound{work.number, work.word->guess});
    }
    const bool nothing_to_place = work.kind == WorkKind::rdma_write && work.bytes.empty();
    work.completed = true;
    tell(Completed{work.number, bits, work.delivered || nothing_to_place});
    for (const Opened& opened : work.opened) close(opened);
    work.opened.clear();
    if (work.kind == WorkKind::receive && (errors & status::flushed) == 0) look_at_rest(work, bits);
    if (work.read_from) {
        work.read_from->region->blocks.give_back(work.read_from->block);
        work.read_from.reset();
    }
}

std::vector<std::byte> Observer::gather(const Work& work, std::uint64_t length) const {
    std::vector<std::byte> bytes;
    bytes.reserve(length);
    for (const Piece& piece : work.pieces) {
        const auto here = std::min<std::uint64_t>(piece.length, length - bytes.size());
        const auto part = work.vi->node->arena.bytes(piece.offset, here);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
}

/// A receive completed well: which message was it?
void Observer::receive(const Work& receive, std::uint32_t bits) {
    Vi& vi = *receive.vi;
    if (vi.connection == nullptr)
        return tell(
            Called{"a receive on a VI without connection", Status::success, Status::invalid_state});
    const Connection& connection = *vi.connection;
    const int from = 1 - vi.side;
    const std::uint32_t length = control_of(receive).length;
    std::vector<std::byte> bytes;
    if ((bits & status::operation_mask) == status::operation_receive)
        bytes = gather(receive, length);
    Work* message = find_message(connection, from, bytes, receive, bits);
    if (message == nullptr)
        return tell(Delivered{~WorkNumber{0}, connection.channel_from(from), bytes});
    deliver_landed(&connection, from, message->number);
    if (message->kind == WorkKind::rdma_write) {
        // Its bytes stand in the target; the receive's own buffers must be as they were.
        for (std::size_t n = 0; n < vi.node->targets.size(); ++n) {
            const Target& target = *vi.node->targets[n];
            if (target.work != message) continue;
            const auto there = vi.node->arena.bytes(target.offset, target.length);
            bytes.assign(there.begin(), there.end());
            deliver(*message, bytes);
            return close_target(*vi.node, n);
        }
        // Its region went, with no bytes to place or after they were placed.
        bytes = message->bytes;
    }
    deliver(*message, bytes);
}

/// What was not part of the message is as it was. (Half of a message that was lost may have come to
/// the buffers before.)
void Observer::look_at_rest(const Work& receive, std::uint32_t bits) {
    if (may_lose(*receive.vi)) return;
    const bool placed = (bits & status::error_mask) == 0 &&
                        (bits & status::operation_mask) == status::operation_receive;
    std::uint64_t at = 0;
    const std::uint64_t message = placed ? control_of(receive).length : 0;
    const std::vector<std::byte> now = gather(receive, receive.bytes.size());
    for (const Piece& piece : receive.pieces)
        for (std::uint32_t n = 0; n < piece.length; ++n, ++at)
            if (at >= message && now[at] != receive.bytes[at])
                tell(Changed{receive.vi->node->number, piece.offset + n, 1});
}

/// By content, so that a message in the wrong place is known for what it is. Among equal ones the
/// one that should be next.
Work* Observer::find_message(const Connection& connection, int side,
                             const std::vector<std::byte>& bytes, const Work& receive,
                             std::uint32_t bits) {
    const bool write = (bits & status::operation_mask) == status::operation_remote_rdma_write;
    const bool immediate = (bits & status::immediate) != 0;
    const queue::ControlSegment control = control_of(receive);
    Work* next = nullptr;   // undelivered, behind all that were delivered
    Work* found = nullptr;  // the first of those that fits
    Work* other = nullptr;  // one that fits and was delivered or passed over
    for (Work* message : connection.sent[side]) {
        const bool fits =
            (message->kind == WorkKind::rdma_write) == write && message->immediate == immediate &&
            (!immediate || message->number == control.immediate_data) &&
            (write ? message->bytes.size() == control.length : message->bytes == bytes);
        // On an unreliable VI a message is passed over when a later one, or an RDMA write, arrived.
        if (message->delivered || message->number < connection.arrived[side]) {
            if (found != nullptr) other = found;
            next = found = nullptr;
            if (fits) other = message;
        } else {
            if (next == nullptr) next = message;
            if (found == nullptr && fits) found = message;
        }
    }
    return found != nullptr ? found : other != nullptr ? other : next;
}

void Observer::deliver(Work& message, std::span<const std::byte> bytes, bool early) {
    Connection& connection = *message.connection;
    tell(Delivered{message.number, connection.channel_from(message.side), bytes, early});
    message.delivered = true;
    if (!early)
        connection.arrived[message.side] =
            std::max(connection.arrived[message.side], message.number);
    ++tally_.messages;
    tally_.message_bytes += bytes.size();
}

void Observer::look_at_state(Vi& vi, Cause cause) {
    const ViState now = vi.vi->state.load();
    if (now == vi.state) return;
    tell(StateChanged{vi.number, vi.state, now, cause});
    if (vi.state == ViState::connect_pending && now == ViState::idle) {
        // How a request may end (VIPL 3, 4.20).
        const Status status = vi.vi->connect_status;
        const bool possible = cause == Cause::disconnect
                                  ? status == Status::invalid_state
                                  : status == Status::reject || status == Status::no_match ||
                                        status == Status::timeout ||
                                        status == Status::not_reachable;
        tell(Called{"a request at its end", status, possible ? status : Status::success});
    }
    vi.state = now;
    if (now == ViState::connected || now == ViState::connect_pending) return;
    if (vi.connection != nullptr) {
        Connection& connection = *vi.connection;
        const int side = vi.side;
        const Vi& there = *connection.ends[1 - side];
        const bool explained = connection.left[1 - side] || connection.trouble || vi.trouble ||
                               there.trouble || !connection.joined[1 - side] ||
                               medium_.may_give_up(*vi.node, *there.node);
        // Who did something wrong, or sent it to whom it does not fit, hears of that instead.
        if (now == ViState::error && !connection.trouble && !vi.trouble && !there.trouble)
            lost_.push_back(&vi);
        if (now == ViState::error && !explained)
            tell(Called{"a connection that broke without a cause", Status::error_resource,
                        Status::success});
        connection.left[side] = true;
        vi.connection = nullptr;
        vi.shared.clear();
    }
    if (now == ViState::error || cause == Cause::disconnect) vi.trouble = false;  // all flushed
}

void Observer::look_at_errors(Node& node) {
    for (const engine::ErrorEvent& error : node.errors) {
        if (error.code != engine::ErrorCode::connection_lost) continue;
        const auto found = std::find_if(node.vis.begin(), node.vis.end(), [&](const Vi* vi) {
            return vi->vi == error.vi && vi->generation == error.vi_generation;
        });
        if (found == node.vis.end()) continue;  // destroyed meanwhile
        ++tally_.lost;
        std::erase(lost_, *found);
        tell(Lost{(*found)->number});
    }
    node.errors.clear();
    if (!lost_.empty())
        tell(Called{"CONN_LOST of a connection that broke", Status::not_done, Status::success});
    lost_.clear();
}

}  // namespace via::sim
