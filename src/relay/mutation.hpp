// Ways to break relays on purpose, for the proof that worlds notice. In every build but one made
// for that (VIA_MUTATIONS), mutated() is a constant and costs nothing.
#pragma once

#include <cstdint>

namespace via::relay {

enum class Mutation : std::uint8_t {
    none,
    pass_on_for_anyone,  ///< a relay believes who says that he is a host of its table
    stay_on_dead_way,    ///< no other way is ever taken
};
constexpr std::uint8_t mutation_max = static_cast<std::uint8_t>(Mutation::stay_on_dead_way);
const char* to_string(Mutation mutation);

#if defined(VIA_MUTATIONS)
extern Mutation present_mutation;
inline bool mutated(Mutation mutation) { return present_mutation == mutation; }
#else
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace via::relay
