// What must hold of hosts whose kernel takes part, and which mechanism each figure depends on.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/measure.hpp"

namespace via::lab::study::kernel_test {

Trial trial_of(const char* name, std::string_view words) {
    const auto machine = file::load(name);
    EXPECT_TRUE(machine.has_value()) << machine.error();
    Trial trial{*machine, machine->design, {4, 1 << 20}, {}};
    EXPECT_TRUE(design::add(trial.design, words).has_value());
    return trial;
}

double us(const Trial& trial, std::int64_t size = 1) {
    Question question;
    question.size = size;
    question.rounds = 16;
    const auto found = latency(trial, question);
    EXPECT_TRUE(found.has_value()) << found.error();
    return found ? found->mean_ns / 1e3 : 0;
}

double mb(const Trial& trial) {
    Question question;
    question.size = 65536;
    const auto found = bandwidth(trial, question);
    EXPECT_TRUE(found.has_value()) << found.error();
    return found ? found->bytes_per_second / 1e6 : 0;
}

const char* const some_settings[] = {
    "",           "processors=2",          "stack=tcp",         "stack=tcp,processors=2",
    "wait=block", "wiring=switch,mtu=300", "mtu=9000,stack=tcp"};

struct Traffic {
    Cluster& cluster;
    std::int64_t sent = 0;
    int running = 0;
    bool ended = false;

    Task<> send(NodeId from, ViId vi, std::vector<std::int64_t> sizes) {
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            sent += sizes[n];
            co_await cluster.station(from).post_send(vi,
                                                     {static_cast<std::int64_t>(n) * 40, sizes[n]},
                                                     static_cast<MessageId>(vi * 1000 + n + 1));
        }
        end();
    }
    Task<> receive(NodeId at, ViId vi, std::vector<std::int64_t> sizes) {
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            co_await cluster.station(at).post_receive(vi, {0, sizes[n]});
            EXPECT_EQ(co_await cluster.station(at).receive(vi, 1), vi * 1000 + n + 1);
        }
        end();
    }
    void end() { ended = --running == 0; }
    void start(std::uint64_t seed) {
        Random random(seed);
        for (ViId vi = 0; vi < 4; ++vi) {
            std::vector<std::int64_t> sizes;
            for (int n = 0; n < 12; ++n)
                sizes.push_back(static_cast<std::int64_t>(random.below(9000)));
            running += 2;
            cluster.schedule().spawn(receive(1 - vi % 2, vi, sizes));
            cluster.schedule().spawn(send(vi % 2, vi, sizes));
        }
    }
};

TEST(LabKernel, NoResourceServesTwoAndNoByteIsCreatedOrLost) {
    for (const char* words : some_settings) {
        const Trial trial = trial_of("gnic2", words);
        auto made = Cluster::make(trial, 2, 1);
        ASSERT_TRUE(made.has_value()) << made.error();
        Cluster& cluster = **made;
        cluster.connect(4);
        cluster.ledger().record(true);
        Traffic traffic{cluster};
        traffic.start(7);
        ASSERT_TRUE(cluster.schedule().run_until(traffic.ended, 5'000'000)) << words;
        std::vector<Time> free(cluster.ledger().resource_count());
        for (const Entry& entry : cluster.ledger().entries()) {
            if (cluster.ledger().name_of(entry.resource) == "switch") continue;
            ASSERT_GE(entry.start, free[entry.resource]) << entry.work.what;
            free[entry.resource] = entry.end;
        }
        EXPECT_EQ(cluster.computer(0).bytes_received() + cluster.computer(1).bytes_received(),
                  traffic.sent)
            << words;
        if (trial.design.at("stack") == "tcp") continue;  // its acknowledgements come later
        EXPECT_EQ(cluster.computer(0).interrupts() + cluster.computer(1).interrupts(),
                  cluster.packets())
            << words;
    }
}

TEST(LabKernel, TheCopyBoundsTheBandwidth) {
    Trial trial = trial_of("gnic2", "");
    const double with = mb(trial);
    trial.without.copies = true;
    EXPECT_GT(mb(trial), 1.4 * with);
}

TEST(LabKernel, LocksAreWhatASecondProcessorCosts) {
    for (const char* words : {"processors=2", "processors=2,stack=tcp"}) {
        Trial two = trial_of("gnic2", words);
        const double with = us(two);
        two.without.locks = true;
        // The receiver's of a VI before and behind the copy; sender's, receiver's and that of the
        // reader that is woken of a socket.
        const double locks = two.design.at("stack") == "tcp" ? 3 : 2;
        EXPECT_NEAR(with - us(two), locks * 11.5, 0.01) << words;
    }
}

/// With 9000 B as with 1500 B: 004 has 111 us a packet on one processor and 134 on two.
TEST(LabKernel, BothLocksOfAViAreInTheWayOfEachPacketThatComes) {
    for (const auto& [mtu, payload] : {std::pair{"mtu=1500", 1484}, {"mtu=9000", 8984}}) {
        const auto packet_us = [&, bytes = payload](const char* processors) {
            const std::string words = std::string("wiring=cable,") + mtu + processors;
            return bytes / mb(trial_of("sk9821", words));
        };
        EXPECT_NEAR(packet_us(",processors=2") - packet_us(""), 23, 3) << mtu;
    }
}

TEST(LabKernel, AnInterruptIsPartOfEachLatency) {
    for (const char* words : {"", "stack=tcp"}) {
        Trial trial = trial_of("gnic2", words);
        const double with = us(trial);
        trial.without.interrupts = true;
        EXPECT_NEAR(with - us(trial), 3, 0.01) << words;
    }
}

TEST(LabKernel, WhoSleepsIsWokenByAnInterrupt) {
    Trial sleeper = trial_of("clan", "wait=block,processors=2");
    const double slept = us(sleeper);
    EXPECT_GT(slept, us(trial_of("clan", "processors=2")) + 30);
    sleeper.without.sleeping = true;
    EXPECT_NEAR(us(sleeper), us(trial_of("clan", "processors=2")), 0.01);
    // On one processor its library polls.
    EXPECT_NEAR(us(trial_of("clan", "wait=block")), us(trial_of("clan", "")), 0.01);
}

TEST(LabKernel, ASwitchStoresAPacketAndSendsItOn) {
    const double cable = us(trial_of("sk9821", "wiring=cable"), 1400);
    const double through = us(trial_of("sk9821", "wiring=switch"), 1400);
    EXPECT_NEAR(through - cable, 4.33 + 11.6, 0.2);  // the switch, and the link once more
}

TEST(LabKernel, AWordThatIsWrongSaysWhatThereIs) {
    const auto answer = [](std::string_view words) {
        const auto found = latency(trial_of("gnic2", words), Question{});
        return found ? std::string() : found.error();
    };
    EXPECT_NE(answer("stack=udp").find("stack=udp: want one of via, tcp"), std::string::npos);
    EXPECT_NE(answer("mtu=40").find("mtu=40: want a number from 41 to 32730"), std::string::npos);
    EXPECT_NE(answer("at=3").find("there is no \"at\" of this machine"), std::string::npos);
    Trial trial = trial_of("gnic2", "");
    trial.design.erase("wait");
    EXPECT_NE(latency(trial, Question{}).error().find("wait is missing"), std::string::npos);
}

}  // namespace via::lab::study::kernel_test
