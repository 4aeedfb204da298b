// SPDX-License-Identifier: Apache-2.0
// A domain: the NIC, its memory, and what is made on it.
#pragma once

#include <memory>
#include <mutex>

#include "common.hpp"
#include "fabric.hpp"
#include "nic.hpp"

namespace via::fabric {

class CompletionQueue;

class Domain : public fid_domain {
public:
    static int open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

    Fabric& fabric() { return fabric_; }
    Nic& nic() { return *nic_; }
    /// For queues of endpoints that the program bound to none; made at the first call.
    CompletionQueue& unread();
    Users users;

private:
    friend int close_domain(::fid* domain);
    Domain(Fabric& fabric, std::shared_ptr<Nic> nic, void* context);
    ~Domain();

    Fabric& fabric_;
    std::shared_ptr<Nic> nic_;
    std::mutex lock_;
    std::unique_ptr<CompletionQueue> unread_;
};

/// libfabric's operations on memory regions (memory.cpp).
extern fi_ops_mr memory_operations;

}  // namespace via::fabric
