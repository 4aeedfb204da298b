// SPDX-License-Identifier: Apache-2.0
// An endpoint for datagrams.
#pragma once

#include <memory>
#include <vector>

#include <rdma/fi_tagged.h>

#include "info.hpp"
#include "rdm/atomics.hpp"
#include "rdm/completions.hpp"
#include "rdm/connecting.hpp"
#include "rdm/connections.hpp"
#include "rdm/long_messages.hpp"
#include "rdm/peers.hpp"
#include "rdm/progress_thread.hpp"
#include "rdm/pulls.hpp"
#include "rdm/receive_queues.hpp"
#include "rdm/receives.hpp"
#include "rdm/requests.hpp"
#include "rdm/sends.hpp"
#include "rdm/to_self.hpp"
#include "rdm/unexpected.hpp"

namespace via::fabric::rdm {

/// Owns the parts of an endpoint, hands each what the program asks for and what has come, and ends
/// connections that failed. What is not private to making and closing is called under the domain's
/// guard.
class Endpoint : public fid_ep {
public:
    static int open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

    // Sending and receiving (fast_path.hpp, sending.cpp) --------------------------------------
    ssize_t send(const Sending& sending);
    /// `from`: FI_ADDR_UNSPEC: anybody.
    ssize_t receive(void* buffer, std::size_t room, fi_addr_t from, std::uint64_t tag,
                    std::uint64_t ignore, void* context, bool with_tag, bool told);
    /// One that messages without tags share, until less than min_room() is left.
    ssize_t receive_many(void* buffer, std::size_t room, fi_addr_t from, void* context, bool told);
    std::size_t& min_room() { return receives_.min_room(); }
    /// FI_PEEK, FI_CLAIM and FI_DISCARD, as `flags` say.
    ssize_t search(const fi_msg_tagged& message, std::uint64_t flags);
    ssize_t cancel(const void* context) { return receives_.cancel(context) ? 0 : -FI_ENOENT; }
    ssize_t move(const Moving& moving);
    ssize_t atomic(const Atomic& atomic);

    /// Takes what has come, and what is done (progress.cpp). Never fails: what it needs was
    /// reserved.
    void progress();
    /// Takes no more than what has come by stores. False: all else has waited for long enough.
    bool look_at_lines() {
        LinedConnections& lined = connections_.lined();
        return lined.empty() || !take_stored() || lined.may_look_again();
    }
    /// Somebody connects, or was answered. Any thread.
    bool has_mail() const { return connecting_.has_mail(); }
    /// That number means nobody any more.
    void forget(fi_addr_t number) { peers_.forget(number); }

    Domain& domain() { return domain_; }
    std::uint64_t transmit_flags() const { return transmit_flags_; }
    std::uint64_t receive_flags() const { return receive_flags_; }
    const Completions& completions() const { return completions_; }

private:
    friend struct EndpointOperations;
    Endpoint(Domain& domain, const fi_info& info, void* context);
    ~Endpoint();
    void leave_to_itself();
    friend std::default_delete<Endpoint>;

    // Making (endpoint.cpp)
    int bind(::fid* object, std::uint64_t flags);
    int enable();
    void unwatch_queues();

    // Sending (sending.cpp)
    Peer* peer_at(fi_addr_t number) {
        Peer* const known = peers_.at(number);
        return known != nullptr ? known : find_peer(number);
    }
    [[gnu::noinline]] Peer* find_peer(fi_addr_t number);
    int find_source(fi_addr_t from, Peer*& peer);
    ssize_t not_connected(Peer& peer);
    ssize_t send_copy(Connection& connection, const Sending& sending);
    [[gnu::noinline]] ssize_t send_otherwise(Peer* peer, const Sending& sending);
    /// `post` is called if there is room for the completion and for so many descriptors.
    template <class Post>
    ssize_t start(Connection& connection, std::size_t descriptors, const Post& post);
    ssize_t to_self(ssize_t result);
    Send* room_for(Connection& connection) {
        Send* const send = connection.take();
        if (send != nullptr) [[likely]]
            return send;
        return make_room(connection, 1) ? connection.take() : nullptr;
    }
    /// True: there are so many descriptors now.
    [[gnu::noinline]] bool make_room(Connection& connection, std::size_t count);
    [[gnu::noinline]] ssize_t why_not_posted(Connection& connection, VIP_RETURN code);

    // What has come (fast_path.hpp, progress.cpp)
    void take_receives();
    bool take_stored();
    bool take_next_stored(Connection& connection);
    [[gnu::noinline]] bool take_stored_before(Connection& connection, std::uint16_t number);
    void arrived_by_stores(Connection& connection);
    [[gnu::noinline]] void look_at_queues();
    std::uint32_t take_from(Connection& connection);
    void arrived(Slot& slot, std::size_t length);
    [[gnu::noinline]] void arrived_other(Slot& slot, const Header& header, std::size_t length);
    void arrived_written(Slot& slot, const Header& header);
    void arrived_moved(Slot& slot, const Header& header);
    bool look_at(Connection& connection);

    // Ends (ending.cpp)
    [[gnu::noinline]] void end_failed();
    void end(Connection& connection, int error);
    void drain(Connection& connection);
    void linger();

    Domain& domain_;
    const std::uint64_t transmit_flags_;
    const std::uint64_t receive_flags_;
    const bool directed_;
    const bool told_of_writes_;   ///< peers may say so
    const bool may_count_moves_;  ///< FI_RMA_EVENT
    const std::uint16_t wanted_port_;
    // Each knows some of those above it.
    Completions completions_;
    Peers peers_;
    Connections connections_;
    ReceiveQueues receive_queues_;
    Receives receives_;
    LongMessages long_messages_;
    Pulls pulls_;
    Unexpected unexpected_;
    Sends sends_;
    Atomics atomics_;
    ToSelf to_self_;
    std::unique_ptr<ProgressThread> alone_;  ///< makes progress, if the program asked for that
    Connecting connecting_;
};

inline Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

/// libfabric's operations on data (operations.cpp).
extern fi_ops_msg message_operations;
extern fi_ops_tagged tagged_operations;
extern fi_ops_rma rma_operations;        // rma_operations.cpp
extern fi_ops_atomic atomic_operations;  // atomic_operations.cpp
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation,
                 fi_atomic_attr* attributes, std::uint64_t flags);

}  // namespace via::fabric::rdm
