// Many deaths in a row, each at a random step and instant: nothing may pile up at the survivor.
// VIA_DEATH_ROUNDS says how many (default 60, and 8 of want of memory), VIA_DEATH_SEED which.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <optional>
#include <random>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_rounds_test {

namespace {

constexpr const char* door = "door";
constexpr unsigned warm_up_rounds = 10;
constexpr std::size_t rss_growth_max_kib = 4096;
/// Of a victim that starves: more than it takes by itself.
constexpr std::size_t starved_bytes = 64U << 20;

using Random = std::mt19937_64;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = getenv(variable);
    return text == nullptr ? otherwise : std::stoul(text);
}

std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

Scene random_scene(Random& random) {
    constexpr VIP_RELIABILITY_LEVEL levels[] = {
        VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION, VIP_SERVICE_UNRELIABLE};
    constexpr std::size_t lengths[] = {8, 100, 8192, 100'000, 1 << 20};
    Scene scene;
    scene.level = levels[below(random, 3)];
    // RDMA read is for reliable levels.
    const std::uint64_t operations = scene.level == VIP_SERVICE_UNRELIABLE ? 2 : 3;
    scene.operation = static_cast<Operation>(below(random, operations));
    scene.length = lengths[below(random, std::size(lengths))];
    scene.victim_initiates = below(random, 2) == 0;
    scene.messages = below(random, scene.length > 65536 ? 6 : 200);
    scene.moments = below(random, 100'000);
    scene.stopped_first = below(random, 2) == 0;
    return scene;
}

/// Opens, connects, disconnects and closes until it is killed.
void be_churner(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    for (;;) {
        Nic nic;
        End end(nic);
        if (end.request(door, watchdog_ms) == VIP_SUCCESS) page.done.fetch_add(1);
        end.disconnect();
    }
}
const Role churner_role("churner", be_churner);

/// Serves a churner, which dies at some instant of its round.
void play_churn(Nic& nic, Random& random) {
    Child churner("churner");
    auto& page = churner.shared<TrafficPage>();
    const std::uint64_t rounds = below(random, 3);
    const std::uint64_t moments = below(random, 200'000);
    Address local = nic.address(door);
    for (bool alive = true; alive;) {
        Address remote;
        VIP_VI_ATTRIBUTES theirs{};
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN code =
            VipConnectWait(nic.handle(), local.get(), 5, remote.get(), &theirs, &connection);
        if (page.done.load() >= rounds && (code == VIP_SUCCESS || rounds == 0)) {
            for (std::atomic<std::uint64_t> moment = 0; moment < moments;) ++moment;
            churner.kill();
            alive = false;
        }
        if (code == VIP_TIMEOUT) continue;
        require(code == VIP_SUCCESS, std::string("ConnectWait: ") + name_of(code));
        End end(nic);
        const VIP_RETURN accepted = VipConnectAccept(connection, end.vi());
        if (accepted == VIP_TIMEOUT) continue;
        require(accepted == VIP_SUCCESS, std::string("ConnectAccept: ") + name_of(accepted));
        expect_lost(end);
    }
}

std::string own_names(const Host& host) {
    std::string others;
    const std::string own = "nic-" + std::to_string(getpid()) + "-";
    std::istringstream names(host.met());
    for (std::string name; names >> name;)
        if (!name.starts_with(own)) others += name + " ";
    return others;
}

TEST(DeathRounds, LeakNothing) {
    const std::uint64_t rounds = number_from("VIA_DEATH_ROUNDS", 60);
    const std::uint64_t seed = number_from("VIA_DEATH_SEED", 1);
    std::printf("VIA_DEATH_ROUNDS=%lu VIA_DEATH_SEED=%lu\n", rounds, seed);
    Random random(seed);
    Host host;
    Nic nic;
    Holdings before;
    double slowest_ms = 0;
    double sum_ms = 0;
    std::uint64_t scenes = 0;
    for (std::uint64_t round = 0; round < rounds + warm_up_rounds; ++round) {
        if (round == warm_up_rounds) before = Holdings::now();
        SCOPED_TRACE("round " + std::to_string(round));
        if (below(random, 5) == 0) {
            play_churn(nic, random);
            continue;
        }
        const Scene scene = random_scene(random);
        SCOPED_TRACE(scene.text());
        const Aftermath aftermath = play(nic, scene);
        slowest_ms = std::max(slowest_ms, aftermath.noticed_ms);
        sum_ms += aftermath.noticed_ms;
        ++scenes;
    }
    const Holdings after = Holdings::now();
    std::printf("before: %s\nafter:  %s\nnoticed after %.2f ms on average, %.2f ms at most\n",
                before.text().c_str(), after.text().c_str(), sum_ms / static_cast<double>(scenes),
                slowest_ms);
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_EQ(after.mappings, before.mappings);
    if (!sanitized) {
        EXPECT_LE(after.rss_kib, before.rss_kib + rss_growth_max_kib);
    }
    host.reclaim();
    EXPECT_EQ(own_names(host), "") << "the next opener removes what the dead left";
    nic.close();
    EXPECT_EQ(host.met(), "");
}

/// The kernel looks for memory in the midst of whatever the victim does, and kills it there.
TEST(DeathRounds, OfWantOfMemoryLeakNothing) {
    if (sanitized) GTEST_SKIP() << "a sanitizer's own memory is more than that";
    const Pressure pressure(starved_bytes, 0);
    if (!pressure.why_not().empty()) GTEST_SKIP() << pressure.why_not();
    const std::uint64_t rounds = number_from("VIA_DEATH_ROUNDS", 8);
    const std::uint64_t seed = number_from("VIA_DEATH_SEED", 1);
    std::printf("VIA_DEATH_ROUNDS=%lu VIA_DEATH_SEED=%lu\n", rounds, seed);
    Random random(seed);
    Host host;
    Nic nic;
    std::optional<Holdings> before;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        Scene scene = random_scene(random);
        scene.starved_in = &pressure;
        SCOPED_TRACE("round " + std::to_string(round) + ": " + scene.text());
        play(nic, scene);
        if (round == rounds / 2) before = Holdings::now();
    }
    const Holdings after = Holdings::now();
    EXPECT_EQ(after.descriptors, before->descriptors);
    EXPECT_EQ(after.threads, before->threads);
    EXPECT_EQ(after.mappings, before->mappings);
    EXPECT_LE(after.rss_kib, before->rss_kib + rss_growth_max_kib);
    host.reclaim();
    EXPECT_EQ(own_names(host), "") << "the next opener removes what the dead left";
    nic.close();
    EXPECT_EQ(host.met(), "");
}

TEST(Death, LeavesNothingInTheRuntimeDirectory) {
    Host host;
    {
        Nic nic;
        play(nic, {});
        nic.close();
    }
    host.reclaim();
    EXPECT_EQ(host.entries(), std::vector<std::string>{});
}

void be_opener(Parent&) { Nic nic; }
const Role opener_role("opener", be_opener);

/// Never opens a NIC, so that nothing but what the test makes is left when it is killed.
void be_idle(Parent& parent) { parent.expect("end"); }
const Role idle_role("idle opener", be_idle);

/// A process that was killed while it opened a NIC, between the two steps that make its name.
TEST(Death, InTheMidstOfOpeningLeavesNothing) {
    Host host;
    host.reclaim();
    Child opener("idle opener");
    const std::string name = "new-" + std::to_string(opener.pid()) + "-0123456789abcdef";
    opener.kill();
    std::ofstream(host.meeting_place() + "/" + name).flush();
    ASSERT_EQ(host.met(), name);
    host.reclaim();
    EXPECT_EQ(host.met(), "");
}

/// Opens a NIC and ends without closing it.
void be_careless(Parent&) {
    static Nic* nic = new Nic;
    (void)nic;
}
const Role careless_role("careless", be_careless);

TEST(OrderlyEnd, LeavesNothingInTheRuntimeDirectory) {
    Host host;
    for (const char* role : {"opener", "careless"}) {
        Child child(role);
        child.join();
        EXPECT_EQ(host.entries(), std::vector<std::string>{}) << role;
    }
}

TEST(CloseNic, GivesEverythingBackAtOnce) {
    Host host;
    host.reclaim();  // the first time makes what stays for good
    const Holdings before = Holdings::now();
    for (int n = 0; n < 5; ++n) host.reclaim();
    const Holdings after = Holdings::now();
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_EQ(host.entries(), std::vector<std::string>{});
}

}  // namespace

}  // namespace system_test::death_rounds_test
