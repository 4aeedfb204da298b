#include "laboratory.hpp"

#include <vector>

#include "base/assert.hpp"
#include "lab/carrier/draw.hpp"
#include "lab/file/machine_file.hpp"

namespace via::sim_tool {

std::expected<lab::carrier::Plan, std::string> draw_plan(std::uint64_t seed) {
    Random random(Random(seed ^ 0x1AB0'0000'0002ULL).next());
    std::vector<lab::Machine> machines;
    for (const auto& one : lab::file::built_in()) {
        auto parsed = lab::file::parse(one.text, one.name);
        if (!parsed) return std::unexpected(parsed.error());
        machines.push_back(std::move(*parsed));
    }
    lab::Machine machine = std::move(machines[random.below(machines.size())]);
    const lab::Load load{static_cast<std::int64_t>(random.between(1, 8)), 1 << 20};
    const auto design = lab::carrier::draw_design(machine, load, random);
    return lab::carrier::Plan{std::move(machine), design, load};
}

device::sim::CarrierMaker maker_of(const lab::carrier::Plan& plan,
                                   const lab::carrier::ClusterCarrier*& made) {
    return [plan, &made](device::sim::VirtualClock& clock, device::sim::Fabric& fabric,
                         std::uint64_t seed) {
        auto carrier = lab::carrier::ClusterCarrier::make(plan, clock, fabric, seed);
        VIA_ASSERT(carrier.has_value());  // it was drawn so that it can be
        made = carrier->get();
        return std::move(*carrier);
    };
}

std::string to_text(const lab::carrier::Plan& plan) {
    return "machine=" + plan.machine.name + " vis=" + std::to_string(plan.load.vis) +
           " design=" + lab::carrier::to_text(plan.design);
}

}  // namespace via::sim_tool
