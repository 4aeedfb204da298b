// Tells of every path that comes up, and to whom it leads.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tap/tap.hpp"

namespace via::sim {

class PathWatch final : public tap::Tap {
public:
    using Told = std::function<void(const HostAddress& peer)>;

    PathWatch(std::unique_ptr<device::Device> below, Told told)
        : Tap(std::move(below)), told_(std::move(told)) {}

    bool next_event(device::PathEvent& event) override {
        if (!below().next_event(event)) return false;
        if (event.kind == device::PathEventKind::up ||
            event.kind == device::PathEventKind::resolved)
            told_(below().peer_address(event.path));
        return true;
    }

private:
    Told told_;
};

}  // namespace via::sim
