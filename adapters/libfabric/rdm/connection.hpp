// SPDX-License-Identifier: Apache-2.0
// A VI to a peer, the receives that it has posted and the sends that are under way.
#pragma once

#include <memory>

#include "domain.hpp"
#include "rdm/matching.hpp"
#include "rdm/shared_lines.hpp"
#include "rdm/wire.hpp"

namespace via::fabric::rdm {

class Connection;

/// Completions that are taken at once.
inline constexpr VIP_UINT32 batch = 16;

/// A receive of the VI.
struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Slot {
    VIP_DESCRIPTOR descriptor;
    Message message;  ///< while the program has not received what lies here
    Connection* connection;
    std::byte* bytes;
    bool is_place = false;   ///< for a message that came by stores
    std::uint8_t place = 0;  ///< which one it is then
};

/// A descriptor on its way, and what becomes of it.
struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Send {
    enum class Kind : std::uint8_t {
        copied,    ///< nobody waits for it
        lent,      ///< the program's memory, which it gets back with a completion
        pull,      ///< a piece of a message that we read from the peer
        question,  ///< a read of no bytes, which the peer's NIC answers if it is still there
        part,      ///< of what the program moves by RDMA, but for the last
        move,      ///< the last one, whose end the program is told
    };
    VIP_DESCRIPTOR descriptor;
    Kind kind;
    bool told;
    Connection* connection;
    union {
        void* context;     ///< of what is lent
        Receive* receive;  ///< of what is pulled
    };
    std::uint64_t flags;
    std::size_t length;  ///< of the piece that is read
    // Behind these, in the same cache line, what is sent.
    Header header;
    std::byte copy[inject_max];
};

/// Owns a VI and its descriptors: the receives that are posted, the sends that are under way, and
/// the lines beside them. What else of it waits is kept here for who works on it. Under the
/// domain's guard.
class Connection {
public:
    /// A VI with its receives posted; receives complete in `queue`, if it is not null, and sends if
    /// they shall, too. 0, or an error of libfabric's.
    static int open(Nic& nic, Peer& peer, VIP_CQ_HANDLE queue, bool sends_too,
                    const VIP_VI_ATTRIBUTES* of_requester, std::unique_ptr<Connection>& answer);
    ~Connection() { close(); }
    /// Ends it, and its VI. Messages that lie in its receives stay.
    void close();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    Peer& peer() { return *peer_; }
    VIP_VI_HANDLE vi() const { return vi_; }
    VIP_CQ_HANDLE queue() const { return queue_; }
    std::size_t transfer_size() const { return attributes_.MaxTransferSize; }
    /// Longer messages are offered.
    std::size_t eager_size() const { return eager_size_; }

    // Sending -----------------------------------------------------------------------------------
    /// The next descriptor, or nullptr: all are under way. Fill it, then post() it.
    Send* take() {
        if (head_ - tail_ == sends_max) return nullptr;
        return &sends_[head_ % sends_max];
    }
    /// `length` bytes from the header on; `control`: VIP_CONTROL_QFENCE, or 0. What VIPL answers.
    VIP_RETURN post(Send& send, std::size_t length, VIP_UINT16 control = VIP_CONTROL_OP_SENDRECV) {
        set(send, control, 1);
        send.descriptor.DS[0].Local = {{.Address = &send.header}, memory_, length32(length)};
        send.descriptor.CS.Length = length32(length);
        return post_message(send);
    }
    /// The header, then the program's bytes where they are.
    VIP_RETURN post_lent(Send& send, const void* bytes, std::size_t length);
    VIP_RETURN post_question(Send& send);
    VIP_RETURN post_pull(Send& send, std::byte* to, std::uint64_t address, std::uint32_t key,
                         std::size_t length) {
        return post_rdma(send, VIP_CONTROL_OP_RDMAREAD, to, address, key, length);
    }
    /// Whatever is sent behind a write comes after it.
    VIP_RETURN post_write(Send& send, const void* bytes, std::uint64_t address, std::uint32_t key,
                          std::size_t length) {
        lines.next_by_nic();
        return post_rdma(send, VIP_CONTROL_OP_RDMAWRITE, const_cast<void*>(bytes), address, key,
                         length);
    }
    /// Takes up to `room` that are done; `failed`: the last of them did not go well.
    VIP_UINT32 take_done(VIP_DESCRIPTOR** done, VIP_UINT32 room, bool& failed) {
        VIP_UINT32 taken = 0;
        failed = ViaSendDoneMany(vi_, done, room, &taken) == VIP_DESCRIPTOR_ERROR && taken != 0;
        return taken;
    }
    /// Has nothing been posted since the last time this was asked?
    bool is_stuck() { return std::exchange(stuck_at_, head_) == head_; }
    /// Of those taken, in their order.
    void give_back(std::uint32_t count) { tail_ += count; }
    std::uint32_t under_way() const { return head_ - tail_; }
    bool has_room(std::size_t count) const { return sends_max - under_way() >= count; }
    /// Is the oldest one done, as far as the last look at the NIC told? Asking costs none.
    bool has_done() const {
        return head_ != tail_ && is_done(sends_[tail_ % sends_max].descriptor);
    }

    // Receiving ---------------------------------------------------------------------------------
    /// Looks at the NIC, and takes up to `room` messages that have come, in their order;
    /// `failed`: the last of them is none. Only without a completion queue.
    VIP_UINT32 take_received(VIP_DESCRIPTOR** done, VIP_UINT32 room, bool& failed) {
        VIP_UINT32 taken = 0;
        failed = ViaRecvDoneMany(vi_, done, room, &taken) == VIP_DESCRIPTOR_ERROR && taken != 0;
        taken_ += taken;
        return taken;
    }
    void taken_one() { ++taken_; }
    /// Has one come, as far as the last look at the NIC told? Asking costs none.
    bool has_received() const {
        return posted() != 0 && is_done(order_[taken_ % receives_max]->descriptor);
    }
    std::uint32_t posted() const { return given_ - taken_; }
    /// The slot may take another message. Receives are posted several at a time, as a rule when
    /// there is nothing else to do.
    void release(Slot& slot) {
        if (has_ended) return;
        if (slot.is_place) [[unlikely]] {
            order_of_places_[free_places_++] = slot.place;
            return lines.answer();
        }
        fresh_[fresh_count_++] = &slot;
        if (fresh_count_ >= (queue_ != nullptr ? batch : fresh_max) || posted() <= batch)
            post_receives();
    }
    void post_some() {
        if (fresh_count_ >= batch) post_receives();
    }
    bool post_receives();

    // By stores -----------------------------------------------------------------------------------
    /// Before the first message. Without memory there are none.
    void make_lines(Hello& hello) {
        if (make_places()) lines.create(nic_, hello);
    }
    void attach_lines(const Hello& hello) {
        if (make_places()) lines.attach(nic_, vi_, hello);
    }
    /// For a message of `length` bytes, the last that was taken, which is to wait for its receive;
    /// released as any. nullptr: the peer sent more than it may.
    Slot* slot_of_stored(std::size_t length) {
        if (free_places_ == 0) return nullptr;
        Place& place = places_[order_of_places_[--free_places_]];
        std::memcpy(place.bytes + sizeof(Header), lines.bytes(), length);
        return &place.slot;
    }
    /// Messages that came by that way may stay where they are: there is room for as many again.
    bool may_keep(const Slot& slot) const {
        return slot.is_place ? free_places_ >= SharedLines::lines_each / 2
                             : posted() >= receives_max / 2;
    }
    SharedLines lines;

    bool counts_moves = false;      ///< the peer is told when its memory was read or written
    bool is_asked = false;          ///< a question is under way
    std::uint64_t asked_at = 0;     ///< AddressVector::now() then
    std::uint64_t there_since = 0;  ///< the last such moment at which the peer was surely there
    bool is_watched = false;        ///< somebody waits for what is under way
    bool is_asking = false;         ///< a thread asks for this connection
    bool is_broken = false;         ///< found out before it was known to be there
    bool has_failed = false;        ///< to be ended soon
    bool has_ended = false;
    std::uint32_t waited_for = 0;  ///< sends that are not copied
    std::uint32_t atomics = 0;     ///< ours, that it has not answered
    Line<Message> answers;         ///< to its atomic operations, not sent yet
    int move_error = 0;            ///< why an earlier part of the move that now ends failed
    std::uint32_t held = 0;        ///< messages and pulls that name it
    std::size_t copied = 0;        ///< memory of messages that have some of their own
    Line<Receive> waiting;         ///< to be pulled, or to be told that they were

private:
    static constexpr std::uint32_t batch = 4;
    static constexpr std::uint32_t fresh_max = receives_max / 2;

    Connection(Nic& nic, Peer& peer);
    static bool is_done(const VIP_DESCRIPTOR& descriptor) {
        return (__atomic_load_n(&descriptor.CS.Status, __ATOMIC_ACQUIRE) & VIP_STATUS_DONE) != 0;
    }
    static VIP_UINT32 length32(std::size_t length) { return static_cast<VIP_UINT32>(length); }
    static void set(Send& send, VIP_UINT16 control, VIP_UINT16 segments) {
        send.descriptor.CS.Control = control;
        send.descriptor.CS.SegCount = segments;
        send.descriptor.CS.Reserved = 0;
    }
    VIP_RETURN post_rdma(Send& send, VIP_UINT16 operation, void* local, std::uint64_t address,
                         std::uint32_t key, std::size_t length);
    VIP_RETURN post_message(Send& send) {
        lines.number(send.header);
        const VIP_RETURN code = post(send);
        if (code == VIP_SUCCESS) lines.sent_one();
        return code;
    }
    VIP_RETURN post(Send& send) {
        send.connection = this;
        const VIP_RETURN code = VipPostSend(vi_, &send.descriptor, memory_);
        if (code == VIP_SUCCESS) ++head_;
        return code;
    }
    bool make_places();
    int make_vi(bool sends_too, const VIP_VI_ATTRIBUTES* of_requester);

    Nic& nic_;
    Peer* peer_;
    VIP_MEM_HANDLE memory_;
    const std::size_t eager_size_;
    VIP_VI_HANDLE vi_ = nullptr;
    VIP_CQ_HANDLE queue_ = nullptr;
    VIP_VI_ATTRIBUTES attributes_{};
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t stuck_at_ = 0;
    std::uint32_t given_ = 0;  ///< receives that were posted, and of these taken back
    std::uint32_t taken_ = 0;
    std::uint32_t fresh_count_ = 0;
    Slot* fresh_[receives_max];
    Slot* order_[receives_max];  ///< those that are posted
    std::unique_ptr<Send[]> sends_;
    std::unique_ptr<Slot[]> slots_;
    std::unique_ptr<std::byte[]> bytes_;
    /// For messages that came by stores before their receives, as many as there are lines.
    struct Place {
        Slot slot;
        std::byte bytes[sizeof(Header) + SharedLines::long_room];
    };
    static constexpr std::uint8_t places_max = SharedLines::lines_each;
    std::unique_ptr<Place[]> places_;
    std::uint8_t order_of_places_[places_max];
    std::uint8_t free_places_ = 0;
};

}  // namespace via::fabric::rdm
