// Frames out of packets: each is handed up once and in its turn, and what comes early is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/numbered_queue.hpp"
#include "base/time.hpp"
#include "device/datagram/early_frames.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/polls.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/recovery.hpp"
#include "device/datagram/statistics.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// Owns the packet that is being read, and the frames that are to be handed up.
class Receiving {
public:
    static constexpr std::size_t burst_max = 64;  ///< packets that one look finds

    Receiving(Port& port, Paths& paths, Outbox& outbox, Recovery& recovery, const Polls& polls,
              Totals& totals);
    ~Receiving();
    Receiving(const Receiving&) = delete;
    Receiving& operator=(const Receiving&) = delete;

    /// All chunks of a packet of `path`, before anything of them is taken. False: they are not what
    /// anybody sends.
    bool read(std::span<const std::byte> packet);
    /// Takes what read() found, but for ack(). False: it was taken before.
    bool take(Path& path, const Incoming& in, Time now);
    /// The acknowledgement in it; nullptr: it has none.
    const wire::Ack* ack() const { return has_ack_ ? &chunk_.ack : nullptr; }
    /// The fast path (fast_path.cpp): takes the common packet burst[first], and those behind it
    /// that go on with its message. How many; 0: nothing was done, it goes the general way.
    std::size_t take_common(std::span<const Incoming> burst, std::size_t first, Time now);

    bool has_ready() const { return !ready_.empty(); }
    std::size_t hand_up(std::span<Frame> frames);
    /// Those of the last hand_up() are given back.
    void release();
    /// They were.
    bool lends() const { return !lent_kept_.empty(); }
    /// What came by that path is not to be handed up any more.
    void drop(Path& path);

private:
    /// A frame to be handed up, or a run of them, of which it is the first.
    struct Ready {
        PathId path = 0;
        FrameOrder::Held frame;
        std::uint32_t count;
        const std::byte* const* payloads;  ///< when there are several
    };
    struct FrameChunk {
        std::span<const std::byte> bytes;
        std::uint32_t number;
        bool reliable;
    };
    struct FramePart {
        std::uint32_t number = 0;
        std::uint32_t at = 0;
        std::uint32_t whole = 0;
        std::span<const std::byte> bytes;  ///< none: there is no part
    };

    bool keep_early(Path& path, const Incoming& in);
    bool has_place_for(Path& path, std::uint32_t frame);
    void drop_early();
    bool take_part(Path& path);
    void sort_frames(const Path& path);
    void place_frames(Path& path, const Incoming& in, bool whole);
    void make_ready(Path& path, const FrameOrder::Held& frame);
    void take_next(Path& path, const FrameOrder::Held& frame);
    void note_arrival(Path& path, std::uint32_t length, bool more, bool gap, Time now);
    std::uint32_t take_run(Path& path, std::span<const Incoming> burst, std::size_t first);
    static void deliver(const Ready& ready, Frame& frame);
    static void part(Ready& ready, Frame& frame, std::uint32_t count);

    Port& port_;
    Paths& paths_;
    Shares& shares_;
    Outbox& outbox_;
    Recovery& recovery_;
    const Polls& polls_;
    Totals& totals_;

    // Of the packet that is being read
    std::vector<FrameChunk> frames_;
    FramePart part_;
    EarlyFrames early_;  ///< of its frames those that are kept
    wire::Chunk chunk_;  ///< its acknowledgement is the packet's, where that has one
    bool has_ack_ = false;
    bool wants_ack_ = false;

    NumberedQueue<Ready> ready_;
    std::array<const std::byte*, burst_max> payloads_;  ///< of frames of runs; as in the burst
    std::vector<FrameOrder::Held> lent_kept_;           ///< kept frames that were handed up
};

}  // namespace via::device::datagram
