// Memory that processes share (via/via.h).
#include <via/via.h>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

struct Question {
    const engine::Vi* vi;
    std::uint32_t number;
};

bool is_answered(const void* subject) {
    const auto& question = *static_cast<const Question*>(subject);
    return question.vi->attaches_decided.load(std::memory_order_acquire) == question.number;
}

}  // namespace

VIA_VIPL ViaCreateSegment(VIP_NIC_HANDLE handle, VIP_ULONG length, VIP_MEM_ATTRIBUTES* attributes,
                          VIP_PVOID* address, VIP_MEM_HANDLE* memory_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || address == nullptr || memory_handle == nullptr || length == 0)
        return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes wanted;
    if (const Status status = read_attributes(*open, attributes, wanted); status != Status::success)
        return answer(status);
    const auto segment = if_memory_lasts([&] { return open->agent->make_segment(length, wanted); });
    if (!segment) return answer(segment.error());
    *address = segment->base;
    *memory_handle = segment->handle;
    return VIP_SUCCESS;
}

VIA_VIPL ViaDestroySegment(VIP_NIC_HANDLE handle, VIP_PVOID address) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || address == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->agent->destroy_segment(static_cast<std::byte*>(address)));
}

VIA_VIPL ViaImportSegment(VIP_VI_HANDLE handle, VIP_UINT64 remote_address,
                          VIP_MEM_HANDLE remote_handle, VIP_BOOLEAN writable, VIP_ULONG timeout,
                          VIP_PVOID* address, VIP_ULONG* length) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || address == nullptr || length == nullptr) return VIP_INVALID_PARAMETER;
    nic::Nic& nic = *found.open->nic;
    const Time deadline = deadline_of(*found.open->agent, timeout);
    const auto number = if_memory_lasts([&] {
        return nic.begin_import(*found.vi, remote_handle, remote_address, writable != VIP_FALSE);
    });
    if (!number) return answer(number.error());
    const Question question{found.vi, *number};
    const bool answered = found.open->agent->wait({is_answered, &question, false}, deadline);
    Attachment memory;
    const Status status = nic.finish_import(*found.vi, *number, memory);
    if (status != Status::success) {
        // Nobody waited to the end, and yet it is not the peer that is late.
        return !answered && find_vi(handle).vi == nullptr ? VIP_INVALID_STATE : answer(status);
    }
    *address = memory.base;
    *length = memory.length;
    return VIP_SUCCESS;
}

VIA_VIPL ViaReleaseSegment(VIP_NIC_HANDLE handle, VIP_PVOID address) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || address == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->release_import(static_cast<std::byte*>(address)));
}
