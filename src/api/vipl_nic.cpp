// VipOpenNic, VipCloseNic, VipQueryNic, VipErrorCallback, VipQuerySystemManagementInfo.
#include <via/via.h>

#include <cstdio>
#include <cstring>
#include <expected>
#include <memory>
#include <new>

#include "agent/configuration.hpp"
#include "api/call.hpp"
#include "api/open.hpp"

using namespace via;
using namespace via::api;

namespace {

/// The program's error handler and what it needs; owned by the agent's handler slot.
struct ErrorHandler {
    OpenNic* open;
    std::uint64_t generation;
    VIP_PVOID context;
    VIP_ERROR_HANDLER handler;
};

VIP_RESOURCE_CODE resource_of(const engine::ErrorEvent& event) {
    if (event.completion_queue != nullptr) return VIP_RESOURCE_CQ;
    return event.vi != nullptr ? VIP_RESOURCE_VI : VIP_RESOURCE_NIC;
}

/// Runs on the agent's handler thread.
void run_error_handler(void* subject, const engine::ErrorEvent& event) {
    const ErrorHandler error_handler = *static_cast<ErrorHandler*>(subject);  // it may be replaced
    OpenNic& open = *error_handler.open;
    VIP_ERROR_DESCRIPTOR error{};
    error.NicHandle = make_handle(Kind::nic, open.index, error_handler.generation);
    if (event.vi != nullptr)
        error.ViHandle = make_handle(Kind::vi, open.index,
                                     (std::uint64_t{event.vi_generation} << 16) | event.vi->index);
    if (event.completion_queue != nullptr)
        error.CQHandle =
            make_handle(Kind::completion_queue, open.index, event.completion_queue_name);
    error.ResourceCode = resource_of(event);
    error.ErrorCode = static_cast<VIP_ERROR_CODE>(event.code);
    error_handler.handler(error_handler.context, &error);
}

VIP_ULONG clamp(std::uint64_t value) { return std::min<std::uint64_t>(value, 0x7FFFFFFF); }

using Opened = std::expected<VIP_NIC_HANDLE, agent::OpenError>;

Opened open_nic(const VIP_CHAR* name) {
    const auto fail = [](const char* why) {
        return std::unexpected(agent::OpenError{Status::error_resource, why});
    };
    if (!agent::remember_process(begin_in_child))
        return fail("no memory that a fork wipes (mmap, MADV_WIPEONFORK), or no handler of a fork");
    const std::uint64_t generation = next_generation();
    // Generations step by 2^16 from NIC to NIC: handles of one do not fit another.
    auto agent = open_by_name(name, static_cast<std::uint32_t>(generation << 16));
    if (!agent) return std::unexpected(agent.error());
    const OpenNic* open = enter_nic(std::move(*agent), generation);
    if (open == nullptr) return fail("as many as can be are open in this process");
    return nic_handle(*open);
}

/// Says why on the log, and to the caller who wants to know.
VIP_RETURN open_and_tell(const VIP_CHAR* name, VIP_NIC_HANDLE* handle, VIP_CHAR* why,
                         std::size_t why_size) {
    if (name == nullptr || handle == nullptr) return VIP_INVALID_PARAMETER;
    if (why != nullptr && why_size != 0) *why = '\0';
    Opened opened;
    try {
        opened = open_nic(name);
    } catch (const std::bad_alloc&) {
        opened = std::unexpected(agent::OpenError{Status::error_resource, "out of memory"});
    }
    if (opened) {
        *handle = *opened;
        return VIP_SUCCESS;
    }
    const std::string shown = agent::shown(name);
    agent::log(1, "cannot open NIC \"%s\": %s", shown.c_str(), opened.error().text.c_str());
    if (why != nullptr && why_size != 0)
        std::snprintf(why, why_size, "cannot open NIC \"%s\": %s", shown.c_str(),
                      opened.error().text.c_str());
    return answer(opened.error().status);
}

}  // namespace

VIA_VIPL via_VipOpenNic(const VIP_CHAR* name, VIP_NIC_HANDLE* handle) {
    VIA_REFUSE_CHILD();
    return open_and_tell(name, handle, nullptr, 0);
}

VIA_VIPL ViaOpenNic(const VIP_CHAR* name, VIP_NIC_HANDLE* handle, VIP_CHAR* why,
                    std::size_t why_size) {
    if (agent::forked()) {
        if (why != nullptr && why_size != 0)
            std::snprintf(why, why_size,
                          "this process was made from one that had used the library already, past "
                          "fork(3) and its handlers (clone, _Fork), or it ends");
        return VIP_INVALID_STATE;
    }
    return open_and_tell(name, handle, why, why_size);
}

VIA_VIPL via_VipCloseNic(VIP_NIC_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    agent::Handler handler{};
    if (find_nic(handle) == nullptr) return VIP_INVALID_PARAMETER;
    const Closed closed = close_nic(handle, handler);
    if (closed == Closed::already) return VIP_INVALID_PARAMETER;
    delete static_cast<ErrorHandler*>(handler.context);
    return closed == Closed::well ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
}

VIA_VIPL via_VipQueryNic(VIP_NIC_HANDLE handle, VIP_NIC_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || attributes == nullptr) return VIP_INVALID_PARAMETER;
    const NicLimits& limits = open->nic->limits();
    const HostAddress& address = open->agent->address();
    VIP_NIC_ATTRIBUTES out{};
    std::strncpy(out.Name, open->nic->name().c_str(), sizeof out.Name - 1);
    out.HardwareVersion = 1;
    out.ProviderVersion = 1;
    out.NicAddressLen = address.length;
    out.LocalNicAddress = address.bytes.data();
    out.ThreadSafe = VIP_TRUE;
    out.MaxDiscriminatorLen = static_cast<VIP_UINT16>(limits.discriminator_length_max);
    out.MaxRegisterBytes = clamp(~0ULL);
    out.MaxRegisterRegions = clamp(limits.regions_max);
    out.MaxRegisterBlockBytes = clamp(~0ULL);
    out.MaxVI = clamp(limits.vis_max);
    out.MaxDescriptorsPerQueue = clamp(limits.descriptors_per_queue_max);
    out.MaxSegmentsPerDesc = clamp(limits.segments_per_descriptor_max);
    out.MaxCQ = clamp(limits.completion_queues_max);
    out.MaxCQEntries = clamp(limits.completion_queue_entries_max);
    out.MaxTransferSize = clamp(limits.transfer_length_max);
    out.NativeMTU = clamp(open->agent->payload_max());
    out.MaxPtags = clamp(limits.protection_tags_max);
    out.ReliabilityLevelSupport =
        VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    out.RDMAReadSupport = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    *attributes = out;
    return VIP_SUCCESS;
}

VIA_VIPL ViaQueryAtomics(VIP_NIC_HANDLE handle, VIA_ATOMIC_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    if (find_nic(handle) == nullptr || attributes == nullptr) return VIP_INVALID_PARAMETER;
    *attributes = {};
    attributes->Support = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    // The target's NIC uses the processor's own instructions, whatever carries its frames.
    attributes->Scope = VIA_ATOMIC_SCOPE_MEMORY;
    return VIP_SUCCESS;
}

VIA_VIPL via_VipErrorCallback(VIP_NIC_HANDLE handle, VIP_PVOID context, VIP_ERROR_HANDLER handler) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    agent::Handler next{};
    if (handler != nullptr) {
        auto* subject = new (std::nothrow) ErrorHandler{open, open->generation, context, handler};
        if (subject == nullptr) return VIP_ERROR_RESOURCE;
        next = {run_error_handler, subject};
    }
    delete static_cast<ErrorHandler*>(open->agent->set_error_handler(next).context);
    return VIP_SUCCESS;
}

VIA_VIPL via_VipQuerySystemManagementInfo(VIP_NIC_HANDLE handle, VIP_ULONG type, VIP_PVOID info) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || info == nullptr || type != VIP_SMI_AUTODISCOVERY)
        return VIP_INVALID_PARAMETER;
    auto& list = *static_cast<VIP_AUTODISCOVERY_LIST*>(info);
    try {
        const std::vector<HostAddress> found = open->agent->discover();
        const std::size_t count = std::min<std::size_t>(found.size(), list.NumAdAddrs);
        // All buffers are looked at before any is written: a refusal changes nothing.
        if (count != 0 && list.ADAddrArray == nullptr) return VIP_INVALID_PARAMETER;
        for (std::size_t n = 0; n < count; ++n)
            if (list.ADAddrArray[n] == nullptr) return VIP_INVALID_PARAMETER;
        for (std::size_t n = 0; n < count; ++n)
            write_address(found[n], Discriminator{}, *list.ADAddrArray[n]);
        list.NumAdAddrs = count;
        return VIP_SUCCESS;
    } catch (const std::bad_alloc&) {
        return VIP_ERROR_RESOURCE;
    }
}

// Counters and words ------------------------------------------------------------------------------

#define VIA_TEXT extern "C" __attribute__((visibility("default"))) const char*

VIA_TEXT ViaCounterName(VIP_UINT32 index) {
    return index < counter_count ? counter_name(index) : nullptr;
}

VIA_TEXT ViaCounterText(VIP_UINT32 index) {
    return index < counter_count ? counter_text(index) : nullptr;
}

VIA_VIPL ViaReadCounter(VIP_NIC_HANDLE handle, const char* name, VIP_UINT64* value) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || name == nullptr || value == nullptr) return VIP_INVALID_PARAMETER;
    for (std::uint32_t index = 0; index < counter_count; ++index) {
        if (std::strcmp(counter_name(index), name) != 0) continue;
        *value = open->nic->counters().get(static_cast<Counter>(index));
        return VIP_SUCCESS;
    }
    return VIP_INVALID_PARAMETER;
}

VIA_TEXT ViaReturnText(VIP_RETURN code) {
    switch (code) {
        case VIP_SUCCESS:
            return "success";
        case VIP_NOT_DONE:
            return "not done yet";
        case VIP_INVALID_PARAMETER:
            return "invalid parameter: a bad or stale handle, a null pointer, or a value out of "
                   "range";
        case VIP_ERROR_RESOURCE:
            return "no resource: a limit was met, or the object is still in use";
        case VIP_TIMEOUT:
            return "time is up";
        case VIP_REJECT:
            return "the other side rejected the connection";
        case VIP_INVALID_RELIABILITY_LEVEL:
            return "the two VIs' reliability levels differ, or this one does not allow it";
        case VIP_INVALID_MTU:
            return "the two VIs' MaxTransferSize differ, or it is too large";
        case VIP_INVALID_QOS:
            return "the two VIs' quality of service differ";
        case VIP_INVALID_PTAG:
            return "no such protection tag on this NIC";
        case VIP_INVALID_RDMAREAD:
            return "RDMA read needs a reliable VI";
        case VIP_DESCRIPTOR_ERROR:
            return "the descriptor completed with an error, or nothing is posted";
        case VIP_INVALID_STATE:
            return "not in this state of the VI, or in a forked child with a handle of its parent";
        case VIP_ERROR_NAMESERVICE:
            return "the name service knows no such host";
        case VIP_NO_MATCH:
            return "no match: nobody listens to that discriminator";
        case VIP_NOT_REACHABLE:
            return "not reachable: no such host, or no NIC there";
        case VIP_ERROR_NOT_SUPPORTED:
            return "not supported by this NIC";
    }
    return "unknown return code";
}
