// Between the program and the engine: addresses, and requests for connections.
#pragma once

#include "api/call.hpp"
#include "engine/listening.hpp"

namespace via::api {

/// The program's address, read once; false when its lengths are impossible. Host bytes of a local
/// address may be junk (VIPL 4.19): their length still says where the discriminator begins.
bool read_address(const VIP_NET_ADDRESS& from, NetAddress& to, bool local);
/// As much as there is room for; `length` says how much there is.
void write_data(const engine::PrivateData& from, VIP_PVOID data, VIP_UINT32& length);
/// All of the request but its private data.
void write_offer(const OpenNic& open, const engine::Offer& offer, VIP_NET_ADDRESS& remote,
                 VIP_VI_ATTRIBUTES& attributes, VIP_CONN_HANDLE& connection);

}  // namespace via::api
