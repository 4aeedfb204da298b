#include "harness/check.hpp"

#include <array>
#include <cstdio>

namespace conformance {

namespace {

template <std::size_t Count>
const char* pick(const std::array<const char*, Count>& names, unsigned index) {
    return index < Count ? names[index] : "(no such value)";
}

}  // namespace

const char* name_of(VIP_RETURN code) {
    static constexpr std::array names{"VIP_SUCCESS",
                                      "VIP_NOT_DONE",
                                      "VIP_INVALID_PARAMETER",
                                      "VIP_ERROR_RESOURCE",
                                      "VIP_TIMEOUT",
                                      "VIP_REJECT",
                                      "VIP_INVALID_RELIABILITY_LEVEL",
                                      "VIP_INVALID_MTU",
                                      "VIP_INVALID_QOS",
                                      "VIP_INVALID_PTAG",
                                      "VIP_INVALID_RDMAREAD",
                                      "VIP_DESCRIPTOR_ERROR",
                                      "VIP_INVALID_STATE",
                                      "VIP_ERROR_NAMESERVICE",
                                      "VIP_NO_MATCH",
                                      "VIP_NOT_REACHABLE",
                                      "VIP_ERROR_NOT_SUPPORTED"};
    return pick(names, static_cast<unsigned>(code));
}

const char* name_of(VIP_ERROR_CODE code) {
    static constexpr std::array names{
        "VIP_ERROR_POST_DESC",      "VIP_ERROR_CONN_LOST",   "VIP_ERROR_RECVQ_EMPTY",
        "VIP_ERROR_VI_OVERRUN",     "VIP_ERROR_RDMAW_PROT",  "VIP_ERROR_RDMAW_DATA",
        "VIP_ERROR_RDMAW_ABORT",    "VIP_ERROR_RDMAR_PROT",  "VIP_ERROR_COMP_PROT",
        "VIP_ERROR_RDMA_TRANSPORT", "VIP_ERROR_CATASTROPHIC"};
    return pick(names, static_cast<unsigned>(code));
}

std::string status_text(VIP_UINT32 status) {
    static constexpr std::array operations{"send", "receive", "RDMA write", "remote RDMA write",
                                           "RDMA read"};
    struct Bit {
        VIP_UINT32 mask;
        const char* name;
    };
    static constexpr std::array bits{Bit{VIP_STATUS_DONE, "DONE"},
                                     Bit{VIP_STATUS_FORMAT_ERROR, "FORMAT"},
                                     Bit{VIP_STATUS_PROTECTION_ERROR, "PROTECTION"},
                                     Bit{VIP_STATUS_LENGTH_ERROR, "LENGTH"},
                                     Bit{VIP_STATUS_PARTIAL_ERROR, "PARTIAL"},
                                     Bit{VIP_STATUS_DESC_FLUSHED_ERROR, "DESC_FLUSHED"},
                                     Bit{VIP_STATUS_TRANSPORT_ERROR, "TRANSPORT"},
                                     Bit{VIP_STATUS_RDMA_PROT_ERROR, "RDMA_PROT"},
                                     Bit{VIP_STATUS_REMOTE_DESC_ERROR, "REMOTE_DESC"},
                                     Bit{VIP_STATUS_IMMEDIATE, "IMMEDIATE"},
                                     Bit{VIP_STATUS_RESERVED, "(reserved bits)"}};
    char number[16];
    std::snprintf(number, sizeof number, "0x%x", status);
    std::string text = number;
    text += std::string(": ") + pick(operations, (status & VIP_STATUS_OP_MASK) >> 16);
    for (const Bit& bit : bits)
        if ((status & bit.mask) != 0) text += std::string(" ") + bit.name;
    return text;
}

void fail(const std::string& text, Where where) { throw Failure{where, text}; }

void require(bool holds, const std::string& what, Where where) {
    if (!holds) fail("does not hold: " + what, where);
}

void must(VIP_RETURN code, const char* call, Where where) {
    if (code != VIP_SUCCESS) fail(std::string(call) + " returned " + name_of(code), where);
}

testing::AssertionResult has_status(const VIP_DESCRIPTOR* descriptor, VIP_UINT32 status) {
    if (descriptor == nullptr) return testing::AssertionFailure() << "no descriptor";
    if (descriptor->CS.Status == status) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "Status is " << status_text(descriptor->CS.Status)
                                       << ", expected " << status_text(status);
}

testing::AssertionResult failed_with(const VIP_DESCRIPTOR* descriptor, VIP_UINT32 any_of) {
    if (descriptor == nullptr) return testing::AssertionFailure() << "no descriptor";
    const VIP_UINT32 status = descriptor->CS.Status;
    if ((status & VIP_STATUS_DONE) != 0 && (status & any_of) != 0)
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "Status is " << status_text(status)
                                       << ", expected DONE and one of " << status_text(any_of);
}

testing::AssertionResult flushed(const VIP_DESCRIPTOR* descriptor) {
    if (descriptor == nullptr) return testing::AssertionFailure() << "no descriptor";
    const VIP_UINT32 status = descriptor->CS.Status;
    if ((status & VIP_STATUS_DONE) != 0 &&
        (status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR)
        return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << "Status is " << status_text(status) << ", expected DONE and DESC_FLUSHED alone";
}

}  // namespace conformance

void PrintTo(VIP_RETURN code, std::ostream* out) { *out << conformance::name_of(code); }

void PrintTo(VIP_VI_STATE state, std::ostream* out) {
    static constexpr std::array names{"IDLE", "CONNECTED", "CONNECT_PENDING", "ERROR"};
    *out << conformance::pick(names, static_cast<unsigned>(state));
}

void PrintTo(VIP_ERROR_CODE code, std::ostream* out) { *out << conformance::name_of(code); }
