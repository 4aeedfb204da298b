// Copies with streaming (non-temporal) stores, whose lines do not stay in the writer's cache, by
// the vector width the processor has.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace via::bench {

enum class Copy { plain, sse2, avx2, avx512 };

// Both pointers may have any alignment; ranges do not overlap. The bytes are visible to another
// processor once a later store with release order is.
using CopyFunction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

// What this processor can run, plain first. Asked at run time.
std::vector<Copy> available_copies();

// Only for what available_copies() listed.
CopyFunction function_of(Copy copy);
std::string_view name_of(Copy copy);

}  // namespace via::bench
