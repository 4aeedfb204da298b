// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: making and closing.
#include "rdm/endpoint.hpp"

#include <algorithm>
#include <utility>

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
        if (!object.connecting_.is_listening()) return -FI_EOPBADSTATE;
        return write_address(object.connecting_.address(), address, length) == 0 ? 0
                                                                                 : -FI_ETOOSMALL;
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

/// Bytes of the longest message that is done without its receive, as one to another endpoint is.
std::size_t copied_to_self(Nic& nic) {
    const std::size_t eager = eager_size(nic.has_shared_memory_to(nic.address(0)));
    return std::max(inject_max, std::min(eager_max, eager));
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
      transmit_flags_(info.tx_attr->op_flags),
      receive_flags_(info.rx_attr->op_flags),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      told_of_writes_((info.caps & FI_REMOTE_WRITE) != 0),
      may_count_moves_((info.caps & FI_RMA_EVENT) != 0),
      wanted_port_(port_in(info)),
      receive_queues_(domain.nic()),
      receives_(completions_, peers_),
      long_messages_(domain.nic(), completions_),
      pulls_(domain.nic(), completions_, connections_, receives_),
      unexpected_(completions_, peers_, connections_, long_messages_, receives_, pulls_,
                  unexpected_size_max()),
      sends_(domain.nic(), completions_, connections_, long_messages_, pulls_),
      atomics_(domain.regions(), completions_, connections_, long_messages_,
               (info.caps & FI_ATOMIC) != 0),
      to_self_(completions_, peers_, receives_, unexpected_, long_messages_, atomics_,
               domain.regions(), copied_to_self(domain.nic())),
      alone_(domain.has_progress() ? std::make_unique<ProgressThread>() : nullptr),
      connecting_(domain, peers_, connections_, receive_queues_, receives_,
                  [this](Connection& connection, int error) { end(connection, error); }) {
    domain_.users.add();
}

/// No thread makes progress here any more.
void Endpoint::leave_to_itself() {
    if (alone_ != nullptr) alone_->stop();
    for (Counter* counter : completions_.counters())
        if (counter != nullptr) counter->unwatch(this);
    const Domain::Guard guard(domain_);
    unwatch_queues();
}

void Endpoint::unwatch_queues() {
    for (Queue* queue : completions_.queues())
        if (queue != nullptr) queue->unwatch(*this);
}

/// What is posted vanishes without a word; what was sent is given some time to leave.
Endpoint::~Endpoint() {
    leave_to_itself();
    connecting_.stop_listening();
    linger();
    connecting_.cancel_all();
    for (Counter* counter : completions_.counters())
        if (counter != nullptr) counter->users.remove();
    const Domain::Guard guard(domain_);
    completions_.end();
    if (AddressVector* const addresses = peers_.addresses()) {
        addresses->unwatch(*this);
        addresses->users.remove();
    }
    long_messages_.discard_all();
    unexpected_.discard_all();
    connecting_.clear();
    connections_.clear();
    receive_queues_.end();
    domain_.users.remove();
}

int Endpoint::bind(::fid* object, std::uint64_t flags) {
    if (connecting_.is_listening()) return -FI_EOPBADSTATE;
    if (object->fclass == FI_CLASS_AV) {
        if (peers_.addresses() != nullptr) return -FI_EINVAL;
        peers_.bind(*static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object)));
        peers_.addresses()->users.add();
        return 0;
    }
    // An event queue has nothing to tell: what becomes of connections is seen by who uses them.
    if (object->fclass == FI_CLASS_EQ) return 0;
    if (object->fclass == FI_CLASS_CNTR)
        return completions_.bind_counter(
            *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object)), flags, may_count_moves_);
    Queue* const queue = Queue::of(*object);
    return queue != nullptr ? completions_.bind_queue(*queue, flags) : -FI_ENOSYS;
}

int Endpoint::enable() {
    if (connecting_.is_listening()) return -FI_EOPBADSTATE;
    if (peers_.addresses() == nullptr) return -FI_ENOAV;
    if (!completions_.has_queues()) return -FI_ENOCQ;
    if (alone_ != nullptr)
        alone_->start([this] {
            const Domain::Guard guard(domain_);
            progress();
        });
    const auto [sends, receives] = completions_.queues();
    {
        const Domain::Guard guard(domain_);
        sends->watch(*this);
        if (receives != sends) receives->watch(*this);
        peers_.addresses()->watch(*this);
    }
    std::vector<WaitObject*> waiting;
    for (Queue* queue : completions_.queues())
        if (queue->waiting() != nullptr &&
            std::ranges::find(waiting, queue->waiting()) == waiting.end())
            waiting.push_back(queue->waiting());
    if (alone_ != nullptr) waiting.push_back(&alone_->waiting());
    receive_queues_.set_waiting(waiting);
    const int error =
        connecting_.listen(wanted_port_, std::move(waiting), completions_.counts_moves());
    if (error != 0) {
        if (alone_ != nullptr) alone_->stop();
        const Domain::Guard guard(domain_);
        unwatch_queues();
        peers_.addresses()->unwatch(*this);
        return error;
    }
    for (Counter* counter : completions_.counters())
        if (counter != nullptr)
            counter->watch(this, [](void* endpoint) {
                auto& object = *static_cast<Endpoint*>(endpoint);
                const Domain::Guard guard(object.domain_);
                object.progress();
            });
    return 0;
}

}  // namespace via::fabric::rdm
