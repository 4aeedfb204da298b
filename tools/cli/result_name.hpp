// The names of VIPL's results, for people.
#pragma once

#include <vipl.h>

#include <cstddef>

namespace via::cli {

inline const char* name_of(VIP_RETURN result) {
    constexpr const char* names[] = {"VIP_SUCCESS",
                                     "VIP_NOT_DONE",
                                     "VIP_INVALID_PARAMETER",
                                     "VIP_ERROR_RESOURCE",
                                     "VIP_TIMEOUT",
                                     "VIP_REJECT",
                                     "VIP_INVALID_RELIABILITY_LEVEL",
                                     "VIP_INVALID_MTU",
                                     "VIP_INVALID_QOS",
                                     "VIP_INVALID_PTAG",
                                     "VIP_INVALID_RDMAREAD",
                                     "VIP_DESCRIPTOR_ERROR",
                                     "VIP_INVALID_STATE",
                                     "VIP_ERROR_NAMESERVICE",
                                     "VIP_NO_MATCH",
                                     "VIP_NOT_REACHABLE",
                                     "VIP_ERROR_NOT_SUPPORTED"};
    const auto index = static_cast<std::size_t>(result);
    return index < sizeof names / sizeof *names ? names[index] : "an unknown result";
}

}  // namespace via::cli
