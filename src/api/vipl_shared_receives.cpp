// Shared receive queues (via/via.h).
#include <via/via.h>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

struct LimitWait {
    const engine::SharedReceives* queues;
    std::uint64_t name;
};

/// The limit was reached, or the queue went: either way the waiter has to look.
bool is_reached_or_gone(const void* subject) {
    const auto& wait = *static_cast<const LimitWait*>(subject);
    const engine::SharedReceiveQueue* const queue = wait.queues->find(wait.name);
    return queue == nullptr || queue->reached.load(std::memory_order_acquire);
}

OpenNic* find_nic_of_shared(VIA_SHARED_RECV_HANDLE handle) {
    return find_nic_of(handle, Kind::shared_receives);
}

}  // namespace

VIA_VIPL ViaCreateSharedRecv(VIP_NIC_HANDLE handle, const VIA_SHARED_RECV_ATTRIBUTES* attributes,
                             VIA_SHARED_RECV_HANDLE* queue) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr || queue == nullptr) return VIP_INVALID_PARAMETER;
    const NicLimits& limits = open->nic->limits();
    engine::SharedShape shape;
    if (attributes->MaxDescriptors == 0 ||
        attributes->MaxDescriptors > limits.shared_receives_max ||
        attributes->Quota > limits.descriptors_per_queue_max)
        return VIP_INVALID_PARAMETER;
    if (!tag_of(*open, attributes->Ptag, shape.tag)) return VIP_INVALID_PTAG;
    shape.descriptors_max = attributes->MaxDescriptors;
    shape.quota = attributes->Quota != 0 ? attributes->Quota : limits.descriptors_per_queue_max;
    const auto name = if_memory_lasts([&] { return open->nic->create_shared_receives(shape); });
    if (!name) return answer(name.error());
    *queue = make_handle(Kind::shared_receives, open->index, *name);
    return VIP_SUCCESS;
}

VIA_VIPL ViaSetSharedRecv(VIP_VI_HANDLE handle, VIA_SHARED_RECV_HANDLE queue) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || (queue != nullptr && find_nic_of_shared(queue) != found.open))
        return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        engine::SharedReceives& queues = found.open->nic->engine().shared_receives();
        engine::SharedReceiveQueue* const to =
            queue != nullptr ? queues.find(name_of(queue)) : nullptr;
        if (!find_vi(handle) || (queue != nullptr && to == nullptr))
            return Status::invalid_parameter;
        return queues.attach(*found.vi, to);
    }));
}

VIA_VIPL ViaPostSharedRecv(VIA_SHARED_RECV_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                           VIP_MEM_HANDLE memory_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of_shared(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->post_shared_receive(name_of(handle), descriptor, memory_handle));
}

VIA_VIPL ViaQuerySharedRecv(VIA_SHARED_RECV_HANDLE handle, VIA_SHARED_RECV_STATE* state) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of_shared(handle);
    if (open == nullptr || state == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->with_turn([&] {
        const engine::SharedReceiveQueue* const queue =
            open->nic->engine().shared_receives().find(name_of(handle));
        if (queue == nullptr) return Status::invalid_parameter;
        *state = {queue->left(), queue->vis, queue->limit};
        return Status::success;
    }));
}

VIA_VIPL ViaArmSharedRecv(VIA_SHARED_RECV_HANDLE handle, VIP_UINT32 limit) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of_shared(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->arm_shared_receives(name_of(handle), limit));
}

VIA_VIPL ViaSharedRecvWait(VIA_SHARED_RECV_HANDLE handle, VIP_ULONG timeout) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of_shared(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    Status status = open->nic->take_limit(name_of(handle));
    if (status == Status::invalid_state) return VIP_INVALID_PARAMETER;
    const Time deadline = deadline_of(*open->agent, timeout);
    const LimitWait subject{&open->nic->engine().shared_receives(), name_of(handle)};
    bool ready = timeout != 0;
    while (status == Status::not_done && ready) {
        ready = open->agent->wait({is_reached_or_gone, &subject}, deadline);
        if (find_nic_of_shared(handle) != open) return VIP_INVALID_STATE;
        status = open->nic->take_limit(name_of(handle));
    }
    return answer(status == Status::not_done ? Status::timeout : status);
}

VIA_VIPL ViaDestroySharedRecv(VIA_SHARED_RECV_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic_of_shared(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(
        if_memory_lasts([&] { return open->nic->destroy_shared_receives(name_of(handle)); }));
}
