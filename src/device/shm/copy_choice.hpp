// One copy or two: shall the peer pull a large message from our memory (process_vm_readv), or get
// it in frames through the arena? Which is faster depends on machine and kernel, and on how far the
// two processors are from each other. So some messages are tried each way and the faster one is
// kept, by the sender's own time: from the offer to the word that it was pulled, against from its
// beginning to its last frame. What the receiver has left to do then takes no longer than the word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/time.hpp"

namespace via::device::shm {

/// What the configuration says: measure, or always the one or the other.
enum class OneCopy : std::uint8_t { measured, always, never };

class CopyChoice {
public:
    static constexpr std::uint32_t trial_messages = 6;       ///< each way
    static constexpr std::uint64_t kept_bytes = 1ULL << 30;  ///< until the next trial

    explicit CopyChoice(OneCopy policy) : policy_(policy) {}

    /// For a message of `length` bytes that begins. `settled`: frames take what they will take.
    template <class Clock>
    bool pull(std::uint64_t length, bool settled, const Clock& now) {
        if (refused_ || policy_ == OneCopy::never) return false;
        if (policy_ == OneCopy::always) return true;
        if (decided()) {
            kept_ += length;
            if (kept_ < kept_bytes) return pull_;
            kept_ = 0;
            tried_[0] = tried_[1] = under_way_ = 0;
            best_[0] = best_[1] = none;
        }
        if (!settled) return false;
        began_ = now();
        length_ = length;
        if (tried_[0] <= tried_[1]) {  // in turn: after a pause both are slow at first
            left_ = length;
            return false;
        }
        ++under_way_;
        return true;
    }

    /// A frame with a payload of `length` bytes was made. True: with it a message that is timed is
    /// complete, and published() due.
    bool filled(std::uint32_t length) {
        if (left_ == 0) [[likely]]
            return false;
        left_ -= std::min<std::uint64_t>(left_, length);
        if (left_ > rest_max) return false;
        left_ = 0;
        return true;
    }
    template <class Clock>
    void published(const Clock& now) {
        note(best_[0], now());
        ++tried_[0];
        decide();
    }
    /// Something happened that most messages are spared: the one that is timed does not count.
    void disturbed() { left_ = 0; }

    /// What came of a message that was to be pulled. False: it cannot be, ever.
    template <class Clock>
    void ended(bool pulled, const Clock& now) {
        if (!pulled) {
            refused_ = true;
            return;
        }
        if (policy_ != OneCopy::measured || decided()) return;
        if (under_way_ == 0) return;  // offered before the trial
        // Several at once say nothing about one.
        if (under_way_-- == 1) note(best_[1], now());
        ++tried_[1];
        decide();
    }

    bool refused() const { return refused_; }
    /// What it has come to; in a trial, what was kept before.
    bool pulls() const {
        return !refused_ && (policy_ == OneCopy::always || (policy_ == OneCopy::measured && pull_));
    }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    /// Bytes behind a message's last large frame that are not waited for: they may go in a slot.
    static constexpr std::uint64_t rest_max = 64;

    bool decided() const { return std::min(tried_[0], tried_[1]) >= trial_messages; }
    /// If none of those that were pulled could be timed, it stays as it was.
    void decide() {
        if (decided() && best_[1] != none) pull_ = best_[1] < best_[0];
    }
    /// The shortest counts: pauses of the two programs only make it longer.
    void note(std::int64_t& best, Time now) const {
        best = std::min(best, (now - began_).ns * (1 << 20) / static_cast<std::int64_t>(length_));
    }

    OneCopy policy_;
    bool refused_ = false;
    bool pull_ = false;
    std::uint32_t tried_[2] = {0, 0};  ///< messages in frames, pulled
    std::uint32_t under_way_ = 0;
    std::uint64_t kept_ = 0;
    std::uint64_t length_ = 0;
    std::uint64_t left_ = 0;  ///< bytes of a message that is timed in frames, to be made yet
    Time began_{};
    std::int64_t best_[2] = {none, none};  ///< ns for a MiB in frames, pulled
};

}  // namespace via::device::shm
