// Storage for payloads of connecting: who accepts needs no memory for what it answers.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "wire/frame.hpp"

namespace via::engine {

class Payloads {
public:
    /// So many are there from now on, and come back.
    void make_room(std::size_t count) {
        if (count <= room_) return;
        spare_.reserve(count);
        for (; room_ != count; ++room_) {
            spare_.emplace_back();
            spare_.back().reserve(wire::connect_payload_max);
        }
    }
    /// Empty; where all are out, one without storage.
    std::vector<std::byte> take() {
        if (spare_.empty()) return {};
        std::vector<std::byte> payload = std::move(spare_.back());
        spare_.pop_back();
        return payload;
    }
    void give_back(std::vector<std::byte>&& payload) {
        std::vector<std::byte> back = std::move(payload);
        if (back.capacity() < wire::connect_payload_max || spare_.size() == room_) return;
        back.clear();
        spare_.push_back(std::move(back));
    }

private:
    std::vector<std::vector<std::byte>> spare_;
    std::size_t room_ = 0;
};

}  // namespace via::engine
