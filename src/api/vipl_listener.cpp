// Listeners that stand (via/via.h).
#include <via/via.h>

#include "api/call.hpp"
#include "api/offer.hpp"

using namespace via;
using namespace via::api;

namespace {

struct RequestWait {
    const engine::Backlog* backlog;
    std::uint64_t generation;
};

/// A request came, or the listener went: either way the waiter has to look.
bool has_request_or_is_gone(const void* subject) {
    const auto& wait = *static_cast<const RequestWait*>(subject);
    return wait.backlog->waiting.load(std::memory_order_acquire) != 0 ||
           wait.backlog->generation.load(std::memory_order_acquire) != wait.generation;
}

Status wait_for_request(OpenNic& open, VIA_LISTENER_HANDLE handle, VIP_ULONG timeout,
                        engine::Offer& offer) {
    engine::Backlog* backlog = nullptr;
    const auto take = [&] { return open.nic->take_request(name_of(handle), offer, backlog); };
    Status status = take();
    if (status == Status::invalid_state) return Status::invalid_parameter;
    const Time deadline = deadline_of(*open.agent, timeout);
    bool ready = true;
    while (status == Status::not_done && ready) {
        const RequestWait subject{backlog, name_of(handle) >> 16};
        if (timeout == 0) {
            open.nic->poll();
            ready = false;
        } else {
            ready = open.agent->wait({has_request_or_is_gone, &subject, false}, deadline);
        }
        if (find_nic_of(handle, Kind::listener) != &open) return Status::invalid_state;
        status = take();
    }
    return status == Status::not_done ? Status::timeout : status;
}

}  // namespace

VIA_VIPL ViaCreateListener(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* local, VIP_ULONG backlog,
                           VIA_LISTENER_HANDLE* listener) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    NetAddress address;
    if (open == nullptr || local == nullptr || listener == nullptr || backlog > VIA_BACKLOG_MAX ||
        !read_address(*local, address, true))
        return VIP_INVALID_PARAMETER;
    const auto name = if_memory_lasts([&] {
        return open->nic->create_listener(address.discriminator,
                                          static_cast<std::uint32_t>(backlog));
    });
    if (!name) return answer(name.error());
    open->agent->listens_here();
    *listener = make_handle(Kind::listener, open->index, *name);
    return VIP_SUCCESS;
}

VIA_VIPL ViaListenerWait(VIA_LISTENER_HANDLE handle, VIP_ULONG timeout, VIP_NET_ADDRESS* remote,
                         VIP_VI_ATTRIBUTES* remote_attributes, VIP_CONN_HANDLE* connection,
                         VIP_PVOID data, VIP_UINT32* length) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of(handle, Kind::listener);
    if (open == nullptr || remote == nullptr || remote_attributes == nullptr ||
        connection == nullptr || length == nullptr || (*length != 0 && data == nullptr))
        return VIP_INVALID_PARAMETER;
    engine::Offer offer;
    const Status status = wait_for_request(*open, handle, timeout, offer);
    if (status != Status::success) return answer(status);
    write_offer(*open, offer, *remote, *remote_attributes, *connection);
    write_data(offer.data, data, *length);
    return VIP_SUCCESS;
}

VIA_VIPL ViaListenerDescriptor(VIA_LISTENER_HANDLE handle, int* descriptor) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of(handle, Kind::listener);
    if (open == nullptr || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return answer(
        if_memory_lasts([&] { return open->agent->watch_listener(name_of(handle), *descriptor); }));
}

VIA_VIPL ViaDestroyListener(VIA_LISTENER_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of(handle, Kind::listener);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(if_memory_lasts([&] { return open->nic->destroy_listener(name_of(handle)); }));
}
