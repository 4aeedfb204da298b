// SPDX-License-Identifier: Apache-2.0
#include "rdm/connection.hpp"

#include <algorithm>

#include "info.hpp"
#include "rdm/peer.hpp"

namespace via::fabric::rdm {
namespace {

/// Not a power of two: the beginnings of receives shall not meet in one place of the cache.
constexpr std::size_t stride = packet_max + 112;
static_assert(stride % 64 == 0);

}  // namespace

Connection::Connection(Nic& nic, Peer& peer)
    : nic_(nic),
      peer_(&peer),
      memory_(nic.everything()),
      eager_size_(std::min(eager_max, fabric::eager_size(nic.has_shared_memory_to(peer.address)))) {
}

int Connection::open(Nic& nic, Peer& peer, VIP_CQ_HANDLE queue, bool sends_too,
                     const VIP_VI_ATTRIBUTES* of_requester, std::unique_ptr<Connection>& answer) {
    return guarded([&] {
        std::unique_ptr<Connection> fresh(new Connection(nic, peer));
        fresh->queue_ = queue;
        // The memory is touched as it is used.
        fresh->sends_ = std::make_unique_for_overwrite<Send[]>(sends_max);
        fresh->slots_ = std::make_unique<Slot[]>(receives_max);
        fresh->bytes_ = std::make_unique_for_overwrite<std::byte[]>(receives_max * stride);
        if (const int error = fresh->make_vi(sends_too, of_requester)) return error;
        for (std::uint32_t index = 0; index < receives_max; ++index) {
            Slot& slot = fresh->slots_[index];
            slot.connection = fresh.get();
            slot.bytes = fresh->bytes_.get() + index * stride;
            fresh->fresh_[fresh->fresh_count_++] = &slot;
        }
        if (!fresh->post_receives()) return -FI_ENOMEM;
        answer = std::move(fresh);
        return 0;
    });
}

int Connection::make_vi(bool sends_too, const VIP_VI_ATTRIBUTES* of_requester) {
    attributes_.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes_.MaxTransferSize = std::clamp<VIP_ULONG>(fabric::transfer_size(), packet_max,
                                                        nic_.attributes().MaxTransferSize);
    attributes_.EnableRdmaWrite = VIP_TRUE;
    attributes_.EnableRdmaRead = VIP_TRUE;
    // Both ends must agree, so who accepts takes what the other end asks with.
    if (of_requester != nullptr) attributes_.MaxTransferSize = of_requester->MaxTransferSize;
    if (attributes_.MaxTransferSize < packet_max) return -FI_EINVAL;
    VIP_RETURN code =
        VipCreateVi(nic_.handle(), &attributes_, sends_too ? queue_ : nullptr, queue_, &vi_);
    if (code != VIP_SUCCESS) return -error_of(code);
    code = ViaSetCredits(vi_, VIP_TRUE);
    return -error_of(code);
}

bool Connection::make_places() {
    // The memory is touched as it is used.
    places_.reset(new (std::nothrow) Place[places_max]);
    if (places_ == nullptr) return false;
    for (; free_places_ < places_max; ++free_places_) {
        Place& place = places_[free_places_];
        place.slot.connection = this;
        place.slot.bytes = place.bytes;
        place.slot.is_place = true;
        place.slot.place = order_of_places_[free_places_] = free_places_;
    }
    return true;
}

void Connection::close() {
    if (vi_ == nullptr) return;
    VipDisconnect(vi_);
    VIP_DESCRIPTOR* descriptor = nullptr;
    const auto empty = [&](auto done) {
        do {
            descriptor = nullptr;
            done(vi_, &descriptor);
        } while (descriptor != nullptr);
    };
    empty(VipSendDone);
    empty(VipRecvDone);
    if (const VIP_RETURN code = VipDestroyVi(std::exchange(vi_, nullptr)); code != VIP_SUCCESS)
        FI_WARN(&provider, FI_LOG_EP_CTRL, "closing: %s\n", ViaReturnText(code));
    lines.close();
}

VIP_RETURN Connection::post_lent(Send& send, const void* bytes, std::size_t length) {
    set(send, VIP_CONTROL_OP_SENDRECV, 2);
    send.descriptor.DS[0].Local = {{.Address = &send.header}, memory_, sizeof(Header)};
    send.descriptor.DS[1].Local = {
        {.Address = const_cast<void*>(bytes)}, memory_, length32(length)};
    send.descriptor.CS.Length = length32(sizeof(Header) + length);
    return post_message(send);
}

VIP_RETURN Connection::post_rdma(Send& send, VIP_UINT16 operation, void* local,
                                 std::uint64_t address, std::uint32_t key, std::size_t length) {
    set(send, operation, length != 0 ? 2 : 1);
    send.descriptor.DS[0].Remote = {{.AddressBits = address}, key, 0};
    send.descriptor.DS[1].Local = {{.Address = local}, memory_, length32(length)};
    send.descriptor.CS.Length = length32(length);
    return post(send);
}

VIP_RETURN Connection::post_question(Send& send) {
    set(send, VIP_CONTROL_OP_RDMAREAD, 1);
    send.descriptor.DS[0].Remote = {};
    send.descriptor.CS.Length = 0;
    return post(send);
}

bool Connection::post_receives() {
    const std::uint32_t count = fresh_count_;
    if (count == 0) return true;
    VIP_DESCRIPTOR* descriptors[receives_max];
    VIP_MEM_HANDLE handles[receives_max];
    for (std::uint32_t index = 0; index < count; ++index) {
        VIP_DESCRIPTOR& descriptor = fresh_[index]->descriptor;
        descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
        descriptor.CS.SegCount = 1;
        descriptor.CS.Reserved = 0;
        descriptor.CS.Length = packet_max;
        descriptor.DS[0].Local = {{.Address = fresh_[index]->bytes}, memory_, packet_max};
        descriptors[index] = &descriptor;
        handles[index] = memory_;
    }
    VIP_UINT32 done = 0;
    ViaPostRecvMany(vi_, descriptors, handles, count, &done);
    for (std::uint32_t index = 0; index < done; ++index)
        order_[given_++ % receives_max] = fresh_[index];
    // What could not be posted, for want of memory, is tried again with the next ones.
    std::copy(fresh_ + done, fresh_ + count, fresh_);
    fresh_count_ = count - done;
    return fresh_count_ == 0;
}

}  // namespace via::fabric::rdm
