#include "bench/via_port.hpp"

#include <sched.h>
#include <via/via.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "bench/via_connect.hpp"
#include "console/output.hpp"

namespace via::bench {

namespace {

constexpr VIP_ULONG wait_ms = 1'000;
constexpr int waits_allowed = 10;
constexpr std::uint32_t cq_entries_besides_vis = 4096;

VIP_RELIABILITY_LEVEL level_of(Reliability reliability) {
    if (reliability == Reliability::unreliable) return VIP_SERVICE_UNRELIABLE;
    return reliability == Reliability::reception ? VIP_SERVICE_RELIABLE_RECEPTION
                                                 : VIP_SERVICE_RELIABLE_DELIVERY;
}

}  // namespace

Status ViaPort::open_alone() {
    if (auto opened = open_nic(); !opened) return opened;
    if (auto made = make_vis(); !made) return made;
    return post_idle_receives();
}

Status ViaPort::accept(std::uint32_t vi, const std::string& discriminator) {
    return accept_one(nic_, vis_[vi], link_, discriminator);
}

Status ViaPort::request(std::uint32_t vi, const std::string& discriminator) {
    return request_one(vis_[vi], link_, discriminator);
}

Status ViaPort::open() {
    if (auto opened = open_alone(); !opened) return opened;
    if (!link_.meet()) return fail("{}", called_off);
    if (auto connected = connect_all(); !connected) return connected;
    if (options_.exported) {
        if (auto imported = import_segment(); !imported) return imported;
    }
    if (!link_.meet()) return fail("{}", called_off);
    return {};
}

Status ViaPort::open_nic() {
    auto opened = via::bench::open_nic(options_.device, options_.places, link_);
    if (!opened) return std::unexpected(opened.error());
    nic_ = *opened;
    VipErrorCallback(nic_, this, on_error);
    if (const VIP_RETURN code = VipQueryNic(nic_, &nic_attributes_); code != VIP_SUCCESS) {
        return fail_call("VipQueryNic", code);
    }
    Published& mine = link_.mine();
    if (const VIP_RETURN code = VipCreatePtag(nic_, &tag_); code != VIP_SUCCESS) {
        return fail_call("VipCreatePtag", code);
    }
    VIP_MEM_ATTRIBUTES attributes{tag_, VIP_TRUE, VIP_TRUE};
    if (options_.exported) return make_segment(attributes);
    if (const VIP_RETURN code =
            VipRegisterMem(nic_, link_.arena.base, link_.arena.bytes, &attributes, &memory_);
        code != VIP_SUCCESS) {
        return fail_call("VipRegisterMem", code);
    }
    mine.memory_handle = memory_;
    handles_.assign(options_.like.post_many, memory_);
    return allow_atomics();
}

// The arena moves into a segment.
Status ViaPort::make_segment(VIP_MEM_ATTRIBUTES& attributes) {
    VIP_PVOID base = nullptr;
    const VIP_RETURN code = ViaCreateSegment(nic_, link_.arena.bytes, &attributes, &base, &memory_);
    if (code != VIP_SUCCESS) return fail_call("ViaCreateSegment", code);
    link_.arena.base = static_cast<std::byte*>(base);
    std::memset(link_.arena.base, 0, link_.arena.bytes);  // touched before anything is timed
    link_.mine().arena = reinterpret_cast<std::uint64_t>(base);
    link_.mine().memory_handle = memory_;
    handles_.assign(options_.like.post_many, memory_);
    return allow_atomics();
}

Status ViaPort::allow_atomics() {
    const VIP_RETURN code = ViaSetMemAtomics(nic_, link_.arena.base, memory_, VIP_TRUE);
    if (code != VIP_SUCCESS) return fail_call("ViaSetMemAtomics", code);
    return {};
}

Status ViaPort::import_segment() {
    for (VIP_VI_HANDLE vi : vis_) {
        VIP_PVOID base = nullptr;
        VIP_ULONG bytes = 0;
        const VIP_RETURN code =
            ViaImportSegment(vi, link_.theirs().arena, link_.theirs().memory_handle, VIP_TRUE,
                             connect_timeout_ms, &base, &bytes);
        if (code != VIP_SUCCESS) return fail_call("ViaImportSegment", code);
        // Mapped once now, so that no page fault is timed.
        const auto* at = static_cast<const volatile std::byte*>(base);
        for (VIP_ULONG page = 0; page < bytes; page += 4096) static_cast<void>(at[page]);
    }
    return {};
}

Status ViaPort::make_vis() {
    const std::uint64_t count = std::uint64_t{std::max(vi_count(), control_vi() + 1)};
    if (count > nic_attributes_.MaxVI) {
        return fail("{} VIs wanted, the NIC has {}", count, nic_attributes_.MaxVI);
    }
    if (options_.like.cq) {
        const VIP_ULONG entries =
            std::min<VIP_ULONG>(nic_attributes_.MaxCQEntries, 2 * count + cq_entries_besides_vis);
        if (const VIP_RETURN code = VipCreateCQ(nic_, entries, &cq_); code != VIP_SUCCESS) {
            return fail_call("VipCreateCQ", code);
        }
    }
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = level_of(options_.like.reliability);
    attributes.MaxTransferSize = nic_attributes_.MaxTransferSize;
    attributes.Ptag = tag_;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead =
        options_.like.reliability == Reliability::unreliable ? VIP_FALSE : VIP_TRUE;
    for (std::uint64_t i = 0; i < count; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        const VIP_RETURN code = VipCreateVi(nic_, &attributes, cq_, cq_, &vi);
        if (code != VIP_SUCCESS) return fail_call("VipCreateVi", code);
        vis_.push_back(vi);
    }
    return {};
}

Status ViaPort::post_idle_receives() {
    // At the far end of the arena, away from the busy ones.
    std::byte* end = link_.arena.base + link_.arena.bytes;
    for (std::uint32_t i = options_.like.active_vis; i < vi_count(); ++i) {
        auto* descriptor = reinterpret_cast<VIP_DESCRIPTOR*>(end - i * sizeof(VIP_DESCRIPTOR));
        std::memset(static_cast<void*>(descriptor), 0, sizeof *descriptor);
        if (!post_receive(i, descriptor)) return fail("{}", failure_);
    }
    return {};
}

// In order and one at a time, so that number i meets number i.
Status ViaPort::connect_all() {
    for (std::uint32_t vi = 0; vi < vis_.size(); ++vi) {
        auto connected =
            link_.is_first() ? request(vi, discriminator_) : accept(vi, discriminator_);
        if (!connected) return connected;
    }
    return {};
}

void ViaPort::close() {
    closing_ = true;
    link_.shared().closing.value.store(1);
    if (nic_ == nullptr) return;
    for (VIP_VI_HANDLE vi : vis_) VipDisconnect(vi);
    VipCloseNic(nic_);
    nic_ = nullptr;
}

bool ViaPort::posted(VIP_RETURN code, const char* call) {
    if (code == VIP_SUCCESS) return true;
    failure_ = fmt::format("{} returned {}", call, name_of_return(code));
    return false;
}

bool ViaPort::post_send(std::uint32_t vi, VIP_DESCRIPTOR* descriptor) {
    return posted(VipPostSend(vis_[vi], descriptor, memory_), "VipPostSend");
}

bool ViaPort::post_atomic(std::uint32_t vi, VIP_DESCRIPTOR* descriptor) {
    return posted(ViaPostFetchAdd(vis_[vi], descriptor, memory_, 0), "ViaPostFetchAdd");
}

bool ViaPort::post_receive(std::uint32_t vi, VIP_DESCRIPTOR* descriptor) {
    return posted(VipPostRecv(vis_[vi], descriptor, memory_), "VipPostRecv");
}

bool ViaPort::post_sends(std::uint32_t vi, std::span<VIP_DESCRIPTOR* const> descriptors) {
    VIP_UINT32 went = 0;
    const auto count = static_cast<VIP_UINT32>(descriptors.size());
    return posted(ViaPostSendMany(vis_[vi], descriptors.data(), handles_.data(), count, &went),
                  "ViaPostSendMany");
}

bool ViaPort::post_receives(std::uint32_t vi, std::span<VIP_DESCRIPTOR* const> descriptors) {
    VIP_UINT32 went = 0;
    const auto count = static_cast<VIP_UINT32>(descriptors.size());
    return posted(ViaPostRecvMany(vis_[vi], descriptors.data(), handles_.data(), count, &went),
                  "ViaPostRecvMany");
}

Took ViaPort::take(bool& receive, std::uint32_t vi, VIP_DESCRIPTOR*& descriptor) {
    const bool block = options_.like.wait == Wait::block;
    VIP_VI_HANDLE handle = vis_[vi];
    if (options_.like.cq) {
        VIP_BOOLEAN is_receive = VIP_FALSE;
        const VIP_RETURN code = block ? VipCQWait(cq_, wait_ms, &handle, &is_receive)
                                      : VipCQDone(cq_, &handle, &is_receive);
        if (code != VIP_SUCCESS) return took(code, block ? "VipCQWait" : "VipCQDone", nullptr);
        receive = is_receive == VIP_TRUE;
    }
    descriptor = nullptr;
    VIP_RETURN code = VIP_SUCCESS;
    if (block && !options_.like.cq) {
        code = receive ? VipRecvWait(handle, wait_ms, &descriptor)
                       : VipSendWait(handle, wait_ms, &descriptor);
    } else {
        code = receive ? VipRecvDone(handle, &descriptor) : VipSendDone(handle, &descriptor);
    }
    if (code == VIP_SUCCESS) {
        waits_without_result_ = 0;
        return Took::one;
    }
    if (options_.like.cq && code == VIP_NOT_DONE) {
        failure_ = "an entry of the completion queue without a completed descriptor";
        return Took::failed;
    }
    return took(code, receive ? "taking a receive" : "taking a send", descriptor);
}

Took ViaPort::take_many(bool receive, std::uint32_t vi, std::span<VIP_DESCRIPTOR*> descriptors,
                        VIP_UINT32& count) {
    const auto room = static_cast<VIP_UINT32>(descriptors.size());
    count = 0;
    const VIP_RETURN code = receive ? ViaRecvDoneMany(vis_[vi], descriptors.data(), room, &count)
                                    : ViaSendDoneMany(vis_[vi], descriptors.data(), room, &count);
    if (code == VIP_SUCCESS) {
        waits_without_result_ = 0;
        return Took::one;
    }
    return took(code, receive ? "taking receives" : "taking sends",
                count == 0 ? nullptr : descriptors[count - 1]);
}

// What is not success: nothing there yet, or failed.
Took ViaPort::took(VIP_RETURN code, const char* call, VIP_DESCRIPTOR* descriptor) {
    // Many senders may have few processors.
    if (code == VIP_NOT_DONE && options_.like.senders > 1) ::sched_yield();
    if (code == VIP_NOT_DONE) return Took::nothing;
    if (code == VIP_TIMEOUT) {
        if (++waits_without_result_ < waits_allowed) return Took::nothing;
        failure_ = fmt::format("{}: nothing within {} s", call, waits_allowed);
        return Took::failed;
    }
    if (code == VIP_DESCRIPTOR_ERROR && descriptor == nullptr) return Took::nothing;
    if (code == VIP_DESCRIPTOR_ERROR) {
        failure_ =
            fmt::format("{}: completed with {}", call, name_of_status(descriptor->CS.Status));
    } else {
        failure_ = fmt::format("{}: {}", call, name_of_return(code));
    }
    return Took::failed;
}

VIP_DATA_SEGMENT ViaPort::local(std::byte* at, std::uint64_t bytes) const {
    VIP_DATA_SEGMENT segment{};
    segment.Data.AddressBits = reinterpret_cast<std::uint64_t>(at);
    segment.Handle = memory_;
    segment.Length = static_cast<VIP_UINT32>(bytes);
    return segment;
}

VIP_ADDRESS_SEGMENT ViaPort::remote(const std::byte* same_place_here) const {
    VIP_ADDRESS_SEGMENT segment{};
    segment.Data.AddressBits =
        link_.theirs().arena + static_cast<std::uint64_t>(same_place_here - link_.arena.base);
    segment.Handle = link_.theirs().memory_handle;
    return segment;
}

// Errors of a connection show in its descriptors too; the first one is said here, because it says
// more. While both sides close, a lost connection is no news.
void ViaPort::on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* port = static_cast<ViaPort*>(context);
    if (port->closing_ || port->link_.shared().closing.value.load() != 0) return;
    static std::atomic<bool> said{false};
    if (said.exchange(true)) return;
    console::complain("via: asynchronous error {} of resource {} in process {}",
                      static_cast<int>(error->ErrorCode), static_cast<int>(error->ResourceCode),
                      port->link_.own() + 1);
}

}  // namespace via::bench
