// VIs, and how they meet and part.
#include <algorithm>
#include <cstring>

#include "sim/workload.hpp"

namespace via::sim {

namespace {

constexpr std::uint64_t ears = 3;  ///< discriminators that anybody listens to

Discriminator ear(std::uint64_t number) {
    Discriminator discriminator;
    discriminator.length = 2;
    discriminator.bytes[0] = 'e';
    discriminator.bytes[1] = static_cast<std::uint8_t>('0' + number);
    return discriminator;
}

/// The requester's own discriminator tells who it is, so that the world knows whom it answers.
Discriminator mouth(const Vi& vi) {
    Discriminator discriminator;
    discriminator.length = 8;
    std::memcpy(discriminator.bytes.data(), &vi.number, 4);
    std::memcpy(discriminator.bytes.data() + 4, &vi.attempt, 4);
    return discriminator;
}

Status accept_must_answer(const engine::RemoteAttributes& theirs, const Vi& ours) {
    if (ours.state != ViState::idle) return Status::invalid_state;
    if (theirs.reliability != ours.attributes.reliability) return Status::invalid_reliability_level;
    if (theirs.transfer_length_max != ours.attributes.transfer_length_max)
        return Status::invalid_mtu;
    return Status::success;
}

}  // namespace

void Workload::make_vi(Node& node) {
    if (node.vis.size() >= parameters_.vis_max) return;
    const Profile& profile = parameters_.profiles[node.random.below(parameters_.profiles.size())];
    engine::ViAttributes attributes;
    attributes.reliability = profile.reliability;
    attributes.transfer_length_max = profile.transfer_length_max;
    attributes.rdma_write = node.random.chance(80);
    attributes.rdma_read = node.random.chance(80);
    if (!node.tags.empty() && node.random.chance(30)) attributes.tag = node.tags.front();
    const auto draw_queue = [&]() -> std::uint64_t {
        if (node.completion_queues.empty() || node.random.chance(40)) return 0;
        return node.completion_queues[node.random.below(node.completion_queues.size())];
    };
    const std::uint64_t send = draw_queue();
    const std::uint64_t receive = draw_queue();
    const bool wants_credits =
        parameters_.credit_percent != 0 && node.random.chance(parameters_.credit_percent);
    engine::Vi& made = *node.nic.with_turn([&] {
        engine::Vi* const vi = node.nic.engine()
                                   .create_vi(attributes, node.nic.completion_queue(send),
                                              node.nic.completion_queue(receive))
                                   .value();
        vi->wants_credits = wants_credits;
        return vi;
    });
    Vi& vi = model_.add_vi(node, made, attributes);
    vi.wants_credits = wants_credits;
    vi.send.completions = send;
    vi.receive.completions = receive;
    observer_.tell(ViMade{vi.number, node.number, attributes});
    attach(vi);
    observer_.look(node);
}

void Workload::destroy_vi(Node& node) { destroy(*any_vi(node)); }

void Workload::destroy(Vi& vi) {
    Node& node = *vi.node;
    const bool empty = vi.send.works.empty() && vi.receive.works.empty();
    const Status expected = vi.state != ViState::idle ? Status::invalid_state
                            : empty                   ? Status::success
                                                      : Status::error_resource;
    const Status got = node.nic.with_turn([&] { return node.nic.engine().destroy_vi(*vi.vi); });
    expect("DestroyVi", got, expected);
    if (got == Status::success) {
        vi.alive = false;
        std::erase(node.vis, &vi);
    }
    observer_.look(node);
}

/// A discriminator belongs to one process of a host.
Status Workload::listen_must_answer(const Node& node, const Discriminator& discriminator) const {
    for (const auto& other : model_.nodes) {
        if (other.get() == &node || !other->alive || other->host != node.host) continue;
        for (const Waiting& waiting : other->waiting)
            if (waiting.listener->discriminator == discriminator) return Status::error_resource;
    }
    return Status::success;
}

void Workload::listen(Node& node) {
    if (node.waiting.size() >= 4) return;
    auto listener = std::make_unique<engine::Listener>();
    listener->discriminator = ear(node.random.below(ears));
    const Status status = node.nic.listen(*listener);
    expect("ConnectWait", status, listen_must_answer(node, listener->discriminator));
    if (status == Status::success)
        node.waiting.push_back(
            {std::move(listener),
             clock_.now() + nanoseconds(static_cast<std::int64_t>(node.random.below(
                                static_cast<std::uint64_t>(parameters_.listen_max.ns))))});
    observer_.look(node);
}

/// ConnectWait returns: with a request, or because its time is up.
void Workload::stop_listening(Node& node, std::size_t index) {
    engine::Listener& listener = *node.waiting[index].listener;
    if (node.nic.unlisten(listener)) {
        Offer offer{listener.connection, 0, 0, listener.attributes, clock_.now()};
        std::memcpy(&offer.vi, listener.remote.bytes.data(), 4);
        std::memcpy(&offer.attempt, listener.remote.bytes.data() + 4, 4);
        const Vi* asking = model_.vi(offer.vi);
        // A requester that has died meanwhile has no address any more.
        const bool known =
            asking != nullptr && listener.remote.length == 8 &&
            (is_address_of_host(listener.remote_host, asking->node->host) || !asking->node->alive);
        expect("ConnectWait's address", known ? Status::success : Status::invalid_parameter,
               Status::success);
        node.offers.push_back(offer);
    }
    node.waiting.erase(node.waiting.begin() + static_cast<std::ptrdiff_t>(index));
    observer_.look(node);
}

void Workload::answer(Node& node) {
    for (std::size_t n = 0; n < node.waiting.size();) {
        if (node.waiting[n].listener->given.load() || node.waiting[n].until <= clock_.now()) {
            stop_listening(node, n);
        } else {
            ++n;
        }
    }
    if (node.offers.empty() || node.random.chance(10)) return;
    const std::size_t index = node.random.below(node.offers.size());
    const Offer offer = node.offers[index];
    if (node.random.chance(10)) {
        node.offers.erase(node.offers.begin() + static_cast<std::ptrdiff_t>(index));
        expect("ConnectReject",
               node.nic.with_turn([&] { return node.nic.engine().reject(offer.connection); }),
               Status::success);
        observer_.look(node);
        return;
    }
    accept(node, offer);
}

Vi* Workload::idle_vi(Node& node, const engine::RemoteAttributes* like) {
    std::vector<Vi*> found;
    for (Vi* vi : node.vis)
        if (vi->state == ViState::idle &&
            (like == nullptr || accept_must_answer(*like, *vi) == Status::success))
            found.push_back(vi);
    return found.empty() ? nullptr : found[node.random.below(found.size())];
}

void Workload::accept(Node& node, const Offer& offer) {
    Vi* vi = node.random.chance(10) ? any_vi(node) : idle_vi(node, &offer.attributes);
    if (vi == nullptr) return make_vi(node);
    Vi& asking = *model_.vi(offer.vi);
    const bool still_asks =
        asking.state == ViState::connect_pending && asking.attempt == offer.attempt && asking.alive;
    const Status status =
        node.nic.with_turn([&] { return node.nic.engine().accept(offer.connection, *vi->vi); });
    if (status == Status::timeout) {
        // Only true if the requester has given up, or the way to it broke.
        const bool must_stand =
            still_asks && !medium_.may_have_broken(node, *asking.node, offer.given);
        expect("ConnectAccept", status, must_stand ? Status::success : Status::timeout);
    } else {
        expect("ConnectAccept", status, accept_must_answer(offer.attributes, *vi));
    }
    if (status == Status::success) {
        const std::uint32_t present = asking.attempt;
        asking.attempt = offer.attempt;
        Connection& connection = model_.add_connection(asking, *vi);
        asking.attempt = present;
        vi->connection = &connection;
        vi->side = 1;
    }
    if (status == Status::success || status == Status::timeout)
        std::erase_if(node.offers,
                      [&](const Offer& other) { return other.connection == offer.connection; });
    observer_.look(node, status == Status::success ? Cause::accept : Cause::turn, vi);
}

/// Mostly where somebody listens.
NetAddress Workload::somewhere(Node& node) {
    NetAddress address;
    address.discriminator = ear(node.random.below(ears));
    if (node.random.chance(3)) {
        address.host = address_of_host(std::max(200U, parameters_.nics));  // nobody's
        return address;
    }
    std::vector<const Waiting*> waiting;
    std::vector<std::uint32_t> hosts;
    for (const auto& other : model_.nodes)
        for (const Waiting& each : other->waiting) {
            if (each.listener->given.load()) continue;
            waiting.push_back(&each);
            hosts.push_back(other->host);
        }
    if (waiting.empty() || node.random.chance(10)) {
        const auto other = node.random.below(model_.nodes.size());
        address.host = address_of_host(model_.nodes[other]->host);
        return address;
    }
    const auto index = node.random.below(waiting.size());
    address.host = address_of_host(hosts[index]);
    address.discriminator = waiting[index]->listener->discriminator;
    return address;
}

/// Two VIs that ask for each other (VIPL 4.22), or one of them, for nothing.
void Workload::connect_peers(Node& node) {
    Vi* vi = idle_vi(node, nullptr);
    Node& there = *model_.nodes[node.random.below(model_.nodes.size())];
    if (vi == nullptr || !there.alive) return;
    const engine::RemoteAttributes like{vi->attributes.reliability,
                                        vi->attributes.transfer_length_max};
    Vi* other = idle_vi(there, &like);
    if (other == nullptr || other == vi) return;
    ++vi->attempt;
    ++other->attempt;
    connect_peer(*vi, *other);
    if (node.random.chance(85)) connect_peer(*other, *vi);
}

void Workload::connect_peer(Vi& vi, Vi& other) {
    Node& node = *vi.node;
    vi.partner = &other;
    vi.partner_since = vi.attempt;
    vi.partner_attempt = other.attempt;
    const NetAddress local{address_of_host(node.host), mouth(vi)};
    const NetAddress remote{address_of_host(other.node->host), mouth(other)};
    // Who is not found is looked for all the time, which must end when the world rests.
    const auto longest = static_cast<std::uint64_t>(parameters_.request_max.ns / 8);
    const Time deadline =
        clock_.now() +
        nanoseconds(static_cast<std::int64_t>(node.random.between(1'000, 1'000 + longest)));
    expect("ConnectPeerRequest", node.nic.connect_peer(*vi.vi, local, remote, deadline),
           Status::success);
    observer_.look(node, Cause::connect, &vi);
}

void Workload::connect(Node& node) {
    if (parameters_.peer_percent != 0 && node.random.chance(parameters_.peer_percent))
        return connect_peers(node);
    Vi* vi = node.random.chance(90) ? idle_vi(node, nullptr) : any_vi(node);
    if (vi == nullptr) return;
    NetAddress remote = somewhere(node);
    const bool idle = vi->state == ViState::idle;
    if (idle) ++vi->attempt;
    NetAddress local;
    local.host = address_of_host(node.host);
    local.discriminator = mouth(*vi);
    const Time deadline =
        node.random.chance(20)
            ? Time::never()
            : clock_.now() + nanoseconds(static_cast<std::int64_t>(node.random.between(
                                 1'000, static_cast<std::uint64_t>(parameters_.request_max.ns))));
    expect("ConnectRequest", node.nic.connect(*vi->vi, local, remote, deadline),
           idle ? Status::success : Status::invalid_state);
    observer_.look(node, idle ? Cause::connect : Cause::turn, vi);
}

void Workload::disconnect(Vi& vi) {
    Node& node = *vi.node;
    node.nic.with_turn([&] {
        node.nic.engine().disconnect(*vi.vi);
        return 0;
    });
    observer_.look(node, Cause::disconnect, &vi);
}

void Workload::decline_all(Node& node) {
    while (!node.waiting.empty()) stop_listening(node, node.waiting.size() - 1);
    for (const Offer& offer : node.offers) {
        expect("ConnectReject",
               node.nic.with_turn([&] { return node.nic.engine().reject(offer.connection); }),
               Status::success);
        observer_.look(node);
    }
    node.offers.clear();
    sharing_.end(node);
}

}  // namespace via::sim
