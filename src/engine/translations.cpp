#include "engine/translations.hpp"

namespace via::engine {

bool Translations::reach_segments(queue::ByteWalk walk, std::uint64_t length) const {
    bool reached = true;
    walk.take(length, [&](const std::byte* piece, std::size_t bytes) {
        reached =
            reached && cache_->reach(walk.handle(), reinterpret_cast<std::uint64_t>(piece), bytes);
    });
    return reached;
}

}  // namespace via::engine
