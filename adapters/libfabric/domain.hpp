// SPDX-License-Identifier: Apache-2.0
// A domain: the NIC, its memory, and what is made on it.
#pragma once

#include <memory>
#include <mutex>

#include "common.hpp"
#include "fabric.hpp"
#include "nic.hpp"
#include "regions.hpp"

namespace via::fabric {

class CompletionQueue;

class Domain : public fid_domain {
public:
    static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

    Fabric& fabric() { return fabric_; }
    Nic& nic() { return *nic_; }
    const std::shared_ptr<Nic>& shared_nic() const { return nic_; }
    /// Its endpoints for datagrams make progress while the program computes.
    bool has_progress() const { return has_progress_; }

    /// Several of the program's threads may call, or a thread of ours makes progress.
    bool is_shared() const { return shared_; }

    /// Several threads may call the same connected endpoint at once.
    bool shares_endpoints() const {
        return threading_ == FI_THREAD_SAFE || threading_ == FI_THREAD_UNSPEC;
    }
    /// The same of completion queues, or of one and endpoints that are bound to it.
    bool shares_queues() const {
        return threading_ != FI_THREAD_DOMAIN && threading_ != FI_THREAD_COMPLETION;
    }

    /// Held by whoever touches what is in rdm/, unless the program never makes two calls at once.
    class Guard {
    public:
        explicit Guard(Domain& domain) : shared_(domain.shared_ ? &domain : nullptr) {
            if (shared_ != nullptr) shared_->lock_data();
        }
        ~Guard() {
            if (shared_ != nullptr) shared_->unlock_data();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        Domain* shared_;
    };
    /// Lets others run, once there is no guard.
    void yield();

    /// What peers may do with the program's memory.
    Regions& regions() { return regions_; }

    /// For queues of endpoints that the program bound to none; made at the first call.
    CompletionQueue& unread();
    Users users;

private:
    friend int close_domain(::fid* domain);
    Domain(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info, void* context);
    ~Domain();
    void lock_data() noexcept {
        ViaPutOffRests();
        data_lock_.lock();
    }
    void unlock_data() noexcept;

    Fabric& fabric_;
    std::shared_ptr<Nic> nic_;
    Regions regions_;
    const bool datagrams_;  ///< it has endpoints for datagrams, and no others: rdm/
    const bool has_progress_;
    const fi_threading threading_;
    const bool shared_;
    SpinLock data_lock_;
    bool yield_is_due_ = false;
    std::mutex lock_;
    std::unique_ptr<CompletionQueue> unread_;
};

/// libfabric's operations on memory regions (memory.cpp).
extern fi_ops_mr memory_operations;

}  // namespace via::fabric
