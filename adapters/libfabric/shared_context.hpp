// SPDX-License-Identifier: Apache-2.0
// A shared receive context: a shared receive queue of VIA's, and the operations posted to it.
#pragma once

#include <memory>
#include <vector>

#include "common.hpp"
#include "domain.hpp"
#include "operation.hpp"

namespace via::fabric {

/// Receives that a domain's connected endpoints share. It owns their operations, which come back in
/// whatever order the endpoints' messages do.
class SharedContext : public fid_ep {
public:
    static int open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** shared, void* context);

    Domain& domain() const { return domain_; }
    /// The VI takes its receives here from now on.
    VIP_RETURN serve(VIP_VI_HANDLE vi) { return ViaSetSharedRecv(vi, queue_); }
    /// Receives that one endpoint may have at once.
    std::uint32_t quota() const { return quota_; }

    ssize_t receive(const iovec* pieces, std::size_t count, void* context, Told told);
    std::uint64_t receive_flags() const { return flags_; }

    // Whoever reads completions
    void give_back(Operation& operation);
    /// A connection had taken it, and ended without a message for it: another one may have it.
    /// False: it could not be posted again.
    bool post_again(Operation& operation);

    Users users;

private:
    friend struct SharedContextOperations;
    SharedContext(Domain& domain, std::uint32_t size, std::uint64_t flags, void* context);
    ~SharedContext();
    friend std::default_delete<SharedContext>;

    Domain& domain_;
    VIA_SHARED_RECV_HANDLE queue_ = nullptr;
    std::uint32_t quota_;
    std::uint64_t flags_;
    std::unique_ptr<Operation[]> operations_;
    SpinLock lock_;
    std::vector<Operation*> free_;  ///< under the lock
};

}  // namespace via::fabric
