#include "races.hpp"

namespace via::model {

namespace {

constexpr bool conflict(Touch a, Touch b) {
    const bool write = a == Touch::plain_write || a == Touch::atomic_write ||
                       b == Touch::plain_write || b == Touch::atomic_write;
    const bool plain = a == Touch::plain_read || a == Touch::plain_write ||
                       b == Touch::plain_read || b == Touch::plain_write;
    return write && plain;
}

constexpr const char* names[] = {"plain read", "plain write", "atomic read", "atomic write"};

}  // namespace

void Races::reset() {
    // The words are kept: programs use the same addresses in every execution, mostly.
    if (words_.size() > 100'000) words_.clear();
    ++run_;
}

bool Races::touch(unsigned thread, const void* at, std::size_t bytes, Touch touch,
                  const SyncClock& clock) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    Word* word = nullptr;
    for (std::uintptr_t address = first; address != first + bytes; ++address) {
        if (word == nullptr || address % 8 == 0) {
            word = &words_[address / 8];
            if (word->run != run_) *word = Word{.run = run_};
        }
        Byte& byte = word->bytes[address % 8];
        for (unsigned kind = 0; kind < 4; ++kind) {
            if (!conflict(touch, static_cast<Touch>(kind))) continue;
            for (unsigned other = 0; other < max_threads; ++other) {
                const unsigned time = byte.time[kind][other];
                if (time == 0 || other == thread || clock.includes(other, time)) continue;
                description_ = std::string("data race: ") + names[static_cast<unsigned>(touch)] +
                               " by T" + std::to_string(thread) + " and " + names[kind] + " by T" +
                               std::to_string(other) + ", byte " + std::to_string(address - first) +
                               " of " + std::to_string(bytes);
                return true;
            }
        }
        byte.time[static_cast<unsigned>(touch)][thread] = clock.at[thread];
    }
    return false;
}

}  // namespace via::model
