// From frames to memory and completions. The checks stand in the specification's order: version
// and kind (wire), VI, sequence, protection, length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/counters.hpp"
#include "base/list.hpp"
#include "engine/completions.hpp"
#include "engine/connections.hpp"
#include "engine/credits.hpp"
#include "engine/frames.hpp"
#include "engine/paths.hpp"
#include "engine/shared_receives.hpp"
#include "engine/translations.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"
#include "memory/table.hpp"

namespace via::engine {

/// Owns what becomes of peers' messages: where each is placed, and which of them are pulled.
class Inbound {
public:
    Inbound(const memory::MemoryTable& memory, Counters& counters, const Translations& translations,
            const ViTable& vis, Paths& paths, Completions& completions, SharedReceives& shared,
            Credits& credits, Connections& connections)
        : memory_(memory),
          counters_(counters),
          translations_(translations),
          vis_(vis),
          paths_(paths),
          completions_(completions),
          shared_(shared),
          credits_(credits),
          connections_(connections) {}

    /// The next frames of a message that is being placed, or of an answer, neither first nor last.
    /// False: they are none, or not all is well with them, and on_message() or on_read_reply() says
    /// what.
    bool take_inner(PathId path, const ReceivedFrame& frame);
    FrameVerdict on_message(Vi& vi, const wire::Header& header, const std::byte* payload,
                            std::size_t length);
    FrameVerdict on_read_request(Vi& vi, const wire::Header& header, std::size_t length);
    FrameVerdict on_read_reply(Vi& vi, const wire::Header& header, const std::byte* payload,
                               std::size_t length);
    [[gnu::noinline]] FrameVerdict on_atomic(Vi& vi, const wire::Header& header,
                                             const std::byte* payload, std::size_t length);
    /// In place of a lost frame whose bytes are gone, with the connection it was of.
    FrameVerdict on_skip(PathId path, const wire::Header& header);

    // Messages pulled from the sender's memory (pull.cpp) ----------------------------------------
    /// A VI with a message to pull, or nullptr; the next one each time.
    Vi* next_pull();
    bool has_pulls() { return !pulls_.empty(); }
    /// What to copy now, at most `bytes_max`. False: the message was refused, nothing is to be
    /// done.
    bool next_piece(Vi& vi, std::uint64_t bytes_max, PullPiece& piece);
    void piece_ended(Vi& vi, const PullPiece& piece, Status status);

private:
    bool take_inner_write(Vi& vi, const ReceivedFrame& frame);
    bool take_inner_reply(Vi& vi, const ReceivedFrame& frame);
    static void place_inner(std::byte* to, const std::byte* from, std::size_t length);
    static void place_run(const ReceivedFrame& frame, queue::ByteWalk& scatter);
    FrameVerdict on_placed(Vi& vi, const wire::Header& header, std::size_t length);
    static bool fits_in(Vi& vi, const wire::Header& header);
    static void give_up_placing(Vi& vi);
    FrameVerdict check_sequence(Vi& vi, const wire::Header& header, std::size_t length);
    std::uint32_t why_too_short(const Vi& vi, const queue::Cursor& receive, std::uint32_t length);
    bool has_receive(Vi& vi);
    bool match_receive(Vi& vi);
    bool check_target(Vi& vi, const wire::Header& header, std::size_t length);
    void place_payload(Vi& vi, const wire::Header& header, const std::byte* payload,
                       std::size_t length);
    void finish_message(Vi& vi, const wire::Header& header);
    void refuse_receive(Vi& vi, const wire::Header& header);
    void refuse_message(Vi& vi, const wire::Header& header, wire::NakCode code, ErrorCode event);
    bool may_change(Vi& vi, const wire::Header& header);
    FrameVerdict refuse_atomic(Vi& vi, const wire::Header& header);
    static bool find_read(Vi& vi, queue::Cursor& at);

    // pull.cpp
    static bool read_pull(const wire::Header& header, const std::byte* payload, std::size_t length,
                          Pull& pull);
    static void give_back(Pull& pull, std::uint64_t bytes, PullPiece& piece);
    void end_pull(Vi& vi, bool pulled);

    const memory::MemoryTable& memory_;
    Counters& counters_;
    const Translations& translations_;
    const ViTable& vis_;
    Paths& paths_;
    Completions& completions_;
    SharedReceives& shared_;
    Credits& credits_;
    Connections& connections_;
    List<Vi, PullLink> pulls_;
};

}  // namespace via::engine
