// Protection: memory changes only within registered regions, by peers only where they may write; an
// RDMA operation succeeds only if it was allowed, and is refused only if it was not (VIPL 4.6
// to 4.8). Keeps its own table of regions.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/checker.hpp"
#include "sim/open_ranges.hpp"

namespace via::sim {

class CheckProtection final : public Checker {
public:
    const char* name() const override { return "protection"; }
    void observe(const Event& event) override;

private:
    struct Operation {
        RdmaAsked asked;
        bool ever = false;   ///< allowed at some moment since it was posted
        bool always = true;  ///< allowed at every moment since
    };
    bool allowed(const RdmaAsked& asked) const;
    void regions_changed(NodeNumber node);
    void on_asked(const RdmaAsked& asked);
    void on_completed(const Completed& completed);
    void on_changed(const Changed& changed);
    /// End of the bytes from `at` on that may change for one and the same reason; `at` if none.
    std::uint64_t may_change_to(NodeNumber node, std::uint64_t at) const;

    std::map<std::pair<NodeNumber, memory::MemoryHandle>, Granted> regions_;
    std::map<ViNumber, engine::ViAttributes> vis_;
    OpenRanges open_;
    std::map<WorkNumber, Operation> operations_;
    std::map<NodeNumber, std::vector<WorkNumber>> to_node_;  ///< of these, perhaps more
};

}  // namespace via::sim
