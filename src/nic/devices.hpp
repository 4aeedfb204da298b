// The devices of a NIC, in the order in which a host is looked for on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/device.hpp"

namespace via::nic {

/// Owns the devices, knows which have what facet, and asks all of them what a NIC asks as one.
/// Under the turn, but before anybody can take it.
class Devices {
public:
    using List = std::vector<std::unique_ptr<device::Device>>;

    void add(std::unique_ptr<device::Device> device);
    /// They leave their peers. What drops() says of each stands.
    void clear();

    std::size_t size() const { return all_.size(); }
    bool empty() const { return all_.empty(); }
    [[gnu::always_inline]] device::Device& operator[](std::size_t index) { return *all_[index]; }
    device::Device& front() { return *all_.front(); }
    List::iterator begin() { return all_.begin(); }
    List::iterator end() { return all_.end(); }

    /// Those that have something to sleep on.
    const std::vector<device::Sleeping*>& sleeping() const { return sleeping_; }
    /// Some device's frames come without a wake-up.
    bool are_silent() const { return silent_; }
    /// It may lose frames, and says which.
    [[gnu::always_inline]] bool drops(std::size_t index) const {
        return retransmitting_[index] != nullptr;
    }
    /// Of one that drops().
    device::Retransmission& retransmission(std::size_t index) { return *retransmitting_[index]; }
    [[gnu::always_inline]] bool may_have_reaped(std::size_t index) const {
        return drops(index) && retransmitting_[index]->may_have_reaped();
    }

    /// On all, or on none.
    Status listen(const Discriminator& discriminator);
    void unlisten(const Discriminator& discriminator);
    [[gnu::always_inline]] bool have_work() {
        for (const auto& device : all_)  // std::any_of would be a call, at each poll of some
            if (device->has_work()) return true;
        return false;
    }
    [[gnu::always_inline]] bool may_have_deadline() const {
        for (const auto& device : all_)
            if (device->may_have_deadline()) return true;
        return false;
    }
    /// The earliest one.
    Time next_deadline() const;
    /// Wakes peers that sleep; returns the calls that it took.
    std::uint32_t notify();

private:
    List all_;
    std::vector<device::Retransmission*> retransmitting_;  ///< by device; nullptr: it loses nothing
    std::vector<device::Sleeping*> sleeping_;
    bool silent_ = false;
};

}  // namespace via::nic
