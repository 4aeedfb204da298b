// SPDX-License-Identifier: Apache-2.0
// Where libfabric enters, once, when it loads its providers. Nothing is opened or started here.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "common.hpp"
#include "fabric.hpp"
#include "info.hpp"

namespace via::fabric {

namespace {
void clean_up() {}
std::mutex process_lock;
}  // namespace

fi_provider provider = {FI_VERSION(0, 1), FI_VERSION(1, 17), {},      "via",
                        get_info,         Fabric::open,      clean_up};

int tell_wait_object(int descriptor, int command, void* argument) noexcept {
    if (command == FI_GETWAIT && descriptor >= 0) {
        *static_cast<int*>(argument) = descriptor;
        return 0;
    }
    if (command == FI_GETWAITOBJ) {
        *static_cast<fi_wait_obj*>(argument) = descriptor >= 0 ? FI_WAIT_FD : FI_WAIT_NONE;
        return 0;
    }
    return -FI_ENOSYS;
}

std::atomic<const std::uint8_t*> process_mark{nullptr};

/// Without memory for it no NIC opens, either: VIA needs the same.
void remember_process() noexcept {
    const std::lock_guard guard(process_lock);
    if (process_mark != nullptr) return;
    const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const page =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    auto* const mark = static_cast<std::uint8_t*>(page);
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return;
    }
    *mark = 1;
    process_mark = mark;
}

Refused refused(fi_log_subsys where, const char* call) noexcept {
    const int error = errno;
    FI_WARN(&provider, where, "%s: %s\n", call, std::strerror(error));
    return {error};
}

int error_of(VIP_RETURN code) noexcept {
    switch (code) {
        case VIP_SUCCESS:
            return FI_SUCCESS;
        case VIP_NOT_DONE:
            return FI_EAGAIN;
        case VIP_INVALID_PARAMETER:
            return FI_EINVAL;
        case VIP_ERROR_RESOURCE:
            return FI_ENOMEM;
        case VIP_TIMEOUT:
            return FI_ETIMEDOUT;
        case VIP_REJECT:
        case VIP_NO_MATCH:
            return FI_ECONNREFUSED;
        case VIP_INVALID_RELIABILITY_LEVEL:
        case VIP_INVALID_MTU:
        case VIP_INVALID_QOS:
        case VIP_INVALID_PTAG:
        case VIP_INVALID_RDMAREAD:
            return FI_EINVAL;
        case VIP_DESCRIPTOR_ERROR:
            return FI_EIO;
        case VIP_INVALID_STATE:
            return FI_EOPBADSTATE;
        case VIP_ERROR_NAMESERVICE:
            return FI_EADDRNOTAVAIL;
        case VIP_NOT_REACHABLE:
            return FI_EHOSTUNREACH;
        case VIP_ERROR_NOT_SUPPORTED:
            return FI_EOPNOTSUPP;
    }
    return FI_EOTHER;
}

const char* tell_text(const char* text, char* buffer, std::size_t length) noexcept {
    if (buffer != nullptr && length != 0) {
        std::strncpy(buffer, text, length - 1);
        buffer[length - 1] = 0;
    }
    return text;
}

int error_of_status(VIP_UINT32 status) noexcept {
    if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0) return FI_ECANCELED;
    if ((status & VIP_STATUS_LENGTH_ERROR) != 0) return FI_ETRUNC;
    if ((status & (VIP_STATUS_PROTECTION_ERROR | VIP_STATUS_RDMA_PROT_ERROR)) != 0)
        return FI_EACCES;
    if ((status & VIP_STATUS_REMOTE_DESC_ERROR) != 0) return FI_EREMOTEIO;
    if ((status & VIP_STATUS_FORMAT_ERROR) != 0) return FI_EINVAL;
    return FI_EIO;
}

}  // namespace via::fabric

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
    using via::fabric::provider;
    fi_param_define(&provider, "device", FI_PARAM_STRING,
                    "NICs to offer, the best first, with ; between them: shm, auto:eth0, "
                    "udp:eth0 (default: all, auto before shm before udp)");
    fi_param_define(&provider, "max_transfer_size", FI_PARAM_SIZE_T,
                    "bytes of one RDMA of the NIC; longer ones are cut (default: 1 GiB)");
    fi_param_define(&provider, "eager_size", FI_PARAM_SIZE_T,
                    "FI_EP_RDM: bytes of the longest message that is copied at its receiver, to "
                    "65536 (default: 16384 in shared memory, 4096 where one_copy is in use, 65536 "
                    "between hosts)");
    fi_param_define(&provider, "max_unexpected_size", FI_PARAM_SIZE_T,
                    "FI_EP_RDM: bytes that messages of a peer take before their receives, apart "
                    "from those in its connection's receives, until it has to wait with all that "
                    "it sends (default: no limit)");
    fi_param_define(&provider, "rdm", FI_PARAM_BOOL,
                    "offer endpoints of type FI_EP_RDM, with tags, instead of those of ofi_rxm "
                    "(default: no)");
    fi_param_define(&provider, "one_copy", FI_PARAM_BOOL,
                    "FI_EP_RDM: who receives a long message of a peer inside the host copies it "
                    "from the memory of its process (default: where ranks share processors)");
    fi_param_define(&provider, "stores", FI_PARAM_BOOL,
                    "FI_EP_RDM: messages of up to 40 bytes inside a host by plain stores "
                    "(default: yes)");
    return &provider;
}
