#include "harness/end.hpp"

#include <cstring>
#include <utility>

namespace conformance {

Cq::Cq(Nic& nic, VIP_ULONG entries, Where where) : nic_(nic) {
    must(VipCreateCQ(nic.handle(), entries, &handle_), "VipCreateCQ", where);
}

Cq::~Cq() {
    if (handle_ == nullptr || nic_.handle() == nullptr) return;
    EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(handle_));
}

Cq::Entry Cq::wait(Where where) {
    Entry entry;
    VIP_BOOLEAN receive = 77;
    must(VipCQWait(handle_, patience_ms, &entry.vi, &receive), "VipCQWait", where);
    require(receive == VIP_TRUE || receive == VIP_FALSE, "RecvQueue is VIP_TRUE or VIP_FALSE",
            where);
    entry.receive = receive == VIP_TRUE;
    return entry;
}

bool Cq::done(Entry& entry, Where where) {
    VIP_BOOLEAN receive = 77;
    const VIP_RETURN code = VipCQDone(handle_, &entry.vi, &receive);
    if (code == VIP_NOT_DONE) return false;
    must(code, "VipCQDone", where);
    require(receive == VIP_TRUE || receive == VIP_FALSE, "RecvQueue is VIP_TRUE or VIP_FALSE",
            where);
    entry.receive = receive == VIP_TRUE;
    return true;
}

void Cq::destroy(Where where) {
    must(VipDestroyCQ(std::exchange(handle_, nullptr)), "VipDestroyCQ", where);
}

VIP_VI_ATTRIBUTES Wants::attributes() const {
    VIP_VI_ATTRIBUTES attributes = vi_attributes(level);
    attributes.MaxTransferSize = transfer_max;
    attributes.Ptag = tag;
    attributes.EnableRdmaWrite = rdma_write ? VIP_TRUE : VIP_FALSE;
    // No NIC need support reads on unreliable VIs (VIPL 1.9).
    attributes.EnableRdmaRead = rdma_read && level != VIP_SERVICE_UNRELIABLE ? VIP_TRUE : VIP_FALSE;
    return attributes;
}

End::End(Role& role, const Wants& wants, Where where)
    : role_(role),
      nic_(role.nic()),
      wants_(wants),
      memory_(nic_, wants.memory, rights(true, true, wants.tag), where) {
    VIP_VI_ATTRIBUTES attributes = wants.attributes();
    const VIP_CQ_HANDLE send_cq = wants.send_cq == nullptr ? nullptr : wants.send_cq->handle();
    const VIP_CQ_HANDLE receive_cq =
        wants.receive_cq == nullptr ? nullptr : wants.receive_cq->handle();
    must(VipCreateVi(nic_.handle(), &attributes, send_cq, receive_cq, &vi_), "VipCreateVi", where);
}

End::~End() {
    if (nic_.handle() == nullptr) return;
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(vi_));
    drain(vi_);
    EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi_));
}

std::size_t drain(VIP_VI_HANDLE vi) {
    std::size_t taken = 0;
    for (const auto done : {VipSendDone, VipRecvDone}) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        VIP_RETURN code = VIP_SUCCESS;
        while ((code = done(vi, &descriptor)) != VIP_NOT_DONE && descriptor != nullptr) ++taken;
        EXPECT_EQ(VIP_DESCRIPTOR_ERROR, code) << "something is posted and not flushed";
    }
    return taken;
}

Piece End::filled(std::size_t bytes, std::uint64_t seed) {
    const Piece piece = take(bytes);
    fill(piece, seed);
    return piece;
}

void End::query(VIP_VI_STATE& state, bool& send_empty, bool& receive_empty, Where where) const {
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN send = 0;
    VIP_BOOLEAN receive = 0;
    must(VipQueryVi(vi_, &state, &attributes, &send, &receive), "VipQueryVi", where);
    send_empty = send != VIP_FALSE;
    receive_empty = receive != VIP_FALSE;
}

VIP_VI_STATE End::state(Where where) const {
    VIP_VI_STATE state;
    bool send = false;
    bool receive = false;
    query(state, send, receive, where);
    return state;
}

bool End::send_queue_empty(Where where) const {
    VIP_VI_STATE state;
    bool send = false;
    bool receive = false;
    query(state, send, receive, where);
    return send;
}

bool End::receive_queue_empty(Where where) const {
    VIP_VI_STATE state;
    bool send = false;
    bool receive = false;
    query(state, send, receive, where);
    return receive;
}

void End::wait_state(VIP_VI_STATE wanted, Where where) {
    role_.until([&] { return state(where) == wanted; }, "the VI has the expected state", where);
}

void End::wait_broken(Where where) {
    wait_state(VIP_STATE_ERROR, where);
    // The state is seen a moment before the last descriptor is flushed.
    role_.until(
        [&] {
            for (const auto done : {VipSendDone, VipRecvDone}) {
                VIP_DESCRIPTOR* descriptor = nullptr;
                do {
                    if (done(vi_, &descriptor) == VIP_NOT_DONE) return false;
                } while (descriptor != nullptr);
            }
            return true;
        },
        "everything posted is flushed", where);
}

// Connecting --------------------------------------------------------------------------------------

VIP_VI_ATTRIBUTES End::accept(std::string_view peer, Where where) {
    Address local = nic_.address(role_.discriminator(role_.name() + ":" + std::string(peer)));
    role_.tell(peer, local, where);
    Address remote;
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    must(VipConnectWait(nic_.handle(), local.net(), patience_ms, remote.net(), &attributes,
                        &connection),
         "VipConnectWait", where);
    must(VipConnectAccept(connection, vi_), "VipConnectAccept", where);
    return attributes;
}

VIP_VI_ATTRIBUTES End::connect(std::string_view peer, Where where) {
    const auto remote = role_.hear<Address>(peer, where);
    const Address local = nic_.address(role_.discriminator(role_.name()));
    VIP_VI_ATTRIBUTES attributes{};
    must(request(role_, vi_, local, remote, &attributes, patience_ms, where), "VipConnectRequest",
         where);
    return attributes;
}

VIP_RETURN request(Role& role, VIP_VI_HANDLE vi, Address local, Address remote,
                   VIP_VI_ATTRIBUTES* attributes, VIP_ULONG timeout_ms, Where where) {
    VIP_RETURN code = VIP_NO_MATCH;
    role.until(
        [&] {
            code = VipConnectRequest(vi, local.net(), remote.net(), timeout_ms, attributes);
            return code != VIP_NO_MATCH;
        },
        "somebody listens to the discriminator", where);
    return code;
}

void expect_withdrawn(Role& role, End& end, VIP_CONN_HANDLE connection, Where where) {
    const VIP_RETURN code = VipConnectAccept(connection, end.vi());
    if (code == VIP_SUCCESS) {
        end.nic().wait_error(role, end.vi(), VIP_ERROR_CONN_LOST, where);
        end.disconnect(where);
    } else {
        require(code == VIP_TIMEOUT, std::string("TIMEOUT, not ") + name_of(code), where);
        must(VipConnectReject(connection), "VipConnectReject", where);
    }
    require(end.state(where) == VIP_STATE_IDLE, "the VI is idle", where);
}

void request_unanswered(Role& role, VIP_VI_HANDLE vi, Address local, Address remote,
                        std::string_view holder, Where where) {
    int timeouts = 0;
    role.until(
        [&] {
            VIP_VI_ATTRIBUTES attributes;
            const VIP_RETURN code =
                VipConnectRequest(vi, local.net(), remote.net(), 200, &attributes);
            require(code == VIP_TIMEOUT || code == VIP_NO_MATCH,
                    std::string("a request that is not answered times out; got ") + name_of(code),
                    where);
            timeouts += code == VIP_TIMEOUT ? 1 : 0;
            return role.was_told_by(holder, where);
        },
        "the holder has had the request", where);
    role.hear<char>(holder, where);
    require(timeouts > 0, "a request has timed out", where);
}

void End::disconnect(Where where) { must(VipDisconnect(vi_), "VipDisconnect", where); }

// Posting -----------------------------------------------------------------------------------------

void End::post_send(VIP_DESCRIPTOR* descriptor, Where where) {
    must(VipPostSend(vi_, descriptor, memory_.handle()), "VipPostSend", where);
}

void End::post_receive(VIP_DESCRIPTOR* descriptor, Where where) {
    must(VipPostRecv(vi_, descriptor, memory_.handle()), "VipPostRecv", where);
}

VIP_DESCRIPTOR* End::send(Pieces pieces, VIP_UINT16 control, VIP_UINT32 immediate, Where where) {
    VIP_DESCRIPTOR* descriptor = memory_.descriptor(pieces.size(), where);
    make_send(descriptor, pieces, control, immediate);
    post_send(descriptor, where);
    return descriptor;
}

VIP_DESCRIPTOR* End::receive(Pieces pieces, Where where) {
    VIP_DESCRIPTOR* descriptor = memory_.descriptor(pieces.size(), where);
    make_receive(descriptor, pieces);
    post_receive(descriptor, where);
    return descriptor;
}

VIP_DESCRIPTOR* End::write(Target target, Pieces pieces, VIP_UINT16 control, VIP_UINT32 immediate,
                           Where where) {
    VIP_DESCRIPTOR* descriptor = memory_.descriptor(pieces.size() + 1, where);
    make_write(descriptor, target, pieces, control, immediate);
    post_send(descriptor, where);
    return descriptor;
}

VIP_DESCRIPTOR* End::read(Target target, Pieces pieces, VIP_UINT16 control, Where where) {
    VIP_DESCRIPTOR* descriptor = memory_.descriptor(pieces.size() + 1, where);
    make_read(descriptor, target, pieces, control);
    post_send(descriptor, where);
    return descriptor;
}

// Completing --------------------------------------------------------------------------------------

VIP_DESCRIPTOR* End::ended(bool waits, Wait wait, Done done, VIP_RETURN expected, Where where) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    VIP_RETURN code = VIP_NOT_DONE;
    if (waits) {
        code = wait(vi_, patience_ms, &descriptor);
    } else {  // a queue bound to a CQ is not waited on (VIPL 4.14)
        role_.until([&] { return (code = done(vi_, &descriptor)) != VIP_NOT_DONE; },
                    "the descriptor is done", where);
    }
    const std::string got =
        std::string(name_of(code)) +
        (descriptor == nullptr ? ", no descriptor"
                               : ", Status " + status_text(descriptor->CS.Status)) +
        "; the error handler heard " + nic_.errors().text(vi_);
    require(descriptor != nullptr, "a descriptor ends: " + got, where);
    if (code != expected)
        ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
            << "expected " << name_of(expected) << ", got " << got;
    return descriptor;
}

End::Outcome End::send_outcome(Where where) {
    Outcome outcome{VIP_NOT_DONE, nullptr};
    role_.until(
        [&] { return (outcome.code = VipSendDone(vi_, &outcome.descriptor)) != VIP_NOT_DONE; },
        "the descriptor is done", where);
    return outcome;
}

VIP_DESCRIPTOR* End::sent(VIP_RETURN expected, Where where) {
    return ended(wants_.send_cq == nullptr, VipSendWait, VipSendDone, expected, where);
}

VIP_DESCRIPTOR* End::received(VIP_RETURN expected, Where where) {
    return ended(wants_.receive_cq == nullptr, VipRecvWait, VipRecvDone, expected, where);
}

void End::say(std::string_view peer, int word, Where where) {
    const Piece piece = take(sizeof word);
    std::memcpy(piece.data, &word, sizeof word);
    role_.hear<char>(peer, where);
    VIP_DESCRIPTOR* descriptor = send(piece, 0, 0, where);
    require(sent(VIP_SUCCESS, where) == descriptor, "the word is the send that ends", where);
}

void End::expect(std::string_view peer, int word, Where where) {
    const Piece piece = take(sizeof word);
    VIP_DESCRIPTOR* descriptor = receive(piece, where);
    role_.tell(peer, 'r', where);
    require(received(VIP_SUCCESS, where) == descriptor, "the word is what was received", where);
    int got = 0;
    std::memcpy(&got, piece.data, sizeof got);
    require(got == word && descriptor->CS.Length == sizeof word,
            "the word is the one that was said", where);
}

}  // namespace conformance
