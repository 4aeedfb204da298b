// One end of a connection: a VI with memory, and completion queues.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <span>

#include "harness/memory.hpp"

namespace conformance {

/// The levels on which whatever is sent arrives: all of them, but in bad weather between hosts,
/// where an unreliable VI loses messages.
inline std::span<const VIP_RELIABILITY_LEVEL> levels_that_deliver() {
    static constexpr VIP_RELIABILITY_LEVEL all[] = {
        VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION, VIP_SERVICE_UNRELIABLE};
    return std::span(all).first(std::getenv("VIA_TEST_WEATHER") == nullptr ? 3 : 2);
}

/// A completion queue, destroyed with the object.
class Cq {
public:
    Cq(Nic& nic, VIP_ULONG entries, Where where = Where::current());
    Cq(const Cq&) = delete;
    ~Cq();

    struct Entry {
        VIP_VI_HANDLE vi = nullptr;
        bool receive = false;
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    VIP_CQ_HANDLE handle() const { return handle_; }
    /// Waits for an entry with VipCQWait.
    Entry wait(Where where = Where::current());
    /// Takes an entry if there is one.
    bool done(Entry& entry, Where where = Where::current());
    void destroy(Where where = Where::current());

private:
    Nic& nic_;
    VIP_CQ_HANDLE handle_ = nullptr;
};

/// What an End is to be; by default both may write and read the other's memory.
struct Wants {
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    VIP_ULONG transfer_max = 65536;
    bool rdma_write = true;
    bool rdma_read = true;
    VIP_PROTECTION_HANDLE tag = nullptr;
    Cq* send_cq = nullptr;
    Cq* receive_cq = nullptr;
    std::size_t memory = 256 * 1024;

    VIP_VI_ATTRIBUTES attributes() const;
};

/// A VI and registered memory for it. At its end it disconnects, takes what was flushed, and goes.
class End {
public:
    explicit End(Role& role, const Wants& wants = {}, Where where = Where::current());
    End(const End&) = delete;
    ~End();

    VIP_VI_HANDLE vi() const { return vi_; }
    Memory& memory() { return memory_; }
    Nic& nic() { return nic_; }
    Piece take(std::size_t bytes) { return memory_.take(bytes); }
    /// A piece that holds the pattern of `seed`.
    Piece filled(std::size_t bytes, std::uint64_t seed);
    VIP_VI_STATE state(Where where = Where::current()) const;
    bool send_queue_empty(Where where = Where::current()) const;
    bool receive_queue_empty(Where where = Where::current()) const;

    /// Waits for role `peer` to connect() to us. Gives the attributes of its VI.
    VIP_VI_ATTRIBUTES accept(std::string_view peer, Where where = Where::current());
    /// Connects to role `peer`, which is to accept().
    VIP_VI_ATTRIBUTES connect(std::string_view peer, Where where = Where::current());
    void disconnect(Where where = Where::current());
    /// Waits until the VI is in ERROR and all that was flushed has been taken.
    void wait_broken(Where where = Where::current());
    /// Waits until the VI has this state.
    void wait_state(VIP_VI_STATE state, Where where = Where::current());

    // Each fills a new descriptor, posts it and gives it back.
    VIP_DESCRIPTOR* send(Pieces pieces, VIP_UINT16 control = 0, VIP_UINT32 immediate = 0,
                         Where where = Where::current());
    VIP_DESCRIPTOR* receive(Pieces pieces, Where where = Where::current());
    VIP_DESCRIPTOR* write(Target target, Pieces pieces, VIP_UINT16 control = 0,
                          VIP_UINT32 immediate = 0, Where where = Where::current());
    VIP_DESCRIPTOR* read(Target target, Pieces pieces, VIP_UINT16 control = 0,
                         Where where = Where::current());
    VIP_DESCRIPTOR* send(const Piece& piece, VIP_UINT16 control = 0, VIP_UINT32 immediate = 0,
                         Where where = Where::current()) {
        return send(Pieces(&piece, 1), control, immediate, where);
    }
    VIP_DESCRIPTOR* receive(const Piece& piece, Where where = Where::current()) {
        return receive(Pieces(&piece, 1), where);
    }
    VIP_DESCRIPTOR* write(Target target, const Piece& piece, VIP_UINT16 control = 0,
                          VIP_UINT32 immediate = 0, Where where = Where::current()) {
        return write(target, Pieces(&piece, 1), control, immediate, where);
    }
    VIP_DESCRIPTOR* read(Target target, const Piece& piece, VIP_UINT16 control = 0,
                         Where where = Where::current()) {
        return read(target, Pieces(&piece, 1), control, where);
    }
    /// Posts what is already filled.
    void post_send(VIP_DESCRIPTOR* descriptor, Where where = Where::current());
    void post_receive(VIP_DESCRIPTOR* descriptor, Where where = Where::current());

    /// Waits for the oldest send (receive), which must end so; gives it back.
    VIP_DESCRIPTOR* sent(VIP_RETURN expected = VIP_SUCCESS, Where where = Where::current());
    VIP_DESCRIPTOR* received(VIP_RETURN expected = VIP_SUCCESS, Where where = Where::current());
    /// The same, however it ends.
    struct Outcome {
        VIP_RETURN code;
        VIP_DESCRIPTOR* descriptor;
    };
    Outcome send_outcome(Where where = Where::current());

    /// Shows that the connection works: a word goes to role `peer`, which is to expect() it. All
    /// sends and receives of before are over.
    void say(std::string_view peer, int word, Where where = Where::current());
    void expect(std::string_view peer, int word, Where where = Where::current());

private:
    using Done = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_DESCRIPTOR**);
    using Wait = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR**);
    VIP_DESCRIPTOR* ended(bool waits, Wait wait, Done done, VIP_RETURN expected, Where where);
    void query(VIP_VI_STATE& state, bool& send_empty, bool& receive_empty, Where where) const;

    Role& role_;
    Nic& nic_;
    Wants wants_;
    Memory memory_;
    VIP_VI_HANDLE vi_ = nullptr;
};

/// Takes all completed descriptors off both queues; the number of them.
std::size_t drain(VIP_VI_HANDLE vi);

/// Asks until somebody listens there: the peer's ConnectWait may come a moment later (VIPL 4.20).
VIP_RETURN request(Role& role, VIP_VI_HANDLE vi, Address local, Address remote,
                   VIP_VI_ATTRIBUTES* attributes, VIP_ULONG timeout_ms = patience_ms,
                   Where where = Where::current());

/// Accepts a request whose asker has given up, which leaves it to be rejected. The news of that may
/// still be on its way: then the connection is lost as soon as it is made.
void expect_withdrawn(Role& role, End& end, VIP_CONN_HANDLE connection,
                      Where where = Where::current());

/// Asks, and is not answered, until role `holder` says by a char that it has had the request and
/// keeps it. Every such request must end in TIMEOUT.
void request_unanswered(Role& role, VIP_VI_HANDLE vi, Address local, Address remote,
                        std::string_view holder, Where where = Where::current());

}  // namespace conformance
