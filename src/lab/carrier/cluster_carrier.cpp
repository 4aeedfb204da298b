#include "lab/carrier/cluster_carrier.hpp"

#include <algorithm>

namespace via::lab::carrier {

using device::sim::Parcel;
using device::sim::ParcelKind;

namespace {

/// A node's memory begins there for the laboratory, wherever the system has put it.
constexpr std::int64_t first_address = std::int64_t{1} << 47;

/// Parcels that no engine made: questions of the agents, and their answers.
FrameUse use_of_parcel(const Parcel& parcel) {
    if (parcel.kind == ParcelKind::frame) return use_of(parcel.header, parcel.header_length);
    return {Maker::driver, 0, {false, false, true, 0}};
}

}  // namespace

std::expected<std::unique_ptr<ClusterCarrier>, std::string> ClusterCarrier::make(
    Plan plan, device::sim::VirtualClock& clock, device::sim::Fabric& fabric, std::uint64_t seed) {
    kernel::Setting setting;
    const Machine& machine = plan.machine;
    if (machine.has(Has::kernel)) {
        const auto chosen = kernel::setting_of(machine, plan.design);
        if (!chosen) return std::unexpected(chosen.error());
        setting = *chosen;
        setting.blocks = true;  // whoever waits without polling
    }
    if (const auto refused = refusal_of_words(machine, plan.design))
        return std::unexpected(*refused);
    if (machine.has(Has::adapter)) {
        if (setting.tcp)
            return std::unexpected(refusal(machine, plan.design, {"stack"},
                                           "stack=tcp: programs run on its VIA; TCP over it is "
                                           "measured by via lab run alone"));
        const auto words = kernel::adapter_words(machine, plan.design);
        const auto tried = design::make(machine, words, plan.load);
        if (!tried) return std::unexpected(tried.error());
    }
    return std::unique_ptr<ClusterCarrier>(
        new ClusterCarrier(std::move(plan), setting, clock, fabric, seed));
}

// Nodes and hosts ---------------------------------------------------------------------------------

void ClusterCarrier::join(Node node, const HostAddress& address) {
    VIA_ASSERT(node == nodes_.size());
    HostMachine& machine = machine_at(address);
    nodes_.push_back({.machine = &machine});
    machine.nodes.push_back(node);
}

/// Several NICs of one address are processes of a host: they share its hardware.
ClusterCarrier::HostMachine& ClusterCarrier::machine_at(const HostAddress& address) {
    const auto found = std::ranges::find_if(
        machines_, [&](const auto& machine) { return machine->address == address; });
    if (found != machines_.end() && !plan_.host_for_each) return **found;
    VIA_ASSERT(!is_full());
    const auto number = static_cast<lab::NodeId>(machines_.size());
    auto machine = std::make_unique<HostMachine>();
    machine->address = address;
    if (plan_.machine.has(Has::software)) {
        machine->software = std::make_unique<SoftwareNic>(schedule_, ledger_, plan_.machine.costs,
                                                          without_, memory_);
        machine->bearer = machine->software.get();
    } else if (plan_.machine.has(Has::ethernet)) {
        machine->computer = std::make_unique<kernel::Computer>(
            schedule_, ledger_, plan_.machine.costs, setting_, without_, wire_, number);
        machine->bearer = machine->computer.get();
    } else {
        add_adapter(*machine, number);
    }
    machine->bearer->tell({[this](MessageId message) { arrived(message); },
                           [this](MessageId message) { took_receive(message); },
                           [this](ViId id) { return top_up(id); }});
    machine->jobs_came = std::make_unique<Signal>(schedule_);
    schedule_.spawn(work(*machine));
    return *machines_.emplace_back(std::move(machine));
}

void ClusterCarrier::add_adapter(HostMachine& machine, lab::NodeId number) {
    auto design =
        design::make(plan_.machine, kernel::adapter_words(plan_.machine, plan_.design), plan_.load);
    VIA_ASSERT(design.has_value());  // as it was when it was tried
    machine.host =
        std::make_unique<Host>(schedule_, ledger_, plan_.machine.costs, std::move(*design),
                               network_, without_, number, seed_ * 64 + number);
    machine.bearer = machine.host.get();
    if (!plan_.machine.has(Has::kernel)) return;
    machine.over_adapter = std::make_unique<kernel::OverAdapter>(
        *machine.host, schedule_, ledger_, plan_.machine.costs, setting_, without_);
    machine.bearer = machine.over_adapter.get();
}

void ClusterCarrier::attend(Node node, const device::sim::Receives& receives) {
    nodes_[node].receives = &receives;
}

void ClusterCarrier::add_job(HostMachine& machine, Job job) {
    machine.jobs.push_back(std::move(job));
    machine.jobs_came->notify();
}

/// Of the node's program, which goes on when it is done.
void ClusterCarrier::begin_job(Node node, Job job) {
    HostMachine& machine = *nodes_[node].machine;
    add_job(machine, std::move(job));
    nodes_[node].began = machine.done + machine.jobs.size();
}

Task<> ClusterCarrier::work(HostMachine& machine) {
    for (;;) {
        while (machine.jobs.empty()) co_await machine.jobs_came->wait();
        co_await machine.jobs.front()();
        machine.jobs.pop_front();
        ++machine.done;
        for (const Node node : machine.nodes) happened_ |= nodes_[node].began == machine.done;
    }
}

void ClusterCarrier::poll(Node node) {
    catch_up();
    begin_job(node, [&machine = *nodes_[node].machine] { return machine.bearer->poll(); });
}

void ClusterCarrier::wake(Node node, Duration waited) {
    catch_up();
    HostMachine& machine = *nodes_[node].machine;
    begin_job(node, [&machine, waited] { return machine.bearer->wake(waited); });
    begin_job(node, [&machine] { return machine.bearer->poll(); });
}

void ClusterCarrier::run(Time end) {
    constexpr int events_max = 10'000;
    happened_ = false;
    for (int n = 0; n < events_max && !happened_ && next() <= end && !next().is_never(); ++n) {
        clock_.advance_to(std::max(next(), clock_.now()));
        schedule_.step();
    }
}

/// The longest message, alone: every step of it much longer than any machine's, and each of its
/// bytes on the link, the bus and in copies as often as on any.
Duration ClusterCarrier::one_way_max() const {
    constexpr std::int64_t longest = 65'536, times = 16;
    return milliseconds(2) + time_of(longest * times, plan_.machine.costs.link);
}

// Receives ----------------------------------------------------------------------------------------

ViId ClusterCarrier::receiver_of(Node node, std::uint32_t vi) {
    const auto [place, is_new] =
        receiver_ids_.try_emplace({node, vi}, static_cast<ViId>(receiver_ids_.size()));
    if (is_new) {
        Receiver& receiver = receivers_[place->second];
        receiver.node = node;
        receiver.vi = vi;
    }
    return place->second;
}

/// What the program has posted goes to the NIC, what was flushed leaves it. True: there is one, or
/// will be.
bool ClusterCarrier::top_up(ViId id) {
    Receiver& receiver = receivers_.at(id);
    const NodePlace& place = nodes_[receiver.node];
    if (place.receives == nullptr) return false;
    Bearer& host = *place.machine->bearer;
    const auto outstanding = static_cast<std::int64_t>(place.receives->outstanding(receiver.vi));
    const std::int64_t wanted = std::max(outstanding - *receiver.taken, std::int64_t{0});
    const std::int64_t there = host.receives_waiting(id) + receiver.being_posted;
    if (there > wanted) host.take_back(id, there - wanted);
    for (std::int64_t n = outstanding - std::max(wanted - there, std::int64_t{0}); n < outstanding;
         ++n)
        post(id, place.receives->posted(receiver.vi, static_cast<std::uint32_t>(n)));
    return host.receives_waiting(id) + receiver.being_posted > 0;
}

void ClusterCarrier::post(ViId id, const Extent& place) {
    Receiver& receiver = receivers_.at(id);
    ++receiver.being_posted;
    HostMachine& machine = *nodes_[receiver.node].machine;
    const auto length = static_cast<std::int64_t>(place.length);
    const Buffer buffer{address_of(receiver.node, place.address, length), length};
    add_job(machine, [&machine, &receiver, id, buffer]() -> Task<> {
        --receiver.being_posted;
        return machine.bearer->post_receive(id, buffer);
    });
}

/// Programs are at other places in each run; what matters is where things lie to each other. Of a
/// segment without bytes the program may say any address.
std::int64_t ClusterCarrier::address_of(Node node, std::uint64_t address, std::int64_t length) {
    if (length == 0) return first_address;
    const std::int64_t page = plan_.machine.costs.page;
    constexpr std::uint64_t address_bits = 47;
    const auto at = static_cast<std::int64_t>(address & ((std::uint64_t{1} << address_bits) - 1));
    NodePlace& place = nodes_[node];
    if (place.first_page < 0) place.first_page = at / page;
    return at - place.first_page * page + first_address;
}

// Parcels -----------------------------------------------------------------------------------------

Task<> ClusterCarrier::arrive_after(Duration span, Node to, std::unique_ptr<Parcel> parcel) {
    co_await schedule_.sleep(span);
    happened_ = true;
    fabric_.arrive(to, std::move(parcel));
}

void ClusterCarrier::carry(Node from, Node to, std::unique_ptr<Parcel> parcel) {
    catch_up();
    // Room in the product's device is none of the NIC's, and nobody is no host.
    if (parcel->kind == ParcelKind::credit || from == device::sim::no_node)
        return schedule_.spawn(arrive_after(nanoseconds(1), to, std::move(parcel)));
    if (nodes_[from].receives != nullptr)
        for (std::uint32_t vi = 0; vi < nodes_[from].receives->vis_end(); ++vi)
            if (nodes_[from].receives->outstanding(vi) != 0) top_up(receiver_of(from, vi));
    FrameUse use = use_of_parcel(*parcel);
    PhysicalDescriptor descriptor;
    descriptor.message = ++last_message_;
    descriptor.buffer.length = static_cast<std::int64_t>(parcel->payload.size());
    descriptor.buffer.address = parcel->address == 0
                                    ? first_address
                                    : address_of(from, parcel->address, descriptor.buffer.length);
    if (use.in_memory)
        use.landing.address = address_of(to, static_cast<std::uint64_t>(use.landing.address),
                                         descriptor.buffer.length);
    const ViId id = receiver_of(to, use.vi);
    // A doorbell is a VI's, and a VI has one connection: its other end tells it as well.
    descriptor.vi = id % static_cast<ViId>(plan_.load.vis);
    descriptor.target = Target{nodes_[to].machine->bearer->node(), id, use.landing};
    Link& link = links_[{from, to}];
    under_way_[descriptor.message] = {from, to, id, link.sent++, std::move(parcel)};
    send(descriptor, use.maker, from);
}

void ClusterCarrier::send(PhysicalDescriptor descriptor, Maker maker, Node from) {
    HostMachine& machine = *nodes_[from].machine;
    if (maker == Maker::firmware) {
        descriptor.own = true;
        return machine.bearer->send_own(descriptor);
    }
    const bool driver = maker == Maker::driver;
    messages_ += driver ? 0 : 1;
    Job job = [&machine, descriptor, driver] { return machine.bearer->send(descriptor, driver); };
    return driver ? add_job(machine, std::move(job)) : begin_job(from, std::move(job));
}

/// A receive is the NIC's until the product's own has taken the message that it is for.
void ClusterCarrier::took_receive(MessageId message) {
    UnderWay& begun = under_way_.at(message);
    const std::shared_ptr<std::int64_t> taken = receivers_.at(begun.receiver).taken;
    ++*taken;
    begun.parcel->held = std::shared_ptr<void>(nullptr, [taken](void*) { --*taken; });
}

/// In the order of sending: firmware may send its own first, and take doorbells in another order.
void ClusterCarrier::arrived(MessageId message) {
    auto node = under_way_.extract(message);
    VIA_ASSERT(!node.empty());
    UnderWay& done = node.mapped();
    Link& link = links_[{done.from, done.to}];
    link.early[done.number] = std::move(done.parcel);
    while (!link.early.empty() && link.early.begin()->first == link.arrived) {
        auto next = link.early.extract(link.early.begin());
        ++link.arrived;
        happened_ = true;
        fabric_.arrive(done.to, std::move(next.mapped()));
    }
}

}  // namespace via::lab::carrier
