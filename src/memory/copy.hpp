// The two ways bytes move: out of registered memory into a device's slot (gather), and out of a
// frame into registered memory (place). Extents were checked by the table before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace via::memory {

/// Writes received bytes to their place. Lower addresses become visible no later than the last
/// aligned word, which is one store (VIPL 4.24; memcpy shows tails before bodies).
/// `source` may lie in memory that a peer changes meanwhile; each byte of it is read once.
void place(std::byte* target, const std::byte* source, std::size_t length);

/// Fills a device's slot. `stream` stores past the cache where the processor can: right for large
/// payloads that another core reads next. The device fences before it publishes. Of no bytes,
/// either place may be null.
void gather(std::byte* slot, const std::byte* source, std::size_t length, bool stream);

/// Which streaming stores gather() uses here: "avx512", "avx2", "sse2" or "none".
const char* streaming_stores();

}  // namespace via::memory
