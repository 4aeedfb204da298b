// SPDX-License-Identifier: Apache-2.0
// Completion queue of a domain for datagrams: what its endpoints found out while it was read.
#pragma once

#include <memory>
#include <vector>

#include "common.hpp"
#include "domain.hpp"
#include "queue_base.hpp"

namespace via::fabric::rdm {

class Endpoint;

/// What a program reads.
struct Completion {
    void* context = nullptr;
    std::uint64_t flags = 0;
    std::size_t length = 0;
    void* buffer = nullptr;
    std::uint64_t data = 0;
    std::uint64_t tag = 0;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    std::size_t missing = 0;  ///< bytes that had no room
    int error = 0;            ///< FI_E..., positive; 0: none
};

/// Owns the completions that its endpoints told, and the room for those they may. All but open()
/// and what says otherwise is called under the domain's guard.
class Queue : public QueueBase {
public:
    static int open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);

    /// The queue behind libfabric's, if it is one of ours.
    static Queue* of(::fid& object);
    /// Makes progress. Is there something to be read? Takes the domain's guard itself.
    bool has_news();
    /// May the program sleep? Takes the domain's guard itself.
    bool is_quiet();

    void watch(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }
    void unwatch(Endpoint& endpoint) { std::erase(endpoints_, &endpoint); }

    /// Room for one completion more: false: there is no memory. Then tell() cannot fail.
    bool reserve() {
        if (promised_ + count_ == room_ && !grow()) return false;
        ++promised_;
        return true;
    }
    /// What was reserved is not needed.
    void give_back() { --promised_; }
    /// Uses up what was reserved.
    void tell(const Completion& completion) {
        --promised_;
        entries_[(first_ + count_++) & (room_ - 1)] = completion;
        if (waiting_ != nullptr && !is_read_) [[unlikely]]
            waiting_->show(true);
    }

private:
    friend struct QueueOperations;
    Queue(Domain& domain, const fi_cq_attr& attributes, void* context);
    ~Queue();
    bool grow();
    ssize_t read(void* buffer, std::size_t count, fi_addr_t* from);
    ssize_t read_error(fi_cq_err_entry* entry);
    ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* from, int timeout_ms);
    int signal();
    void show();
    void progress();

    std::vector<Endpoint*> endpoints_;
    std::unique_ptr<Completion[]> entries_;
    std::size_t room_ = 0;  ///< a power of two
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::size_t promised_ = 0;
    /// The last read took all there was. MPI reads until nothing is left, for each message: it is
    /// told so without a look at the NIC, which would hold up the answer. Lines cost little.
    bool skips_next_ = false;
    bool is_read_ = false;  ///< at this moment, one that a program sleeps on
};

}  // namespace via::fabric::rdm
