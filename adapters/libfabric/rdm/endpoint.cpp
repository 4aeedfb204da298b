// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: making and closing.
#include "rdm/endpoint.hpp"

#include <algorithm>
#include <random>

#include "info.hpp"

namespace via::fabric::rdm {

struct EndpointOperations {
    static Endpoint& of(fid* endpoint) {
        return *static_cast<Endpoint*>(reinterpret_cast<fid_ep*>(endpoint));
    }
    static int close(fid* endpoint) {
        if (forked()) return -FI_EOPBADSTATE;
        delete &of(endpoint);
        return 0;
    }
    static int bind(fid* endpoint, fid* object, std::uint64_t flags) {
        return guarded([&] { return of(endpoint).bind(object, flags); });
    }
    static int control(fid* endpoint, int command, void*) {
        return command == FI_ENABLE ? guarded([&] { return of(endpoint).enable(); }) : -FI_ENOSYS;
    }
    static ssize_t cancel(fid* endpoint, void* context) {
        const Domain::Guard guard(of(endpoint).domain_);
        return of(endpoint).cancel(context);
    }
    static bool is_min_room(int level, int option) {
        return level == FI_OPT_ENDPOINT && option == FI_OPT_MIN_MULTI_RECV;
    }
    static int getopt(fid* endpoint, int level, int option, void* value, std::size_t* length) {
        if (!is_min_room(level, option)) return -FI_ENOPROTOOPT;
        if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
        *static_cast<std::size_t*>(value) = of(endpoint).min_room();
        *length = sizeof(std::size_t);
        return 0;
    }
    static int setopt(fid* endpoint, int level, int option, const void* value, std::size_t length) {
        if (!is_min_room(level, option)) return -FI_ENOPROTOOPT;
        if (length != sizeof(std::size_t)) return -FI_EINVAL;
        const Domain::Guard guard(of(endpoint).domain_);
        std::memcpy(&of(endpoint).min_room(), value, sizeof(std::size_t));
        return 0;
    }
    static int getname(fid* endpoint, void* address, std::size_t* length) {
        const Endpoint& object = of(endpoint);
        if (!object.listener_->is_listening()) return -FI_EOPBADSTATE;
        return write_address(object.listener_->address(), address, length) == 0 ? 0 : -FI_ETOOSMALL;
    }
};

namespace {

using Operations = EndpointOperations;
fi_ops object_operations = {sizeof(fi_ops),      Operations::close, Operations::bind,
                            Operations::control, unsupported,       unsupported,
                            unsupported};
fi_ops_ep endpoint_operations = {sizeof(fi_ops_ep),  Operations::cancel, Operations::getopt,
                                 Operations::setopt, unsupported,        unsupported,
                                 unsupported,        unsupported};
fi_ops_cm cm_operations = {sizeof(fi_ops_cm), unsupported, Operations::getname, unsupported,
                           unsupported,       unsupported, unsupported,         unsupported,
                           unsupported,       unsupported};

/// Connections that are looked at one by one. With more of them a look takes longer than one at a
/// queue does.
constexpr std::size_t direct_max = 4;

std::uint64_t new_incarnation() {
    std::random_device source;
    return (std::uint64_t{source()} << 32 | source()) | 1;
}

std::uint16_t port_in(const fi_info& info) {
    if (!is_socket_address(info.src_addr, info.src_addrlen)) return 0;
    return port_of(*static_cast<const sockaddr_in*>(info.src_addr));
}

}  // namespace

int Endpoint::open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
    return guarded([&] {
        if (info == nullptr || info->tx_attr == nullptr || info->rx_attr == nullptr)
            return -FI_EINVAL;
        if (info->ep_attr == nullptr || info->ep_attr->type != FI_EP_RDM) return -FI_EINVAL;
        *endpoint = new Endpoint(*static_cast<Domain*>(domain), *info, context);
        return 0;
    });
}

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{{FI_CLASS_EP, context, &object_operations},
             &endpoint_operations,
             &cm_operations,
             &message_operations,
             &rma_operations,
             &tagged_operations,
             &atomic_operations,
             nullptr},
      domain_(domain),
      incarnation_(new_incarnation()),
      transmit_flags_(info.tx_attr->op_flags),
      receive_flags_(info.rx_attr->op_flags),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      told_of_writes_((info.caps & FI_REMOTE_WRITE) != 0),
      takes_atomics_((info.caps & FI_ATOMIC) != 0),
      copied_max_(unexpected_size_max()),
      eager_size_to_self_(std::min(
          eager_max, eager_size(domain.nic().has_shared_memory_to(domain.nic().address(0))))),
      wanted_port_(port_in(info)),
      fetches_at_once_(domain.nic().may_fetch() && one_copy_is_wanted(false)),
      alone_(domain.has_progress() ? std::make_unique<ProgressThread>() : nullptr),
      listener_(std::make_unique<Listener>(domain.shared_nic())) {
    domain_.users.add();
}

/// No thread makes progress here any more.
void Endpoint::leave_to_itself() {
    if (alone_ != nullptr) alone_->stop();
    for (Counter* counter : counters_)
        if (counter != nullptr) counter->unwatch(this);
    const Domain::Guard guard(domain_);
    for (Queue* queue : {sends_, receives_})
        if (queue != nullptr) queue->unwatch(*this);
}

/// What is posted vanishes without a word; what was sent is given some time to leave.
Endpoint::~Endpoint() {
    leave_to_itself();
    listener_.reset();
    linger();
    for (const auto& attempt : attempts_) domain_.fabric().connector().cancel(*attempt);
    for (Counter* counter : counters_)
        if (counter != nullptr) counter->users.remove();
    const Domain::Guard guard(domain_);
    while (promised_sends_ != 0) give_back_send();
    while (promised_receives_ != 0) give_back_receive();
    for (Queue* queue : {sends_, receives_})
        if (queue != nullptr) queue->users.remove();
    if (addresses_ != nullptr) {
        addresses_->unwatch(*this);
        addresses_->users.remove();
    }
    discard_all();
    attempts_.clear();
    connections_.clear();
    for (const Part& part : parts_) VipDestroyCQ(part.queue);
    domain_.users.remove();
}

int Endpoint::bind(::fid* object, std::uint64_t flags) {
    if (listener_->is_listening()) return -FI_EOPBADSTATE;
    if (object->fclass == FI_CLASS_AV) {
        if (addresses_ != nullptr) return -FI_EINVAL;
        addresses_ = static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object));
        addresses_->users.add();
        return 0;
    }
    // An event queue has nothing to tell: what becomes of connections is seen by who uses them.
    if (object->fclass == FI_CLASS_EQ) return 0;
    if (object->fclass == FI_CLASS_CNTR)
        return bind_counter(*static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object)), flags);
    Queue* const queue = Queue::of(*object);
    return queue != nullptr ? bind_queue(*queue, flags) : -FI_ENOSYS;
}

int Endpoint::bind_queue(Queue& queue, std::uint64_t flags) {
    if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
    const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if (((flags & FI_TRANSMIT) != 0 && sends_ != nullptr) ||
        ((flags & FI_RECV) != 0 && receives_ != nullptr))
        return -FI_EINVAL;
    if ((flags & FI_TRANSMIT) != 0) {
        sends_ = &queue;
        selective_sends_ = selective;
        queue.users.add();
    }
    if ((flags & FI_RECV) != 0) {
        receives_ = &queue;
        selective_receives_ = selective;
        queue.users.add();
    }
    return 0;
}

int Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
    constexpr std::uint64_t kinds[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
    if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE)) != 0) return -FI_ENOSYS;
    if (flags == 0) return -FI_EINVAL;
    return counter.bind(kinds, counters_, flags);
}

int Endpoint::enable() {
    if (listener_->is_listening()) return -FI_EOPBADSTATE;
    if (addresses_ == nullptr) return -FI_ENOAV;
    if (sends_ == nullptr || receives_ == nullptr) return -FI_ENOCQ;
    if (alone_ != nullptr)
        alone_->start([this] {
            const Domain::Guard guard(domain_);
            progress();
        });
    waiting_.clear();
    {
        const Domain::Guard guard(domain_);
        sends_->watch(*this);
        if (receives_ != sends_) receives_->watch(*this);
        addresses_->watch(*this);
    }
    for (Queue* queue : {sends_, receives_})
        if (queue->waiting() != nullptr &&
            std::ranges::find(waiting_, queue->waiting()) == waiting_.end())
            waiting_.push_back(queue->waiting());
    if (alone_ != nullptr) waiting_.push_back(&alone_->waiting());
    mailbox_.shown_by(waiting_);
    const auto take = [this](auto request, auto data, auto length) {
        mailbox_.put_request(std::move(request), data, length);
    };
    const int error = listener_->listen(wanted_port_, take);
    if (error != 0) {
        if (alone_ != nullptr) alone_->stop();
        const Domain::Guard guard(domain_);
        sends_->unwatch(*this);
        receives_->unwatch(*this);
        addresses_->unwatch(*this);
        return error;
    }
    for (Counter* counter : counters_)
        if (counter != nullptr)
            counter->watch(this, [](void* endpoint) {
                auto& object = *static_cast<Endpoint*>(endpoint);
                const Domain::Guard guard(object.domain_);
                object.progress();
            });
    return 0;
}

// Room for the receives of connections, of which each has as many --------------------------------

bool Endpoint::add_part(std::uint32_t used) {
    parts_.reserve(parts_.size() + 1);
    const std::uint32_t room = 16 * entries_each();
    VIP_CQ_HANDLE queue = nullptr;
    if (VipCreateCQ(domain_.nic().handle(), room, &queue) != VIP_SUCCESS) return false;
    int readable = -1;
    const auto add = [&](WaitObject* waiting) { return waiting->add(readable); };
    if (waits() &&
        (ViaCQDescriptor(queue, &readable) != VIP_SUCCESS || !std::ranges::all_of(waiting_, add))) {
        VipDestroyCQ(queue);
        return false;
    }
    parts_.push_back({queue, room, used});
    return true;
}

/// `queue`: where they complete; nullptr: nowhere, which makes each message cheaper, and each look
/// dearer with every such connection.
bool Endpoint::reserve_receives(VIP_CQ_HANDLE& queue) {
    queue = nullptr;
    // Some look needs a queue, even if nothing completes there.
    if (parts_.empty() && !add_part(0)) return false;
    if (!waits() && direct_.size() < direct_max) return true;
    const auto limit = static_cast<std::uint32_t>(domain_.nic().attributes().MaxCQEntries);
    const std::uint32_t entries = entries_each();
    for (Part& part : parts_) {
        if (part.used + entries > limit) continue;
        if (part.used + entries > part.room) {
            const std::uint32_t room = std::min(limit, 2 * part.room);
            if (VipResizeCQ(part.queue, room) != VIP_SUCCESS) return false;
            part.room = room;
        }
        part.used += entries;
        queue = part.queue;
        ++queued_;
        return true;
    }
    if (!add_part(entries)) return false;
    queue = parts_.back().queue;
    ++queued_;
    return true;
}

void Endpoint::give_back_receives(VIP_CQ_HANDLE queue) {
    if (queue == nullptr) return;
    --queued_;
    for (Part& part : parts_)
        if (part.queue == queue) part.used -= entries_each();
}

}  // namespace via::fabric::rdm
