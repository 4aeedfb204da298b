// SPDX-License-Identifier: Apache-2.0
// What the provider says it can do, and which of its NICs fit what a program asks for.
#pragma once

#include "common.hpp"

namespace via::fabric {

inline constexpr std::size_t queue_size_max = 1024;      ///< VIA: descriptors of a queue
inline constexpr std::size_t shared_size_max = 65536;    ///< VIA: of a shared receive queue
inline constexpr std::size_t shared_contexts_max = 256;  ///< VIA: of a NIC
inline constexpr std::size_t queue_size_default = 256;   ///< what an endpoint's queues hold
/// Bytes copied by an injected message: 1 KB behind the header of ofi_rxm.
inline constexpr std::size_t inject_size_max = 1024 + 64;
inline constexpr std::size_t segments_max = 4;  ///< pieces of memory of one operation
inline constexpr std::size_t transfer_size_max = std::size_t{1} << 30;  ///< VIA: of one message
inline constexpr std::size_t message_size_max = std::size_t{1} << 40;   ///< by RDMA, in pieces

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info);

/// Does the program want progress while it computes?
bool wants_progress(const fi_info& info);

/// Parameter `max_transfer_size`: where RDMA is cut; otherwise as large as VIA allows.
std::size_t transfer_size();

/// Parameter `eager_size`: bytes of the longest message between endpoints for datagrams that is
/// copied at its receiver; otherwise what measures best.
std::size_t eager_size(bool in_shared_memory);
/// Where its receiver copies it from the sender's process when it is offered.
std::size_t eager_size_one_copy();

/// Parameter `max_unexpected_size`: bytes of a peer's messages before their receives that an
/// endpoint for datagrams moves to memory of their own; otherwise all.
std::size_t unexpected_size_max();

/// Parameter `rdm`: endpoints for datagrams (rdm/) are offered to those who ask for FI_EP_RDM.
bool offers_datagrams();

/// Parameter `stores`: endpoints for datagrams of one host may send short messages by stores.
bool stores_are_wanted();
/// Parameter `one_copy`, if it is set.
bool one_copy_is_wanted(bool otherwise);

}  // namespace via::fabric
