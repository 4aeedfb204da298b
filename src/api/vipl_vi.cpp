// VIs: creating, asking, changing, destroying (VIPL 3).
#include <via/via.h>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

Status read_attributes(const OpenNic& open, const VIP_VI_ATTRIBUTES& from,
                       engine::ViAttributes& to) {
    const VIP_RELIABILITY_LEVEL level = from.ReliabilityLevel;
    if (level != VIP_SERVICE_UNRELIABLE && level != VIP_SERVICE_RELIABLE_DELIVERY &&
        level != VIP_SERVICE_RELIABLE_RECEPTION)
        return Status::invalid_reliability_level;
    if (from.MaxTransferSize > open.nic->limits().transfer_length_max) return Status::invalid_mtu;
    if (from.QoS != nullptr) return Status::invalid_qos;
    to = {};
    if (!tag_of(open, from.Ptag, to.tag)) return Status::invalid_ptag;
    to.reliability = static_cast<engine::Reliability>(level);
    to.transfer_length_max = static_cast<std::uint32_t>(from.MaxTransferSize);
    to.rdma_write = from.EnableRdmaWrite != VIP_FALSE;
    to.rdma_read = from.EnableRdmaRead != VIP_FALSE;
    if (to.rdma_read && level == VIP_SERVICE_UNRELIABLE) return Status::invalid_rdma_read;
    return Status::success;
}

/// Under the turn: a tag may go at any moment otherwise.
Status check_tag(const OpenNic& open, const engine::ViAttributes& attributes) {
    return attributes.tag == memory::no_tag || open.nic->memory().is_tag(attributes.tag)
               ? Status::success
               : Status::invalid_ptag;
}

/// A queue of this NIC, or none; false: something else.
bool queue_of(const OpenNic& open, VIP_CQ_HANDLE handle, queue::CompletionQueue*& queue) {
    queue = nullptr;
    if (handle == nullptr) return true;
    const FoundQueue found = find_queue(handle);
    queue = found.queue;
    return found && found.open == &open;
}

}  // namespace

VIA_VIPL via_VipCreateVi(VIP_NIC_HANDLE handle, VIP_VI_ATTRIBUTES* attributes,
                         VIP_CQ_HANDLE send_queue, VIP_CQ_HANDLE receive_queue,
                         VIP_VI_HANDLE* vi_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr || vi_handle == nullptr)
        return VIP_INVALID_PARAMETER;
    engine::ViAttributes wanted;
    if (const Status status = read_attributes(*open, *attributes, wanted);
        status != Status::success)
        return answer(status);
    const auto create = [&] {
        queue::CompletionQueue* send = nullptr;
        queue::CompletionQueue* receive = nullptr;
        if (!queue_of(*open, send_queue, send) || !queue_of(*open, receive_queue, receive))
            return Status::invalid_parameter;
        if (const Status status = check_tag(*open, wanted); status != Status::success)
            return status;
        const auto vi = open->nic->engine().create_vi(wanted, send, receive);
        if (!vi) return vi.error();
        *vi_handle = make_handle(Kind::vi, open->index, vi_name(**vi));
        return Status::success;
    };
    return answer(if_memory_lasts([&] { return open->nic->with_turn(create); }));
}

VIA_VIPL via_VipDestroyVi(VIP_VI_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    const Status status = found.open->nic->with_turn([&] {
        return find_vi(handle) ? found.open->nic->engine().destroy_vi(*found.vi)
                               : Status::invalid_parameter;
    });
    if (status == Status::success) {
        for (const bool receive : {false, true})
            found.open->agent->cancel_notifications(notification_object(handle, receive));
    }
    return answer(status);
}

VIA_VIPL via_VipSetViAttributes(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || attributes == nullptr) return VIP_INVALID_PARAMETER;
    engine::ViAttributes wanted;
    const Status sense = read_attributes(*found.open, *attributes, wanted);
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        if (found.vi->state_now() != engine::ViState::idle) return Status::invalid_state;
        if (sense != Status::success) return sense;
        if (const Status status = check_tag(*found.open, wanted); status != Status::success)
            return status;
        return found.open->nic->engine().set_attributes(*found.vi, wanted);
    }));
}

VIA_VIPL via_VipQueryVi(VIP_VI_HANDLE handle, VIP_VI_STATE* state, VIP_VI_ATTRIBUTES* attributes,
                        VIP_BOOLEAN* send_empty, VIP_BOOLEAN* receive_empty) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || state == nullptr || attributes == nullptr || send_empty == nullptr ||
        receive_empty == nullptr)
        return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        *state = static_cast<VIP_VI_STATE>(found.vi->state_now());
        write_attributes(*found.open, found.vi->attributes, *attributes);
        *send_empty = found.vi->send.work.empty() ? VIP_TRUE : VIP_FALSE;
        *receive_empty = found.vi->receive.work.empty() ? VIP_TRUE : VIP_FALSE;
        return Status::success;
    }));
}

// The program's word for a VI ---------------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) VIP_PVOID
via_VipGetUserData(VIP_VI_HANDLE handle) {
    if (is_of_parent(handle)) return nullptr;
    const FoundVi found = find_vi(handle);
    return found ? found.vi->user_data.load(std::memory_order_relaxed) : nullptr;
}

extern "C" __attribute__((visibility("default"))) void via_VipSetUserData(VIP_VI_HANDLE handle,
                                                                          VIP_PVOID data) {
    if (is_of_parent(handle)) return;
    const FoundVi found = find_vi(handle);
    if (found) found.vi->user_data.store(data, std::memory_order_relaxed);
}

// Credits -----------------------------------------------------------------------------------------

VIA_VIPL ViaSetCredits(VIP_VI_HANDLE handle, VIP_BOOLEAN wanted) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        if (found.vi->state_now() != engine::ViState::idle) return Status::invalid_state;
        if (wanted != VIP_FALSE && !found.vi->reliable()) return Status::invalid_reliability_level;
        found.vi->wants_credits = wanted != VIP_FALSE;
        return Status::success;
    }));
}

VIA_VIPL ViaQueryCredits(VIP_VI_HANDLE handle, VIP_BOOLEAN* agreed, VIP_UINT32* left) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || agreed == nullptr || left == nullptr) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        const bool holds = found.vi->credits_agreed.load();
        *agreed = holds ? VIP_TRUE : VIP_FALSE;
        *left = holds ? found.vi->credits.limit - found.vi->credits.used : 0;
        return Status::success;
    }));
}
