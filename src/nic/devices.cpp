#include "nic/devices.hpp"

#include <new>
#include <utility>

namespace via::nic {

void Devices::add(std::unique_ptr<device::Device> device) {
    silent_ = silent_ || device->capabilities().silent;
    retransmitting_.push_back(device->retransmission());
    if (device::Sleeping* const sleeping = device->sleeping()) sleeping_.push_back(sleeping);
    all_.push_back(std::move(device));
}

void Devices::clear() {
    sleeping_.clear();
    all_.clear();
}

Status Devices::listen(const Discriminator& discriminator) {
    for (std::size_t index = 0; index < all_.size(); ++index) {
        Status status = Status::success;
        try {
            status = all_[index]->listen(discriminator);
        } catch (const std::bad_alloc&) {
            status = Status::error_resource;
        }
        if (status == Status::success) continue;
        while (index-- != 0) all_[index]->unlisten(discriminator);
        return status;
    }
    return Status::success;
}

void Devices::unlisten(const Discriminator& discriminator) {
    for (auto& device : all_) device->unlisten(discriminator);
}

Time Devices::next_deadline() const {
    Time deadline = Time::never();
    for (const auto& device : all_) deadline = earlier(deadline, device->next_deadline());
    return deadline;
}

std::uint32_t Devices::notify() {
    std::uint32_t calls = 0;
    for (auto& device : all_) calls += device->notify();
    return calls;
}

}  // namespace via::nic
