#include "support/must.hpp"

#include <cerrno>
#include <cstring>

namespace system_test {

const char* name_of(VIP_RETURN code) {
    constexpr const char* names[] = {"SUCCESS",
                                     "NOT_DONE",
                                     "INVALID_PARAMETER",
                                     "ERROR_RESOURCE",
                                     "TIMEOUT",
                                     "REJECT",
                                     "INVALID_RELIABILITY_LEVEL",
                                     "INVALID_MTU",
                                     "INVALID_QOS",
                                     "INVALID_PTAG",
                                     "INVALID_RDMAREAD",
                                     "DESCRIPTOR_ERROR",
                                     "INVALID_STATE",
                                     "ERROR_NAMESERVICE",
                                     "NO_MATCH",
                                     "NOT_REACHABLE",
                                     "ERROR_NOT_SUPPORTED"};
    return static_cast<std::size_t>(code) < std::size(names) ? names[code] : "no code of VIPL's";
}

const char* name_of(VIP_ERROR_CODE code) {
    constexpr const char* names[] = {"POST_DESC",  "CONN_LOST",      "RECVQ_EMPTY", "VI_OVERRUN",
                                     "RDMAW_PROT", "RDMAW_DATA",     "RDMAW_ABORT", "RDMAR_PROT",
                                     "COMP_PROT",  "RDMA_TRANSPORT", "CATASTROPHIC"};
    return static_cast<std::size_t>(code) < std::size(names) ? names[code] : "no code of VIPL's";
}

void fail(const std::string& text, Where where) {
    throw Failure(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                  text);
}

void require(bool holds, const std::string& what, Where where) {
    if (!holds) fail("it does not hold that " + what, where);
}

void require_call(bool holds, const std::string& what, Where where) {
    if (!holds) fail(what + ": " + std::strerror(errno), where);
}

void must(VIP_RETURN code, const char* call, Where where) {
    if (code != VIP_SUCCESS) fail(std::string(call) + " returned " + name_of(code), where);
}

}  // namespace system_test
