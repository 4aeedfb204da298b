// SPDX-License-Identifier: Apache-2.0
// Completion queue: VIA's, and a queue of ours for errors and for what endpoints left when closed.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "common.hpp"
#include "operation.hpp"
#include "queue_base.hpp"

namespace via::fabric {

/// Owns VIA's queues behind it, and what came and was not read.
class CompletionQueue : public QueueBase {
public:
    static int open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);
    /// `discards`: nobody reads it; it is there for queues that were bound to none.
    CompletionQueue(Domain& domain, const fi_cq_attr& attributes, bool discards, void* context);
    ~CompletionQueue();

    /// Room for `entries` more, so that the queue never overflows. 0 and VIA's queue that has it.
    int reserve(std::uint32_t entries, VIP_CQ_HANDLE& queue);
    void give_back(VIP_CQ_HANDLE queue, std::uint32_t entries);
    /// Takes all that is left on a queue of a VI that is disconnected.
    void drain(VIP_VI_HANDLE vi, bool receives);
    /// Adds one that VIA knows nothing of.
    void tell(const Completion& completion);
    /// Keeps a closed endpoint until nothing is left to be read. While libfabric's ofi_rxm reads
    /// what an endpoint left behind when it closed that endpoint, it goes on posting to it.
    void keep_closed(std::unique_ptr<Endpoint> endpoint);
    /// Takes what has completed, so that counters count; the program reads it later.
    void progress();
    /// The same; is there something to be read?
    bool has_news();
    /// May the program sleep on the descriptor?
    bool is_quiet();

private:
    friend struct CompletionQueueOperations;
    struct Part {
        VIP_CQ_HANDLE queue;
        std::uint32_t room;
        std::uint32_t used;
    };

    ssize_t read(void* buffer, std::size_t count);
    ssize_t read_error(fi_cq_err_entry* entry);
    ssize_t wait_and_read(void* buffer, std::size_t count, int timeout_ms);
    int signal();
    std::size_t collect(void* buffer, std::size_t count);
    std::size_t collect_from(const Part& part, void* buffer, std::size_t at, std::size_t count);
    void keep(const Completion& completion);
    bool add_part(std::uint32_t entries);
    void show();

    const bool discards_;
    /// By threads, of which one wakes the other up where that can sleep here.
    const bool shared_;
    SpinLock lock_;
    std::vector<Part> parts_;
    std::deque<Completion> kept_;
    std::vector<std::unique_ptr<Endpoint>> closed_;
    /// The last read took all there was. Who reads until nothing is left, as MPI does for each
    /// message, is told so without a look at the NIC: it would hold up the answer, and on a network
    /// send the acknowledgement that the answer takes along. Not of a queue that somebody sleeps
    /// on.
    bool skips_next_ = false;
};

}  // namespace via::fabric
