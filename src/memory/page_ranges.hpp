// Counted page ranges: which pages are locked, and how often (after the Locked Memory Manager of
// Seifert and Rehm: "locked memory areas" of equal count, which split and merge). It only counts;
// the agent asks the kernel. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace via::memory {

/// The pages [begin, end), by number.
struct PageRun {
    std::uint64_t begin;
    std::uint64_t end;

    std::uint64_t pages() const { return end - begin; }
    friend bool operator==(const PageRun&, const PageRun&) = default;
};

/// Pages that hold [address, address + length). length > 0 and no wrap.
constexpr PageRun pages_of(std::uint64_t address, std::uint64_t length, unsigned page_bits) {
    return {address >> page_bits, ((address + (length - 1)) >> page_bits) + 1};
}

/// Runs must not be empty. Finding costs O(log n) of n areas. A call that runs out of memory
/// (std::bad_alloc) changes nothing.
class PageRanges {
public:
    PageRanges() {
        counts_.emplace(0, 0);
        spare_.reserve(spare_max);
    }

    /// The runs of `run` that are not locked, in order, each as long as can be. Returns by how much
    /// locking them changes runs_locked().
    std::ptrdiff_t unlocked_in(PageRun run, std::vector<PageRun>& unlocked) const;
    /// Counts each page of `run` once more.
    void lock(PageRun run);
    /// Counts each page of `run` once less: all are locked. `freed` gets the runs that are not
    /// locked any more, in order, each as long as can be.
    void unlock(PageRun run, std::vector<PageRun>& freed);

    std::uint32_t count_of(std::uint64_t page) const;
    /// Runs of equal count, pages that are not locked left out.
    std::size_t areas() const { return areas_; }
    /// Runs of locked pages, whatever their counts.
    std::size_t runs_locked() const { return runs_locked_; }
    std::uint64_t pages_locked() const { return pages_locked_; }

private:
    /// From this page on, up to the next entry, pages have this count; neighbours differ. The first
    /// entry is page 0.
    using Counts = std::map<std::uint64_t, std::uint32_t>;

    Counts::iterator split(std::uint64_t page);
    void merge(Counts::iterator at);
    void change(PageRun run, std::uint32_t by);

    /// Entries for the next split: most regions bring two and take them away again.
    static constexpr std::size_t spare_max = 64;

    Counts counts_;
    std::vector<Counts::node_type> spare_;
    std::size_t areas_ = 0;
    std::size_t runs_locked_ = 0;
    std::uint64_t pages_locked_ = 0;
};

}  // namespace via::memory
