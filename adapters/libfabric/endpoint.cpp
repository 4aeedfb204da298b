// SPDX-License-Identifier: Apache-2.0
// Endpoints: making, connecting, ending. The data path is transfer.cpp.
#include "endpoint.hpp"

#include <algorithm>

#include "info.hpp"

namespace via::fabric {

struct EndpointOperations {
    static Endpoint& of(fid* endpoint) {
        return *static_cast<Endpoint*>(reinterpret_cast<fid_ep*>(endpoint));
    }
    static Endpoint& of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }
    static int close(fid* endpoint) {
        if (forked()) return -FI_EOPBADSTATE;
        return guarded([&] {
            Endpoint::close(std::unique_ptr<Endpoint>(&of(endpoint)));
            return 0;
        });
    }
    static int bind(fid* endpoint, fid* object, std::uint64_t flags) {
        return guarded([&] { return of(endpoint).bind(object, flags); });
    }
    static int control(fid* endpoint, int command, void*) {
        return command == FI_ENABLE ? guarded([&] { return of(endpoint).enable(); }) : -FI_ENOSYS;
    }
    static int getopt(fid*, int level, int option, void* value, std::size_t* length) {
        if (level != FI_OPT_ENDPOINT || option != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
        if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
        *static_cast<std::size_t*>(value) = connect_data_max;
        *length = sizeof(std::size_t);
        return 0;
    }
    static int setopt(fid*, int, int, const void*, std::size_t) { return -FI_ENOPROTOOPT; }
    static int getname(fid* endpoint, void* address, std::size_t* length) {
        const sockaddr_in own = of(endpoint).domain_.nic().address(of(endpoint).port_);
        return write_address(own, address, length) == 0 ? 0 : -FI_ETOOSMALL;
    }
    static int getpeer(fid_ep* endpoint, void* address, std::size_t* length) {
        if (of(endpoint).peer_.sin_family == 0) return -FI_ENOTCONN;
        return write_address(of(endpoint).peer_, address, length) == 0 ? 0 : -FI_ETOOSMALL;
    }
    static int connect(fid_ep* endpoint, const void* address, const void* data,
                       std::size_t length) {
        return guarded([&] { return of(endpoint).connect(address, data, length); });
    }
    static int accept(fid_ep* endpoint, const void* data, std::size_t length) {
        return guarded([&] { return of(endpoint).accept(data, length); });
    }
    static int shutdown(fid_ep* endpoint, std::uint64_t) { return of(endpoint).shut_down(); }
};

namespace {

using Operations = EndpointOperations;
fi_ops object_operations = {sizeof(fi_ops),      Operations::close, Operations::bind,
                            Operations::control, unsupported,       unsupported,
                            unsupported};
fi_ops_ep endpoint_operations = {sizeof(fi_ops_ep),  unsupported, Operations::getopt,
                                 Operations::setopt, unsupported, unsupported,
                                 unsupported,        unsupported};
fi_ops_cm cm_operations = {sizeof(fi_ops_cm),   unsupported,         Operations::getname,
                           Operations::getpeer, Operations::connect, unsupported,
                           Operations::accept,  unsupported,         Operations::shutdown,
                           unsupported};

/// At least two: what the peer confirms takes a place for the question, too.
std::uint32_t queue_size(std::size_t wanted) {
    return static_cast<std::uint32_t>(
        std::clamp(wanted == 0 ? queue_size_default : wanted, std::size_t{2}, queue_size_max));
}

}  // namespace

// Making ----------------------------------------------------------------------------------------

int Endpoint::open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
    return guarded([&] {
        if (info == nullptr || info->tx_attr == nullptr || info->rx_attr == nullptr)
            return -FI_EINVAL;
        if (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_MSG) return -FI_EINVAL;
        auto& owner = *static_cast<Domain*>(domain);
        std::unique_ptr<ConnectRequest> request;
        sockaddr_in own{};
        if (info->handle != nullptr && !PassiveEndpoint::find(info->handle, own)) {
            // Of an event; perhaps answered already, and freed.
            request = owner.fabric().requests().take(info->handle, &owner.nic());
            if (!request) return -FI_EINVAL;
            own.sin_port = htons(request->port);
        }
        *endpoint = new Endpoint(owner, *info, std::move(request), context);
        static_cast<Endpoint*>(*endpoint)->port_ = port_of(own);
        return 0;
    });
}

Endpoint::Endpoint(Domain& domain, const fi_info& info, std::unique_ptr<ConnectRequest> request,
                   void* context)
    : fid_ep{{FI_CLASS_EP, context, &object_operations},
             &endpoint_operations,
             &cm_operations,
             &message_operations,
             &rma_operations,
             nullptr,
             nullptr,
             nullptr},
      domain_(domain),
      shares_receives_(info.ep_attr != nullptr && info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT),
      send_size_(queue_size(info.tx_attr->size)),
      receive_size_(queue_size(info.rx_attr->size)),
      transmit_flags_(info.tx_attr->op_flags),
      receive_flags_(info.rx_attr->op_flags),
      writes_with_data_(((info.mode | info.rx_attr->mode) & FI_RX_CQ_DATA) != 0),
      request_(std::move(request)) {
    if (is_socket_address(info.dest_addr, info.dest_addrlen))
        peer_ = *static_cast<const sockaddr_in*>(info.dest_addr);
    domain_.users.add();
}

void Endpoint::close(std::unique_ptr<Endpoint> endpoint) {
    CompletionQueue* const queue = endpoint->sends_.queue;
    endpoint->let_go();
    if (queue != nullptr && queue == endpoint->receives_.queue)
        queue->keep_closed(std::move(endpoint));
}

/// Ends what is under way, and stands on nothing any more.
void Endpoint::let_go() {
    domain_.fabric().connector().cancel(*this);
    request_.reset();
    if (vi_ != nullptr) {
        domain_.nic().unwatch(vi_);
        VipDisconnect(vi_);
        sends_.queue->drain(vi_, false);
        receives_.queue->drain(vi_, true);
        if (const VIP_RETURN code = VipDestroyVi(vi_); code != VIP_SUCCESS)
            FI_WARN(&provider, FI_LOG_EP_CTRL, "closing: %s\n", ViaReturnText(code));
    }
    for (const bool receives : {false, true}) {
        Side& one = side(receives);
        if (one.part != nullptr) one.queue->give_back(one.part, one.entries);
        if (one.queue == nullptr) continue;
        for (Counter* counter : counters_)
            if (counter != nullptr && vi_ != nullptr) counter->unwatch(one.queue);
        one.queue->users.remove();
    }
    for (Counter* counter : counters_)
        if (counter != nullptr) counter->users.remove();
    if (shared_ != nullptr) shared_->users.remove();
    if (events_ != nullptr) {
        events_->forget(&fid);
        events_->users.remove();
    }
    domain_.users.remove();
    vi_ = nullptr;
    state_ = State::closed;
}

int Endpoint::bind(::fid* object, std::uint64_t flags) {
    if (state_ != State::created) return -FI_EOPBADSTATE;
    switch (object->fclass) {
        case FI_CLASS_EQ:
            if (events_ != nullptr) return -FI_EINVAL;
            events_ = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
            events_->users.add();
            return 0;
        case FI_CLASS_CQ:
            return bind_queue(*static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(object)),
                              flags);
        case FI_CLASS_CNTR:
            return bind_counter(*static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object)), flags);
        case FI_CLASS_SRX_CTX:
            return bind_shared(*static_cast<SharedContext*>(reinterpret_cast<fid_ep*>(object)));
        default:
            return -FI_ENOSYS;
    }
}

int Endpoint::bind_queue(CompletionQueue& queue, std::uint64_t flags) {
    if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
    for (const bool receives : {false, true}) {
        if ((flags & (receives ? FI_RECV : FI_TRANSMIT)) == 0) continue;
        Side& one = side(receives);
        if (one.queue != nullptr) return -FI_EINVAL;
        one.queue = &queue;
        one.selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
        queue.users.add();
    }
    return 0;
}

/// VIA tells its program nothing of a peer's RDMA, so that cannot be counted.
int Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
    if ((flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) return -FI_ENOSYS;
    const std::uint64_t kinds[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
    if ((flags & (FI_SEND | FI_RECV | FI_READ | FI_WRITE)) == 0) return -FI_EINVAL;
    return counter.bind(kinds, counters_, flags);
}

/// What completes on the endpoint is bounded by the context's quota, not by its own size.
int Endpoint::bind_shared(SharedContext& shared) {
    if (!shares_receives_ || shared_ != nullptr || &shared.domain() != &domain_) return -FI_EINVAL;
    shared_ = &shared;
    shared_->users.add();
    return 0;
}

int Endpoint::enable() {
    if (state_ != State::created) return -FI_EOPBADSTATE;
    if (events_ == nullptr) return -FI_ENOEQ;
    if (shares_receives_ && shared_ == nullptr) return -FI_EOPBADSTATE;
    for (const bool receives : {false, true}) {
        Side& one = side(receives);
        if (one.queue == nullptr) {
            one.queue = &domain_.unread();
            one.queue->users.add();
        }
        const bool shares = receives && shared_ != nullptr;
        if (!shares && one.ring.size() == 0) one.ring.create(receives ? receive_size_ : send_size_);
        if (one.part != nullptr) continue;
        one.entries = shares ? shared_->quota() : one.ring.size();
        if (const int error = one.queue->reserve(one.entries, one.part)) return error;
    }
    copies_ = std::make_unique_for_overwrite<std::byte[]>(send_size_ * inject_size_max);
    if (const int error = make_vi()) return error;
    for (Counter* counter : counters_)
        for (const Side* one : {&sends_, &receives_})
            if (counter != nullptr)
                counter->watch(one->queue, [](void* queue) {
                    static_cast<CompletionQueue*>(queue)->progress();
                });
    state_ = State::enabled;
    return 0;
}

int Endpoint::make_vi() {
    const Nic& nic = domain_.nic();
    attributes_.ReliabilityLevel = (transmit_flags_ & FI_DELIVERY_COMPLETE) != 0
                                       ? VIP_SERVICE_RELIABLE_RECEPTION
                                       : VIP_SERVICE_RELIABLE_DELIVERY;
    attributes_.MaxTransferSize = std::min(transfer_size(), nic.attributes().MaxTransferSize);
    attributes_.EnableRdmaWrite = VIP_TRUE;
    attributes_.EnableRdmaRead = VIP_TRUE;
    // Both ends must agree, so who accepts takes what the other end asks with.
    if (request_ != nullptr) {
        attributes_.ReliabilityLevel = request_->attributes.ReliabilityLevel;
        attributes_.MaxTransferSize = request_->attributes.MaxTransferSize;
    }
    VIP_RETURN code = VipCreateVi(nic.handle(), &attributes_, sends_.part, receives_.part, &vi_);
    if (code != VIP_SUCCESS) return -error_of(code);
    VipSetUserData(vi_, this);
    code = ViaSetCredits(vi_, VIP_TRUE);
    if (code == VIP_SUCCESS && shared_ != nullptr) code = shared_->serve(vi_);
    if (code != VIP_SUCCESS) {
        VipDestroyVi(std::exchange(vi_, nullptr));
        return -error_of(code);
    }
    domain_.nic().watch(vi_, *this);
    return 0;
}

// Connecting ------------------------------------------------------------------------------------

int Endpoint::connect(const void* address, const void* data, std::size_t length) {
    if (length > connect_data_max) return -FI_EINVAL;
    if (state_ == State::created)
        if (const int error = enable()) return error;
    const std::lock_guard guard(state_lock_);
    if (state_ != State::enabled || request_ != nullptr) return -FI_EOPBADSTATE;
    if (address != nullptr) {
        if (!is_socket_address(address, sizeof peer_)) return -FI_EINVAL;
        std::memcpy(&peer_, address, sizeof peer_);
    }
    if (peer_.sin_family == 0) return -FI_EINVAL;
    if (length != 0) std::memcpy(data_, data, length);
    data_length_ = static_cast<VIP_UINT32>(length);
    state_ = State::connecting;
    domain_.fabric().connector().start(*this);
    return 0;
}

void Endpoint::connect_now() {
    const Nic& nic = domain_.nic();
    const Address own = nic.listener(nic.address(0));
    const Address peer = nic.listener(peer_);
    VIP_VI_ATTRIBUTES theirs;
    const VIP_RETURN code =
        ViaConnectRequest(vi_, own.raw(), peer.raw(), VIP_INFINITE, &theirs, data_, data_length_);
    std::uint8_t data[connect_data_max];
    VIP_UINT32 length = sizeof data;
    if ((code != VIP_SUCCESS && code != VIP_REJECT) ||
        ViaQueryPrivateData(vi_, data, &length) != VIP_SUCCESS)
        length = 0;
    length = std::min<VIP_UINT32>(length, sizeof data);
    guarded([&] {
        const std::lock_guard guard(state_lock_);
        if (code == VIP_SUCCESS) {
            connected(data, length);
            return 0;
        }
        state_ = State::enabled;  // it may ask again
        Event event;
        event.subject = &fid;
        event.context = fid.context;
        event.error = error_of(code);
        event.provider_error = code;
        event.bytes.assign(data, data + length);
        events_->push(std::move(event));
        return 0;
    });
}

void Endpoint::interrupt() { VipDisconnect(vi_); }

/// Under the lock.
void Endpoint::connected(const std::uint8_t* data, std::size_t length) {
    state_ = State::connected;
    Event event;
    event.kind = FI_CONNECTED;
    event.subject = &fid;
    event.bytes.assign(data, data + length);
    events_->push(std::move(event));
    if (lost_early_) end_connection();
}

int Endpoint::accept(const void* data, std::size_t length) {
    if (length > connect_data_max) return -FI_EINVAL;
    if (state_ == State::created)
        if (const int error = enable()) return error;
    const std::lock_guard guard(state_lock_);
    if (state_ != State::enabled || request_ == nullptr) return -FI_EOPBADSTATE;
    state_ = State::connecting;
    const VIP_RETURN code = request_->accept(vi_, data, static_cast<VIP_UINT32>(length));
    if (code != VIP_SUCCESS) {
        state_ = State::enabled;
        return -error_of(code);
    }
    request_.reset();
    connected(nullptr, 0);
    return 0;
}

int Endpoint::shut_down() {
    if (vi_ == nullptr) return -FI_ENOTCONN;
    {
        const std::lock_guard guard(state_lock_);
        if (state_ != State::connected) return -FI_ENOTCONN;
        end_connection();
    }
    VipDisconnect(vi_);
    return 0;
}

/// Under the lock.
void Endpoint::end_connection() {
    state_ = State::ended;
    Event event;
    event.kind = FI_SHUTDOWN;
    event.subject = &fid;
    events_->push(std::move(event));
}

void Endpoint::on_connection_lost(VIP_ERROR_CODE error) {
    FI_INFO(&provider, FI_LOG_EP_CTRL, "a connection ended: %d\n", static_cast<int>(error));
    const std::lock_guard guard(state_lock_);
    if (state_ == State::connecting) lost_early_ = true;
    if (state_ == State::connected) end_connection();
}

}  // namespace via::fabric
