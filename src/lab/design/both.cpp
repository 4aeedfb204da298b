// The tables of the VIA/SCI card: upstream of exported pages, downstream of imported ones. Each
// entry has the protection tag of a process, and the DMA engine compares it with its VI's, for both
// pages, at the sending NIC alone. Stores of the processor are not its affair.
#include <algorithm>
#include <map>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

constexpr std::int64_t both_entry_bytes = 4;
constexpr std::int64_t tag_words = 1;

/// Tags of pages; without one a page is everybody's.
class Tags {
public:
    explicit Tags(std::int64_t page) : page_(page) {}
    void set(const Buffer& buffer, std::uint32_t tag) {
        for (std::int64_t n = first(buffer); n <= last(buffer); ++n) tags_[n] = tag;
    }
    bool open(const Buffer& buffer, std::uint32_t tag) const {
        for (auto at = tags_.lower_bound(first(buffer));
             at != tags_.end() && at->first <= last(buffer); ++at)
            if (at->second != tag) return false;
        return true;
    }

private:
    std::int64_t first(const Buffer& buffer) const { return buffer.address / page_; }
    std::int64_t last(const Buffer& buffer) const {
        return (buffer.address + std::max<std::int64_t>(buffer.length, 1) - 1) / page_;
    }
    std::int64_t page_;
    std::map<std::int64_t, std::uint32_t> tags_;
};

class BothTables final : public Translation {
public:
    explicit BothTables(const Costs& costs)
        : costs_(costs), exported_(costs.page), imported_(costs.import_page) {}
    bool in_kernel() const override { return false; }
    bool piece_per_page() const override { return false; }
    Task<> on_nic(Adapter& adapter, std::int64_t, MessageId message) override {
        return look(adapter, "look into the table of exported pages", message);
    }
    std::int64_t import_page() const override { return costs_.import_page; }
    Task<> on_import(Adapter& adapter, std::int64_t, MessageId message) override {
        return look(adapter, "look into the table of imported pages", message);
    }
    void protect(const Buffer& buffer, std::uint32_t tag, bool imported) override {
        (imported ? imported_ : exported_).set(buffer, tag);
    }
    bool opens(std::uint32_t tag, const Buffer& buffer, bool imported) const override {
        return (imported ? imported_ : exported_).open(buffer, tag);
    }
    /// As large as the windows that they describe, whatever is registered.
    std::int64_t nic_memory(const Load&) const override {
        return (costs_.exported / costs_.page + costs_.imported / costs_.import_page) *
               both_entry_bytes;
    }

private:
    Task<> look(Adapter& adapter, const char* what, MessageId message) {
        ++adapter.counts().translations;
        co_await adapter.step(costs_.words_translate + tag_words, what, message);
    }

    const Costs& costs_;
    Tags exported_;
    Tags imported_;
};

}  // namespace

std::unique_ptr<Translation> make_both(const Costs& costs, const Numbers&, const Load&) {
    return std::make_unique<BothTables>(costs);
}

}  // namespace via::lab::design
