// SPDX-License-Identifier: Apache-2.0
// An endpoint for datagrams: peers, connections to them as they are needed, matching of tags.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <rdma/fi_tagged.h>

#include "counter.hpp"
#include "info.hpp"
#include "listener.hpp"
#include "rdm/address_vector.hpp"
#include "rdm/arithmetic.hpp"
#include "rdm/connection.hpp"
#include "rdm/matching.hpp"
#include "rdm/peer.hpp"
#include "rdm/progress_thread.hpp"
#include "rdm/queue.hpp"

namespace via::fabric::rdm {

/// What the program sends.
struct Sending {
    fi_addr_t to;
    const void* bytes;
    std::size_t length;
    std::uint64_t tag;
    std::uint64_t data;
    std::uint8_t flags;  ///< of the header
    void* context;
    bool told;               ///< with a completion
    bool may_copy = true;    ///< it is done when it is copied
    bool must_copy = false;  ///< it was injected
    bool confirmed = false;  ///< it is done when it has arrived
};

/// What the program moves by RDMA: from `bytes` to the peer's memory, or the other way.
struct Moving {
    fi_addr_t with;
    bool reads;
    void* bytes;
    std::size_t length;
    std::uint64_t address;
    std::uint64_t key;
    std::uint64_t data;
    bool has_data;  ///< the peer's program is told, with `data`
    void* context;
    bool told;
    bool must_copy = false;
    bool confirmed = false;  ///< a write is done when it is there

    std::uint64_t flags() const { return FI_RMA | (reads ? FI_READ : FI_WRITE); }
};

/// Of an atomic operation; nullptr: it has none.
struct AtomicValues {
    const std::byte* operands;
    const std::byte* compares;
    std::byte* results;
};
struct Atomic {
    fi_addr_t with;
    AtomicCall call;
    AtomicValues values;
    void* context;
    bool told;

    std::uint64_t flags() const {
        return FI_ATOMIC | (values.results != nullptr ? FI_READ : FI_WRITE);
    }
};

/// A message that the peer fetches, or that we have for ourselves; or what an atomic operation of
/// the peer's answers.
struct Outgoing {
    Outgoing* next = nullptr;
    Connection* connection = nullptr;
    Region region{};
    void* context = nullptr;
    std::uint64_t flags = 0;
    bool told = false;
    bool is_used = false;
    bool is_atomic = false;
    std::byte* results = nullptr;
    std::size_t results_length = 0;
    std::uint32_t place = 0;
    std::uint32_t generation = 0;

    std::uint64_t cookie() const { return std::uint64_t{generation} << 32 | place; }
};

/// What is not private to making and closing is called under the domain's guard.
class Endpoint : public fid_ep {
public:
    static int open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

    // Sending and receiving (short_way.hpp, sending.cpp, receiving.cpp) -----------------------
    ssize_t send(const Sending& sending);
    /// `from`: FI_ADDR_UNSPEC: anybody.
    ssize_t receive(void* buffer, std::size_t room, fi_addr_t from, std::uint64_t tag,
                    std::uint64_t ignore, void* context, bool with_tag, bool told);
    /// One that messages without tags share, until less than min_room() is left.
    ssize_t receive_many(void* buffer, std::size_t room, fi_addr_t from, void* context, bool told);
    std::size_t& min_room() { return min_room_; }
    /// FI_PEEK, FI_CLAIM and FI_DISCARD, as `flags` say.
    ssize_t search(const fi_msg_tagged& message, std::uint64_t flags);
    ssize_t cancel(const void* context);
    ssize_t move(const Moving& moving);    // rma.cpp
    ssize_t atomic(const Atomic& atomic);  // atomics.cpp

    /// Takes what has come, and what is done (progress.cpp). Never fails: what it needs was
    /// reserved.
    void progress();
    /// Takes no more than what has come by stores. False: all else has waited for long enough.
    bool look_at_lines() {
        return lined_.empty() || !take_stored() || ++looks_without_nic_ < looks_without_nic_max;
    }
    /// Somebody connects, or was answered. Any thread.
    bool has_mail() const { return mailbox_.has_mail(); }
    /// That number means nobody any more.
    void forget(fi_addr_t number);

    Domain& domain() { return domain_; }
    std::uint64_t transmit_flags() const { return transmit_flags_; }
    std::uint64_t receive_flags() const { return receive_flags_; }
    bool tells_sends(std::uint64_t flags) const {
        return !selective_sends_ || (flags & FI_COMPLETION) != 0;
    }
    bool tells_receives(std::uint64_t flags) const {
        return !selective_receives_ || (flags & FI_COMPLETION) != 0;
    }

private:
    friend struct EndpointOperations;
    /// Looks at the lines for the message after one by stores, some 20 ns each.
    static constexpr std::uint32_t patience_max = 32;
    static constexpr std::uint32_t patience_min = 4;
    static constexpr std::uint32_t looks_without_nic_max = 64;
    /// Peers with lines. Each look is at those of so many, and at those of some others in turn.
    static constexpr std::size_t lines_max = 32;
    static constexpr std::size_t lines_each_look = 8;
    static constexpr std::size_t lines_in_turn = 4;
    static constexpr std::uint32_t to_self_each_look = 16;
    static constexpr std::uint64_t fetched_at_once_max = 1 << 20;
    struct Part {
        VIP_CQ_HANDLE queue;
        std::uint32_t room;
        std::uint32_t used;
    };

    Endpoint(Domain& domain, const fi_info& info, void* context);
    ~Endpoint();
    void leave_to_itself();
    friend std::default_delete<Endpoint>;

    // Completions that are sure to have room
    bool reserve_send() {
        if (!sends_->reserve()) return false;
        ++promised_sends_;
        return true;
    }
    void give_back_send() {
        sends_->give_back();
        --promised_sends_;
    }
    void tell_send(const Completion& completion) {
        sends_->tell(completion);
        --promised_sends_;
    }
    bool reserve_receive() {
        if (!receives_->reserve()) return false;
        ++promised_receives_;
        return true;
    }
    void give_back_receive() {
        receives_->give_back();
        --promised_receives_;
    }
    void tell_receive(const Completion& completion) {
        receives_->tell(completion);
        --promised_receives_;
    }

    void count_send(bool failed) {
        if (counters_[0] != nullptr) [[unlikely]]
            counters_[0]->count(failed);
    }
    /// What the peer's NIC did, too.
    void count(std::uint64_t flags, bool failed) {
        Counter* const counter = counters_[(flags & FI_READ) != 0    ? 2
                                           : (flags & FI_WRITE) != 0 ? 3
                                                                     : 0];
        if (counter != nullptr) counter->count(failed);
    }
    void count_receive(bool failed) {
        if (counters_[1] != nullptr) [[unlikely]]
            counters_[1]->count(failed);
    }

    // Making (endpoint.cpp)
    int bind(::fid* object, std::uint64_t flags);
    int bind_queue(Queue& queue, std::uint64_t flags);
    int bind_counter(Counter& counter, std::uint64_t flags);
    bool add_part(std::uint32_t used);
    /// A program may sleep, so that all completes in queues of VIA's, and is taken from there.
    bool waits() const { return !waiting_.empty(); }
    /// Entries that a connection needs.
    std::uint32_t entries_each() const { return waits() ? receives_max + sends_max : receives_max; }
    int enable();
    bool reserve_receives(VIP_CQ_HANDLE& queue);
    void give_back_receives(VIP_CQ_HANDLE queue);

    // Peers (connecting.cpp)
    Peer* peer_at(fi_addr_t number) {
        if (number < by_number_.size() && by_number_[number] != nullptr) return by_number_[number];
        return find_peer(number);
    }
    [[gnu::noinline]] Peer* find_peer(fi_addr_t number);
    Peer*& place_of(fi_addr_t number);
    Peer& peer_named(const sockaddr_in& address);
    bool has_successor(const Peer& peer) const;
    /// Why peer_at() found none: -FI_EINVAL, or -FI_EAGAIN.
    ssize_t no_peer(fi_addr_t number) const;
    /// The answer, or the connection's end, will tell.
    void ask_whether_there(Connection& connection);
    fi_addr_t number_of(Peer& peer);
    [[gnu::noinline]] fi_addr_t find_number(Peer& peer);
    ssize_t not_connected(Peer& peer);
    int ask(Peer& peer);
    [[gnu::noinline]] void read_mail() noexcept;
    void answer(Mailbox::Request& request);
    void accept(Peer& peer, Mailbox::Request& request);
    void reject(Mailbox::Request& request, bool crossed);
    void answered(Attempt& attempt);
    int make_connection(Peer& peer, const VIP_VI_ATTRIBUTES* of_requester,
                        std::unique_ptr<Connection>& connection);
    void connected(Peer& peer, std::unique_ptr<Connection> connection, std::uint64_t incarnation);
    Hello hello() const;
    /// Are lines of use, and some more worth looking at?
    bool wants_lines(const Peer& peer) const;

    // Ends (ending.cpp)
    /// The connection broke, or the peer broke the rules: it is ended when it is safe to.
    void fail(Connection& connection);
    [[gnu::noinline]] void end_failed();
    void end(Connection& connection, int error);
    void drain(Connection& connection);
    void free(Connection& connection);
    void fail_receives(Matching& matching, const Peer& peer, int error);
    void fail_receive(Receive& receive, int error);
    void linger();
    void discard_all();

    // Sending
    [[gnu::noinline]] ssize_t send_otherwise(Peer* peer, const Sending& sending);
    ssize_t send_copy(Connection& connection, const Sending& sending);
    ssize_t send_lent(Connection& connection, const Sending& sending);
    ssize_t send_confirmed(Connection& connection, const Sending& sending);
    static void lend(Send& send, Send::Kind kind, const Sending& sending);
    static VIP_RETURN post_lent(Connection& connection, Send& send, const Sending& sending);
    ssize_t send_offer(Connection& connection, const Sending& sending);
    Message* message_to_self(Peer& peer, const Sending& sending, bool copies);
    ssize_t send_to_self(Peer& peer, const Sending& sending);
    Outgoing* take_outgoing(void* context, std::uint64_t flags, bool told);
    Outgoing* find_outgoing(Connection& connection, std::uint64_t cookie, bool is_atomic);
    void take_back(Outgoing& outgoing);
    void put_back(Outgoing& outgoing);
    void finish(Outgoing& outgoing, int error);
    void finish_named(Connection& connection, std::uint64_t cookie);
    Send* room_for(Connection& connection) {
        Send* const send = connection.take();
        if (send != nullptr) [[likely]]
            return send;
        if (waits()) [[unlikely]]
            look_at_queues();
        else
            reap(connection);
        // What is posted to one that has failed is flushed, and so looks done.
        return connection.has_failed ? nullptr : connection.take();
    }
    [[gnu::noinline]] ssize_t why_not_posted(Connection& connection, VIP_RETURN code);
    void watch(Connection& connection);

    // The peer's memory (rma.cpp)
    ssize_t move_over(Connection& connection, const Moving& moving);
    ssize_t move_to_self(Peer& self, const Moving& moving);
    static VIP_RETURN post_part(Connection& connection, Send& send, const Moving& moving,
                                std::size_t part, std::size_t parts);
    /// What is to oneself is done at once, so each read finds something, and does not look at the
    /// NIC: who waits in that way for what a peer does would wait for ever.
    void look_in_turn() {
        if (++to_self_ % to_self_each_look == 0) progress();
    }
    bool has_room_for(Connection& connection, std::size_t count);
    [[gnu::noinline]] void moved(Connection& connection, const Send& send, bool failed);
    bool tell_written(Peer& from, std::uint64_t length, std::uint32_t data);
    [[gnu::noinline]] void arrived_written(Slot& slot, const Header& header);

    // Atomic operations (atomics.cpp)
    ssize_t ask_for(Connection& connection, const Atomic& atomic);
    int carry_out_here(const AtomicCall& call, const AtomicValues& values);
    static bool is_call(const AtomicCall& call, std::size_t length);
    [[gnu::noinline]] void arrived_atomic(Slot& slot, const Header& header, std::size_t length);
    [[gnu::noinline]] void arrived_answer(Slot& slot, const Header& header, std::size_t length);
    void send_answers(Connection& connection);

    // Progress
    void take_receives();
    bool take_stored();
    bool take_stored_of(Connection& connection);
    [[gnu::noinline]] bool take_stored_in_turn();
    bool take_awaited();
    bool nic_may_wait(bool found);
    bool take_next_stored(Connection& connection);
    [[gnu::noinline]] bool take_stored_before(Connection& connection, std::uint16_t number);
    void arrived_by_stores(Connection& connection);
    [[gnu::noinline]] void look_at_queues();
    void take_send(VIP_VI_HANDLE vi);
    std::uint32_t take_from(Connection& connection);
    [[gnu::noinline]] void reap(Connection& connection);
    void complete(Connection& connection, const Send& send, bool failed);
    void tell_done(void* context, std::uint64_t flags, bool told, int error);
    void fetched(Connection& connection, Receive& receive, std::size_t length, bool failed);
    bool look_at(Connection& connection);
    [[gnu::noinline]] void send_waiting(Connection& connection);
    void arrived(Slot& slot, std::size_t length);
    [[gnu::noinline]] void arrived_wrong(Connection& connection);
    [[gnu::noinline]] void arrived_other(Slot& slot, const Header& header, std::size_t length);
    [[gnu::noinline]] void arrived_early(Slot& slot, const Header& header, std::size_t length);
    void arrived_offer(Slot& slot, const Header& header);
    Message& keep(Slot& slot, std::size_t length);

    // Receiving
    Matching& matching(bool with_tag) { return with_tag ? tagged_ : plain_; }
    void give(Message& message, Receive& receive);
    void discard(Message& message);
    void release(Message& message);
    void deliver(Receive& receive, Peer& from, const Header& header, const std::byte* bytes,
                 std::size_t length);
    void fetch(Receive& receive, Connection& connection, const Header& header, const Offer& offer);
    bool fetch_at_once(const Receive& receive, Connection& connection);
    std::size_t eager_size_to(const Connection& connection) const {
        return fetches_at_once_ && connection.lines.may_fetch()
                   ? std::min(connection.eager_size(), eager_size_at_once_)
                   : connection.eager_size();
    }
    void tell_received(const Receive& receive, Peer& from, const Header& header,
                       std::size_t length);
    int find_source(fi_addr_t from, Peer*& peer);
    Receive* new_receive(void* buffer, std::size_t room, Peer* from, void* context, bool told);
    Receive* part_of(Receive& many, Matching& among, std::size_t length);
    std::uint64_t end_part(Receive& many);
    void give_to(Receive& many);
    [[gnu::noinline]] void tell_part(const Receive& part, Peer& from, const Header& header,
                                     std::size_t length);
    void tell_found(const Message& message, void* context, bool with_bytes);
    ssize_t receive_claimed(const fi_msg_tagged& wanted, std::uint64_t flags);

    Domain& domain_;
    const std::uint64_t incarnation_;
    const std::uint64_t transmit_flags_;
    const std::uint64_t receive_flags_;
    const bool directed_;
    const bool told_of_writes_;     ///< peers may say so
    const bool takes_atomics_;      ///< of peers
    const std::size_t copied_max_;  ///< of one peer's messages, in memory of their own
    const std::size_t eager_size_to_self_;
    std::size_t min_room_ = 16384;
    const std::uint16_t wanted_port_;
    bool selective_sends_ = false;
    bool selective_receives_ = false;
    Queue* sends_ = nullptr;
    Queue* receives_ = nullptr;
    std::size_t promised_sends_ = 0;
    std::size_t promised_receives_ = 0;
    AddressVector* addresses_ = nullptr;
    Counter* counters_[4] = {};         ///< of sends, receives, reads, writes
    std::vector<WaitObject*> waiting_;  ///< what programs sleep on

    Matching tagged_;
    Matching plain_;
    std::vector<Peer*> by_number_;
    std::vector<Connection*> watched_;
    std::vector<Connection*> failed_;
    std::vector<Connection*> direct_;      ///< whose receives complete in no queue
    std::vector<Connection*> lined_;       ///< that have lines
    std::uint32_t looks_without_nic_ = 0;  ///< since the last one at the NIC
    std::uint32_t looks_at_lines_ = 0;     ///< before the next one at the NIC
    /// None where ranks share processors, and the next message waits for one that we have.
    std::uint32_t patience_most_ = patience_max;
    std::uint32_t patience_ = patience_max;
    std::size_t next_in_turn_ = 0;
    bool fetches_at_once_ = false;  ///< long messages, by a call of ours
    /// Longer ones are offered to who likely does so, too.
    const std::size_t eager_size_at_once_ = eager_size_one_copy();
    std::uint32_t to_self_ = 0;
    std::size_t queued_ = 0;  ///< how many do in one
    std::vector<Part> parts_;
    Pool<Receive> receive_pool_;
    std::vector<std::pair<const void*, Message*>> claimed_;
    std::deque<Outgoing> outgoing_;
    Outgoing* free_outgoing_ = nullptr;

    std::unordered_map<Name, std::unique_ptr<Peer>> peers_;
    std::vector<std::unique_ptr<Peer>> former_;  ///< whose names others have now
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<std::unique_ptr<Attempt>> attempts_;
    Mailbox mailbox_;
    std::unique_ptr<ProgressThread> alone_;  ///< makes progress, if the program asked for that
    std::unique_ptr<Listener> listener_;     ///< last: its thread fills the mailbox
};

/// libfabric's operations on data (operations.cpp).
extern fi_ops_msg message_operations;
extern fi_ops_tagged tagged_operations;
extern fi_ops_rma rma_operations;        // rma.cpp
extern fi_ops_atomic atomic_operations;  // atomic_operations.cpp
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation,
                 fi_atomic_attr* attributes, std::uint64_t flags);

}  // namespace via::fabric::rdm
