// Protection tags and registered memory (VIPL 4.6 to 4.8).
#include <via/via.h>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

VIA_VIPL via_VipCreatePtag(VIP_NIC_HANDLE handle, VIP_PROTECTION_HANDLE* tag_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || tag_handle == nullptr) return VIP_INVALID_PARAMETER;
    const auto tag = if_memory_lasts(
        [&] { return open->nic->with_turn([&] { return open->nic->memory().create_tag(); }); });
    if (!tag) return answer(tag.error());
    *tag_handle = handle_of_tag(*open, *tag);
    return VIP_SUCCESS;
}

VIA_VIPL via_VipDestroyPtag(VIP_NIC_HANDLE handle, VIP_PROTECTION_HANDLE tag_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    memory::ProtectionTag tag = memory::no_tag;
    if (open == nullptr || tag_handle == nullptr || !tag_of(*open, tag_handle, tag))
        return VIP_INVALID_PARAMETER;
    return answer(open->nic->with_turn([&] {
        return open->nic->memory().destroy_tag(tag, open->nic->engine().vis_with_tag(tag));
    }));
}

VIA_VIPL via_VipRegisterMem(VIP_NIC_HANDLE handle, VIP_PVOID address, VIP_ULONG length,
                            VIP_MEM_ATTRIBUTES* attributes, VIP_MEM_HANDLE* memory_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || memory_handle == nullptr || address == nullptr)
        return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes wanted;
    if (const Status status = read_attributes(*open, attributes, wanted); status != Status::success)
        return answer(status);
    const auto region = open->agent->register_memory(bits_of(address), length, wanted);
    if (!region) return answer(region.error());
    *memory_handle = *region;
    return VIP_SUCCESS;
}

VIA_VIPL via_VipDeregisterMem(VIP_NIC_HANDLE handle, VIP_PVOID address,
                              VIP_MEM_HANDLE memory_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->agent->deregister(memory_handle, bits_of(address)));
}

VIA_VIPL via_VipSetMemAttributes(VIP_NIC_HANDLE handle, VIP_PVOID address,
                                 VIP_MEM_HANDLE memory_handle, VIP_MEM_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr) return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes wanted;
    if (const Status status = read_attributes(*open, attributes, wanted); status != Status::success)
        return answer(status);
    // All memory of the process is for local use (ViaRegisterAll).
    if (address == nullptr && (wanted.rdma_write || wanted.rdma_read)) return VIP_INVALID_PARAMETER;
    return answer(open->nic->change_region(memory_handle, bits_of(address), wanted));
}

namespace {

Status query(const OpenNic& open, VIP_PVOID address, VIP_MEM_HANDLE handle,
             memory::MemoryAttributes& found) {
    const auto look = [&] { return open.nic->memory().query(handle, bits_of(address), found); };
    const Status status = look();
    // Perhaps another thread just changes it: who holds the turn sees what is.
    return status == Status::success ? status : open.nic->holding_turn(look);
}

}  // namespace

VIA_VIPL via_VipQueryMem(VIP_NIC_HANDLE handle, VIP_PVOID address, VIP_MEM_HANDLE memory_handle,
                         VIP_MEM_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr) return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes found;
    if (const Status status = query(*open, address, memory_handle, found);
        status != Status::success)
        return answer(status);
    attributes->Ptag = handle_of_tag(*open, found.tag);
    attributes->EnableRdmaWrite = found.rdma_write ? VIP_TRUE : VIP_FALSE;
    attributes->EnableRdmaRead = found.rdma_read ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
}

VIA_VIPL ViaSetMemAtomics(VIP_NIC_HANDLE handle, VIP_PVOID address, VIP_MEM_HANDLE memory_handle,
                          VIP_BOOLEAN enable) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    // All memory of the process is for local use (ViaRegisterAll).
    if (open == nullptr || address == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->allow_atomics(memory_handle, bits_of(address), enable != VIP_FALSE));
}

VIA_VIPL ViaQueryMemAtomics(VIP_NIC_HANDLE handle, VIP_PVOID address, VIP_MEM_HANDLE memory_handle,
                            VIP_BOOLEAN* enabled) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || enabled == nullptr) return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes found;
    if (const Status status = query(*open, address, memory_handle, found);
        status != Status::success)
        return answer(status);
    *enabled = found.atomics ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
}

VIA_VIPL ViaBindWindow(VIP_NIC_HANDLE handle, VIP_PVOID address, VIP_ULONG length,
                       VIP_MEM_HANDLE memory_handle, const VIA_WINDOW_ATTRIBUTES* attributes,
                       VIP_MEM_HANDLE* window) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr || window == nullptr) return VIP_INVALID_PARAMETER;
    memory::MemoryAttributes wanted;
    if (!tag_of(*open, attributes->Ptag, wanted.tag)) return VIP_INVALID_PTAG;
    wanted.rdma_write = attributes->EnableRdmaWrite != VIP_FALSE;
    wanted.rdma_read = attributes->EnableRdmaRead != VIP_FALSE;
    wanted.atomics = attributes->EnableAtomics != VIP_FALSE;
    const auto bound = if_memory_lasts(
        [&] { return open->nic->bind_window(memory_handle, bits_of(address), length, wanted); });
    if (!bound) return answer(bound.error());
    *window = *bound;
    return VIP_SUCCESS;
}

VIA_VIPL ViaRevokeWindow(VIP_NIC_HANDLE handle, VIP_MEM_HANDLE window) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(open->nic->end_window(window));
}

VIA_VIPL ViaQueryWindow(VIP_NIC_HANDLE handle, VIP_MEM_HANDLE window, VIA_WINDOW_STATE* state) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || state == nullptr) return VIP_INVALID_PARAMETER;
    const memory::MemoryTable& regions = open->nic->memory();
    bool live = false;
    const memory::Window found = open->nic->holding_turn([&] {
        live = regions.live(regions.region_of(window));
        return regions.window(window);
    });
    if (found.region == 0) return VIP_INVALID_PARAMETER;
    const auto grants = [&](memory::Access access) {
        return (found.rights & memory::Region::right_of(access)) != 0 ? VIP_TRUE : VIP_FALSE;
    };
    state->Address = reinterpret_cast<VIP_PVOID>(found.begin);
    state->Length = found.end - found.begin;
    state->MemoryHandle = found.region;
    state->Live = live ? VIP_TRUE : VIP_FALSE;
    state->Attributes = {handle_of_tag(*open, found.tag), grants(memory::Access::remote_write),
                         grants(memory::Access::remote_read),
                         grants(memory::Access::remote_atomic)};
    return VIP_SUCCESS;
}

VIA_VIPL ViaRegisterAll(VIP_NIC_HANDLE handle, VIP_MEM_HANDLE* memory_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || memory_handle == nullptr) return VIP_INVALID_PARAMETER;
    // Past the agent: not even pin=require can lock a whole address space.
    const auto region = open->nic->register_memory(0, ~0ULL, {});
    if (!region) return answer(region.error());
    *memory_handle = *region;
    return VIP_SUCCESS;
}
