// Bytes: what is delivered equals what was posted, and nothing else is touched.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/checker.hpp"
#include "sim/open_ranges.hpp"

namespace via::sim {

class CheckBytes final : public Checker {
public:
    const char* name() const override { return "bytes"; }
    void observe(const Event& event) override;

private:
    void on_delivered(const Delivered& delivered);
    void on_changed(const Changed& changed);

    std::unordered_map<WorkNumber, std::vector<std::byte>> sent_;
    OpenRanges open_;
};

}  // namespace via::sim
