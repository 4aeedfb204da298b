// What is to be posted: receives, sends and RDMA, sound or to the wrong place.
#include <algorithm>

#include "sim/workload.hpp"

namespace via::sim {

namespace control = queue::control;

namespace {

std::uint16_t control_bits(const Work& work) {
    const std::uint16_t operation = work.kind == WorkKind::rdma_write  ? control::rdma_write
                                    : work.kind == WorkKind::rdma_read ? control::rdma_read
                                                                       : control::send_receive;
    return static_cast<std::uint16_t>(operation | (work.immediate ? control::immediate : 0));
}

/// Bytes that name their message.
std::vector<std::byte> content(const Work& work, std::uint32_t length) {
    Random random(Random(work.number).next());
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    return bytes;
}

std::uint32_t draw_length(Random& random, std::uint32_t length_max) {
    if (random.chance(30)) return static_cast<std::uint32_t>(random.below(17)) % (length_max + 1);
    return static_cast<std::uint32_t>(random.below(length_max + 1ULL));
}

}  // namespace

/// One, or several in one call.
void Workload::post_some(Vi& vi, bool receive) {
    Random& random = vi.node->random;
    const auto several = parameters_.together_max == 1 || random.chance(40)
                             ? 1
                             : random.between(2, parameters_.together_max);
    std::vector<Draft> drafts;
    for (std::uint64_t n = 0; n < several; ++n)
        if (!(receive ? draft_receive(vi, drafts) : draft_send(vi, drafts))) break;
    if (!drafts.empty()) post(drafts);
}

/// False: it posts something else, or nothing.
bool Workload::draft_receive(Vi& vi, std::vector<Draft>& drafts) {
    Random& random = vi.node->random;
    if (drafts.empty() && random.chance(parameters_.fault_percent) && random.chance(30)) {
        post_nonsense(vi);
        return false;
    }
    if (vi.connection == nullptr && vi.receive.works.size() + drafts.size() >= 12 &&
        random.chance(95))
        return false;
    Work& work = model_.add_work(vi, WorkKind::receive);
    // Large enough for anything, but for some.
    const bool small = random.chance(parameters_.fault_percent);
    const std::uint32_t length =
        small ? draw_length(random, vi.attributes.transfer_length_max)
              : vi.attributes.transfer_length_max + static_cast<std::uint32_t>(random.below(64));
    if (small) {
        vi.trouble = true;
        if (vi.connection != nullptr) vi.connection->trouble = true;
    }
    if (!places_.give_pieces(work, length) || !places_.give_descriptor(work)) {
        places_.give_back(work);
        return false;
    }
    for (const Piece& piece : work.pieces) {
        const auto there = vi.node->arena.bytes(piece.offset, piece.length);
        work.bytes.insert(work.bytes.end(), there.begin(), there.end());
    }
    queue::ControlSegment segment{};
    segment.length = static_cast<std::uint32_t>(random.next());  // no limit (VIPL 4.10)
    segment.immediate_data = 0xDEAD;
    if (random.chance(20)) segment.control = control::immediate;  // ignored (VIPL 4.9)
    const bool faulty = random.chance(parameters_.fault_percent / 2);
    drafts.push_back({&work, segment, {}, faulty ? 1U : 0U});
    return true;
}

/// How many more messages find a receive of the peer's.
std::size_t Workload::receives_left(const Vi& vi) const {
    const Connection& connection = *vi.connection;
    const int side = vi.side;
    // What is lost never comes, and what finds no receive is dropped.
    const bool may_vanish = medium_.loses() && !vi.vi->reliable();
    const Vi& there = *connection.ends[1 - side];
    const auto waiting = std::count_if(there.receive.works.begin(), there.receive.works.end(),
                                       [](const Work* work) { return !work->completed; });
    const auto coming = std::count_if(
        connection.sent[side].begin(), connection.sent[side].end(),
        [&](const Work* work) { return !work->delivered && !(may_vanish && work->completed); });
    return waiting > coming ? static_cast<std::size_t>(waiting - coming) : 0;
}

/// The same of a send.
bool Workload::draft_send(Vi& vi, std::vector<Draft>& drafts) {
    Random& random = vi.node->random;
    if (drafts.empty() && random.chance(parameters_.fault_percent) && random.chance(30)) {
        post_nonsense(vi);
        return false;
    }
    if (drafts.empty() && parameters_.atomic_percent != 0 &&
        random.chance(parameters_.atomic_percent)) {
        post_atomic(vi);
        return false;
    }
    if (vi.connection == nullptr && random.chance(95)) return false;
    const auto drawn = vi.connection == nullptr ? 0 : random.below(100);
    const WorkKind kind = drawn < 55   ? WorkKind::send
                          : drawn < 85 ? WorkKind::rdma_write
                          : vi.vi->reliable() || random.chance(parameters_.fault_percent)
                              ? WorkKind::rdma_read
                              : WorkKind::send;
    Work& work = model_.add_work(vi, kind);
    work.connection = vi.connection;
    work.side = vi.side;
    work.immediate = kind != WorkKind::rdma_read && random.chance(40);
    // A message that finds no receive ends a reliable connection: not too often. With credits it
    // waits.
    const auto before = static_cast<std::size_t>(
        std::count_if(drafts.begin(), drafts.end(),
                      [](const Draft& draft) { return draft.work->consumes_receive(); }));
    if (work.consumes_receive() && work.connection != nullptr && receives_left(vi) <= before) {
        if (vi.connection->has_credits()) {
            if (random.chance(70)) return false;
        } else if (vi.connection->ends[1 - vi.side]->takes_shared && random.chance(70)) {
            vi.connection->trouble = true;  // other VIs may have the receive
        } else if (random.chance(parameters_.fault_percent)) {
            vi.connection->trouble = true;
        } else {
            return false;
        }
    }
    const std::uint32_t length = draw_length(random, vi.attributes.transfer_length_max);
    if (!places_.give_pieces(work, length) || !places_.give_descriptor(work)) {
        places_.give_back(work);
        return false;
    }
    work.bytes = content(work, length);
    const std::uint32_t fault = random.chance(parameters_.fault_percent) ? 1 : 0;
    queue::Segment remote{};
    if (kind != WorkKind::send && !aim(work, fault != 0, remote)) {
        places_.give_back(work);
        return false;
    }
    if (kind != WorkKind::rdma_read) {
        std::uint64_t at = 0;
        for (const Piece& piece : work.pieces) {
            vi.node->arena.write(piece.offset, std::span(work.bytes).subspan(at, piece.length));
            at += piece.length;
        }
    }
    queue::ControlSegment segment{};
    segment.control = control_bits(work);
    work.fenced = random.chance(10);
    if (work.fenced) segment.control |= control::queue_fence;
    segment.length = length;
    segment.immediate_data = work.immediate ? work.number : 0xBEEF;
    drafts.push_back({&work, segment, {}, fault});
    if (kind != WorkKind::send) drafts.back().remote = remote;
    return true;
}

/// Where an RDMA operation goes. False: nowhere.
bool Workload::aim(Work& work, bool faulty, queue::Segment& remote) {
    Vi& vi = *work.vi;
    // A VI that allows no RDMA at all is tried out more often.
    const bool wrong =
        vi.node->random.chance(parameters_.fault_percent * (places_.is_forbidden(work) ? 5 : 1));
    if (wrong && vi.connection != nullptr) vi.connection->trouble = true;
    // Without room for it, or where it may not go: that is tried on purpose only.
    if (faulty) {
        remote = {0, Places::wrong_handle, 0};
        return true;
    }
    return wrong ? places_.give_wrong_target(work, remote)
                 : places_.give_target(work, static_cast<std::uint32_t>(work.bytes.size()), remote);
}

}  // namespace via::sim
