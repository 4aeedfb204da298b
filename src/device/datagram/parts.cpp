#include "device/datagram/parts.hpp"

#include <algorithm>
#include <cstring>

namespace via::device::datagram {

std::uint32_t PartsUnderWay::next() const {
    const auto waiting = std::find_if(parts_.begin(), parts_.end(),
                                      [](const Part& part) { return part.state == State::waits; });
    return static_cast<std::uint32_t>(waiting - parts_.begin());
}

std::uint32_t PartsUnderWay::packet_length(std::uint32_t n) const {
    const auto left = static_cast<std::uint32_t>(bytes_.size()) - n * wire::part_length;
    return wire::data_header_length + wire::part_chunk_overhead + std::min(wire::part_length, left);
}

std::uint32_t PartsUnderWay::emit(std::uint32_t n, std::byte* to) {
    parts_[n].state = State::staged;
    return wire::emit_part_chunk(frame_, n, bytes_, to);
}

void PartsUnderWay::sent(std::uint32_t n, std::uint64_t packet) {
    parts_[n] = {packet, State::in_flight};
}

PartsUnderWay::Part* PartsUnderWay::find(std::uint64_t packet) {
    const auto found = std::find_if(parts_.begin(), parts_.end(), [packet](const Part& part) {
        return part.state == State::in_flight && part.packet == packet;
    });
    return found == parts_.end() ? nullptr : &*found;
}

void PartsUnderWay::arrived(std::uint64_t packet) {
    Part* const part = find(packet);
    if (part == nullptr) return;
    part->state = State::arrived;
    ++arrived_;
}

bool PartsUnderWay::lost(std::uint64_t packet) {
    Part* const part = find(packet);
    if (part == nullptr) return false;
    part->state = State::waits;
    return true;
}

bool PartsHere::put(std::uint32_t at, std::span<const std::byte> part) {
    const std::uint32_t n = at / wire::part_length;
    if (there_[n]) return false;
    there_[n] = true;
    --missing_;
    std::memcpy(bytes_ + at, part.data(), part.size());
    return true;
}

}  // namespace via::device::datagram
