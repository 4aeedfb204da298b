// Simulated nodes whose NICs are machines of the laboratory. VIA_TEST_MACHINE names one,
// VIA_TEST_DESIGN what shall be otherwise there ("at=3,doorbell=d1").
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>

#include "harness/sim_network.hpp"
#include "lab/carrier/cluster_carrier.hpp"
#include "lab/file/machine_file.hpp"
#include "sim/host/sim_agent.hpp"

namespace conformance {
namespace {

namespace lab = via::lab;
namespace sim = via::device::sim;

std::string word(const char* name, const char* otherwise) {
    const char* const said = std::getenv(name);
    return said == nullptr ? otherwise : said;
}

template <class Value>
Value value_of(std::expected<Value, std::string> made) {
    if (made) return std::move(*made);
    std::fprintf(stderr, "%s\n", made.error().c_str());
    std::exit(2);
}

lab::carrier::Plan plan() {
    lab::Machine machine = value_of(lab::file::load(word("VIA_TEST_MACHINE", "firmvia")));
    lab::design::Options design = machine.design;
    const auto added = lab::design::add(design, word("VIA_TEST_DESIGN", ""));
    if (!added) value_of<int>(std::unexpected(added.error()));
    return {std::move(machine), std::move(design), {16, 1 << 20}};
}

}  // namespace

const char* const sim_network_name = "lab";
// Without a window no memory is shared: all goes by the NICs.
unsigned sim_network_has() { return plan().machine.has(lab::Has::window) ? shares : nothing; }

void begin_sim_network() {
    via::sim::carry_by([plan = plan()](sim::VirtualClock& clock, sim::Fabric& fabric,
                                       std::uint64_t seed) -> std::unique_ptr<sim::Carrier> {
        return value_of(lab::carrier::ClusterCarrier::make(plan, clock, fabric, seed));
    });
    via::sim::restart(1);
    via::sim::leave();
}

}  // namespace conformance
