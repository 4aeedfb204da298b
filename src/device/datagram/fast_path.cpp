// The common packet, there and back: in order, with one frame and at most an acknowledgement of one
// range; on its way out alone in its burst. A few looks tell; whatever they do not find so goes the
// general way (receiving.cpp, sending.cpp), which these two only shorten. What the peer or the
// program need not wait for comes last, or with the next look: settle().
#include <utility>

#include "device/datagram/mutation.hpp"
#include "device/datagram/receiving.hpp"
#include "device/datagram/sending.hpp"
#include "wire/frame.hpp"

namespace via::device::datagram {

namespace {

constexpr std::size_t frame_at = wire::data_header_length + wire::frame_chunk_overhead;

/// Its frame is handed up as a copy: none of a run.
bool is_short(const Incoming& in) { return in.length <= frame_at + Frame::inline_max; }

}  // namespace

std::size_t Receiving::take_common(std::span<const Incoming> burst, std::size_t first, Time now) {
    const Incoming& in = burst[first];
    const std::span<const std::byte> packet{in.bytes, in.length};
    wire::CommonPacket common;
    wire::Ack& ack = chunk_.ack;
    if (mutating() || !wire::read_common(packet, common, ack)) return 0;
    Path* const path = paths_.by_ours(common.connection);
    if (path == nullptr || path->stage != Path::Stage::up || !(path->peer == in.from) ||
        !path->received.is_next(common.number) ||
        (!path->first->order.is_next(common.frame_number) &&
         !mutated(Mutation::take_common_out_of_order)) ||
        (ack.count != 0 && !path->sent.plausible(ack)) ||
        !(in.authentic || wire::has_checksum(packet)))
        return 0;
    path->received.add_next();
    path->largest_came = polls_.came();
    path->heard(now);
    ++path->counts.packets_received;
    path->replaced = false;
    Path& first_rail = *path->first;
    make_ready(first_rail,
               {common.frame.data(), static_cast<std::uint32_t>(common.frame.size()), in.buffer});
    first_rail.order.advance();
    note_arrival(*path, in.length, wire::goes_on(common.frame.data(), common.frame.size()), false,
                 now);
    if (ack.count != 0) recovery_.note_ack(*path, ack, now);
    recovery_.settle_later(*path);
    return is_short(in) ? 1 : 1 + take_run(*path, burst, first);
}

/// The packets of `path` behind burst[first], as far as its message goes on in them: they are
/// handed up as one. Returns how many there are.
std::uint32_t Receiving::take_run(Path& path, std::span<const Incoming> burst, std::size_t first) {
    const auto bytes_of = [](const Incoming& in) { return std::span(in.bytes, in.length); };
    const Incoming& begin = burst[first];
    const std::byte* const frame = begin.bytes + frame_at;
    if (!wire::is_inner(frame, begin.length - frame_at)) return 0;
    const std::uint32_t payload_at =
        frame_at + wire::header_length(std::to_integer<std::uint8_t>(frame[1]));
    std::size_t n = first;
    payloads_[n] = begin.bytes + payload_at;
    while (n + 1 < burst.size() && burst[n + 1].from == begin.from &&
           wire::follows(bytes_of(burst[n]), bytes_of(burst[n + 1])) &&
           (burst[n + 1].authentic || wire::has_checksum(bytes_of(burst[n + 1])))) {
        ++n;
        payloads_[n] = burst[n].bytes + payload_at;
    }
    const auto more = static_cast<std::uint32_t>(n - first);
    if (more == 0) return 0;
    path.counts.packets_received += more;
    path.received.add_next(more);
    if (!mutated(Mutation::take_run_uncounted)) path.first->order.advance(more);
    path.acks.more_arrived(more * room_of(begin.length));
    path.acks.on_room(port_.receive_room());
    Ready& ready = ready_[ready_.end() - 1];
    ready.count = 1 + more;
    ready.payloads = &payloads_[first];
    return more;
}

/// All that is staged is one packet: it leaves, then it is recorded. False: nothing was done.
bool Sending::send_lone(Time now) {
    if (blocked_ || staging_.end() - staging_.begin() != 1) return false;
    StagedPacket& packet = staging_[staging_.begin()];
    if (packet.sealed || packet.dropped || packet.transmitted != packet.length || packet.count != 1)
        return false;
    Path& path = paths_[packet.path];
    seal(packet, now);
    const Outgoing out{packet.to, staging_.bytes(packet), packet.length, false, false, packet.body};
    polls_.expect_news();  // an answer may come
    blocked_ = port_.send({&out, 1}) == 0;
    if (!mutated(Mutation::send_lone_unrecorded)) record(packet, now);
    if (blocked_) {
        staging_.take_in();
    } else {
        staging_.sent(1);
    }
    recovery_.settle_later(path);
    return true;
}

void Recovery::note_ack(Path& path, const wire::Ack& ack, Time now) {
    if (ack_noted_ || unsettled_ != &path) settle();  // of packets before it in the same burst
    unsettled_ = &path;
    ack_noted_ = may_have_reaped_ = true;
    noted_ack_.largest = ack.largest;
    noted_ack_.delay = ack.delay;
    noted_ack_.count = 1;
    noted_ack_.ranges[0] = ack.ranges[0];
    noted_ = moment_of(path, now);
}

void Recovery::settle_later(Path& path) {
    if (unsettled_ != &path) settle();
    unsettled_ = &path;
    if (polls_.is_asleep()) settle();  // who is asleep is so for the deadlines that we know
}

void Recovery::settle_now() {
    Path& path = *unsettled_;
    unsettled_ = nullptr;
    if (!std::exchange(ack_noted_, false) || !hear(path, noted_ack_, noted_))
        paths_.reschedule(path, polls_.at());
}

}  // namespace via::device::datagram
