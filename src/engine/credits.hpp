// Credits: on a reliable connection whose both VIs ask for it, a message that consumes a receive
// waits at its sender until the peer has told of one. Counts run from the connection's beginning,
// modulo 2^32.
#pragma once

#include "engine/frames.hpp"
#include "engine/paths.hpp"
#include "engine/vi.hpp"

namespace via::engine {

/// Owns what the two ends of a connection tell each other of their receives.
class Credits {
public:
    explicit Credits(Paths& paths) : paths_(paths) {}

    void begin(Vi& vi, const wire::ConnectMessage& message);
    /// Tells the peer of receives when it may soon have used up what it knows of.
    void grant(Vi& vi);
    void emit(Vi& vi, const FrameRoom& room);
    /// The peer tells of receives. False: what it says makes no sense.
    bool take(Vi& vi, const wire::Header& header);

private:
    Paths& paths_;
};

}  // namespace via::engine
