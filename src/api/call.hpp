// What every function of the C API shares.
#pragma once

#include <vipl.h>

#include <algorithm>
#include <cstring>
#include <expected>
#include <new>
#include <type_traits>

#include "agent/process.hpp"
#include "api/handles.hpp"
#include "base/status.hpp"

/// A function that libvipl.so calls; libvia.so exports it.
#define VIA_VIPL extern "C" __attribute__((visibility("default"))) VIP_RETURN
/// Of a message's way: such functions lie together.
#define VIA_VIPL_HOT extern "C" __attribute__((visibility("default"), hot)) VIP_RETURN

namespace via::api {

inline VIP_RETURN answer(Status status) { return static_cast<VIP_RETURN>(status); }

/// Both ways to say "for ever" (VIPL 1.5).
inline bool is_infinite(VIP_ULONG timeout) { return timeout >= 0xFFFFFFFFUL; }

inline Time deadline_of(agent::Agent& agent, VIP_ULONG timeout) {
    return is_infinite(timeout) ? Time::never()
                                : agent.now() + milliseconds(static_cast<std::int64_t>(timeout));
}

/// What a call answers that needs memory of ours, a Status or a Result. Without it nothing changes.
/// Not around a call that waits, or takes turns else: memory that is missing there ends the
/// program.
template <class Call>
auto if_memory_lasts(Call call) -> decltype(call()) {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        if constexpr (std::is_same_v<decltype(call()), Status>)
            return Status::error_resource;
        else
            return std::unexpected(Status::error_resource);
    }
}

inline VIP_NIC_HANDLE nic_handle(const OpenNic& open) {
    return make_handle(Kind::nic, open.index, open.generation);
}

/// What notifications of a VI's queue, or of a completion queue, go by; never 0.
inline std::uint64_t notification_object(const void* handle, bool receive) {
    return bits_of(handle) ^ (receive ? 1ULL << 63 : 0);
}

/// A protection tag's handle to the table's tag. False: not a tag of this NIC.
inline bool tag_of(const OpenNic& open, VIP_PROTECTION_HANDLE handle, memory::ProtectionTag& tag) {
    if (handle == nullptr) {
        tag = memory::no_tag;
        return true;
    }
    tag = name_of(handle);
    return is_kind(handle, Kind::tag) && nic_index(handle) == open.index && tag != memory::no_tag;
}

inline VIP_PROTECTION_HANDLE handle_of_tag(const OpenNic& open, memory::ProtectionTag tag) {
    return tag == memory::no_tag ? nullptr : make_handle(Kind::tag, open.index, tag);
}

/// The program's attributes of memory; nullptr: the default tag, no RDMA.
inline Status read_attributes(const OpenNic& open, const VIP_MEM_ATTRIBUTES* from,
                              memory::MemoryAttributes& to) {
    to = {};
    if (from == nullptr) return Status::success;
    if (!tag_of(open, from->Ptag, to.tag)) return Status::invalid_ptag;
    to.rdma_write = from->EnableRdmaWrite != VIP_FALSE;
    to.rdma_read = from->EnableRdmaRead != VIP_FALSE;
    return Status::success;
}

inline void write_attributes(const OpenNic& open, const engine::ViAttributes& from,
                             VIP_VI_ATTRIBUTES& to) {
    to.ReliabilityLevel = static_cast<VIP_RELIABILITY_LEVEL>(from.reliability);
    to.MaxTransferSize = from.transfer_length_max;
    to.QoS = reinterpret_cast<VIP_QOS>(from.qos);
    to.Ptag = handle_of_tag(open, from.tag);
    to.EnableRdmaWrite = from.rdma_write ? VIP_TRUE : VIP_FALSE;
    to.EnableRdmaRead = from.rdma_read ? VIP_TRUE : VIP_FALSE;
}

/// Writes the host's bytes and their length, no more (VIPL 4.5).
inline void write_host(const HostAddress& host, VIP_NET_ADDRESS& to) {
    to.HostAddressLen = host.length;
    std::memcpy(to.HostAddress, host.bytes.data(), host.length);
}

/// Writes exactly the bytes that the two lengths say, no more (VIPL 4.19).
inline void write_address(const HostAddress& host, const Discriminator& discriminator,
                          VIP_NET_ADDRESS& to) {
    write_host(host, to);
    to.DiscriminatorLen = discriminator.length;
    VIP_UINT8* bytes = to.HostAddress;
    std::memcpy(bytes + host.length, discriminator.bytes.data(), discriminator.length);
}

/// A forked child has NICs of its own; its parent's are not touched there (VIPL 4.3).
[[gnu::always_inline]] inline bool is_of_parent(const void* handle = nullptr) {
    const agent::ProcessState state = agent::process_state();
    if (state == agent::ProcessState::own) [[likely]]
        return false;
    return state == agent::ProcessState::lost || is_inherited(handle);
}

}  // namespace via::api

/// With the handle that the call is about.
#define VIA_REFUSE_CHILD(...) \
    if (::via::api::is_of_parent(__VA_ARGS__)) return VIP_INVALID_STATE
