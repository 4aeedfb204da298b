// Credits: on a reliable connection whose both VIs ask for it, a message that consumes a receive
// waits at its sender until the peer has told of one. Counts run from the connection's beginning,
// modulo 2^32.
#pragma once

#include "engine/frames.hpp"
#include "engine/paths.hpp"
#include "engine/shared_receives.hpp"
#include "engine/vi.hpp"

namespace via::engine {

/// Owns what the two ends of a connection tell each other of their receives.
class Credits {
public:
    Credits(Paths& paths, SharedReceives& shared) : paths_(paths), shared_(shared) {}

    void begin(Vi& vi, const wire::ConnectMessage& message);
    void end(Vi& vi);
    /// Tells the peer of receives when it may soon have used up what it knows of.
    void grant(Vi& vi);
    /// The same for VIs that waited for receives of a shared queue.
    void grant_waiting();
    void emit(Vi& vi, const FrameRoom& room);
    /// The peer tells of receives. False: what it says makes no sense.
    bool take(Vi& vi, const wire::Header& header);

private:
    Paths& paths_;
    SharedReceives& shared_;
};

}  // namespace via::engine
