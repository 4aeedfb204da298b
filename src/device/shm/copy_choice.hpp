// One copy or two: shall the peer fetch a large message from our memory (process_vm_readv), or get
// it in frames through the arena? Which is faster depends on machine and kernel, and on how far the
// two processors are from each other. So some messages are tried and the faster way is kept, by the
// sender's own time: from the offer to the word that it was fetched, against a lap of the arena.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::shm {

/// What the configuration says: measure, or always the one or the other.
enum class OneCopy : std::uint8_t { measured, always, never };

class CopyChoice {
public:
    static constexpr std::uint32_t trial_messages = 6;
    static constexpr std::uint64_t kept_bytes = 1ULL << 30;  ///< until the next trial

    explicit CopyChoice(OneCopy policy) : policy_(policy) {}

    /// For a message of `length` bytes. `frames_ns_per_mib`: what frames take, 0: not known yet.
    template <class Clock>
    bool fetch(std::uint64_t length, std::int64_t frames_ns_per_mib, const Clock& now) {
        if (refused_ || policy_ == OneCopy::never) return false;
        if (policy_ == OneCopy::always) return true;
        if (trials_ == trial_messages) {
            kept_ += length;
            if (kept_ < kept_bytes) return fetch_;
            kept_ = 0;
            trials_ = under_way_ = 0;
            best_ns_per_mib_ = 0;
        }
        if (frames_ns_per_mib == 0) return false;
        frames_ns_per_mib_ = frames_ns_per_mib;
        began_ = now();
        length_ = length;
        ++under_way_;
        return true;
    }

    /// What came of a message that was to be fetched. False: it cannot be, ever.
    template <class Clock>
    void ended(bool fetched, const Clock& now) {
        if (!fetched) {
            refused_ = true;
            return;
        }
        if (policy_ != OneCopy::measured || trials_ == trial_messages) return;
        // Several at once say nothing about one; the shortest of the others counts, pauses of the
        // two programs only make it longer.
        if (under_way_-- == 1) {
            const std::int64_t pace = std::max<std::int64_t>(
                (now() - began_).ns * (1 << 20) / static_cast<std::int64_t>(length_), 1);
            if (best_ns_per_mib_ == 0 || pace < best_ns_per_mib_) best_ns_per_mib_ = pace;
        }
        if (++trials_ < trial_messages) return;
        // A tenth faster is clearly faster.
        fetch_ =
            best_ns_per_mib_ != 0 && best_ns_per_mib_ + best_ns_per_mib_ / 10 < frames_ns_per_mib_;
    }

    bool refused() const { return refused_; }
    /// What it has come to; in a trial, what was kept before.
    bool fetches() const {
        return !refused_ &&
               (policy_ == OneCopy::always || (policy_ == OneCopy::measured && fetch_));
    }

private:
    OneCopy policy_;
    bool refused_ = false;
    bool fetch_ = false;
    std::uint32_t trials_ = 0;
    std::uint32_t under_way_ = 0;
    std::uint64_t kept_ = 0;
    std::uint64_t length_ = 0;
    Time began_{};
    std::int64_t best_ns_per_mib_ = 0;
    std::int64_t frames_ns_per_mib_ = 0;
};

}  // namespace via::device::shm
