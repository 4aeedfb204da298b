// The unit tests of keys and rails, with the mutation that VIA_MUTATION names: via_mutations runs
// them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "device/datagram/mutation.hpp"
#include "secure/mutation.hpp"

namespace {

namespace datagram = via::device::datagram;
namespace secure = via::secure;

/// Before any test runs.
[[maybe_unused]] const bool begun = [] {
    const char* const name = std::getenv("VIA_MUTATION");
    if (name == nullptr) return true;
    for (std::uint8_t n = 0; n <= secure::mutation_max; ++n) {
        if (std::string_view(name) != to_string(static_cast<secure::Mutation>(n))) continue;
        secure::present_mutation = static_cast<secure::Mutation>(n);
        return true;
    }
    for (std::uint8_t n = 0; n <= datagram::mutation_max; ++n) {
        if (std::string_view(name) != to_string(static_cast<datagram::Mutation>(n))) continue;
        datagram::present_mutation = static_cast<datagram::Mutation>(n);
        return true;
    }
    std::fprintf(stderr, "no mutation %s\n", name);
    std::exit(2);
}();

}  // namespace
