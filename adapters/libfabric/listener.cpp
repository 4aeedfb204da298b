// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <chrono>
#include <random>

#include "connector.hpp"

namespace via::fabric {
namespace {

/// Of those that systems give to whoever asks for any.
std::uint16_t any_port() {
    static thread_local std::minstd_rand numbers(std::random_device{}());
    return static_cast<std::uint16_t>(32768 + numbers() % 28232);
}

}  // namespace

Listener::Listener(std::shared_ptr<Nic> nic) : nic_(std::move(nic)), address_(nic_->address(0)) {}

Listener::~Listener() { stop(); }

/// True when the port is ours: a peer-to-peer request that nobody will ever answer listens there.
/// (VIPL 4.22: of two peers the one with the earlier address listens; ours is a prefix of theirs.)
/// One NIC may ask so for several VIs, so that among its own listeners it is the NIC that knows.
bool Listener::claim(std::uint16_t port) {
    if (!nic_->take_port(port)) return false;
    address_ = nic_->address(port);
    const Address own = nic_->listener(address_);
    const Address nobody = own.with(std::string(own.discriminator()) + "~nobody");
    if (VipConnectPeerRequest(guard_, own.raw(), nobody.raw(), VIP_INFINITE) == VIP_SUCCESS)
        return true;
    nic_->give_back_port(port);
    return false;
}

void Listener::give_up_port() {
    VipDisconnect(guard_);
    VipDestroyVi(std::exchange(guard_, nullptr));
    nic_->give_back_port(port_of(address_));
}

int Listener::listen(std::uint16_t port, Take take) {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 1024;
    if (VipCreateVi(nic_->handle(), &attributes, nullptr, nullptr, &guard_) != VIP_SUCCESS)
        return -FI_ENOMEM;
    bool claimed = false;
    if (port != 0)
        claimed = claim(port);
    else
        for (int tries = 0; !claimed && tries < 1000; ++tries) claimed = claim(any_port());
    if (!claimed) {
        VipDestroyVi(std::exchange(guard_, nullptr));
        return -FI_EADDRINUSE;
    }
    take_ = std::move(take);
    try {
        thread_ = start_thread(run, this);
    } catch (...) {
        give_up_port();
        throw;
    }
    return 0;
}

void Listener::run(void* self) { static_cast<Listener*>(self)->serve(); }

void Listener::serve() {
    const Address own = nic_->listener(address_);
    while (!stopping_) {
        Address peer;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        std::uint8_t data[connect_data_max];
        VIP_UINT32 length = sizeof data;
        const VIP_RETURN code = ViaConnectWait(nic_->handle(), own.raw(), VIP_INFINITE, peer.raw(),
                                               &attributes, &connection, data, &length);
        if (code != VIP_SUCCESS) {
            FI_WARN(&provider, FI_LOG_EP_CTRL, "listening: %s\n", ViaReturnText(code));
            if (code != VIP_ERROR_RESOURCE) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            continue;
        }
        const auto hand_over = [&] {
            std::unique_ptr<ConnectRequest> request(new ConnectRequest(nic_, connection));
            request->attributes = attributes;
            request->peer = socket_address(peer.host().data(), 0);
            request->port = port_of(address_);
            take_(std::move(request), data, length);
            return 0;
        };
        if (stopping_ || guarded(hand_over) != 0) VipConnectReject(connection);
    }
    stopped_ = true;
}

/// A thread in ConnectWait ends by a request alone, so the guard asks for a connection.
void Listener::stop() {
    if (guard_ == nullptr) return;
    stopping_ = true;
    const Address own = nic_->listener(address_);
    while (!stopped_) {
        VIP_VI_ATTRIBUTES attributes;
        VipDisconnect(guard_);
        const VIP_RETURN code = VipConnectRequest(guard_, own.raw(), own.raw(), 1000, &attributes);
        if (code != VIP_REJECT) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread_.join();
    give_up_port();
}

}  // namespace via::fabric
