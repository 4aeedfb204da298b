// Proofs that who asks for a path receives at its address: a keyed hash, so that nothing is kept
// for who has not shown one.
#pragma once

#include "base/address.hpp"
#include "base/time.hpp"
#include "device/datagram/siphash.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

wire::Cookie make_cookie(const HashKey& key, const HostAddress& from, std::uint64_t connection,
                         Time moment);
/// Ours, of that asker, and young.
bool is_proof(const HashKey& key, const wire::Cookie& cookie, const HostAddress& from,
              std::uint64_t connection, Time now);

}  // namespace via::device::datagram
