// From posted descriptors to frames. Everything that is sent is made here: acknowledgements and
// answers too, which others only ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counters.hpp"
#include "base/limits.hpp"
#include "engine/completions.hpp"
#include "engine/connections.hpp"
#include "engine/credits.hpp"
#include "engine/frames.hpp"
#include "engine/paths.hpp"
#include "engine/segments.hpp"
#include "engine/translations.hpp"
#include "engine/under_way.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"
#include "memory/table.hpp"

namespace via::engine {

/// Owns what the next frame of a path is, and which messages are done when it was published.
class Outbound {
public:
    Outbound(const NicLimits& limits, const memory::MemoryTable& memory, Counters& counters,
             const Translations& translations, const ViTable& vis, Paths& paths,
             Completions& completions, Segments& segments, Credits& credits,
             Connections& connections);

    /// What the next frame of `path` needs; false when nothing is to be sent now.
    bool next_frame(PathId path, FrameShape& shape);
    /// Fills that frame. next_frame() said true just before.
    void emit(PathId path, const FrameRoom& room);
    /// Bytes of the message that next_frame() said may go to the peer's memory without frames.
    bool goes_direct() const { return direct_ != nullptr; }
    /// Carries out the message for which next_frame() said just before that no frame is needed.
    void carry_out(PathId path);
    /// The message of which next_frame() just said that it is pullable shall be pulled
    /// (pull.cpp).
    void let_pull(PathId path, FrameShape& shape);
    /// Where proofs begin: no other process's are likely to be the same.
    void begin_proofs(std::uint64_t secret) { proof_ = secret; }
    /// The frames emitted so far were published: completes what is done by that.
    void on_transmitted();
    /// What came of a frame that must arrive: the peer's NIC has it, or it is to be emitted again
    /// (recovery.cpp).
    void on_reaped(PathId path, std::uint32_t number, bool lost);

    // What the peer answers -----------------------------------------------------------------------
    FrameVerdict on_ack(Vi& vi, const wire::Header& header);
    FrameVerdict on_nak(Vi& vi, const wire::Header& header);
    FrameVerdict on_pulled(Vi& vi, const wire::Header& header);
    FrameVerdict on_disconnect(const Path& path, const wire::Header& header);
    /// The peer has placed what it was sent before that message.
    static void placed_below(Vi& vi, std::uint32_t message);

private:
    enum class Piece : std::uint8_t {
        notice,
        ack,
        credit,
        attach,
        read_reply,
        message,
        pull,
        again,
    };

    static bool has_to_send(const Vi& vi);
    static bool is_alone(Vi& vi);
    bool next_of_vi(Vi& vi, const Path& path, FrameShape& shape);
    static std::uint32_t length_of_write(Vi& vi, const Path& path);
    bool next_of_message(Vi& vi, const Path& path, FrameShape& shape);
    static bool may_run(const Vi& vi, const Path& path);
    std::uint32_t frames_of_message(Vi& vi, const Path& path) const;
    void next_of_reply(Vi& vi, const Path& path, bool alone, FrameShape& shape);
    [[gnu::noinline]] bool reach_next(Vi& vi, FrameShape& shape);
    bool message_may_start(Vi& vi);
    void fail_current_send(Vi& vi, std::uint32_t fault);
    void emit_next(Path& path, const FrameRoom& room);
    static void fill(const FrameRoom& room, queue::ByteWalk& walk, std::uint32_t payload_length);
    void emit_notice(Path& path, const FrameRoom& room);
    static void emit_ack(Vi& vi, const FrameRoom& room);
    void emit_read_reply(Vi& vi, const FrameRoom& room);
    [[gnu::noinline]] void emit_refusal(Vi& vi, wire::Header& header, ErrorCode event,
                                        const FrameRoom& room);
    static void answered(Vi& vi);
    void emit_message(Vi& vi, const FrameRoom& room);
    void copy_imported(Vi& vi, const queue::WorkEntry& entry);
    static void mark_acknowledged(Vi& vi, std::uint32_t below);

    // recovery.cpp
    void emit_recorded(Path& path, const FrameRoom& room);
    void emit_run(Path& path, Vi& vi, const FrameRoom& room);
    void note_source(Path& path, FrameRecord& record);
    bool next_lost(Path& path, FrameShape& shape);
    static void skip(FrameRecord& record, bool over);
    bool is_refused(const FrameRecord& record);
    void refuse(FrameRecord& record);
    bool can_repeat(const FrameRecord& record);
    static queue::ByteWalk walk_of(const FrameRecord& record);
    void emit_again(Path& path, const FrameRoom& room);
    void on_delivered(const FrameRecord& record);

    // pull.cpp
    void emit_pull(Vi& vi, const FrameRoom& room);

    const NicLimits& limits_;
    const memory::MemoryTable& memory_;
    Counters& counters_;
    const Translations& translations_;
    const ViTable& vis_;
    Paths& paths_;
    Completions& completions_;
    Segments& segments_;
    Credits& credits_;
    Connections& connections_;
    std::vector<Vi*> emitted_;    ///< VIs whose sends may complete once published
    Piece next_ = Piece::notice;  ///< what next_frame() found, for emit()
    std::uint32_t next_length_ = 0;
    bool next_allowed_ = false;    ///< the memory that the next answer to a read comes from
    std::byte* direct_ = nullptr;  ///< where the current message's bytes go without frames
    std::uint64_t proof_ = 0;      ///< no message's was the same
};

}  // namespace via::engine
