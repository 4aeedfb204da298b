#include "sim/check_bound.hpp"

namespace via::sim {

void CheckBound::observe(const Event& event) {
    const auto* turn = std::get_if<TurnDone>(&event.what);
    if (turn == nullptr) return;
    if (turn->frames > turn->frames_max)
        violate("node %u moved %u frames in one turn, at most %u are allowed", turn->node,
                turn->frames, turn->frames_max);
    if (turn->bytes > turn->bytes_max)
        violate("node %u moved %llu bytes in one turn, at most %llu are allowed", turn->node,
                static_cast<unsigned long long>(turn->bytes),
                static_cast<unsigned long long>(turn->bytes_max));
}

}  // namespace via::sim
