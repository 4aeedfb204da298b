// Listeners that stand between two looks of the program, by name.
#include "nic/nic.hpp"

namespace via::nic {

Result<std::uint64_t> Nic::create_listener(const Discriminator& discriminator,
                                           std::uint32_t backlog) {
    if (backlog == 0 || backlog > limits_.backlog_max)
        return std::unexpected(Status::invalid_parameter);
    return with_turn([&]() -> Result<std::uint64_t> {
        if (free_listeners_.empty()) {
            if (listeners_.size() == limits_.listeners_max)
                return std::unexpected(Status::error_resource);
            listeners_.emplace_back().generation.store(first_generation_);
            free_listeners_.push_back(static_cast<std::uint32_t>(listeners_.size() - 1));
        }
        if (!engine_.requests().make_room(backlog)) return std::unexpected(Status::error_resource);
        const Status status = devices_.listen(discriminator);
        if (status != Status::success) return std::unexpected(status);
        const std::uint32_t index = free_listeners_.front();
        free_listeners_.pop_front();
        engine::Backlog& made = listeners_[index];
        made.discriminator = discriminator;
        made.room = backlog;
        const std::uint32_t generation = made.generation.load(std::memory_order_relaxed) + 1;
        made.generation.store(generation, std::memory_order_release);
        engine_.requests().listen(made);
        return (std::uint64_t{generation} << 16) | index;
    });
}

engine::Backlog* Nic::listener(std::uint64_t name) {
    const std::uint64_t index = name & 0xFFFF;
    if (index >= listeners_.size()) return nullptr;
    const std::uint32_t generation = listeners_[index].generation.load(std::memory_order_relaxed);
    return (generation & 1) != 0 && generation == name >> 16 ? &listeners_[index] : nullptr;
}

Status Nic::take_request(std::uint64_t name, engine::Offer& offer, engine::Backlog*& waits) {
    return with_turn([&] {
        waits = listener(name);
        if (waits == nullptr) return Status::invalid_state;
        return engine_.requests().take(*waits, offer) ? Status::success : Status::not_done;
    });
}

Status Nic::destroy_listener(std::uint64_t name) {
    return with_turn([&] {
        engine::Backlog* gone = listener(name);
        if (gone == nullptr) return Status::invalid_parameter;
        free_listeners_.push_back(static_cast<std::uint32_t>(name & 0xFFFF));  // needs memory
        devices_.unlisten(gone->discriminator);
        gone->generation.store(gone->generation.load() + 1, std::memory_order_release);
        attendant_.listener_goes(*gone);  // before somebody else's takes its place
        engine_.requests().unlisten(*gone);
        return Status::success;
    });
}

}  // namespace via::nic
