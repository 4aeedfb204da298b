#include "sim/world.hpp"

#include <algorithm>

#include "device/sim/sim_device.hpp"
#include "tap/pressure.hpp"
#include "tap/trace_tap.hpp"

namespace via::sim {

World::World(const Parameters& parameters, bool frames)
    : parameters_(parameters),
      frames_(frames),
      random_(~parameters.seed),
      weather_(random_.next(), parameters.weather),
      fabric_(clock_, weather_, parameters.fabric),
      checkers_(trace_),
      observer_(model_, checkers_, clock_),
      workload_(parameters_, model_, observer_, clock_) {
    for (std::uint32_t host = 0; host < parameters_.nics; ++host) make_node(host);
}

World::~World() = default;

Node& World::make_node(std::uint32_t host) {
    const auto number = static_cast<NodeNumber>(model_.nodes.size());
    model_.nodes.push_back(
        std::make_unique<Node>(number, host, parameters_, random_.next(), clock_));
    Node& node = *model_.nodes.back();
    std::unique_ptr<device::Device> device =
        std::make_unique<device::sim::SimDevice>(fabric_, address_of_host(host));
    if (parameters_.refuse_percent != 0)
        device = std::make_unique<tap::Pressure>(
            std::move(device), tap::PressureOptions{random_.next(), parameters_.refuse_percent,
                                                    parameters_.short_percent});
    if (frames_)
        device = std::make_unique<tap::TraceTap>(
            std::move(device), [this, number](std::string_view line) {
                trace_.line(clock_.now(), "node=%u %.*s", number, static_cast<int>(line.size()),
                            line.data());
            });
    node.nic.add_device(std::move(device));
    node.next_step = clock_.now();
    return node;
}

// Time --------------------------------------------------------------------------------------------

/// When the node's NIC wants its next turn.
Time World::due(Node& node) {
    if (!node.alive) return Time::never();
    const Time wanted = node.nic.has_work() ? clock_.now() : node.nic.next_deadline();
    return wanted.is_never() ? wanted : std::max(wanted, node.not_before);
}

/// Goes to the next moment at which something happens, and lets it. False: nothing ever will.
bool World::advance(bool working) {
    Node* next = nullptr;
    Time moment = Time::never();
    bool turn = true;
    for (auto& node : model_.nodes) {
        if (const Time at = due(*node); at < moment) {
            next = node.get();
            moment = at;
        }
    }
    for (auto& node : model_.nodes) {
        if (working && node->alive && node->next_step < moment) {
            next = node.get();
            moment = node->next_step;
            turn = false;
        }
    }
    if (next == nullptr) return false;
    clock_.advance_to(std::max(moment, clock_.now()));
    if (turn) {
        take_turn(*next);
    } else {
        take_step(*next);
    }
    return true;
}

void World::take_turn(Node& node) {
    const auto bytes = [&] {
        return node.counters.get(Counter::bytes_sent) + node.counters.get(Counter::bytes_received);
    };
    const std::uint64_t before = bytes();
    node.nic.take_turn();
    const nic::Turn turn = node.nic.turn(clock_.now());
    node.nic.end_turn();
    ++turns_;
    // A burst that was begun is finished.
    constexpr std::uint32_t burst = 16;
    observer_.tell(TurnDone{
        node.number, turn.frames, parameters_.limits.turn_frames_max + burst - 1, bytes() - before,
        parameters_.limits.turn_bytes_max + std::uint64_t{burst} * parameters_.fabric.payload_max});
    observer_.look(node);
    node.not_before =
        clock_.now() +
        nanoseconds(1 + static_cast<std::int64_t>(node.random.below(
                            static_cast<std::uint64_t>(parameters_.turn_delay_max.ns))));
}

void World::take_step(Node& node) {
    ++steps_;
    const bool closes = workload_.step(node);
    node.next_step =
        clock_.now() + nanoseconds(1 + static_cast<std::int64_t>(node.random.below(
                                           static_cast<std::uint64_t>(parameters_.step_max.ns))));
    if (closes) close(node);
}

/// The program closes its NIC and opens another one at the same address.
void World::close(Node& node) {
    trace_.line(clock_.now(), "node=%u closes", node.number);
    workload_.decline_all(node);
    node.nic.close();
    observer_.look(node, Cause::disconnect, nullptr);
    workload_.disconnect_all(node);  // receives of VIs that never were connected
    workload_.take_all(node);
    workload_.dismantle(node);
    node.alive = false;
    workload_.furnish(make_node(node.host));
}

// A run -------------------------------------------------------------------------------------------

void World::work() {
    for (std::uint32_t n = 0; n < parameters_.nics; ++n) workload_.furnish(*model_.nodes[n]);
    while (steps_ < parameters_.steps && !checkers_.failed()) advance(true);
}

bool World::at_rest() {
    return std::all_of(model_.nodes.begin(), model_.nodes.end(),
                       [this](auto& node) { return due(*node).is_never(); });
}

/// How long what is under way may take: every frame of it on its own, there and back, several
/// times.
Duration World::patience() const {
    std::uint64_t frames = 100;
    for (const auto& node : model_.nodes)
        for (const Vi* vi : node->vis)
            for (const Work* work : vi->send.works)
                frames += 4 + work->bytes.size() / parameters_.fabric.payload_max;
    const std::int64_t one_way =
        parameters_.weather.delay_max.ns + parameters_.weather.jitter_max.ns +
        parameters_.weather.ns_per_kilobyte * (parameters_.fabric.payload_max / 1024 + 1) +
        parameters_.turn_delay_max.ns + 1;
    const std::uint32_t slow = 100 / (100 - parameters_.refuse_percent) + 1;
    return milliseconds(10) + nanoseconds(static_cast<std::int64_t>(frames) * one_way * 4 * slow);
}

void World::rest() {
    const Duration bound = patience();
    const Time end = clock_.now() + bound + bound;
    observer_.tell(Stopped{bound});
    while (!checkers_.failed() && clock_.now() < end && advance(false)) {
    }
    if (!checkers_.failed() && !at_rest())
        observer_.tell(Called{"a world without work", Status::not_done, Status::success});
    observer_.tell(Rested{});
    for (const auto& node : model_.nodes)  // everybody is honest
        if (node->counters.get(Counter::frames_refused) != 0)
            observer_.tell(Called{"frames of honest peers", Status::reject, Status::success});
    for (const Connection& connection : model_.connections()) {
        if (connection.joined[0] && connection.left[0] != connection.left[1])
            observer_.tell(Called{"the other end of a connection that is over", Status::not_done,
                                  Status::success});
        if (!connection.joined[0] || connection.left[0] || connection.left[1]) continue;
        observer_.tell(Quiet{connection.channel_from(0)});
        observer_.tell(Quiet{connection.channel_from(1)});
    }
}

void World::leave() {
    const auto each = [this](auto act) {
        for (auto& node : model_.nodes)
            if (node->alive && !checkers_.failed()) act(*node);
    };
    each([this](Node& node) { workload_.decline_all(node); });
    each([this](Node& node) { workload_.disconnect_all(node); });
    while (!checkers_.failed() && advance(false)) {
    }
    observer_.tell(Emptied{});
    each([this](Node& node) { workload_.take_all(node); });
    each([this](Node& node) { workload_.dismantle(node); });
}

Report World::run() {
    trace_.line(clock_.now(), "seed %llu %s", static_cast<unsigned long long>(parameters_.seed),
                to_text(parameters_).c_str());
    work();
    if (!checkers_.failed()) rest();
    if (!checkers_.failed()) leave();
    if (!checkers_.failed()) checkers_.finish(clock_.now());
    Report report;
    report.violation = checkers_.violation();
    report.time = clock_.now();
    report.trace_hash = trace_.hash();
    report.trace_lines = trace_.lines();
    report.tally = observer_.tally();
    report.tally.turns = turns_;
    return report;
}

}  // namespace via::sim
