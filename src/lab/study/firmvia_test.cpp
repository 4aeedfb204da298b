// What must hold of every run, and which mechanism each figure depends on.
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/measure.hpp"

namespace via::lab::study::firmvia_test {

Trial firmvia(std::string_view words = "", std::int64_t vis = 1) {
    const auto machine = file::load("firmvia");
    EXPECT_TRUE(machine.has_value());
    Trial trial{*machine, machine->design, {vis, 1 << 20}, {}};
    EXPECT_TRUE(design::add(trial.design, words).has_value());
    return trial;
}

Latency one_way(const Trial& trial, std::int64_t size, std::int64_t queues = 1) {
    Question question;
    question.size = size;
    question.queues = queues;
    const auto found = latency(trial, question);
    EXPECT_TRUE(found.has_value()) << found.error();
    return found.value_or(Latency{});
}

double rate(const Trial& trial, std::int64_t size) {
    Question question;
    question.size = size;
    question.stream_bytes = 1 << 20;
    const auto found = bandwidth(trial, question);
    EXPECT_TRUE(found.has_value()) << found.error();
    return found ? found->bytes_per_second : 0;
}

std::uint64_t packets_of(const Trial& trial, std::int64_t size) {
    Question question;
    question.size = size;
    question.rounds = 1;
    const auto found = latency(trial, question);
    return found ? found->packets : 0;
}

/// Traffic both ways between three hosts.
struct Traffic {
    Cluster& cluster;
    Random random;
    std::int64_t bytes = 0;
    int running = 0;
    bool ended = false;

    Task<> send(NodeId from, NodeId to, ViId vi, std::vector<std::int64_t> sizes) {
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            const Buffer buffer{static_cast<std::int64_t>(n) * 40, sizes[n]};
            co_await cluster.host(from).post_send(vi, buffer,
                                                  static_cast<MessageId>(vi * 1000 + n + 1));
            if (n >= 4) co_await cluster.host(from).sent(vi, 1);
        }
        end();
        static_cast<void>(to);
    }
    Task<> receive(NodeId at, ViId vi, std::vector<std::int64_t> sizes) {
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            co_await cluster.host(at).post_receive(vi, {static_cast<std::int64_t>(n) * 8, 9000});
            const MessageId message = co_await cluster.host(at).receive(vi, 1);
            EXPECT_EQ(message, vi * 1000 + n + 1);
            bytes += sizes[n];
        }
        end();
    }
    void end() { ended = --running == 0; }

    void start() {
        for (ViId vi = 0; vi < 6; ++vi) {
            const NodeId from = vi % 3;
            const NodeId to = (from + 1 + vi / 3) % 3;
            std::vector<std::int64_t> sizes;
            for (int n = 0; n < 12; ++n)
                sizes.push_back(static_cast<std::int64_t>(random.below(9000)));
            cluster.host(from).connect(vi, to);
            running += 2;
            cluster.schedule().spawn(receive(to, vi, sizes));
            cluster.schedule().spawn(send(from, to, vi, sizes));
        }
    }
};

const char* const some_designs[] = {"",
                                    "at=2,doorbell=d1",
                                    "at=3,cache=8,ways=2,doorbell=d1,slots=3",
                                    "at=2,doorbell=bitmap,descriptors=fetched",
                                    "cq=1,payload=dma,packet=2032",
                                    "rqc=2,csqc=2,watermark=1,packet=300"};

void check_entries(const Cluster& whole, const Ledger& ledger) {
    std::vector<Time> free(ledger.resource_count());
    for (const Entry& entry : ledger.entries()) {
        EXPECT_LE(entry.start, entry.end);
        if (ledger.name_of(entry.resource) == "switch") continue;  // passes several at once
        ASSERT_GE(entry.start, free[entry.resource])
            << ledger.name_of(entry.resource) << ": " << entry.work.what;
        free[entry.resource] = entry.end;
    }
    EXPECT_GE(whole.size(), 1U);
}

TEST(LabTraffic, NoResourceServesTwoAndNoByteIsCreatedOrLost) {
    std::uint64_t seed = 1;
    for (const char* words : some_designs) {
        const Trial trial = firmvia(words, 6);
        auto made = Cluster::make(trial, 3, 1);
        ASSERT_TRUE(made.has_value()) << made.error();
        Cluster& cluster = **made;
        cluster.ledger().record(true);
        Traffic traffic{cluster, Random(++seed)};
        traffic.start();
        ASSERT_TRUE(cluster.schedule().run_until(traffic.ended, 5'000'000)) << words;
        check_entries(cluster, cluster.ledger());
        std::int64_t sent = 0, arrived = 0, seen = 0;
        for (NodeId node = 0; node < 3; ++node) {
            const Adapter& adapter = cluster.host(node).adapter();
            sent += adapter.counts().bytes_sent;
            arrived += adapter.counts().bytes_received;
            seen += cluster.host(node).bytes_received();
            EXPECT_LE(adapter.send_fifo().used_max(), trial.machine.costs.send_fifo);
            EXPECT_LE(adapter.receive_fifo().used_max(), trial.machine.costs.receive_fifo);
        }
        EXPECT_EQ(sent, traffic.bytes) << words;
        EXPECT_EQ(arrived, traffic.bytes) << words;
        EXPECT_EQ(seen, traffic.bytes) << words;
        EXPECT_EQ(cluster.network().payload_bytes(), traffic.bytes) << words;
    }
}

std::vector<Entry> entries_of(std::uint64_t seed) {
    const Trial trial = firmvia("", 6);
    auto made = Cluster::make(trial, 3, 1);
    (*made)->ledger().record(true);
    Traffic traffic{**made, Random(seed)};
    traffic.start();
    EXPECT_TRUE((*made)->schedule().run_until(traffic.ended, 5'000'000));
    return (*made)->ledger().entries();
}

TEST(LabTraffic, TheSameSeedGivesTheSameRun) {
    const auto first = entries_of(3), second = entries_of(3), other = entries_of(4);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t n = 0; n < first.size(); ++n) {
        ASSERT_EQ(first[n].start, second[n].start);
        ASSERT_EQ(first[n].end, second[n].end);
        ASSERT_EQ(first[n].work.message, second[n].work.message);
    }
    EXPECT_NE(first.size(), other.size());
}

/// Parked firmware finds what it waits for at the moment at which it would have polled it.
TEST(LabTraffic, IdleFirmwareRestsAndNobodyCanTell) {
    for (const char* words : some_designs) {
        Trial trial = firmvia(words, 6);
        const Latency parked = one_way(trial, 300);
        trial.without.parking = true;
        const Latency polled = one_way(trial, 300);
        EXPECT_EQ(parked.mean_ns, polled.mean_ns) << words;
        EXPECT_EQ(parked.parts_ns, polled.parts_ns) << words;
        EXPECT_EQ(parked.most_ns, polled.most_ns) << words;
        EXPECT_LT(2 * parked.events, polled.events) << words;
    }
}

Task<> one_message_after(Cluster& cluster, Duration quiet, Time& begin, Time& end, bool& ended) {
    co_await cluster.host(1).post_receive(0, {0, 100});
    co_await cluster.schedule().sleep(quiet);
    begin = cluster.schedule().now();
    co_await cluster.host(0).post_send(0, {0, 4}, 1);
    co_await cluster.host(1).receive(0, 1);
    end = cluster.schedule().now();
    ended = true;
}

TEST(LabTraffic, AnHourOfNothingTakesNoEventsAndChangesNothing) {
    const Trial trial = firmvia();
    std::set<std::int64_t> spans;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        auto made = Cluster::make(trial, 2, seed);
        Cluster& cluster = **made;
        cluster.host(0).connect(0, 1);
        Time begin, end;
        bool ended = false;
        cluster.schedule().spawn(one_message_after(cluster, seconds(3600), begin, end, ended));
        ASSERT_TRUE(cluster.schedule().run_until(ended, 1'000));
        const Latency usual = one_way(trial, 4);
        EXPECT_GE((end - begin).ns, usual.least_ns - 500);
        EXPECT_LE((end - begin).ns, usual.most_ns + 500);
        spans.insert((end - begin).ns);
    }
    EXPECT_GT(spans.size(), 4U);  // where the loop is found is drawn
}

Task<> send_around(Cluster& cluster, NodeId node, int& left) {
    for (MessageId n = 0; n < 4; ++n) {
        co_await cluster.host(node).post_receive(0, {0, 5000});
        co_await cluster.host(node).post_send(0, {0, 5000}, node * 10 + n + 1);
        co_await cluster.host(node).receive(0, 1);
    }
    --left;
}

TEST(LabTraffic, SixtyFourHostsSendInARing) {
    const Trial trial = firmvia();
    constexpr NodeId hosts = 64;
    auto made = Cluster::make(trial, hosts, 1);
    ASSERT_TRUE(made.has_value()) << made.error();
    Cluster& cluster = **made;
    int left = hosts;
    for (NodeId node = 0; node < hosts; ++node) {
        cluster.host(node).connect(0, (node + 1) % hosts);
        cluster.schedule().spawn(send_around(cluster, node, left));
    }
    for (int n = 0; n < 10'000'000 && left != 0 && cluster.schedule().step(); ++n) {
    }
    EXPECT_EQ(left, 0);
    EXPECT_EQ(cluster.network().payload_bytes(), 64 * 4 * 5000);
}

TEST(LabMechanisms, ThePageBoundaryMakesAPacketMore) {
    Trial trial = firmvia("packet=1000");
    EXPECT_EQ(packets_of(trial, 5000), 6U);
    EXPECT_EQ(packets_of(firmvia("packet=1024"), 5000), 5U);
    trial.without.page_boundaries = true;
    EXPECT_EQ(packets_of(trial, 5000), 5U);
}

Latency write_of_four_pages(Trial trial, const char* words) {
    EXPECT_TRUE(design::add(trial.design, words).has_value());
    Question question;
    question.size = 4 * 4096;
    question.rdma = true;
    const auto found = latency(trial, question);
    EXPECT_TRUE(found.has_value()) << found.error();
    return found.value_or(Latency{});
}

TEST(LabMechanisms, RdmaWaitsForTranslationsOrIsCopied) {
    Trial trial = firmvia();
    const Latency translated = write_of_four_pages(trial, "rdma=translated");
    const Latency buffered = write_of_four_pages(trial, "rdma=buffered");
    EXPECT_EQ(translated.receiver.misses, 4U * 64);
    EXPECT_EQ(buffered.receiver.misses, 0U);
    trial.without.misses = true;
    EXPECT_EQ(write_of_four_pages(trial, "rdma=translated").translation, Duration{});
    EXPECT_LT(write_of_four_pages(trial, "rdma=translated").mean_ns, translated.mean_ns - 4'000);
    trial.without = {};
    trial.without.copies = true;
    const double copy = 4 * 4096 / 86e6 * 1e9;
    EXPECT_NEAR(buffered.mean_ns - write_of_four_pages(trial, "rdma=buffered").mean_ns, copy, 500);
}

TEST(LabMechanisms, TheMissedFirstLookIsPartOfTheStep) {
    Trial trial = firmvia();
    EXPECT_EQ(one_way(trial, 128).sender.first_looks_missed, 0U);
    EXPECT_EQ(one_way(trial, 256).sender.first_looks_missed, 64U);
    const double step = one_way(trial, 256).mean_ns - one_way(trial, 128).mean_ns;
    trial.without.missed_looks = true;
    const double without = one_way(trial, 256).mean_ns - one_way(trial, 128).mean_ns;
    EXPECT_GT(step, without + 150);
}

TEST(LabMechanisms, ASmallReceiveCacheLivesOnRefills) {
    Trial trial = firmvia("rqc=8,csqc=8,watermark=4");
    Question question;
    question.size = 1024;
    question.stream_bytes = 1 << 18;
    const auto good = bandwidth(trial, question);
    ASSERT_TRUE(good.has_value());
    EXPECT_GT(good->receiver.refill_interrupts + good->sender.refill_interrupts, 0U);
    trial.without.refills = true;
    question.events_max = 100'000;
    EXPECT_EQ(bandwidth(trial, question).error(), "a message never arrived");
}

TEST(LabMechanisms, AMessageThatMustLeaveFirstCostsSmallOnesBandwidth) {
    Trial trial = firmvia();
    const double with = rate(trial, 864);
    trial.without.leaving = true;
    EXPECT_GT(rate(trial, 864), 1.1 * with);
}

TEST(LabMechanisms, AnEndlessFifoNeverMakesAPacketWait) {
    Trial trial = firmvia();
    Question question;
    question.size = 65536;
    question.stream_bytes = 1 << 20;
    EXPECT_GT(bandwidth(trial, question)->sender.fifo_waits, 0U);
    trial.without.fifo_end = true;
    EXPECT_EQ(bandwidth(trial, question)->sender.fifo_waits, 0U);
}

TEST(LabMechanisms, EachDoorbellThatIsPolledCostsItsTime) {
    const double one = one_way(firmvia("doorbell=d1,at=2"), 4).mean_ns;
    const double many = one_way(firmvia("doorbell=d1,at=2", 33), 4).mean_ns;
    EXPECT_NEAR((many - one) / 32, 600, 60);
    EXPECT_NEAR(one_way(firmvia("", 33), 4).mean_ns, one_way(firmvia(), 4).mean_ns, 100);
}

TEST(LabMechanisms, ACompletionEntryCostsADmaAndAQueueAPoll) {
    const double entries = one_way(firmvia("cq=1"), 4).mean_ns;
    EXPECT_NEAR(one_way(firmvia("cq=1"), 4, 40).mean_ns, entries, 1);
    const double one = one_way(firmvia(), 4).mean_ns;
    EXPECT_NEAR((one_way(firmvia(), 4, 41).mean_ns - one) / 40, 80, 8);
    EXPECT_GT(entries, one + 1610);
}

TEST(LabDesign, WhatDoesNotFitTheNicSaysSo) {
    Trial trial = firmvia("at=2");
    trial.load.registered = std::int64_t{1} << 30;
    Question question;
    const auto answer = latency(trial, question);
    ASSERT_FALSE(answer.has_value());
    EXPECT_NE(answer.error().find("of the NIC's memory for 1 VIs and 1073741824 registered"),
              std::string::npos)
        << answer.error();
}

TEST(LabDesign, DescriptorsOnTheNicAreCounted) {
    const auto memory = [](std::string_view words, std::int64_t vis) {
        const Trial trial = firmvia(words, vis);
        const auto made = design::make(trial.machine, trial.design, trial.load);
        return made ? made->descriptors->nic_memory(trial.load) : -1;
    };
    // 5 words each: the application's 128 VIs of section 6.1 fit with 128 of them, not with 256.
    EXPECT_EQ(memory("rqc=128", 128), (128 * 128 + 64) * 20);
    EXPECT_EQ(memory("rqc=256", 128), -1);
    EXPECT_EQ(memory("rqc=256,descriptors=fetched", 128), 0);
    const auto refused = latency(firmvia("rqc=256", 128), Question{});
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().find("with 256 descriptors a receive queue (rqc)"), std::string::npos)
        << refused.error();
}

TEST(LabDesign, AWordThatIsWrongSaysWhatThereIs) {
    const auto answer = [](std::string_view words) {
        const auto found = latency(firmvia(words), Question{});
        return found ? std::string() : found.error();
    };
    EXPECT_NE(answer("at=9").find("at=9: want one of 1, 2, 3"), std::string::npos);
    EXPECT_NE(answer("doorbel=d1").find("there is no \"doorbel\""), std::string::npos);
    EXPECT_NE(answer("packet=4000").find("carry 2032 bytes at most"), std::string::npos);
    EXPECT_NE(answer("cache=10,ways=3").find("no multiple"), std::string::npos);
    Trial trial = firmvia();
    trial.machine.costs.interface_buffer = 1000;
    EXPECT_NE(latency(trial, Question{}).error().find("carry 976 bytes"), std::string::npos);
    trial.design.erase("rqc");
    EXPECT_NE(latency(trial, Question{}).error().find("rqc is missing"), std::string::npos);
}

}  // namespace via::lab::study::firmvia_test
