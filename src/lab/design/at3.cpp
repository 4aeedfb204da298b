// AT3: tables in the host's memory, looked into by the NIC, which keeps some entries in a cache:
// sets by the low bits of the page, within a set the one used longest ago goes. A miss is a DMA.
#include <algorithm>
#include <list>
#include <unordered_set>
#include <vector>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

constexpr std::int64_t entry_bytes = 8;

class NicCache final : public Translation {
public:
    NicCache(const Costs& costs, const Numbers& numbers)
        : page_(costs.page),
          entries_(numbers.cache),
          ways_(static_cast<std::size_t>(numbers.ways)),
          sets_(static_cast<std::size_t>(numbers.cache / numbers.ways)) {}
    bool in_kernel() const override { return false; }
    bool piece_per_page() const override { return false; }
    Task<> on_nic(Adapter& adapter, std::int64_t address, MessageId message) override {
        ++adapter.counts().translations;
        co_await adapter.step(adapter.costs().words_translate, "look into the cache", message);
        if (use(address / page_) || adapter.without().misses) co_return;
        ++adapter.counts().misses;
        if (seen_.insert(address / page_).second) ++adapter.counts().cold_misses;
        co_await adapter.fetch(entry_bytes, Share::translation, "fetch a translation", message);
    }
    std::int64_t nic_memory(const Load&) const override { return entries_ * entry_bytes; }

private:
    /// False: it was not there, and is now.
    bool use(std::int64_t page) {
        std::list<std::int64_t>& set = sets_[static_cast<std::size_t>(page) % sets_.size()];
        const auto found = std::ranges::find(set, page);
        const bool hit = found != set.end();
        if (hit) set.erase(found);
        set.push_front(page);
        if (set.size() > ways_) set.pop_back();
        return hit;
    }

    std::int64_t page_;
    std::int64_t entries_;
    std::size_t ways_;
    std::vector<std::list<std::int64_t>> sets_;  ///< pages, the last used first
    std::unordered_set<std::int64_t> seen_;
};

}  // namespace

std::unique_ptr<Translation> make_at3(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<NicCache>(costs, numbers);
}

}  // namespace via::lab::design
