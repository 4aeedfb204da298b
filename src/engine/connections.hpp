// Connections that stand, and how they end (VIPL 3, 4.18).
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.hpp"
#include "engine/completions.hpp"
#include "engine/credits.hpp"
#include "engine/mutation.hpp"
#include "engine/paths.hpp"
#include "engine/refusals.hpp"
#include "engine/segments.hpp"
#include "engine/vi.hpp"

namespace via::engine {

/// Owns which connections stand: how a VI comes into one, and leaves it with its queues flushed.
class Connections {
public:
    Connections(Counters& counters, Paths& paths, Completions& completions, Segments& segments,
                Credits& credits, Refusals& refusals)
        : counters_(counters),
          paths_(paths),
          completions_(completions),
          segments_(segments),
          credits_(credits),
          refusals_(refusals) {}

    /// No message takes the fast path (fast_path.hpp) from now on.
    void go_the_general_way() { fast_path_ = false; }

    /// `understood`: by the peer, wire::understood bits.
    void enter(Vi& vi, PathId path, const wire::ConnectMessage& message, std::uint32_t understood);
    /// Forgets the connection; the queues are flushed by whoever calls. A post that this flush does
    /// not see comes after wait_for_posters() and sees the state.
    void leave(Vi& vi, ViState state);

    /// Ends a connection for a fault found here; the peer hears `kind` with `message` and `code`.
    void fail(Vi& vi, wire::FrameKind kind, std::uint32_t message, std::uint32_t code);
    /// As fail(): for a reason that is none of the peer's.
    void break_off(Vi& vi) { fail(vi, wire::FrameKind::disconnect, vi.expected_message, 0); }
    /// As break_off(), while frames are being made. Those before may still be read until the
    /// devices were notified; then their bytes are the program's again.
    void break_off_sending(Vi& vi);
    /// The same for whoever told the peer already.
    void leave_sending(Vi& vi);
    /// Ends the connection on which a frame broke a rule; both ends get ERROR.
    FrameVerdict break_rule(Vi& vi, const wire::Header& header, const char* why);
    /// The peer ended it.
    void lose(Vi& vi);

    /// A receive that was posted with a fault completes as soon as it is the oldest.
    void complete_faulty_receives(Vi& vi);
    /// Behind complete_receive(), when what became of the message is counted or on its way to the
    /// peer: a fault may end the connection.
    void complete_faults_behind(Vi& vi) {
        if (vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed &&
            vi.state_now() == ViState::connected)
            complete_faulty_receives(vi);
    }
    /// Flushes the queues of connections that ended while frames were made. Each turn, behind the
    /// devices' notify(), if there are news.
    void flush_late();

private:
    static constexpr std::uint64_t fast_path_of(PathId path, std::uint32_t number) {
        return std::uint64_t{path} << 32 | number;
    }

    Counters& counters_;
    Paths& paths_;
    Completions& completions_;
    Segments& segments_;
    Credits& credits_;
    Refusals& refusals_;
    std::vector<Vi*> late_flushes_;
    bool fast_path_ = !mutating();  ///< the common message may go them
};

}  // namespace via::engine
