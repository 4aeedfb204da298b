// Copies of whole cache lines past the cache, by what the processor at hand can do.
#pragma once

#include <cstddef>
#include <span>

namespace via::memory {

constexpr std::size_t line_bytes = 64;

/// Copies two runs of `lines` lines each, a line of the one and a line of the other in turn; the
/// second run begins `apart` bytes behind the first. `to` is aligned to a line, and so is `apart`.
using TwoRuns = void (*)(std::byte* to, const std::byte* from, std::size_t lines,
                         std::size_t apart);

struct LineCopy {
    const char* name;
    TwoRuns past;  ///< by streaming stores, which no release orders: a fence must follow
};

/// All that this processor can run, the best first; none where there are no streaming stores.
std::span<const LineCopy> line_copies();

/// Copies `length` bytes, any alignment, by `runs`: as much as goes in pairs of at most a page
/// each, the rest by memcpy.
void copy_by(TwoRuns runs, std::byte* to, const std::byte* from, std::size_t length);

}  // namespace via::memory
