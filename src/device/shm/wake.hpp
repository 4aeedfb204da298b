// The sleep word: what a side tells its peer about how it sleeps. The low two bits are
// device::Sleep, the rest counts the sleeps, so that a peer wakes each sleep once and a burst of
// frames to a sleeper costs one call.
//
// The rule that loses no wake-up (Dekker): the sleeper stores its word, fences, looks once more;
// the waker publishes, fences, reads the word. The sleeper's fence is heavy, in arm(), and the
// waker's light, where both sides can make heavy ones (Channel::asymmetric); else both are full,
// and the sleeper's is the one that the caller of the device makes after arm().
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace via::device::shm {

constexpr std::uint32_t sleep_word(Sleep kind, std::uint32_t count) {
    return (count << 2) | static_cast<std::uint32_t>(kind);
}

/// A word with an unknown kind says awake: who writes nonsense is not woken.
constexpr Sleep sleep_kind(std::uint32_t word) {
    switch (word & 3) {
        case static_cast<std::uint32_t>(Sleep::on_handle):
            return Sleep::on_handle;
        case static_cast<std::uint32_t>(Sleep::on_words):
            return Sleep::on_words;
        default:
            return Sleep::awake;
    }
}

}  // namespace via::device::shm
