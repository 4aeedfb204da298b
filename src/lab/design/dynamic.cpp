#include "lab/design/dynamic.hpp"

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

/// Of a line: its handle's tag of 48 bits in two words, its place in the order of use, its state.
constexpr std::int64_t tag_bytes = 16;
constexpr std::int64_t page_entry = 4;     // 001 section IV.B: a 32-bit word a page
constexpr std::int64_t buffer_entry = 16;  // start, length, owner: 001 does not say
constexpr std::int64_t process_entry = 64;
constexpr std::int64_t buffer_line = 4;
constexpr std::int64_t other_ways = 4;

const char* name_of_look(HandleKind kind) {
    switch (kind) {
        case HandleKind::page:
            return "look up the page";
        case HandleKind::buffer:
            return "look up the buffer";
        case HandleKind::process:
            return "look up the process";
    }
    return "?";
}

/// AT dynamic: the virtual memory handles, which both directions look up for each page.
class DynamicPages final : public Translation {
public:
    explicit DynamicPages(const Costs& costs, const Numbers& numbers)
        : page_(costs.page),
          pages_(HandleKind::page, {numbers.cache, numbers.line, numbers.ways, page_entry}) {}
    bool in_kernel() const override { return false; }
    bool piece_per_page() const override { return false; }
    Lookup* lookup() override { return &pages_; }
    /// For what is no payload (a descriptor that is fetched): the firmware waits for the line.
    Task<> on_nic(Adapter& adapter, std::int64_t address, MessageId message) override {
        bool found = false;
        while (!found) found = co_await pages_.find(adapter, {0, address / page_}, message);
    }
    std::int64_t nic_memory(const Load& load) const override { return pages_.nic_memory(load); }

private:
    std::int64_t page_;
    DynamicLookup pages_;
};

/// A table of all buffers or processes on the NIC; of other hosts' buffers a second one, by which a
/// sender names them (001 section V.C: dynamic look-up needs none).
class StaticLookup final : public Lookup {
public:
    StaticLookup(HandleKind kind, std::int64_t bytes) : kind_(kind), bytes_(bytes) {}
    bool dynamic() const override { return false; }
    Task<bool> find(Adapter& adapter, Handle, MessageId message) override {
        co_await adapter.step(adapter.costs().words_translate, name_of_look(kind_), message);
        co_return true;
    }
    std::int64_t nic_memory(const Load&) const override { return bytes_; }

private:
    HandleKind kind_;
    std::int64_t bytes_;
};

/// There are no such handles.
class NoLookup final : public Lookup {
public:
    bool dynamic() const override { return false; }
    Task<bool> find(Adapter&, Handle, MessageId) override { co_return true; }
    std::int64_t nic_memory(const Load&) const override { return 0; }
};

}  // namespace

Task<bool> DynamicLookup::find(Adapter& adapter, Handle handle, MessageId message) {
    const Handle line = cache_.line_of(handle);
    if (asked_.contains(line)) {
        co_await adapter.look_at_dma("look whether the line is there", message);
        co_return false;
    }
    const auto [hit, tags] = cache_.use(handle);
    const Costs& costs = adapter.costs();
    co_await adapter.step(costs.words_translate - 1 + tags, name_of_look(kind_), message);
    const bool miss = !hit && !adapter.without().misses;
    count(adapter, miss, !cache_.known(handle));
    if (!miss) co_return true;
    asked_.insert(line);
    co_await adapter.step(costs.words_start_rhs, "raise the miss interrupt", message);
    adapter.miss({kind_, line, cache_.line_entries(),
                  [this, line] {
                      cache_.fill(line);
                      asked_.erase(line);
                  },
                  [this](const Handle& other) { return cache_.holds(other); }});
    co_return false;
}

void DynamicLookup::count(Adapter& adapter, bool miss, bool cold) const {
    AdapterCounts& counts = adapter.counts();
    if (kind_ == HandleKind::page) {
        ++counts.translations;
        counts.misses += miss ? 1 : 0;
        counts.cold_misses += miss && cold ? 1 : 0;
    } else {
        counts.handle_misses += miss ? 1 : 0;
    }
}

std::int64_t DynamicLookup::nic_memory(const Load&) const {
    return shape_.entries * shape_.entry_bytes + shape_.entries / shape_.line * tag_bytes;
}

std::unique_ptr<Translation> make_dynamic(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<DynamicPages>(costs, numbers);
}

std::unique_ptr<Lookup> make_no_lookup(const Costs&, const Numbers&, const Load&) {
    return std::make_unique<NoLookup>();
}

std::unique_ptr<Lookup> make_static_buffers(const Costs&, const Numbers& numbers, const Load&) {
    constexpr std::int64_t tables = 2;  // own ones, and those of other hosts
    return std::make_unique<StaticLookup>(HandleKind::buffer,
                                          tables * numbers.buffers * buffer_entry);
}

std::unique_ptr<Lookup> make_dynamic_buffers(const Costs&, const Numbers& numbers, const Load&) {
    return std::make_unique<DynamicLookup>(
        HandleKind::buffer,
        CacheShape{numbers.buffer_cache, buffer_line, other_ways, buffer_entry});
}

std::unique_ptr<Lookup> make_static_processes(const Costs&, const Numbers& numbers, const Load&) {
    return std::make_unique<StaticLookup>(HandleKind::process, numbers.processes * process_entry);
}

std::unique_ptr<Lookup> make_dynamic_processes(const Costs&, const Numbers& numbers, const Load&) {
    return std::make_unique<DynamicLookup>(
        HandleKind::process, CacheShape{numbers.process_cache, 1, other_ways, process_entry});
}

}  // namespace via::lab::design
