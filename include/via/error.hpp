// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/error.hpp
 * @brief What goes wrong, in words: via::Error and via::Expected.
 */
#pragma once

#include <via/via.h>

#include <version>
#ifndef __cpp_lib_expected
#error "OpenVIA's C++ headers need std::expected: g++ 12 or clang++ 19, with -std=c++23"
#endif

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace via {

/** @return what an asynchronous error means, in a few words; lives for ever. Any thread. */
inline const char* text_of(VIP_ERROR_CODE code) noexcept {
    switch (code) {
        case VIP_ERROR_POST_DESC:
            return "a posted descriptor could not be read";
        case VIP_ERROR_CONN_LOST:
            return "the peer disconnected, ended or became unreachable";
        case VIP_ERROR_RECVQ_EMPTY:
            return "a message came and no receive was posted";
        case VIP_ERROR_VI_OVERRUN:
            return "a completion queue was full; nothing is lost";
        case VIP_ERROR_RDMAW_PROT:
            return "an incoming RDMA write was refused";
        case VIP_ERROR_RDMAW_DATA:
            return "an incoming RDMA write carried corrupt data";
        case VIP_ERROR_RDMAW_ABORT:
            return "an incoming RDMA write ended half-way";
        case VIP_ERROR_RDMAR_PROT:
            return "an incoming RDMA read was refused";
        case VIP_ERROR_COMP_PROT:
            return "a completion could not be written back";
        case VIP_ERROR_RDMA_TRANSPORT:
            return "the network failed during RDMA";
        case VIP_ERROR_CATASTROPHIC:
            return "the NIC cannot go on";
    }
    return "unknown asynchronous error";
}

/**
 * @param status  the Status field of a descriptor, VIP_STATUS_ bits (VIPL 1.7)
 * @return why the descriptor failed and what to do, for the first error bit that is set; lives for
 *         ever. Any thread.
 */
inline const char* status_text(VIP_UINT32 status) noexcept {
    if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0)
        return "flushed: the VI was not connected, or its connection ended first. Connect again";
    if ((status & VIP_STATUS_FORMAT_ERROR) != 0)
        return "format error: reserved bits, too many segments, or Length is not the sum of the "
               "segments. Build it with via::Descriptor";
    if ((status & VIP_STATUS_PROTECTION_ERROR) != 0)
        return "protection error: a segment lies outside its region, or the region has another "
               "protection tag than the VI. Compare segments, region and tags";
    if ((status & VIP_STATUS_LENGTH_ERROR) != 0)
        return "length error: the message is longer than the receive, or than the VI's "
               "max_transfer_bytes. Post larger receives or send less";
    if ((status & VIP_STATUS_PARTIAL_ERROR) != 0)
        return "partial: only a part of the message was transferred before the connection broke";
    if ((status & VIP_STATUS_RDMA_PROT_ERROR) != 0)
        return "RDMA refused: the target's region does not hold those bytes, has another tag, or "
               "does not allow it. Enable RDMA for region and VI over there";
    if ((status & VIP_STATUS_REMOTE_DESC_ERROR) != 0)
        return "the other side had no usable receive posted. Post receives first, or use credits";
    if ((status & VIP_STATUS_TRANSPORT_ERROR) != 0)
        return "transport error: the connection broke before it is known to have arrived";
    return "no error";
}

/**
 * A failure: what failed, why, and what to do. An ordinary value; making one allocates nothing
 * unless there is a text of its own, which only control calls have.
 */
class Error {
public:
    /**
     * @param code  what the call returned, not VIP_SUCCESS
     * @param call  name of the C function, or what was done; lives for ever
     */
    Error(VIP_RETURN code, const char* call) noexcept : code_(code), call_(call) {}
    /** @param why  instead of the code's own words; may say what to do */
    Error(VIP_RETURN code, const char* call, std::string why) noexcept
        : code_(code), call_(call), why_(std::move(why)) {}
    /** Of a completed descriptor, which is the program's again; null: nothing was posted. */
    Error(VIP_RETURN code, const char* call, VIP_DESCRIPTOR* descriptor, VIP_VI_HANDLE vi) noexcept
        : code_(code),
          status_(descriptor != nullptr ? VIP_UINT32{descriptor->CS.Status} : 0),
          call_(call),
          descriptor_(descriptor),
          vi_(vi) {}

    /** What the C function returned. */
    VIP_RETURN code() const noexcept { return code_; }
    /** What failed: the name of the C function. */
    const char* call() const noexcept { return call_; }
    /** VIP_STATUS_ bits of the descriptor that failed; 0 if it is not about one. */
    VIP_UINT32 status() const noexcept { return status_; }
    /** The descriptor that failed, taken off its queue, or null. */
    VIP_DESCRIPTOR* descriptor() const noexcept { return descriptor_; }
    /** The VI of that descriptor, or null. */
    VIP_VI_HANDLE vi() const noexcept { return vi_; }
    /** Whether the descriptor ended because its connection did; the usual end of a server's VI. */
    bool flushed() const noexcept { return (status_ & VIP_STATUS_DESC_FLUSHED_ERROR) != 0; }

    /** What failed, why, and what to do, as a sentence without a line end. Allocates. */
    std::string message() const {
        std::string text(call_);
        text += ": ";
        if (!why_.empty()) return text += why_;
        if (status_ != 0) return text += status_text(status_);
        if (code_ == VIP_DESCRIPTOR_ERROR) return text += "nothing is posted. Post first";
        // The words of that code are about connecting.
        text += code_ == VIP_REJECT && text.starts_with("ViaImportSegment") ? "the peer refused"
                                                                            : ViaReturnText(code_);
        if (const std::string_view remedy = advice(); !remedy.empty()) (text += ". ") += remedy;
        return text;
    }

private:
    std::string_view advice() const noexcept {
        const std::string_view call(call_);
        const bool post = call.starts_with("VipPost") || call.starts_with("ViaPost");
        switch (code_) {
            case VIP_INVALID_PARAMETER:
                if (post)
                    return "The descriptor must begin at a multiple of 64 and lie inside the "
                           "region passed with it, all segments included; the VI must live";
                if (call == "VipRegisterMem" || call == "ViaCreateSegment")
                    return "The memory needs 1 byte or more, all of it mapped, and writable where "
                           "peers may write; the log names the page. Was the NIC or the tag moved "
                           "from?";
                if (call == "VipCreateCQ" || call == "VipResizeCQ")
                    return "A queue has 1 to 65536 entries, and an open NIC; was it moved from?";
                if (call.find("Connect") != call.npos)
                    return "A discriminator has up to 64 bytes, private data up to 256, a timeout "
                           "of a request is not 0. Was an object moved from, or its NIC closed?";
                if (call == "ViaCreateListener")
                    return "A discriminator has up to 64 bytes, a backlog 1 to 4096 requests. Was "
                           "the NIC moved from or closed?";
                if (call == "ViaReadCounter")
                    return "ViaCounterName() tells which counters there are. Was the NIC moved "
                           "from or closed?";
                return "Was an object moved from, is it of another NIC, or was its NIC closed?";
            case VIP_ERROR_RESOURCE:
                if (post) return "Take completed descriptors off the queue first";
                if (call == "VipDeregisterMem")
                    return "A posted descriptor uses the region: disconnect its VI first";
                if (call == "VipConnectWait" || call == "ViaCreateListener")
                    return "Another process listens to that discriminator: choose another one or "
                           "end that process; or there are too many listeners";
                if (call.ends_with("Wait"))
                    return "This queue completes on a completion queue: wait there";
                if (call.starts_with("VipDestroy")) return "Destroy first what uses it";
                return "'via info' shows the limits";
            case VIP_TIMEOUT:
                return call == "VipConnectAccept" ? "The requester has given up: take the next one"
                                                  : "Wait longer, or see whether the peer lives";
            case VIP_REJECT:
                if (call == "ViaImportSegment")
                    return "The peer's segment and VI must allow RDMA read, to store to it also "
                           "RDMA write, and have one tag; only its segments can be imported";
                return {};
            case VIP_NO_MATCH:
                return "Start the listener first, or let the request wait for it";
            case VIP_NOT_REACHABLE:
                return "Compare the host part of the address with what 'via info' shows there";
            case VIP_INVALID_RELIABILITY_LEVEL:
            case VIP_INVALID_MTU:
            case VIP_INVALID_QOS:
                if (call == "ViaSetCredits") return "Credits need a reliable VI";
                if (call == "VipCreateVi")  // no peer yet: it is the options alone
                    return "'via info' shows MaxTransferSize and the levels there are";
                return "Give both VIs the same attributes";
            case VIP_INVALID_STATE:
                if (call.starts_with("VipConnectPeer"))
                    return "Ask with connect_peer() first, and open the NIC after the fork";
                return "Disconnect first, or open the NIC after the fork";
            case VIP_ERROR_NAMESERVICE:
                return "Check the spelling and the hosts file";
            default:
                return {};
        }
    }

    VIP_RETURN code_;
    VIP_UINT32 status_ = 0;
    const char* call_;
    VIP_DESCRIPTOR* descriptor_ = nullptr;
    VIP_VI_HANDLE vi_ = nullptr;
    std::string why_;
};

/** A value, or why there is none. */
template <class T>
using Expected = std::expected<T, Error>;

/** @cond */
namespace detail {

[[gnu::cold, gnu::noinline]] inline std::unexpected<Error> failure(VIP_RETURN code,
                                                                   const char* call) noexcept {
    return std::unexpected(Error(code, call));
}

inline Expected<void> outcome(VIP_RETURN code, const char* call) noexcept {
    if (code == VIP_SUCCESS) [[likely]]
        return {};
    return failure(code, call);
}

/// An option that names an object which is empty names none, which is not meant.
template <class Object>
bool is_moved_from(const Object* named) noexcept {
    return named != nullptr && named->handle() == nullptr;
}

}  // namespace detail
/** @endcond */

}  // namespace via
