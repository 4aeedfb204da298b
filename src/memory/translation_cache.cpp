#include "memory/translation_cache.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace via::memory {

const char* fault_of(const CacheShape& shape) {
    if (shape.entries > CacheShape::entries_max) return "table_entries is more than 1048576";
    if (shape.line == 0 || (shape.line & (shape.line - 1)) != 0 ||
        shape.line > CacheShape::line_max)
        return "table_line is a power of two, at most 512";
    if (shape.ways == 0 || shape.ways > CacheShape::ways_max) return "table_ways is 1 to 64";
    if (shape.entries % (shape.line * shape.ways) != 0)
        return "table_entries is not a multiple of table_line * table_ways";
    return nullptr;
}

TranslationCache::TranslationCache(const CacheShape& shape, const MemoryTable& table,
                                   Counters& counters, LineLoader& loader)
    : table_(table),
      counters_(counters),
      loader_(loader),
      line_bits_(table_page_bits + static_cast<std::uint32_t>(std::countr_zero(shape.line))),
      ways_per_set_(shape.ways),
      sets_(shape.entries / (shape.line * shape.ways)),
      replacement_(shape.replacement),
      random_(shape.seed),
      ways_(shape.entries / shape.line) {
    VIA_ASSERT(fault_of(shape) == nullptr && shape.entries != 0);
}

/// Neighbouring lines and the same places of neighbouring regions go to unrelated sets: programs
/// like strides that are powers of two.
TranslationCache::Way* TranslationCache::set_of(const LineName& line) {
    std::uint64_t mixed = line.number + line.handle * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ (mixed >> 32)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 29)) * 0x94D049BB133111EBULL;
    return &ways_[((mixed >> 32) * sets_ >> 32) * ways_per_set_];
}

TranslationCache::Way* TranslationCache::find(Way* set, const LineName& line) const {
    for (Way* way = set; way != set + ways_per_set_; ++way)
        if (way->line == line) return way;
    return nullptr;
}

bool TranslationCache::reach(MemoryHandle handle, std::uint64_t address, std::uint64_t length) {
    if (length == 0) return true;
    handle = table_.region_of(handle);
    if (handle == 0) return false;
    const std::uint64_t last = (address + length - 1) >> line_bits_;
    for (LineName line{handle, address >> line_bits_};; ++line.number) {
        Way* set = set_of(line);
        ++clock_;
        if (Way* way = find(set, line)) {
            counters_.add(Counter::translation_hits);
            if (replacement_ == Replacement::lru) way->used = clock_;
        } else {
            counters_.add(Counter::translation_misses);
            if (!load(set, line)) return false;
        }
        if (line.number == last) return true;
    }
}

TranslationCache::Way& TranslationCache::victim(Way* set) {
    if (Way* free = find(set, {})) return *free;
    if (replacement_ == Replacement::random) return set[random_.below(ways_per_set_)];
    return *std::min_element(set, set + ways_per_set_,
                             [](const Way& a, const Way& b) { return a.used < b.used; });
}

/// The victim goes first, so that its memory can make room for the newcomer.
bool TranslationCache::load(Way* set, const LineName& line) {
    const Bounds region = table_.bounds(line.handle);
    const std::uint64_t first = line.number << line_bits_;
    const std::uint64_t begin = std::max(first, region.begin & ~(table_page_length - 1));
    // Last bytes, since the end of a line may be the end of all memory.
    const std::uint64_t last = std::min(first | line_mask(), region.end - 1);
    Way& way = victim(set);
    if (way.line.handle != 0) {
        counters_.add(Counter::translation_evictions);
        loader_.evicted(way.line);
        way = {};
    }
    if (!loader_.load({line, begin, (last | (table_page_length - 1)) - begin + 1, region}))
        return false;
    way = {line, clock_};
    return true;
}

void TranslationCache::take_back(const LineName& line) {
    if (Way* way = find(set_of(line), line)) *way = {};
}

void TranslationCache::forget(MemoryHandle handle) {
    const Bounds region = table_.bounds(handle);
    const std::uint64_t first = region.begin >> line_bits_;
    const std::uint64_t last = (region.end - 1) >> line_bits_;
    if (last - first < ways_.size()) {
        for (std::uint64_t number = first; number <= last; ++number) take_back({handle, number});
    } else {
        for (Way& way : ways_)
            if (way.line.handle == handle) way = {};
    }
    loader_.forget(handle);
}

}  // namespace via::memory
