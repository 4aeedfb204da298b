// Codes of vipl.h in words.
#pragma once

#include <vipl.h>

#include <string>

namespace via::bench {

// "VIP_TIMEOUT" and the like.
std::string name_of_return(VIP_RETURN code);
// The error bits of a descriptor's status in words.
std::string name_of_status(VIP_UINT32 status);

}  // namespace via::bench
