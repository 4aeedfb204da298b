#include "sim/world.hpp"

#include <algorithm>

#include "device/datagram/constants.hpp"
#include "sim/path_watch.hpp"
#include "tap/pressure.hpp"
#include "tap/trace_tap.hpp"

namespace via::sim {

namespace {

std::unique_ptr<Medium> make_medium(const Parameters& parameters, device::sim::VirtualClock& clock,
                                    std::uint64_t seed, const device::sim::CarrierMaker& carrier,
                                    const CryptoMaker& crypto) {
    if (parameters.medium == MediumKind::datagram)
        return std::make_unique<DatagramMedium>(parameters, clock, crypto);
    return std::make_unique<LosslessMedium>(parameters, clock, seed, carrier);
}

}  // namespace

World::World(const Parameters& parameters, bool frames, const device::sim::CarrierMaker& carrier,
             const CryptoMaker& crypto)
    : parameters_(parameters),
      frames_(frames),
      random_(~parameters.seed),
      medium_(make_medium(parameters_, clock_, random_.next(), carrier, crypto)),
      checkers_(trace_),
      observer_(model_, checkers_, clock_, *medium_),
      workload_(parameters_, model_, observer_, clock_, *medium_),
      all_unasked_(!medium_->tell_of_arrivals([this](const Node& node) { ask_again(node); })) {
    const std::uint32_t hosts =
        parameters_.medium == MediumKind::datagram ? parameters_.datagram.hosts : parameters_.nics;
    if (frames)
        medium_->show_datagrams([this](const char* line) { trace_.add(clock_.now(), line); });
    model_.shares = parameters_.share_percent != 0;
    for (std::uint32_t n = 0; n < parameters_.nics; ++n) make_node(n % hosts);
}

World::~World() = default;

Node& World::make_node(std::uint32_t host, std::uint16_t data_port) {
    const auto number = static_cast<NodeNumber>(model_.nodes.size());
    model_.nodes.push_back(
        std::make_unique<Node>(number, host, parameters_, random_.next(), clock_));
    Node& node = *model_.nodes.back();
    node.data_port = data_port;
    std::unique_ptr<device::Device> device = medium_->open(node);
    if (parameters_.medium == MediumKind::datagram)
        device = std::make_unique<PathWatch>(std::move(device), [this](const HostAddress& peer) {
            if (is_of_this_world(peer)) return;
            observer_.tell(Called{"a path to a stranger", Status::success, Status::not_reachable});
        });
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
    steps_due_.set(number, clock_.now());
    ask_again(node);
    return node;
}

bool World::is_of_this_world(const HostAddress& address) const {
    for (std::uint32_t host = 0; host < parameters_.nics; ++host)
        if (is_address_of_host(address, host)) return true;
    return false;
}

// Time --------------------------------------------------------------------------------------------

/// Something came to the node, or its program did something: its NIC may want a turn earlier.
void World::ask_again(const Node& node) {
    if (!all_unasked_) unasked_.insert(node.number);
}

/// When its NIC wants its next turn. Work is wanted now; and until then time does not go on.
void World::ask(Node& node) {
    if (!node.alive) return;
    const Time wanted = node.nic.has_work() ? clock_.now() : node.nic.next_deadline();
    turns_due_.set(node.number, wanted.is_never() ? wanted : std::max(wanted, node.not_before));
}

/// In the order of their numbers. Who is asked may answer to others: one of a lower number, who
/// gets something by that, is asked the next time.
void World::ask_all() {
    if (all_unasked_)
        for (const auto& node : model_.nodes) ask(*node);
    for (auto next = unasked_.begin(); next != unasked_.end();) {
        const NodeNumber number = *next;
        unasked_.erase(next);
        ask(*model_.nodes[number]);
        next = unasked_.upper_bound(number);
    }
}

/// Goes to the next moment at which something happens, and lets it. False: nothing ever will.
bool World::advance(bool working) {
    ask_all();
    const Time step = working ? steps_due_.earliest() : Time::never();
    const bool turn = !(step < turns_due_.earliest());
    const Time moment = turn ? turns_due_.earliest() : step;
    if (const Time at = medium_->next(); !at.is_never() && at <= moment) {
        medium_->run(moment);
        return true;
    }
    if (moment.is_never()) return false;
    clock_.advance_to(std::max(moment, clock_.now()));
    if (turn) {
        take_turn(*model_.nodes[turns_due_.first()]);
    } else {
        take_step(*model_.nodes[steps_due_.first()]);
    }
    return true;
}

void World::take_turn(Node& node) {
    const std::uint64_t sent = node.counters.get(Counter::bytes_sent);
    const std::uint64_t received = node.counters.get(Counter::bytes_received);
    ask_again(node);
    node.nic.take_turn();
    if (parameters_.medium == MediumKind::datagram) node.nic.service(clock_.now());
    const nic::Turn turn = node.nic.turn(clock_.now());
    node.nic.end_turn();
    ++turns_;
    // Each way has its share, and a burst that was begun is finished. Who lets a message be pulled
    // moves nothing, and counts it as sent when it hears that it was.
    constexpr std::uint32_t burst = 16;
    const std::uint64_t moved_out =
        parameters_.fabric.pulls ? 0 : node.counters.get(Counter::bytes_sent) - sent;
    observer_.tell(TurnDone{
        node.number, std::max(turn.received, turn.sent),
        parameters_.limits.turn_frames_max + burst - 1,
        std::max(moved_out, node.counters.get(Counter::bytes_received) - received),
        parameters_.limits.turn_bytes_max + std::uint64_t{burst} * medium_->payload_max()});
    if (node.refusal != nullptr)
        trace_.line(clock_.now(), "node=%u refused a frame: %s", node.number, node.refusal);
    node.refusal = nullptr;
    if (const char* const what = medium_->broken_seal())
        observer_.tell(Called{what, Status::success, Status::not_reachable});
    observer_.look(node);
    node.not_before =
        clock_.now() +
        nanoseconds(1 + static_cast<std::int64_t>(node.random.below(
                            static_cast<std::uint64_t>(parameters_.turn_delay_max.ns))));
}

void World::take_step(Node& node) {
    ++steps_;
    ask_again(node);
    const bool closes = workload_.step(node);
    const Time next_step =
        clock_.now() + nanoseconds(1 + static_cast<std::int64_t>(node.random.below(
                                           static_cast<std::uint64_t>(parameters_.step_max.ns))));
    steps_due_.set(node.number, next_step);
    if (closes) return close(node);
    const Duration pause = medium_->disturb(node);
    if (pause == Duration{}) return;
    trace_.line(clock_.now(), "node=%u stands still for %lld ns", node.number,
                static_cast<long long>(pause.ns));
    node.stood_still_from = clock_.now();
    node.stood_still_until = clock_.now() + pause;
    node.not_before = std::max(node.not_before, clock_.now() + pause);
    steps_due_.set(node.number, std::max(next_step, clock_.now() + pause));
}

/// The program closes its NIC and opens another one at the same address.
void World::close(Node& node) {
    trace_.line(clock_.now(), "node=%u closes", node.number);
    medium_->close(node);
    workload_.decline_all(node);
    node.nic.close();
    node.ports.clear();
    observer_.look(node, Cause::disconnect, nullptr);
    workload_.disconnect_all(node);  // receives of VIs that never were connected
    workload_.take_all(node);
    workload_.dismantle(node);
    node.alive = false;
    turns_due_.set(node.number, Time::never());
    steps_due_.set(node.number, Time::never());
    workload_.furnish(make_node(node.host, node.data_port));
}

// A run -------------------------------------------------------------------------------------------

void World::work() {
    for (std::uint32_t n = 0; n < parameters_.nics; ++n) workload_.furnish(*model_.nodes[n]);
    while (steps_ < parameters_.steps && !checkers_.failed()) advance(true);
}

bool World::at_rest() {
    ask_all();
    return medium_->next().is_never() && turns_due_.earliest().is_never();
}

/// How long what is under way may take: every frame of it on its own, there and back, several
/// times.
Duration World::patience() const {
    std::uint64_t frames = 100;
    for (const auto& node : model_.nodes)
        for (const Vi* vi : node->vis)
            for (const Work* work : vi->send.works)
                frames += 4 + work->bytes.size() / medium_->payload_min();
    const std::int64_t one_way = medium_->one_way_max().ns + parameters_.turn_delay_max.ns + 1;
    const std::uint32_t slow = 100 / (100 - parameters_.refuse_percent) + 1;
    return milliseconds(10) + medium_->silence() * 3 +
           nanoseconds(static_cast<std::int64_t>(frames) * one_way * 4 * slow);
}

bool World::sends_under_way() const {
    const auto is_open = [](const Work* work) { return !work->completed; };
    for (const auto& node : model_.nodes)
        for (const Vi* vi : node->vis)
            if (std::any_of(vi->send.works.begin(), vi->send.works.end(), is_open)) return true;
    return false;
}

/// Who waits for credits gets receives for what was sent to it.
void World::feed_all() {
    if (parameters_.credit_percent == 0) return;
    for (auto& node : model_.nodes) {
        ask_again(*node);
        if (node->alive) workload_.feed(*node);
    }
}

/// Whose request is accepted only now had no receives so far.
bool World::advance_and_feed() {
    if (!advance(false)) return false;
    if (observer_.take_joined()) feed_all();
    return true;
}

void World::advance_until(Time end) {
    while (!checkers_.failed() && clock_.now() < end && advance(false)) {
    }
}

/// On a medium that never rests it is enough that nothing is under way for longer than it takes to
/// miss somebody.
void World::settle(Time end) {
    const Duration settled = medium_->silence() * 3;
    Time quiet_from = clock_.now();
    while (!checkers_.failed() && clock_.now() < end && clock_.now() - quiet_from < settled) {
        if (!advance_and_feed()) return;
        if (sends_under_way()) quiet_from = clock_.now();
    }
    look_at_idleness();
}

/// Nothing is sent when nothing is to be said, but signs of life: three for each patience and end
/// of a path, an answer to each, and a few because both ends are not in step. And questions of who
/// waits without end for somebody that is silent, each perhaps answered.
void World::look_at_idleness() {
    std::uint64_t ends = 0;
    std::uint64_t asking = 0;
    for (const auto& node : model_.nodes) {
        if (!node->alive) continue;
        ends += node->counters.get(Counter::paths_open);
        for (const Vi* vi : node->vis) asking += vi->state == ViState::connect_pending ? 1 : 0;
    }
    const std::uint64_t before = medium_->datagrams();
    const Duration silence = medium_->silence();
    const auto questions =
        static_cast<std::uint64_t>(silence.ns / device::datagram::try_longest.ns) + 10;
    advance_until(clock_.now() + silence);
    if (medium_->datagrams() - before > ends * 10 * medium_->rails_max() + asking * 2 * questions)
        observer_.tell(Called{"an idle network", Status::not_done, Status::success});
}

void World::rest() {
    medium_->heal();
    observer_.take_joined();
    feed_all();
    const Duration bound = patience();
    const Time end = clock_.now() + bound + bound;
    observer_.tell(Stopped{bound});
    const bool rests = medium_->silence() == Duration{};
    if (rests) {
        while (!checkers_.failed() && clock_.now() < end && advance_and_feed()) {
        }
    } else {
        settle(end);
    }
    if (!checkers_.failed() && rests && !at_rest())
        observer_.tell(Called{"a world without work", Status::not_done, Status::success});
    if (medium_->was_flooded())
        observer_.tell(Called{"what is under way", Status::error_resource, Status::success});
    observer_.tell(Rested{});
    for (const auto& node : model_.nodes)  // everybody is honest
        if (node->counters.get(Counter::frames_refused) != 0)
            observer_.tell(Called{"frames of honest peers", Status::reject, Status::success});
    for (const Connection& connection : model_.connections()) {
        if (connection.joined[0] && connection.left[0] != connection.left[1])
            observer_.tell(Called{"the other end of a connection that is over", Status::not_done,
                                  Status::success});
        if (!connection.joined[0] || connection.left[0] || connection.left[1]) continue;
        if (medium_->are_cut_off(*connection.ends[0]->node, *connection.ends[1]->node))
            observer_.tell(Called{"a connection whose ends no relay joins any more",
                                  Status::success, Status::not_reachable});
        observer_.tell(Quiet{connection.channel_from(0)});
        observer_.tell(Quiet{connection.channel_from(1)});
    }
}

void World::leave() {
    const auto each = [this](auto act) {
        for (auto& node : model_.nodes) {
            ask_again(*node);
            if (node->alive && !checkers_.failed()) act(*node);
        }
    };
    each([this](Node& node) { workload_.decline_all(node); });
    each([this](Node& node) { workload_.disconnect_all(node); });
    const Duration silence = medium_->silence();
    advance_until(silence == Duration{} ? Time::never() : clock_.now() + silence);
    observer_.tell(Emptied{});
    each([this](Node& node) { workload_.take_all(node); });
    each([this](Node& node) { workload_.dismantle(node); });
    for (auto& node : model_.nodes) observer_.look_at(*node, 0, node->arena.length());
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
    report.tally.sealed = medium_->sealed_packets();
    report.tally.passed_on = medium_->passed_on();
    report.tally.by_other_rails = medium_->by_other_rails();
    for (const auto& node : model_.nodes) {
        report.tally.direct += node->counters.get(Counter::direct_transfers);
        report.tally.pulled += node->counters.get(Counter::messages_pulled);
    }
    return report;
}

}  // namespace via::sim
