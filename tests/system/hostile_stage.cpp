#include "hostile_stage.hpp"

#include <list>
#include <mutex>
#include <thread>

namespace system_test {

namespace {

constexpr std::uint64_t open_seed = 1'000'001;
constexpr std::uint64_t guard_seed = 1'000'002;
constexpr double give_back_max_ms = 20'000;

/// The victim's side of what attackers connect to.
class EvilDoor {
public:
    EvilDoor(Nic& nic, HostilePage& page) : nic_(nic), page_(page), doorman_([this] { wait(); }) {}
    ~EvilDoor() {
        leaving_ = true;
        doorman_.join();
    }

    /// Takes what completed on any of them.
    void serve() {
        std::lock_guard guard(mutex_);
        for (Guest& guest : guests_) serve(guest);
    }
    void send() {
        std::lock_guard guard(mutex_);
        guests_.back().end.post_send(0, guests_.back().end.wants().length);
    }
    /// Asks for the attacker's memory; it may answer whatever it likes.
    void read() {
        std::lock_guard guard(mutex_);
        guests_.back().end.post_read(0, 0x1000, 1);
    }

private:
    struct Guest {
        Guest(Nic& nic, const Wants& wants) : end(nic, wants) {}
        End end;
        bool lost = false;
    };

    void wait() {
        Address local = nic_.address("evil");
        while (!leaving_) {
            Address remote;
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE connection = nullptr;
            const VIP_RETURN code =
                VipConnectWait(nic_.handle(), local.get(), 20, remote.get(), &theirs, &connection);
            if (code == VIP_TIMEOUT) continue;
            must(code, "VipConnectWait");
            accept(connection, theirs);
        }
    }
    void accept(VIP_CONN_HANDLE connection, const VIP_VI_ATTRIBUTES& theirs) {
        Wants wants;
        wants.level = theirs.ReliabilityLevel;
        wants.length = theirs.MaxTransferSize;
        std::lock_guard guard(mutex_);
        guests_.emplace_back(nic_, wants);
        if (VipConnectAccept(connection, guests_.back().end.vi()) == VIP_SUCCESS) {
            ++page_.accepted;
        } else {
            guests_.pop_back();  // it went away meanwhile
        }
    }
    void serve(Guest& guest) {
        while (const auto outcome = guest.end.received()) {
            if (outcome->ok()) {
                ++page_.received;
                guest.end.post_receive(outcome->slot);
            }
        }
        while (const auto outcome = guest.end.sent()) ++(outcome->ok() ? page_.done : page_.failed);
        if (!guest.lost && guest.end.state() == VIP_STATE_ERROR) {
            guest.lost = true;
            ++page_.lost;
        }
    }

    Nic& nic_;
    HostilePage& page_;
    std::atomic<bool> leaving_ = false;
    std::mutex mutex_;
    std::list<Guest> guests_;
    std::thread doorman_;
};

void be_victim_of_attacks(Parent& parent) {
    auto& page = parent.shared<HostilePage>();
    Nic nic;
    Memory open(nic, open_bytes, true);
    Memory guard(nic, guard_bytes, false);
    fill(open.data(), open_bytes, open_seed);
    fill(guard.data(), guard_bytes, guard_seed);
    page.open_address = reinterpret_cast<std::uint64_t>(open.data());
    page.open_handle = open.handle();
    page.guard_address = reinterpret_cast<std::uint64_t>(guard.data());
    page.guard_handle = guard.handle();
    End good(nic);
    Target target(good, Operation::send, page.traffic);
    good.accept("good");
    EvilDoor evil(nic, page);
    parent.say("ready");
    for (;;) {
        target.step();
        require(!target.over(), "the good connection holds");
        evil.serve();
        if (!parent.ready()) continue;
        const std::string command = parent.hear();
        if (command == "end") return;
        if (command == "send") evil.send();
        if (command == "read") evil.read();
        std::string answer = "ok";
        if (command == "check") {
            if (!holds(open.data(), open_bytes, open_seed)) answer = "open memory changed";
            if (!holds(guard.data(), guard_bytes, guard_seed)) answer = "guarded memory changed";
        }
        parent.say(answer);
    }
}
const Role victim_role("victim-of-attacks", be_victim_of_attacks);

void be_good_peer(Parent& parent) {
    auto& page = parent.shared<HostilePage>();
    Nic nic;
    End end(nic);
    end.connect("good");
    Initiator initiator(end, Operation::send, page.traffic);
    parent.say("connected");
    while (page.traffic.leave.load() == 0) {
        initiator.step();
        require(!initiator.over(), "the good connection holds");
        require(nic.errors() == 0, "the good peer is told of no error: " + nic.error_text());
    }
    parent.say("stopped");
    parent.expect("end");
}
const Role good_role("good-peer", be_good_peer);

/// A child that says something now says why it failed.
void expect_silent(Child& child, Where where) {
    if (child.ready()) fail("a child speaks up: " + child.hear(where), where);
}

}  // namespace

HostileStage::HostileStage()
    : log_path_(host_.path() + "/victim.log"),
      victim_("victim-of-attacks",
              {.environment = {"OPENVIA_LOG=" + log_path_, "OPENVIA_LOG_LEVEL=2"}}),
      good_("good-peer", {.shares_with = &victim_}) {
    good_.expect("connected");
    victim_.expect("ready");
    expect_undisturbed();
    // The log's file is open since the NIC is; nothing else of this stays.
    const std::size_t before_any = Holdings::of(victim_.pid()).descriptors;
    const auto first = attacker();
    require(first->dial() && first->say("x", 1), "something can be said");
    expect_log("too short");
    first->hear_the_end();
    until("the first attacker's descriptors are closed", [&] {
        before_ = Holdings::of(victim_.pid());
        return before_.descriptors == before_any;
    });
}

std::unique_ptr<Attacker> HostileStage::attacker() const {
    return std::make_unique<Attacker>(host_.meeting_place(), victim_.pid());
}

void HostileStage::expect_undisturbed(Where where) {
    const std::uint64_t before = page().traffic.taken;
    until(
        "the good connection moves on",
        [&] {
            expect_silent(victim_, where);
            expect_silent(good_, where);
            return page().traffic.taken >= before + 100;
        },
        where);
}

void HostileStage::expect_intact(bool open_too, Where where) {
    victim_.say("check", where);
    const std::string answer = victim_.hear(where);
    require(answer == "ok" || (!open_too && answer == "open memory changed"),
            "the victim's memory is as it was: " + answer, where);
}

std::string HostileStage::log() const { return read_file(log_path_); }

void HostileStage::expect_log(const std::string& text, Where where) {
    const double start = now_ms();
    while (log().find(text) == std::string::npos) {
        if (now_ms() - start > watchdog_ms)
            fail("the victim's log tells nothing of '" + text + "':\n" + log(), where);
        sched_yield();
    }
}

void HostileStage::expect_lost(std::uint32_t vis, Where where) {
    until(
        "the attacker's connections are lost",
        [&] {
            expect_silent(victim_, where);
            return page().lost >= vis;
        },
        where);
    require(page().lost == vis, "no more than " + std::to_string(vis) + " connections are lost",
            where);
}

void HostileStage::expect_given_back(Where where) {
    Holdings now;
    const double start = now_ms();
    do {
        if (now_ms() - start > give_back_max_ms)
            fail("before: " + before_.text() + ", now: " + now.text(), where);
        sched_yield();
        now = Holdings::of(victim_.pid());
    } while (now.descriptors != before_.descriptors || now.mappings != before_.mappings ||
             now.threads != before_.threads);
}

void HostileStage::order(const std::string& command, Where where) {
    victim_.say(command, where);
    victim_.expect("ok", where);
}

void HostileStage::end(Where where) {
    page().traffic.leave = 1;
    good_.expect("stopped", where);
    victim_.say("end", where);
    victim_.join(where);
    good_.say("end", where);
    good_.join(where);
}

}  // namespace system_test
