#include "bench/via_names.hpp"

#include <fmt/format.h>

#include <array>

namespace via::bench {

// The conformance tests have this list, too: they stand on vipl.h alone.
std::string name_of_return(VIP_RETURN code) {
    static constexpr std::array names{"VIP_SUCCESS",
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
    const auto index = static_cast<std::size_t>(code);
    return index < names.size() ? names[index] : fmt::format("code {}", index);
}

std::string name_of_status(VIP_UINT32 status) {
    struct Bit {
        VIP_UINT32 bit;
        const char* name;
    };
    static constexpr std::array bits{Bit{VIP_STATUS_FORMAT_ERROR, "format error"},
                                     Bit{VIP_STATUS_PROTECTION_ERROR, "protection error"},
                                     Bit{VIP_STATUS_LENGTH_ERROR, "length error"},
                                     Bit{VIP_STATUS_PARTIAL_ERROR, "partial error"},
                                     Bit{VIP_STATUS_DESC_FLUSHED_ERROR, "flushed"},
                                     Bit{VIP_STATUS_TRANSPORT_ERROR, "transport error"},
                                     Bit{VIP_STATUS_RDMA_PROT_ERROR, "RDMA protection error"},
                                     Bit{VIP_STATUS_REMOTE_DESC_ERROR, "remote descriptor error"}};
    std::string text;
    for (const Bit& bit : bits) {
        if ((status & bit.bit) != 0)
            text += fmt::format("{}{}", text.empty() ? "" : ", ", bit.name);
    }
    return text.empty() ? fmt::format("status {:#x}", status) : text;
}

}  // namespace via::bench
