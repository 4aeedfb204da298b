// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "connector.hpp"

namespace via::fabric {
namespace {

/// Requests that wait for the thread; who finds no room asks again.
constexpr VIP_ULONG backlog = 64;

/// Of those that systems give to whoever asks for any.
std::uint16_t any_port() {
    static thread_local std::minstd_rand numbers(std::random_device{}());
    return static_cast<std::uint16_t>(32768 + numbers() % 28232);
}

}  // namespace

Listener::Listener(std::shared_ptr<Nic> nic) : nic_(std::move(nic)), address_(nic_->address(0)) {}

Listener::~Listener() { stop(); }

/// True when the port is ours, and whoever asks there waits to be heard. Several listeners of one
/// NIC may have one name, so that among its own it is the NIC that knows.
bool Listener::claim(std::uint16_t port) {
    if (!nic_->take_port(port)) return false;
    address_ = nic_->address(port);
    const Address own = nic_->listener(address_);
    if (ViaCreateListener(nic_->handle(), own.raw(), backlog, &listener_) == VIP_SUCCESS)
        return true;
    nic_->give_back_port(port);
    return false;
}

void Listener::give_up_port() {
    ViaDestroyListener(std::exchange(listener_, nullptr));
    nic_->give_back_port(port_of(address_));
    if (stop_ >= 0) ::close(std::exchange(stop_, -1));
}

int Listener::listen(std::uint16_t port, Take take) {
    bool claimed = false;
    if (port != 0)
        claimed = claim(port);
    else
        for (int tries = 0; !claimed && tries < 1000; ++tries) claimed = claim(any_port());
    if (!claimed) return -FI_EADDRINUSE;
    take_ = std::move(take);
    const int error = guarded([this] { return start(); });
    if (error != 0) give_up_port();
    return error;
}

int Listener::start() {
    if (ViaListenerDescriptor(listener_, &requests_) != VIP_SUCCESS) return -FI_ENOMEM;
    stop_ = eventfd(0, EFD_CLOEXEC);
    if (stop_ < 0) return -refused(FI_LOG_EP_CTRL, "a listener's descriptor (eventfd)").error;
    thread_ = start_thread(run, this);
    return 0;
}

void Listener::run(void* self) { static_cast<Listener*>(self)->serve(); }

/// Sleeps on descriptors, not in a call of VIA's: who waits there beside a program that polls takes
/// the NIC's frames from it, or has to find out that it polls.
void Listener::serve() {
    for (;;) {
        pollfd waited[] = {{requests_, POLLIN, 0}, {stop_, POLLIN, 0}};
        if (::poll(waited, std::size(waited), -1) < 0 && errno != EINTR) {
            refused(FI_LOG_EP_CTRL, "listening (poll)");
            return;
        }
        if (waited[1].revents != 0) return;
        take_one();
    }
}

/// The others are seen by the next look at the descriptor; one that finds nothing would be a poll
/// of the NIC.
void Listener::take_one() {
    Address peer;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection = nullptr;
    std::uint8_t data[connect_data_max];
    VIP_UINT32 length = sizeof data;
    const VIP_RETURN code =
        ViaListenerWait(listener_, 0, peer.raw(), &attributes, &connection, data, &length);
    if (code == VIP_TIMEOUT) return;
    if (code != VIP_SUCCESS) {
        FI_WARN(&provider, FI_LOG_EP_CTRL, "listening: %s\n", ViaReturnText(code));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
    }
    const auto hand_over = [&] {
        std::unique_ptr<ConnectRequest> request(new ConnectRequest(nic_, connection));
        request->attributes = attributes;
        request->peer = socket_address(peer.host().data(), 0);
        request->port = port_of(address_);
        take_(std::move(request), data, length);
        return 0;
    };
    if (guarded(hand_over) != 0) VipConnectReject(connection);
}

/// Those that still wait are answered that nobody listens.
void Listener::stop() {
    if (listener_ == nullptr) return;
    const std::uint64_t value = 1;
    if (::write(stop_, &value, sizeof value) != sizeof value)
        refused(FI_LOG_EP_CTRL, "cannot end listening (write)");
    thread_.join();
    give_up_port();
}

}  // namespace via::fabric
