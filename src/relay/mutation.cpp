#include "relay/mutation.hpp"

namespace via::relay {

#if defined(VIA_MUTATIONS)
Mutation present_mutation = Mutation::none;
#endif

const char* to_string(Mutation mutation) {
    // As the enum has them. Those of others have the same shape and nothing else in common.
    constexpr const char* names[] = {"none", "pass_on_for_anyone", "stay_on_dead_way"};
    static_assert(sizeof names / sizeof *names == mutation_max + 1U);
    return names[static_cast<std::uint8_t>(mutation)];
}

}  // namespace via::relay
