#include "memory/page_ranges.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace via::memory {

namespace {

/// Hands over the parts of `run` whose count is `wanted`, with the entry they lie in.
template <class Counts, class Take>
void each_of_count(const Counts& counts, PageRun run, std::uint32_t wanted, Take take) {
    auto at = std::prev(counts.upper_bound(run.begin));
    for (; at != counts.end() && at->first < run.end; ++at) {
        if (at->second != wanted) continue;
        const auto next = std::next(at);
        take(PageRun{std::max(run.begin, at->first),
                     next == counts.end() ? run.end : std::min(run.end, next->first)},
             at);
    }
}

}  // namespace

std::uint32_t PageRanges::count_of(std::uint64_t page) const {
    return std::prev(counts_.upper_bound(page))->second;
}

std::ptrdiff_t PageRanges::unlocked_in(PageRun run, std::vector<PageRun>& unlocked) const {
    unlocked.clear();
    std::ptrdiff_t more = 0;
    each_of_count(counts_, run, 0, [&](PageRun part, Counts::const_iterator at) {
        unlocked.push_back(part);
        // What touches locked pages joins them: neighbours of an unlocked area are locked.
        const auto next = std::next(at);
        const bool joins_left = part.begin == at->first && part.begin != 0;
        const bool joins_right = next != counts_.end() && part.end == next->first;
        more += 1 - (joins_left ? 1 : 0) - (joins_right ? 1 : 0);
    });
    return more;
}

void PageRanges::lock(PageRun run) { change(run, 1); }

void PageRanges::unlock(PageRun run, std::vector<PageRun>& freed) {
    freed.clear();
    each_of_count(counts_, run, 0, [](PageRun, auto) { VIA_ASSERT(false); });
    each_of_count(counts_, run, 1, [&](PageRun part, auto) { freed.push_back(part); });
    change(run, ~0U);
}

/// Makes `page` begin an entry.
PageRanges::Counts::iterator PageRanges::split(std::uint64_t page) {
    const auto next = counts_.upper_bound(page);
    const auto at = std::prev(next);
    if (at->first == page) return at;
    const auto made = counts_.emplace_hint(next, page, at->second);
    if (at->second != 0) ++areas_;
    return made;
}

/// Ends an entry that is as the one before it.
void PageRanges::merge(Counts::iterator at) {
    if (at == counts_.begin() || at == counts_.end()) return;
    if (std::prev(at)->second != at->second) return;
    if (at->second != 0) --areas_;
    counts_.erase(at);
}

/// 1 when locked pages begin here, behind one that is not.
std::size_t PageRanges::begins_run(Counts::const_iterator at) const {
    if (at == counts_.end() || at->second == 0) return 0;
    return at == counts_.begin() || std::prev(at)->second == 0 ? 1 : 0;
}

/// `by` is 1, or -1 modulo 2^32.
void PageRanges::change(PageRun run, std::uint32_t by) {
    VIA_ASSERT(run.begin < run.end);
    const auto first = split(run.begin);
    Counts::iterator last;
    try {
        last = split(run.end);
    } catch (...) {
        merge(first);
        throw;
    }
    std::size_t before = begins_run(last);
    for (auto at = first; at != last; ++at) before += begins_run(at);
    for (auto at = first; at != last; ++at) {
        const bool was_locked = at->second != 0;
        at->second += by;
        const bool is_locked = at->second != 0;
        const std::uint64_t pages = std::next(at)->first - at->first;
        if (is_locked && !was_locked) {
            ++areas_;
            pages_locked_ += pages;
        } else if (was_locked && !is_locked) {
            --areas_;
            pages_locked_ -= pages;
        }
    }
    std::size_t after = begins_run(last);
    for (auto at = first; at != last; ++at) after += begins_run(at);
    runs_locked_ = runs_locked_ + after - before;
    merge(last);
    merge(first);
}

}  // namespace via::memory
