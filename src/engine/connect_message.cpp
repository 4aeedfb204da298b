#include "engine/connect_message.hpp"

#include <algorithm>
#include <cstring>

namespace via::engine {

Discriminator discriminator_of(const std::uint8_t* bytes, std::uint16_t length) {
    Discriminator discriminator;
    discriminator.length = length;
    std::memcpy(discriminator.bytes.data(), bytes, length);
    return discriminator;
}

RemoteAttributes attributes_of(const wire::ConnectMessage& message) {
    RemoteAttributes attributes;
    attributes.reliability = static_cast<Reliability>(message.reliability);
    attributes.transfer_length_max = message.transfer_length_max;
    attributes.qos = message.qos;
    attributes.rdma_write = message.rdma_write_enabled != 0;
    attributes.rdma_read = message.rdma_read_enabled != 0;
    return attributes;
}

/// Only what describe() could have made. The private data is what follows.
bool read_message(const std::byte* payload, std::size_t length, wire::ConnectMessage& message) {
    if (length < sizeof message) return false;
    std::memcpy(&message, payload, sizeof message);
    const std::uint16_t level = message.reliability;
    return (level == 1 || level == 2 || level == 4) && message.rdma_write_enabled <= 1 &&
           message.rdma_read_enabled <= 1 && message.local_length <= 64 &&
           message.remote_length <= 64 && (message.features & ~wire::connect_feature::all) == 0 &&
           message.private_length <= wire::private_length_max &&
           length == sizeof message + message.private_length;
}

void read_data(const std::byte* from, std::size_t length, PrivateData& data) {
    data.length = static_cast<std::uint32_t>(length);
    std::copy_n(from, length, data.bytes.begin());
}

void keep_data(const std::byte* from, std::size_t length, std::unique_ptr<PrivateData>& data) {
    data.reset();
    if (length == 0) return;
    data = std::make_unique<PrivateData>();
    read_data(from, length, *data);
}

wire::ConnectMessage describe(const Vi& vi) {
    wire::ConnectMessage message{};
    message.vi = vi.number();
    message.transfer_length_max = vi.attributes.transfer_length_max;
    message.reliability = static_cast<std::uint16_t>(vi.attributes.reliability);
    message.rdma_write_enabled = vi.attributes.rdma_write;
    message.rdma_read_enabled = vi.attributes.rdma_read;
    message.qos = vi.attributes.qos;
    if (vi.wants_credits && vi.reliable()) message.features |= wire::connect_feature::credits;
    return message;
}

std::span<const std::byte> own_data_of(const Vi& vi) {
    if (!vi.own_data) return {};
    return {vi.own_data->bytes.data(), vi.own_data->length};
}

}  // namespace via::engine
