#include "memory/page_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

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
    Counts::iterator made;
    if (spare_.empty()) {
        made = counts_.emplace_hint(next, page, at->second);
    } else {
        spare_.back().key() = page;
        spare_.back().mapped() = at->second;
        made = counts_.insert(next, std::move(spare_.back()));
        spare_.pop_back();
    }
    if (at->second != 0) ++areas_;
    return made;
}

/// Ends an entry that is as the one before it.
void PageRanges::merge(Counts::iterator at) {
    if (at == counts_.begin() || std::prev(at)->second != at->second) return;
    if (at->second != 0) --areas_;
    if (spare_.size() == spare_max) {
        counts_.erase(at);
    } else {
        spare_.push_back(counts_.extract(at));
    }
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
    // A run begins where pages are locked behind one that is not: before the change, and after it.
    bool before_was = first != counts_.begin() && std::prev(first)->second != 0;
    bool before_is = before_was;
    for (auto at = first;;) {
        const bool was = at->second != 0;
        if (at != last) at->second += by;
        const bool is = at->second != 0;
        if (is && !before_is) ++runs_locked_;
        if (was && !before_was) --runs_locked_;
        if (at == last) break;
        const auto next = std::next(at);
        if (is != was) {
            const std::uint64_t pages = next->first - at->first;
            areas_ = is ? areas_ + 1 : areas_ - 1;
            pages_locked_ = is ? pages_locked_ + pages : pages_locked_ - pages;
        }
        before_was = was;
        before_is = is;
        at = next;
    }
    merge(last);
    merge(first);
}

}  // namespace via::memory
