// Dynamic handle look-up: tables in the host's memory, of which the NIC caches lines. What it has
// not is asked for by an interrupt, and a thread of the host's kernel writes the line (MissThread).
#pragma once

#include <set>

#include "lab/design/handle_cache.hpp"

namespace via::lab::design {

struct CacheShape {
    std::int64_t entries = 0;
    std::int64_t line = 0;
    std::int64_t ways = 0;
    std::int64_t entry_bytes = 0;
};

class DynamicLookup final : public Lookup {
public:
    DynamicLookup(HandleKind kind, const CacheShape& shape)
        : kind_(kind), shape_(shape), cache_(shape.entries, shape.line, shape.ways) {}
    bool dynamic() const override { return true; }
    Task<bool> find(Adapter& adapter, Handle handle, MessageId message) override;
    std::int64_t nic_memory(const Load&) const override;

private:
    void count(Adapter& adapter, bool miss, bool cold) const;

    HandleKind kind_;
    CacheShape shape_;
    HandleCache cache_;
    std::set<Handle> asked_;  ///< lines that are on their way
};

}  // namespace via::lab::design
