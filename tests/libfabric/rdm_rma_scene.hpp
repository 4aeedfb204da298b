// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams that reach each other's memory.
#pragma once

#include "rdm_scene.hpp"

namespace scene {

/// As datagram_hints(), and as Open MPI's windows ask.
inline Info rma_hints(std::uint64_t caps = FI_RMA) {
    Info info = datagram_hints();
    info->caps |= caps;
    info->tx_attr->msg_order = 0;
    info->rx_attr->msg_order = 0;
    info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    return info;
}

inline std::uint64_t address_of(const void* place) {
    return reinterpret_cast<std::uintptr_t>(place);
}

}  // namespace scene
