// What the engine says of a frame that it does not take.
#pragma once

#include "base/counters.hpp"
#include "engine/frames.hpp"

namespace via::engine {

/// Owns the reason why the last frame was refused, for the log.
class Refusals {
public:
    explicit Refusals(Counters& counters) : counters_(counters) {}

    const char* last() const { return last_; }
    /// No honest NIC sends that.
    FrameVerdict hostile(const char* why) {
        note(why);
        return FrameVerdict::hostile;
    }
    void note(const char* why) {
        last_ = why;
        counters_.add(Counter::frames_refused);
    }

private:
    Counters& counters_;
    const char* last_ = "";
};

}  // namespace via::engine
