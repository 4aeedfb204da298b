#include "support/stream.hpp"

namespace system_test {

namespace {

constexpr const char* door = "door";

Wants wants_of(const Parent& parent) {
    Wants wants;
    wants.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(parent.argument(3)));
    wants.length = std::stoul(parent.argument(5));
    wants.receives = wants.sends = static_cast<unsigned>(std::stoul(parent.argument(6)));
    return wants;
}

Operation operation_of(const Parent& parent) {
    return static_cast<Operation>(std::stoi(parent.argument(4)));
}

/// Of an unreliable stream.
class LossyTarget {
public:
    LossyTarget(End& end, TrafficPage& page) : end_(end), page_(page) {}
    void step() {
        while (const auto outcome = end_.received()) {
            if (outcome->flushed()) {
                over_ = true;
                continue;
            }
            require(outcome->ok(), "nothing goes wrong");
            require(outcome->descriptor->CS.Length == end_.wants().length, "the length is right");
            take(end_.receive_buffer(outcome->slot));
            end_.post_receive(outcome->slot);
        }
    }
    bool over() const { return over_; }

private:
    /// A whole message that was sent behind the one before.
    void take(const std::byte* bytes) {
        const std::uint64_t started = page_.started.load();
        while (next_ < started && !holds(bytes, sizeof next_, next_)) ++next_;
        require(next_ < started, "what arrives was sent, behind what arrived before");
        require(holds(bytes, end_.wants().length, next_++), "it arrived whole");
        ++page_.taken;
    }
    End& end_;
    TrafficPage& page_;
    std::uint64_t next_ = 0;
    bool over_ = false;
};

/// Sends without asking what became of it.
class LossyInitiator {
public:
    LossyInitiator(End& end, TrafficPage& page) : end_(end), page_(page) {}
    void step() {
        while (!over_ && started_ - done_ < end_.wants().sends) {
            const auto slot = static_cast<unsigned>(started_ % end_.wants().sends);
            fill(end_.send_buffer(slot), end_.wants().length, started_);
            page_.started.store(++started_);
            end_.post_send(slot, end_.wants().length);
        }
        while (const auto outcome = end_.sent()) {
            over_ = over_ || outcome->flushed();
            require(over_ || outcome->ok(), "nothing goes wrong");
            ++done_;
        }
    }
    bool over() const { return over_; }

private:
    End& end_;
    TrafficPage& page_;
    std::uint64_t started_ = 0;
    std::uint64_t done_ = 0;
    bool over_ = false;
};

/// Until it is over, or the parent has had enough; says which.
template <class Side>
void act(Parent& parent, End& end, Side side) {
    auto& page = parent.shared<TrafficPage>();
    while (page.leave.load() == 0 && !side.over()) {
        side.step();
        sched_yield();  // there are more processes than processors
    }
    parent.say(side.over() ? "over" : "left");
    if (side.over()) end.nic().wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    parent.expect("end");
}

// Arguments: network, NIC, host of the target, level, operation, length, depth.

void be_target(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    auto& page = parent.shared<TrafficPage>();
    End end(nic, wants_of(parent));
    Target target(end, operation_of(parent), page);
    parent.say("listening");
    end.accept(door);
    parent.say("connected");
    if (end.wants().level == VIP_SERVICE_UNRELIABLE)
        act(parent, end, LossyTarget(end, page));
    else
        act(parent, end, target);
}
const Role target_role("stream target", be_target);

void be_initiator(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    nic.turn_to(parent.argument(2));
    auto& page = parent.shared<TrafficPage>();
    End end(nic, wants_of(parent));
    end.connect(door);
    if (end.wants().level == VIP_SERVICE_UNRELIABLE)
        act(parent, end, LossyInitiator(end, page));
    else
        act(parent, end, Initiator(end, operation_of(parent), page));
}
const Role initiator_role("stream initiator", be_initiator);

}  // namespace

Child::Options Stream::options(const Networks& networks, const StreamWants& wants, int host) {
    return {.arguments = {networks.name(host), wants.nic, wants.host, std::to_string(wants.level),
                          std::to_string(static_cast<int>(wants.operation)),
                          std::to_string(wants.length), std::to_string(wants.depth)}};
}

Stream::Stream(const Networks& networks, const StreamWants& wants)
    : target("stream target", options(networks, wants, wants.to)),
      initiator("stream initiator",
                [&] {
                    target.expect("listening");
                    if (wants.when_listening) wants.when_listening();
                    Child::Options ours = options(networks, wants, wants.from);
                    ours.shares_with = &target;
                    return ours;
                }()),
      operation_(wants.operation) {
    until("the target is connected, or the initiator gave up",
          [&] { return target.ready() || initiator.ready(); });
    if (!target.ready()) initiator.expect("(nothing)");
    target.expect("connected");
    flows(1);
}

std::uint64_t Stream::arrived() const {
    return operation_ == Operation::read ? page().done.load() : page().taken.load();
}

void Stream::flows(std::uint64_t messages) const {
    const std::uint64_t goal = arrived() + messages;
    const auto over = [&] { return target.ready() || initiator.ready(); };
    until("messages arrive", [&] { return arrived() >= goal || over(); });
    require(!over(), "the connection stands");
}

void Stream::leave() {
    page().leave.store(1);
    for (Child* child : {&target, &initiator}) child->expect("left");
    end();
}

void Stream::breaks() {
    for (Child* child : {&target, &initiator}) child->expect("over");
    end();
}

void Stream::end() {
    for (Child* child : {&target, &initiator}) {
        child->say("end");
        child->join();
    }
}

}  // namespace system_test
