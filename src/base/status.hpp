// What a call answers. The values are VIP_RETURN's (VIPL 1.6), so that the C API layer only casts.
#pragma once

#include <cstdint>
#include <expected>

namespace via {

enum class Status : std::uint8_t {
    success = 0,
    not_done,
    invalid_parameter,
    error_resource,
    timeout,
    reject,
    invalid_reliability_level,
    invalid_mtu,
    invalid_qos,
    invalid_ptag,
    invalid_rdma_read,
    descriptor_error,
    invalid_state,
    error_name_service,
    no_match,
    not_reachable,
    error_not_supported,
};

constexpr const char* to_string(Status status) {
    constexpr const char* names[] = {"success",
                                     "not done",
                                     "invalid parameter",
                                     "error resource",
                                     "timeout",
                                     "reject",
                                     "invalid reliability level",
                                     "invalid MTU",
                                     "invalid QoS",
                                     "invalid protection tag",
                                     "invalid RDMA read",
                                     "descriptor error",
                                     "invalid state",
                                     "error name service",
                                     "no match",
                                     "not reachable",
                                     "error not supported"};
    return names[static_cast<std::uint8_t>(status)];
}

template <class T>
using Result = std::expected<T, Status>;

}  // namespace via
