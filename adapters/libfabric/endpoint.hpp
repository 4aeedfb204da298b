// SPDX-License-Identifier: Apache-2.0
// An endpoint: a VI, its descriptors, and where its completions and events go.
#pragma once

#include <memory>
#include <mutex>

#include "common.hpp"
#include "completion_queue.hpp"
#include "connector.hpp"
#include "counter.hpp"
#include "domain.hpp"
#include "event_queue.hpp"
#include "operation.hpp"
#include "passive_endpoint.hpp"
#include "shared_context.hpp"

namespace via::fabric {

/// What is to be posted; all of it is the program's.
struct Transfer {
    VIP_UINT16 control;   ///< VIP_CONTROL_ bits
    std::uint64_t flags;  ///< of the completion
    const iovec* pieces;
    std::size_t count;
    void* context;
    Told told = Told::all;
    bool copied = false;     ///< the memory is the program's again at once
    bool confirmed = false;  ///< done when the peer's NIC has answered a question behind it
    std::uint64_t remote_address = 0;
    std::uint64_t key = 0;
    std::uint64_t data = 0;

    bool is_rdma() const { return (control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV; }
};

class Endpoint : public fid_ep, public Asking {
public:
    static int open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
    /// Ends what is under way. The object itself may outlive that: CompletionQueue::keep_closed().
    static void close(std::unique_ptr<Endpoint> endpoint);

    // Threads of the connector
    void connect_now() override;
    void interrupt() override;

    // The NIC's thread
    void on_connection_lost(VIP_ERROR_CODE error);

    // Whoever reads completions; under the queue's lock
    /// Tells of an operation that is done, and takes it back; false: the program wants no word.
    bool complete(Operation& operation, bool receive, Completion& completion);

    // The data path (transfer.cpp); any thread
    ssize_t send(const Transfer& transfer);
    ssize_t receive(const iovec* pieces, std::size_t count, void* context, Told told);

    std::uint64_t transmit_flags() const { return transmit_flags_; }
    std::uint64_t receive_flags() const { return receive_flags_; }
    bool tells_always(bool receives) const { return !side(receives).selective; }
    bool writes_with_data() const { return writes_with_data_; }
    bool completes_on_delivery() const {
        return attributes_.ReliabilityLevel == VIP_SERVICE_RELIABLE_RECEPTION;
    }

private:
    friend struct EndpointOperations;
    enum class State : std::uint8_t { created, enabled, connecting, connected, ended, closed };
    /// One of the two directions.
    struct Side {
        CompletionQueue* queue = nullptr;
        VIP_CQ_HANDLE part = nullptr;
        std::uint32_t entries = 0;  ///< reserved in that
        bool selective = false;
        OperationRing ring;
    };

    Endpoint(Domain& domain, const fi_info& info, std::unique_ptr<ConnectRequest> request,
             void* context);
    ~Endpoint() = default;
    friend std::default_delete<Endpoint>;
    void let_go();
    Side& side(bool receives) { return receives ? receives_ : sends_; }
    const Side& side(bool receives) const { return receives ? receives_ : sends_; }

    int bind(::fid* object, std::uint64_t flags);
    int bind_queue(CompletionQueue& queue, std::uint64_t flags);
    int bind_counter(Counter& counter, std::uint64_t flags);
    int bind_shared(SharedContext& shared);
    int enable();
    int make_vi();
    int connect(const void* address, const void* data, std::size_t length);
    int accept(const void* data, std::size_t length);
    int shut_down();
    void end_connection();
    void connected(const std::uint8_t* data, std::size_t length);
    void count(std::uint64_t flags, bool receive, bool error);
    ssize_t not_now(const Transfer& transfer);
    ssize_t cancel(Side& from, void* context, std::uint64_t flags);
    void give_up(const Transfer& transfer);
    void fill_cut(Operation& operation, std::uint32_t place, const Transfer& transfer,
                  std::size_t cut, std::size_t cuts);
    static void fill_question(Operation& operation);
    ssize_t post(Side& to, Operation& operation, bool receives);

    Domain& domain_;
    EventQueue* events_ = nullptr;
    Side sends_;
    Side receives_;
    const bool shares_receives_;           ///< the program wants receives of a shared context only
    SharedContext* shared_ = nullptr;      ///< where they come from; nullptr: its own
    Counter* counters_[4] = {};            ///< of sends, receives, reads, writes
    std::unique_ptr<std::byte[]> copies_;  ///< of injected messages, by place in the ring
    VIP_VI_HANDLE vi_ = nullptr;
    VIP_VI_ATTRIBUTES attributes_{};
    std::uint32_t send_size_;
    std::uint32_t receive_size_;
    std::uint64_t transmit_flags_;
    std::uint64_t receive_flags_;
    bool writes_with_data_;
    int cut_error_ = 0;  ///< of an earlier piece of the RDMA that now ends
    VIP_UINT32 cut_status_ = 0;

    std::mutex state_lock_;  ///< the state, and the order of events
    std::atomic<State> state_{State::created};
    bool lost_early_ = false;  ///< the connection ended before we knew that there was one
    std::unique_ptr<ConnectRequest> request_;
    sockaddr_in peer_{};
    std::uint16_t port_ = 0;  ///< of the passive endpoint whose address is ours, too; 0: none
    std::uint8_t data_[connect_data_max];
    VIP_UINT32 data_length_ = 0;
};

/// libfabric's operations on data (transfer.cpp).
extern fi_ops_msg message_operations;
extern fi_ops_rma rma_operations;

}  // namespace via::fabric
