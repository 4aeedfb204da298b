// kill -9 at every instruction of a post: with the turn taken, a frame half written, a frame
// written and not published, published and not yet completed.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_turn_test {

namespace {

constexpr const char* door = "door";

/// Posts one message so that everything is bound, then stops, then posts until it is killed.
/// page.started counts the posts begun, page.leave those that have returned.
void be_stepped(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    Nic nic;
    Wants wants;
    wants.length = std::stoul(parent.argument(0));
    End end(nic, wants);
    end.connect(door);
    const bool traced = ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
    parent.say(traced ? "connected" : "ptrace is not allowed");
    for (std::uint64_t message = 0;; ++message) {
        until("there is a credit", [&] { return message < page.credits.load(); });
        fill(end.send_buffer(0), wants.length, message);
        if (message == 1) raise(SIGSTOP);
        page.started.store(message + 1);
        end.post_send(0, wants.length);
        page.leave.store(static_cast<std::uint32_t>(message + 1));
        until("it is done", [&] { return end.sent().has_value(); });
        page.done.store(message + 1);
    }
}
const Role stepped_role("stepped", be_stepped);

class Stepped {
public:
    explicit Stepped(std::size_t length)
        : child_("stepped", {.arguments = {std::to_string(length)}}) {}

    Child& child() { return child_; }
    TrafficPage& page() { return child_.shared<TrafficPage>(); }

    /// Returns when it has stopped itself.
    void wait_stopped() {
        int status = 0;
        require_call(waitpid(child_.pid(), &status, 0) == child_.pid(), "waitpid");
        require(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "the child stopped itself");
    }
    void step() {
        require_call(ptrace(PTRACE_SINGLESTEP, child_.pid(), nullptr, nullptr) == 0, "ptrace");
        int status = 0;
        require_call(waitpid(child_.pid(), &status, 0) == child_.pid(), "waitpid");
        require(WIFSTOPPED(status), "the child takes one step");
    }
    /// Up to the begin of the second post.
    void enter_post() {
        wait_stopped();
        while (page().started.load() < 2) step();
    }

private:
    Child child_;
};

/// A survivor that got the first message, and a victim about to post the second.
struct Stage {
    Nic& nic;
    End end;
    Stepped victim;
    Target target;

    Stage(Nic& own_nic, const Wants& wants)
        : nic(own_nic),
          end(nic, wants),
          victim(wants.length),
          target(end, Operation::send, victim.page()) {}
    /// False: there is no ptrace here.
    bool begin() {
        end.accept(door);
        const std::string heard = victim.child().hear();
        if (heard != "connected") return false;
        until("the first message arrives", [&] {
            target.step();
            return target.taken() == 1;
        });
        victim.enter_post();
        return true;
    }
};

/// Instructions of one post; 0: there is no ptrace here.
std::uint64_t count_instructions(Nic& nic, const Wants& wants) {
    Stage stage(nic, wants);
    if (!stage.begin()) return 0;
    std::uint64_t count = 0;
    for (; stage.victim.page().leave.load() < 2; ++count) stage.victim.step();
    stage.victim.child().kill();
    run_to_the_end(stage.target, stage.end);
    expect_over(stage.end, "after a whole post");
    return count;
}

class DeathInPost : public testing::TestWithParam<std::size_t> {};

TEST_P(DeathInPost, IsAllOrNothingAtEveryInstruction) {
    Host host;
    Nic nic;
    Wants wants;
    wants.length = GetParam();
    const std::uint64_t instructions = count_instructions(nic, wants);
    if (instructions == 0) GTEST_SKIP() << "ptrace is not allowed here";
    std::uint64_t kills = 40;
    if (const char* text = getenv("VIA_DEATH_STEPS")) kills = std::stoul(text);
    kills = std::min(kills, instructions);
    std::uint64_t arrived = 0;
    double slowest_ms = 0;
    for (std::uint64_t kill = 0; kill < kills; ++kill) {
        const std::uint64_t steps = instructions * kill / kills;
        SCOPED_TRACE("killed after " + std::to_string(steps) + " instructions of the post");
        Stage stage(nic, wants);
        ASSERT_TRUE(stage.begin());
        for (std::uint64_t step = 0; step < steps; ++step) stage.victim.step();
        const double killed = now_ms();
        stage.victim.child().kill();
        run_to_the_end(stage.target, stage.end);  // whatever arrives is checked in every byte
        slowest_ms = std::max(slowest_ms, now_ms() - killed);
        arrived += stage.target.taken() - 1;
        ASSERT_LE(stage.target.taken(), 2U);
        expect_over(stage.end, "killed in a post");
    }
    std::printf(
        "%lu instructions, %lu kills, %lu messages arrived, noticed after at most %.2f ms\n",
        instructions, kills, arrived, slowest_ms);
    EXPECT_LE(slowest_ms, death_noticed_max_ms);
    nic.close();
    host.reclaim();
    EXPECT_EQ(host.met(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, DeathInPost, testing::Values(8, 1000, 20000), [](const auto& length) {
    return std::to_string(length.param) + "_bytes";
});

}  // namespace

}  // namespace system_test::death_turn_test
