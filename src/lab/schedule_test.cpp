#include "lab/schedule.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "lab/fifo.hpp"
#include "lab/resource.hpp"

namespace via::lab::schedule_test {

struct Bench {
    Schedule schedule;
    Ledger ledger;
};

Task<> note_after(Schedule& schedule, Duration span, char name, std::string& notes) {
    co_await schedule.sleep(span);
    notes += name;
}

TEST(LabSchedule, EqualMomentsAreTakenInTheOrderOfAsking) {
    Schedule schedule;
    std::string notes;
    schedule.spawn(note_after(schedule, nanoseconds(5), 'b', notes));
    schedule.spawn(note_after(schedule, nanoseconds(1), 'a', notes));
    schedule.spawn(note_after(schedule, nanoseconds(5), 'c', notes));
    while (schedule.step()) {
    }
    EXPECT_EQ(notes, "abc");
    EXPECT_EQ(schedule.now(), Time{5});
}

Task<int> number_after(Schedule& schedule, Duration span, int number) {
    co_await schedule.sleep(span);
    co_return number;
}

Task<> add_two(Schedule& schedule, int& sum, bool& ended) {
    const int first = co_await number_after(schedule, nanoseconds(3), 4);
    const int second = co_await number_after(schedule, nanoseconds(4), 5);
    sum = first + second;
    ended = true;
}

TEST(LabSchedule, ATaskGetsWhatItAwaits) {
    Schedule schedule;
    int sum = 0;
    bool ended = false;
    schedule.spawn(add_two(schedule, sum, ended));
    EXPECT_FALSE(schedule.run_until(ended, 1));
    EXPECT_TRUE(schedule.run_until(ended, 100));
    EXPECT_EQ(sum, 9);
    EXPECT_EQ(schedule.now(), Time{7});
}

Task<> wait_for(Signal& signal, bool& ended) {
    co_await signal.wait();
    ended = true;
}

TEST(LabSchedule, WhoWaitsForEverIsReported) {
    Schedule schedule;
    Signal signal(schedule);
    bool ended = false;
    schedule.spawn(wait_for(signal, ended));
    EXPECT_FALSE(schedule.run_until(ended, 100));
    signal.notify();
    EXPECT_TRUE(schedule.run_until(ended, 100));
}

Task<> use_often(Schedule& schedule, Resource& resource, Random random, Time& last) {
    for (int n = 0; n < 200; ++n) {
        co_await schedule.sleep(nanoseconds(static_cast<std::int64_t>(random.below(40))));
        co_await resource.use(nanoseconds(static_cast<std::int64_t>(random.below(30))),
                              {Share::bus, "use"});
        EXPECT_GE(schedule.now(), last);
        last = schedule.now();
    }
}

TEST(LabResource, ServesOneAtATimeInTheOrderOfAsking) {
    Bench bench;
    bench.ledger.record(true);
    Resource resource(bench.schedule, bench.ledger, "bus");
    Time last{};
    for (std::uint64_t user = 0; user < 5; ++user) {
        bench.schedule.spawn(use_often(bench.schedule, resource, Random(user), last));
    }
    while (bench.schedule.step()) {
    }
    ASSERT_EQ(bench.ledger.entries().size(), 1000U);
    Time free{};
    Duration busy{};
    for (const Entry& entry : bench.ledger.entries()) {
        EXPECT_GE(entry.start, free);
        free = entry.end;
        busy = busy + (entry.end - entry.start);
    }
    EXPECT_EQ(bench.ledger.busy(resource.id()), busy);
}

TEST(LabLedger, ThePartsOfAMessageAddUpToTheWhole) {
    Random random(7);
    for (int round = 0; round < 200; ++round) {
        Ledger ledger;
        ledger.record(true);
        ledger.add_resource("a");
        std::int64_t end = 1000;
        for (int n = 0; n < 20; ++n) {
            const auto start = static_cast<std::int64_t>(1000 + random.below(1000));
            const auto stop = start + static_cast<std::int64_t>(random.below(200));
            ledger.add(0, {static_cast<Share>(random.below(13)), "x", random.chance(80) ? 1U : 2U},
                       Time{start}, Time{stop});
            end = std::max(end, stop);
        }
        Duration sum{};
        for (const Duration part : ledger.breakdown(1, Time{1000}, Time{end})) sum = sum + part;
        EXPECT_EQ(sum.ns, end - 1000);
        Time at{1000};
        for (const Entry& entry : ledger.path(1, Time{1000}, Time{end})) {
            EXPECT_EQ(entry.start, at);
            at = entry.end;
        }
        EXPECT_EQ(at, Time{end});
    }
}

TEST(LabLedger, LooksForWorkWhileThereIsNoneDoNotMakeBusy) {
    Ledger ledger;
    const ResourceId firmware = ledger.add_resource("firmware");
    const ResourceId bus = ledger.add_resource("bus");
    ledger.add(firmware, {Share::firmware, "look", no_message, true}, Time{0}, Time{100});
    ledger.add(bus, {Share::bus, "data"}, Time{0}, Time{10});
    EXPECT_EQ(ledger.busiest(), bus);
}

Task<> hold(Schedule& schedule, Fifo& fifo, std::int64_t bytes, Duration span, std::string& notes) {
    co_await fifo.reserve(bytes);
    EXPECT_LE(fifo.used(), fifo.size());
    co_await schedule.sleep(span);
    fifo.release(bytes);
    notes += static_cast<char>('0' + bytes);
}

TEST(LabFifo, WhatDoesNotFitWaitsInTheOrderOfAsking) {
    Schedule schedule;
    Fifo fifo(schedule, 8);
    std::string notes;
    schedule.spawn(hold(schedule, fifo, 5, nanoseconds(10), notes));
    schedule.spawn(hold(schedule, fifo, 4, nanoseconds(1), notes));  // has to wait
    schedule.spawn(hold(schedule, fifo, 2, nanoseconds(1), notes));  // and so has who comes later
    while (schedule.step()) {
    }
    EXPECT_EQ(notes, "542");
    EXPECT_EQ(fifo.used(), 0);
    EXPECT_EQ(fifo.used_max(), 6);
    EXPECT_GE(fifo.refusals(), 1U);
}

Task<> hold_after(Schedule& schedule, Fifo& fifo, std::int64_t bytes, std::string& notes) {
    co_await schedule.sleep(nanoseconds(10));
    co_await hold(schedule, fifo, bytes, nanoseconds(1), notes);
}

TEST(LabFifo, WhoWaitedIsNotOvertakenAtTheMomentAtWhichThereIsRoom) {
    Schedule schedule;
    Fifo fifo(schedule, 8);
    std::string notes;
    schedule.spawn(hold(schedule, fifo, 8, nanoseconds(10), notes));  // until the moment
    schedule.spawn(hold_after(schedule, fifo, 2, notes));  // asks at it, next in the order
    schedule.spawn(hold(schedule, fifo, 4, nanoseconds(1), notes));  // waits from the beginning
    while (schedule.step()) {
    }
    EXPECT_EQ(notes, "842");
    EXPECT_EQ(fifo.used(), 0);
}

}  // namespace via::lab::schedule_test
