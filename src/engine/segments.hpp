// Shared segments. A VI asks for a segment by the same handle and address, and with the same
// rights, as RDMA needs; from then on its RDMA to it is carried out by plain loads and stores, in
// the order of its other messages (outbound.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counters.hpp"
#include "base/status.hpp"
#include "engine/frames.hpp"
#include "engine/mutation.hpp"
#include "engine/news.hpp"
#include "engine/paths.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"
#include "memory/table.hpp"

namespace via::engine {

/// A peer asks for one of our segments; its VI has the right to.
struct AttachQuestion {
    Vi* vi = nullptr;
    std::uint32_t number = 0;   ///< of the VI, so that another connection is not taken for it
    std::uint32_t message = 0;  ///< the peer's number of the question
    memory::MemoryHandle handle = 0;
    bool writable = false;
};

/// Owns the questions for segments, ours and those of peers.
class Segments {
public:
    Segments(const memory::MemoryTable& memory, Counters& counters, const ViTable& vis,
             Paths& paths, News& news)
        : memory_(memory), counters_(counters), vis_(vis), paths_(paths), news_(news) {}

    // Asking --------------------------------------------------------------------------------------
    /// Asks the peer for its segment. The number of the question: vi.attaches_decided reaches it
    /// when there is an answer. invalid_state: not connected; error_resource: one is under way.
    Result<std::uint32_t> begin_attach(Vi& vi, memory::MemoryHandle handle, std::uint64_t address,
                                       bool writable);
    /// The outcome; ends the question. timeout: there is no answer yet. On success the VI's RDMA to
    /// the segment goes through `import` from now on. reject: the peer gives no right.
    Status take_attach(Vi& vi, std::uint32_t number, Import& import);
    /// No VI uses the segment that we have at `base` any more.
    void release_import(const std::byte* base);
    /// The paths' memory goes, and with it the words that say which segments may still be used.
    void release_imports();
    /// Would on_attached() with these answer a question that stands?
    bool expects_attachment(PathId path, std::uint64_t cookie) const {
        return asker(path, cookie) != nullptr;
    }
    /// A peer's offer came in.
    void on_attached(PathId path, std::uint64_t cookie, Attachment attachment);
    void emit(Vi& vi, const FrameRoom& room);
    FrameVerdict on_refuse(Vi& vi, const wire::Header& header);
    /// The VI's connection is over.
    void leave(Vi& vi);

    // Being asked ---------------------------------------------------------------------------------
    /// False: the question makes no sense.
    bool on_request(Vi& vi, const wire::Header& header, std::size_t length);
    /// Anything for next_question() or next_parted()?
    bool has_questions() const { return !questions_.empty() || !parted_.empty(); }
    /// A question of a peer, to be answered by an offer or a refusal. False: none.
    bool next_question(AttachQuestion& question);
    /// The connection of the question still stands.
    static bool is_current(const AttachQuestion& question) {
        return question.vi->number() == question.number &&
               question.vi->state_now() == ViState::connected;
    }
    void refuse_attach(const AttachQuestion& question, wire::AttachRefusal why);
    /// The number of a VI whose connection ended, and with it its peer's grants. False: none.
    bool next_parted(std::uint32_t& number) {
        if (parted_.empty()) [[likely]]
            return false;
        number = parted_.back();
        parted_.pop_back();
        return true;
    }

    // Using ---------------------------------------------------------------------------------------
    /// Where the entry's RDMA goes without frames; nullptr: by frames.
    static std::byte* imported(const Vi& vi, const queue::WorkEntry& entry);
    /// RDMA of the VI waits for the answer to a question for a segment.
    static bool are_awaited(const Vi& vi) {
        return vi.attach && vi.attach->status == Status::not_done &&
               !mutated(Mutation::direct_before_answer);
    }
    /// Writes of it go by frames, and may not be placed yet.
    static bool wait_for_writes(const Vi& vi) {
        return vi.write_by_frames && !mutated(Mutation::direct_past_writes);
    }

private:
    Vi* asker(PathId path, std::uint64_t cookie) const;
    void end_question(Vi& vi, Status status);

    const memory::MemoryTable& memory_;
    Counters& counters_;
    const ViTable& vis_;
    Paths& paths_;
    News& news_;
    std::vector<AttachQuestion> questions_;
    std::vector<std::uint32_t> parted_;  ///< VIs whose connections had grants and ended
};

}  // namespace via::engine
