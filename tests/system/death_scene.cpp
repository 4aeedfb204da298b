#include "death_scene.hpp"

#include <sys/mman.h>

#include <thread>

namespace system_test {

namespace {

constexpr const char* door = "door";

Wants wants_of(const Scene& scene) {
    Wants wants;
    wants.level = scene.level;
    wants.length = scene.length;
    return wants;
}

/// The two ends of a scene differ only in who initiates.
template <class Part>
void run_until_over(Part& part) {
    while (!part.over()) part.step();
}

/// Told to, takes memory and never gives it back.
void starve(Parent& parent) {
    constexpr std::size_t page = 4096;
    constexpr std::size_t piece = 1U << 20;
    parent.expect("starve");
    for (;;) {
        void* const at =
            mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require_call(at != MAP_FAILED, "mmap");
        for (std::size_t n = 0; n < piece; n += page) static_cast<volatile char*>(at)[n] = 1;
    }
}

/// Arguments: operation, length, 1 if it initiates, level, 1 if it is to starve.
void be_victim(Parent& parent) {
    const bool starves = parent.argument(4) == "1";
    if (starves) parent.expect("enclosed");
    auto& page = parent.shared<TrafficPage>();
    Scene scene;
    scene.operation = static_cast<Operation>(std::stoul(parent.argument(0)));
    scene.length = std::stoul(parent.argument(1));
    scene.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoul(parent.argument(3)));
    Nic nic;
    End end(nic, wants_of(scene));
    if (parent.argument(2) == "1") {
        end.connect(door);
        parent.say("connected");
        if (starves) std::thread([&parent] { starve(parent); }).detach();
        Initiator initiator(end, scene.operation, page);
        run_until_over(initiator);
    } else {
        Target target(end, scene.operation, page);
        end.connect(door);
        parent.say("connected");
        if (starves) std::thread([&parent] { starve(parent); }).detach();
        run_until_over(target);
    }
    fail("the victim was to be killed, not to hear of the end");
}
const Role victim_role("victim", be_victim);

/// Lets the survivor work until the victim has got far enough, and a moment longer.
template <class Part>
void work_until_the_moment(Part& part, const Scene& scene, const TrafficPage& page, Where where) {
    until(
        "the victim gets that far",
        [&] {
            part.step(where);
            require(!part.over(), "the connection holds while both live", where);
            return page.done.load() >= scene.messages;
        },
        where);
    for (std::uint64_t moment = 0; moment < scene.moments; ++moment)
        if (moment % 64 == 0) part.step(where);
}

void kill_now(Child& victim, const Scene& scene) {
    if (scene.starved_in != nullptr) return victim.say("starve");
    if (scene.stopped_first) victim.stop();
    victim.signal(SIGKILL);
}

/// All descriptors back, then the error handler.
template <class Part>
Aftermath find_out(Part& part, Child& victim, End& end, const Scene& scene, Where where) {
    kill_now(victim, scene);
    const double killed = now_ms();
    run_to_the_end(part, end, where);
    Aftermath aftermath;
    aftermath.noticed_ms = now_ms() - killed;
    victim.kill();
    return aftermath;
}

/// All posted receives come back flushed, in order.
void expect_flushed(End& end, Where where) {
    unsigned flushed = 0;
    until(
        "all receives come back",
        [&] {
            while (const auto outcome = end.received(where)) {
                require(outcome->flushed(), "the receive was flushed", where);
                require(outcome->slot == flushed, "receives are flushed in order", where);
                ++flushed;
            }
            return flushed == end.wants().receives;
        },
        where);
}

}  // namespace

void expect_over(End& end, const std::string& scene, Where where) {
    const std::string told = scene + ", the handler was told of " + end.nic().error_text();
    require(end.nic().errors(end.vi(), VIP_ERROR_CONN_LOST) == 1, "CONN_LOST comes once: " + told,
            where);
    require(end.nic().errors() == 1, "nothing but CONN_LOST comes: " + told, where);
    require(end.state(where) == VIP_STATE_ERROR, "the VI is in ERROR: " + scene, where);
    end.disconnect(where);
    require(end.state(where) == VIP_STATE_IDLE, "the VI is IDLE after Disconnect: " + scene, where);
    end.nic().forget_errors();
}

std::string Scene::text() const {
    return std::string(victim_initiates ? "initiator" : "target") + " of " + name_of(operation) +
           " of " + std::to_string(length) + " bytes at level " + std::to_string(level) +
           " after " + std::to_string(messages) + " messages and " + std::to_string(moments) +
           " moments" + (stopped_first ? ", stopped first" : "") +
           (starved_in != nullptr ? ", of want of memory" : "");
}

Aftermath play(Nic& nic, const Scene& scene, Where where) {
    Child victim(
        "victim",
        {.arguments = {std::to_string(static_cast<int>(scene.operation)),
                       std::to_string(scene.length), scene.victim_initiates ? "1" : "0",
                       std::to_string(scene.level), scene.starved_in != nullptr ? "1" : "0"}});
    if (scene.starved_in != nullptr) {
        scene.starved_in->enclose(victim.pid());
        victim.say("enclosed", where);
    }
    auto& page = victim.shared<TrafficPage>();
    End end(nic, wants_of(scene));
    Aftermath aftermath;
    if (scene.victim_initiates) {
        Target target(end, scene.operation, page);
        end.accept(door, where);
        victim.expect("connected", where);
        work_until_the_moment(target, scene, page, where);
        aftermath = find_out(target, victim, end, scene, where);
        aftermath.delivered = target.taken();
        if (scene.operation != Operation::read)
            require(target.taken() >= page.done.load(),
                    "what completed at the victim was delivered: " + scene.text(), where);
    } else {
        end.accept(door, where);
        victim.expect("connected", where);
        Initiator initiator(end, scene.operation, page);
        work_until_the_moment(initiator, scene, page, where);
        aftermath = find_out(initiator, victim, end, scene, where);
        aftermath.delivered = initiator.done();
        expect_flushed(end, where);
    }
    expect_over(end, scene.text(), where);
    require(aftermath.noticed_ms <= death_noticed_max_ms,
            "the survivor knows soon: " + scene.text(), where);
    return aftermath;
}

void expect_lost(End& end, Where where) {
    expect_flushed(end, where);
    end.nic().wait_error(end.vi(), VIP_ERROR_CONN_LOST, where);
    expect_over(end, "no traffic", where);
}

}  // namespace system_test
