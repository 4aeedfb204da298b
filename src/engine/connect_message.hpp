// What a connecting frame's payload means to the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/address.hpp"
#include "engine/vi.hpp"
#include "wire/frame.hpp"

namespace via::engine {

Discriminator discriminator_of(const std::uint8_t* bytes, std::uint16_t length);
/// What a request or an acceptance of the VI says of it.
wire::ConnectMessage describe(const Vi& vi);
RemoteAttributes attributes_of(const wire::ConnectMessage& message);
/// False: no honest NIC sends that. The private data is what follows the message in the payload.
bool read_message(const std::byte* payload, std::size_t length, wire::ConnectMessage& message);
/// Private data is read once from memory that may change.
void read_data(const std::byte* from, std::size_t length, PrivateData& data);
/// Keeps `length` bytes of private data, at most wire::private_length_max; none: nullptr.
void keep_data(const std::byte* from, std::size_t length, std::unique_ptr<PrivateData>& data);
/// What goes with the VI's request, or with the acceptance of a peer's.
std::span<const std::byte> own_data_of(const Vi& vi);

}  // namespace via::engine
