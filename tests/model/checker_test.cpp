// The checker bites: programs with a known mistake fail, their repaired twins pass.

#include "checker.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "base/assert.hpp"

namespace via::model::checker_test {
namespace {

constexpr auto relaxed = memory_order_relaxed;
constexpr auto acquire = memory_order_acquire;
constexpr auto release = memory_order_release;
constexpr auto seq_cst = memory_order_seq_cst;
constexpr std::array all_memories{Memory::sc, Memory::tso, Memory::weak};

testing::AssertionResult passes(const Result& result) {
    if (result.passed()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << result.report();
}

testing::AssertionResult fails(const Result& result, const std::string& how) {
    if (!result.failure.empty() && result.failure.find(how) != std::string::npos &&
        !result.trace.empty())
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "expected \"" << how << "\": " << result.report();
}

// --- data races ---

struct Message {
    Plain<int> data;
    Atomic<int> ready{0};
};

Program<Message> message(memory_order store, memory_order load) {
    return {"message",
            {[=](Message& m) {
                 m.data.set(7);
                 m.ready.store(1, store);
             },
             [=](Message& m) {
                 if (m.ready.load(load) == 1) VIA_MODEL_CHECK(m.data.get() == 7);
             }}};
}

TEST(Races, release_and_acquire_order_plain_data) {
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(message(release, acquire), {.memory = memory})));
}

// The race is in the program: it is seen whatever the memory does.
TEST(Races, missing_release_or_acquire_is_a_race) {
    for (const Memory memory : all_memories) {
        EXPECT_TRUE(fails(explore(message(relaxed, acquire), {.memory = memory}), "data race"));
        EXPECT_TRUE(fails(explore(message(release, relaxed), {.memory = memory}), "data race"));
    }
}

TEST(Races, published_before_written) {
    const Program<Message> program{"published before written",
                                   {[](Message& m) {
                                        m.ready.store(1, release);
                                        m.data.set(7);
                                    },
                                    [](Message& m) {
                                        if (m.ready.load(acquire) == 1) m.data.get();
                                    }}};
    EXPECT_TRUE(fails(explore(program), "data race"));
}

TEST(Races, readers_do_not_race) {
    const Program<Message> program{
        "readers", {[](Message& m) { m.data.get(); }, [](Message& m) { m.data.get(); }}};
    EXPECT_TRUE(passes(explore(program)));
}

struct Bytes {
    alignas(8) std::array<std::byte, 16> data{};
};

TEST(Races, are_found_byte_by_byte) {
    const auto writer = [](std::size_t at, std::size_t count) {
        return [=](Bytes& b) { VIA_MODEL_WRITE(&b.data[at], count); };
    };
    EXPECT_TRUE(passes(explore(Program<Bytes>{"neighbours", {writer(0, 5), writer(5, 11)}})));
    EXPECT_TRUE(
        fails(explore(Program<Bytes>{"overlap", {writer(0, 6), writer(5, 11)}}), "data race"));
}

TEST(Races, atomic_against_plain) {
    struct Word {
        std::uint64_t word = 0;
    };
    const Program<Word> program{"atomic against plain",
                                {[](Word& w) { atomic_store_at(&w.word, 1, release); },
                                 [](Word& w) { VIA_MODEL_READ(&w.word, sizeof w.word); }}};
    EXPECT_TRUE(fails(explore(program), "data race"));
}

TEST(Races, atomic_made_by_another_thread) {
    struct Late {
        alignas(8) std::array<std::byte, 8> place{};
        Atomic<Atomic<int>*> pointer{nullptr};
    };
    const auto program = [](memory_order store) {
        return Program<Late>{"late",
                             {[=](Late& l) {
                                  auto* made = new (&l.place) Atomic<int>(5);
                                  l.pointer.store(made, store);
                              },
                              [](Late& l) {
                                  if (Atomic<int>* made = l.pointer.load(acquire))
                                      VIA_MODEL_CHECK(made->load(relaxed) == 5);
                              }}};
    };
    EXPECT_TRUE(passes(explore(program(release))));
    EXPECT_TRUE(fails(explore(program(relaxed)), "data race"));
}

// --- sleep and wake ---

struct Sleep {
    Atomic<std::uint32_t> work{0};
    Atomic<std::uint32_t> asleep{0};
    EventFd event;

    Sleep() {
        name(&work, "work");
        name(&asleep, "asleep");
        name(&event, "event");
    }
};

// The sleeper announces itself and looks once more; the waker makes work and looks for a sleeper.
Program<Sleep> sleep_and_wake(bool sleeper_fence, bool waker_fence, bool by_event) {
    return {"sleep and wake",
            {[=](Sleep& s) {
                 while (s.work.load(acquire) == 0) {
                     s.asleep.store(1, relaxed);
                     if (sleeper_fence) atomic_fence(seq_cst);
                     if (s.work.load(acquire) != 0) break;
                     if (by_event)
                         s.event.read();
                     else
                         futex_wait(s.asleep, 1);
                 }
             },
             [=](Sleep& s) {
                 s.work.store(1, release);
                 if (waker_fence) atomic_fence(seq_cst);
                 if (s.asleep.load(relaxed) == 0) return;
                 s.asleep.store(0, relaxed);
                 if (by_event)
                     s.event.write();
                 else
                     futex_wake(s.asleep);
             }}};
}

class SleepAndWake : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(By, SleepAndWake, testing::Bool(),
                         [](const auto& by) { return by.param ? "eventfd" : "futex"; });

TEST_P(SleepAndWake, with_both_fences_nothing_is_lost) {
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(sleep_and_wake(true, true, GetParam()), {.memory = memory})));
}

TEST_P(SleepAndWake, a_missing_fence_loses_a_wake_up) {
    for (const Memory memory : {Memory::tso, Memory::weak}) {
        const Options options{.memory = memory};
        EXPECT_TRUE(fails(explore(sleep_and_wake(false, false, GetParam()), options), "deadlock"));
        EXPECT_TRUE(fails(explore(sleep_and_wake(true, false, GetParam()), options), "deadlock"));
    }
}

// FUTEX_WAIT has a fence of its own, but it comes after the last look.
TEST_P(SleepAndWake, the_sleeper_needs_its_fence_too) {
    for (const Memory memory : {Memory::tso, Memory::weak})
        EXPECT_TRUE(fails(explore(sleep_and_wake(false, true, GetParam()), {.memory = memory}),
                          "deadlock"));
}

TEST_P(SleepAndWake, without_delays_no_fence_is_needed) {
    EXPECT_TRUE(passes(explore(sleep_and_wake(false, false, GetParam()), {.memory = Memory::sc})));
}

TEST(Waiting, no_second_look_loses_a_wake_up) {
    const Program<Sleep> program{"no second look",
                                 {[](Sleep& s) {
                                      if (s.work.load() != 0) return;
                                      s.asleep.store(1);
                                      futex_wait(s.asleep, 1);
                                  },
                                  [](Sleep& s) {
                                      s.work.store(1);
                                      if (s.asleep.exchange(0) == 1) futex_wake(s.asleep);
                                  }}};
    const Result result = explore(program, {.memory = Memory::sc});
    EXPECT_TRUE(fails(result, "deadlock (a lost wake-up?): T0 sleeps on asleep"));
}

TEST(Waiting, a_wait_that_is_not_in_a_loop_meets_a_surprise) {
    const Program<Sleep> program{"wait without loop",
                                 {[](Sleep& s) {
                                      if (s.work.load() == 0) futex_wait(s.work, 0);
                                      VIA_MODEL_CHECK(s.work.load() == 1);
                                  },
                                  [](Sleep& s) {
                                      s.work.store(1);
                                      futex_wake(s.work);
                                  }}};
    EXPECT_TRUE(passes(explore(program)));
    EXPECT_TRUE(fails(explore(program, {.surprises = 1}), "work.load() == 1"));
}

TEST(Waiting, futex_wakes_as_many_as_asked) {
    struct Three {
        Atomic<std::uint32_t> word{0};
        Atomic<std::uint32_t> woken{0};
    };
    const auto program = [](unsigned count) {
        const auto sleeper = [](Three& t) {
            if (futex_wait(t.word, 0) == Wake::woken) t.woken.fetch_add(1);
        };
        return Program<Three>{"wake many", {sleeper, sleeper, [=](Three& t) {
                                                t.word.store(1);
                                                futex_wake(t.word, count);
                                            }}};
    };
    EXPECT_TRUE(passes(explore(program(2))));
    EXPECT_TRUE(fails(explore(program(1)), "deadlock"));
}

TEST(Waiting, the_woken_sees_what_its_waker_saw_but_needs_an_acquire_for_plain_data) {
    struct Told {
        Atomic<std::uint32_t> word{0}, value{0};
        Plain<int> data;
    };
    const auto program = [](bool plain) {
        return Program<Told>{"woken",
                             {[=](Told& t) {
                                  if (futex_wait(t.word, 0) != Wake::woken) return;
                                  VIA_MODEL_CHECK(t.value.load(relaxed) == 1);
                                  if (plain) t.data.get();
                              },
                              [](Told& t) {
                                  t.data.set(1);
                                  t.value.store(1, relaxed);
                                  t.word.store(1, release);
                                  futex_wake(t.word);
                              }}};
    };
    EXPECT_TRUE(passes(explore_all(program(false))));
    EXPECT_TRUE(fails(explore(program(true)), "data race"));
}

TEST(Waiting, eventfd_counts) {
    struct Counted {
        EventFd event;
        std::uint64_t sum = 0;
    };
    Program<Counted> program{"eventfd",
                             {[](Counted& c) {
                                  while (c.sum < 3) c.sum += c.event.read();
                              },
                              [](Counted& c) {
                                  c.event.write(1);
                                  c.event.write(2);
                              }}};
    program.finally = [](Counted& c) {
        VIA_MODEL_CHECK(c.sum == 3);
        VIA_MODEL_CHECK(c.event.try_read() == 0);
    };
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(program, {.memory = memory})));
}

TEST(Waiting, eventfd_orders_data_and_poll_leaves_the_count) {
    struct Told {
        EventFd event;
        Plain<int> data;
    };
    const Program<Told> program{"eventfd data",
                                {[](Told& t) {
                                     VIA_MODEL_CHECK(t.event.poll());
                                     VIA_MODEL_CHECK(t.event.try_read() == 1);
                                     VIA_MODEL_CHECK(t.event.try_read() == 0);
                                     VIA_MODEL_CHECK(t.data.get() == 3);
                                 },
                                 [](Told& t) {
                                     t.data.set(3);
                                     t.event.write();
                                 }}};
    EXPECT_TRUE(passes(explore(program)));
    EXPECT_TRUE(fails(explore(program, {.surprises = 1}), "t.event.poll()"));
}

// --- a ring with one producer and one consumer ---

struct Ring {
    static constexpr unsigned slots = 2;
    std::array<Plain<unsigned>, slots> slot{};
    Atomic<std::uint32_t> head{0};  // written by the consumer
    Atomic<std::uint32_t> tail{0};  // written by the producer
    unsigned received = 0;

    Ring() {
        name(&slot, "slot");
        name(&head, "head");
        name(&tail, "tail");
    }
};

struct RingOrders {
    memory_order publish = release;
    memory_order see = acquire;
    memory_order give_back = release;
    memory_order see_room = acquire;
    bool publish_early = false;
    unsigned capacity = Ring::slots;
};

Program<Ring> ring(RingOrders orders, unsigned messages) {
    const auto produce = [=](Ring& r) {
        for (std::uint32_t i = 0; i < messages; ++i) {
            while (i - r.head.load(orders.see_room) == orders.capacity) relax();
            if (orders.publish_early) r.tail.store(i + 1, orders.publish);
            r.slot[i % Ring::slots].set(100 + i);
            if (!orders.publish_early) r.tail.store(i + 1, orders.publish);
        }
    };
    const auto consume = [=](Ring& r) {
        for (std::uint32_t i = 0; i < messages; ++i) {
            while (r.tail.load(orders.see) == i) relax();
            VIA_MODEL_CHECK(r.slot[i % Ring::slots].get() == 100 + i);
            ++r.received;
            r.head.store(i + 1, orders.give_back);
        }
    };
    return {"ring", {produce, consume}, [=](Ring& r) { VIA_MODEL_CHECK(r.received == messages); }};
}

TEST(SpscRing, is_correct) {
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(ring({}, 4), {.memory = memory})));
}

TEST(SpscRing, publish_before_write_is_caught) {
    EXPECT_TRUE(fails(explore(ring({.publish_early = true}, 2), {.memory = Memory::tso}), "race"));
    EXPECT_TRUE(fails(explore(ring({.publish_early = true}, 2)), "data race"));
}

TEST(SpscRing, every_order_is_needed) {
    EXPECT_TRUE(fails(explore(ring({.publish = relaxed}, 2)), "data race"));
    EXPECT_TRUE(fails(explore(ring({.see = relaxed}, 2)), "data race"));
    EXPECT_TRUE(fails(explore(ring({.give_back = relaxed}, 3)), "data race"));
    EXPECT_TRUE(fails(explore(ring({.see_room = relaxed}, 3)), "data race"));
}

TEST(SpscRing, one_slot_too_many_is_caught) {
    EXPECT_TRUE(fails(explore(ring({.capacity = Ring::slots + 1}, 3)), "r.slot"));
}

// --- the turn ---

// Whoever posts rings the doorbell and tries to take the turn; the holder serves all doorbells.
struct Turn {
    Atomic<std::uint32_t> doorbell{0};
    Atomic<std::uint32_t> taken{0};
    Plain<unsigned> served{0};

    Turn() {
        name(&doorbell, "doorbell");
        name(&taken, "taken");
        name(&served, "served");
    }
};

Program<Turn> turn(bool look_again, bool fence, unsigned posters) {
    const auto post = [=](Turn& t) {
        t.doorbell.fetch_add(1, relaxed);
        if (fence) atomic_fence(seq_cst);
        while (t.taken.load(relaxed) == 0 && t.taken.exchange(1, acquire) == 0) {
            const std::uint32_t rung = t.doorbell.load(acquire);
            t.served.set(rung);
            t.taken.store(0, release);
            if (!look_again) break;
            if (fence) atomic_fence(seq_cst);
            if (t.doorbell.load(acquire) == rung) break;
        }
    };
    Program<Turn> program{"turn", {}, [=](Turn& t) { VIA_MODEL_CHECK(t.served.get() == posters); }};
    for (unsigned i = 0; i < posters; ++i) program.threads.emplace_back(post);
    return program;
}

TEST(TurnHandOver, strands_no_post) {
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(turn(true, true, 2), {.memory = memory})));
    EXPECT_TRUE(passes(explore(turn(true, true, 3), {.memory = Memory::tso})));
}

TEST(TurnHandOver, a_holder_that_does_not_look_again_strands_one) {
    for (const Memory memory : all_memories)
        EXPECT_TRUE(fails(explore(turn(false, true, 2), {.memory = memory}), "posters"));
}

TEST(TurnHandOver, a_missing_fence_strands_one) {
    EXPECT_TRUE(fails(explore(turn(true, false, 2), {.memory = Memory::tso}), "posters"));
    EXPECT_TRUE(fails(explore(turn(true, false, 2), {.memory = Memory::weak}), "posters"));
    EXPECT_TRUE(passes(explore(turn(true, false, 2), {.memory = Memory::sc})));
}

// --- locks ---

struct Locked {
    SpinLock first;
    SpinLock second;
    Plain<int> count{0};
};

TEST(Locks, spin_lock_excludes) {
    const auto add = [](Locked& l) {
        const std::lock_guard guard(l.first);
        l.count.set(l.count.get() + 1);
    };
    for (const Memory memory : all_memories) {
        const Program<Locked> program{
            "spin lock", {add, add, add}, [](Locked& l) { VIA_MODEL_CHECK(l.count.get() == 3); }};
        EXPECT_TRUE(passes(explore(program, {.memory = memory})));
    }
}

TEST(Locks, a_test_and_a_set_are_no_lock) {
    struct Broken {
        Atomic<int> locked{0};
        Plain<int> count{0};
    };
    const auto add = [](Broken& b) {
        while (b.locked.load(acquire) != 0) relax();
        b.locked.store(1);
        b.count.set(b.count.get() + 1);
        b.locked.store(0, release);
    };
    for (const Memory memory : all_memories)
        EXPECT_TRUE(fails(explore(Program<Broken>{"broken lock", {add, add}}, {.memory = memory}),
                          "data race"));
}

TEST(Locks, opposite_order_is_a_livelock) {
    const Program<Locked> program{"opposite order",
                                  {[](Locked& l) {
                                       const std::lock_guard one(l.first);
                                       const std::lock_guard two(l.second);
                                   },
                                   [](Locked& l) {
                                       const std::lock_guard two(l.second);
                                       const std::lock_guard one(l.first);
                                   }}};
    for (const Memory memory : all_memories)
        EXPECT_TRUE(fails(explore(program, {.memory = memory}), "livelock"));
}

// Payload in relaxed atomics between two counts; the fences are what makes it work.
TEST(Locks, sequence_lock_needs_its_fences) {
    struct Sequence {
        Atomic<unsigned> count{0}, a{0}, b{0};
    };
    const auto program = [](bool fences) {
        return Program<Sequence>{"sequence lock",
                                 {[=](Sequence& s) {
                                      s.count.store(1, relaxed);
                                      if (fences) atomic_fence(release);
                                      s.a.store(1, relaxed);
                                      s.b.store(1, relaxed);
                                      s.count.store(2, release);
                                  },
                                  [=](Sequence& s) {
                                      const unsigned before = s.count.load(acquire);
                                      const unsigned a = s.a.load(relaxed);
                                      const unsigned b = s.b.load(relaxed);
                                      if (fences) atomic_fence(acquire);
                                      if (before % 2 == 1 || s.count.load(relaxed) != before)
                                          return;
                                      VIA_MODEL_CHECK(a == b);
                                  }}};
    };
    EXPECT_TRUE(passes(explore(program(true))));
    EXPECT_TRUE(passes(explore(program(false), {.memory = Memory::tso})));
    EXPECT_TRUE(fails(explore(program(false)), "a == b"));
}

// --- spinning ---

TEST(Spinning, a_loop_for_something_that_never_comes_is_a_livelock) {
    const Program<Sleep> program{"never",
                                 {[](Sleep& s) {
                                      while (s.work.load() == 0) relax();
                                  },
                                  [](Sleep& s) { s.asleep.store(1); }}};
    for (const Memory memory : all_memories)
        EXPECT_TRUE(fails(explore(program, {.memory = memory}), "livelock: T0 spins on work = 0"));
}

TEST(Spinning, an_exchange_loop_ends) {
    struct Simple {
        Atomic<int> locked{0};
        Plain<int> count{0};
    };
    const auto locked_add = [](Simple& s) {
        while (s.locked.exchange(1, acquire) != 0) relax();
        s.count.set(s.count.get() + 1);
        s.locked.store(0, release);
    };
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(Program<Simple>{"exchange loop", {locked_add, locked_add}},
                                   {.memory = memory})));
}

// A bounded spin gives up in time to miss what comes a moment later.
TEST(Spinning, a_bounded_spin_may_give_up_at_any_time) {
    for (const unsigned turns : {0u, 1u, 2u, 3u}) {
        std::set<bool> seen;
        const Program<Sleep> program{"bounded spin",
                                     {[&](Sleep& s) {
                                          bool found = false;
                                          for (unsigned i = 0; i < turns && !found; ++i) {
                                              found = s.work.load(acquire) == 1;
                                              if (!found) relax();
                                          }
                                          const std::uint32_t after = s.asleep.load(relaxed);
                                          seen.insert(!found && after == 0);
                                      },
                                      [](Sleep& s) {
                                          s.asleep.store(1, relaxed);
                                          s.work.store(1, release);
                                      }}};
        for (const Memory memory : all_memories) {
            seen.clear();
            EXPECT_TRUE(passes(explore(program, {.memory = memory, .free_spins = turns})));
            EXPECT_TRUE(seen.contains(true));
        }
    }
}

TEST(Spinning, a_bounded_spin_longer_than_the_free_turns_still_ends) {
    const Program<Sleep> program{"long spin",
                                 {[](Sleep& s) {
                                      for (int i = 0; i < 10 && s.work.load() == 0; ++i) relax();
                                  },
                                  [](Sleep& s) { s.asleep.store(1); }}};
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(program, {.memory = memory})));
}

TEST(Spinning, a_loop_without_relax_is_reported) {
    const Program<Sleep> program{"hot loop",
                                 {[](Sleep& s) {
                                      while (s.work.load() == 0) continue;
                                  },
                                  [](Sleep& s) { s.work.store(1); }}};
    EXPECT_TRUE(fails(explore(program, {.max_steps = 200}), "relax()"));
}

// --- the tool itself ---

TEST(Explorer, independent_threads_need_one_execution) {
    const Program<Sleep> program{"independent",
                                 {[](Sleep& s) {
                                      s.work.store(1);
                                      s.work.store(2);
                                      s.work.store(3);
                                  },
                                  [](Sleep& s) {
                                      s.asleep.store(1);
                                      s.asleep.store(2);
                                      s.asleep.store(3);
                                  }}};
    const Result reduced = explore(program);
    EXPECT_TRUE(passes(reduced));
    EXPECT_EQ(reduced.executions + reduced.cut, 1u);
    const Result full = explore(program, {.reduction = false});
    EXPECT_TRUE(passes(full));
    EXPECT_EQ(full.executions, 20u);  // 6 over 3
}

TEST(Explorer, choose_tries_all) {
    std::set<unsigned> seen;
    struct Nothing {};
    const Program<Nothing> program{"choose",
                                   {[&](Nothing&) { seen.insert(10 * choose(3) + choose(2)); }}};
    EXPECT_TRUE(passes(explore(program)));
    EXPECT_EQ(seen, (std::set<unsigned>{0, 1, 10, 11, 20, 21}));
}

TEST(Explorer, weak_compare_exchange_may_fail_for_no_reason) {
    struct One {
        Atomic<int> x{0};
        bool done = false;
    };
    const auto program = [](bool loop) {
        return Program<One>{"weak compare-exchange",
                            {[=](One& o) {
                                int expected = 0;
                                do {
                                    expected = 0;
                                    o.done = o.x.compare_exchange_weak(expected, 1);
                                } while (loop && !o.done);
                            }},
                            [](One& o) { VIA_MODEL_CHECK(o.done); }};
    };
    EXPECT_TRUE(passes(explore(program(false))));
    EXPECT_TRUE(fails(explore(program(false), {.surprises = 2}), "o.done"));
    EXPECT_TRUE(passes(explore(program(true), {.surprises = 2})));
}

TEST(Explorer, operations_have_their_values) {
    struct Values {
        Atomic<std::uint8_t> small{250};
        Atomic<std::uint64_t> large{~0ull};
        Atomic<bool> flag{false};
        Atomic<Message*> pointer{nullptr};
    };
    const auto use = [](Values& v) {
        VIA_MODEL_CHECK(v.small.fetch_add(10) == 250 && v.small.load() == 4);
        VIA_MODEL_CHECK(v.small.fetch_sub(5) == 4 && v.small.load() == 255);
        VIA_MODEL_CHECK(v.small.fetch_and(0x0f) == 255 && v.small.fetch_or(0x30) == 0x0f);
        VIA_MODEL_CHECK(v.small.exchange(1) == 0x3f);
        VIA_MODEL_CHECK(v.large.load() == ~0ull && v.large.fetch_add(2) == ~0ull);
        VIA_MODEL_CHECK(v.large.load() == 1);
        VIA_MODEL_CHECK(!v.flag.exchange(true) && v.flag.load());
        auto* const somewhere = reinterpret_cast<Message*>(&v);
        v.pointer.store(somewhere);
        Message* expected = nullptr;
        VIA_MODEL_CHECK(!v.pointer.compare_exchange_strong(expected, nullptr));
        VIA_MODEL_CHECK(expected == somewhere);
        VIA_MODEL_CHECK(v.pointer.compare_exchange_strong(expected, nullptr));
    };
    for (const Memory memory : all_memories)
        EXPECT_TRUE(passes(explore(Program<Values>{"values", {use}}, {.memory = memory})));
    Values outside;
    use(outside);
}

TEST(Explorer, a_failure_is_replayed_by_its_schedule) {
    for (const Memory memory : {Memory::tso, Memory::weak}) {
        const Result found = explore(sleep_and_wake(false, true, false), {.memory = memory});
        ASSERT_TRUE(fails(found, "deadlock"));
        const Result again = explore(sleep_and_wake(false, true, false),
                                     {.memory = memory, .replay = found.schedule});
        EXPECT_EQ(again.executions, 1u);
        EXPECT_EQ(again.failure, found.failure);
        EXPECT_EQ(again.trace, found.trace);
        EXPECT_EQ(again.schedule, found.schedule);
    }
}

TEST(Explorer, the_environment_replays_a_schedule_of_that_program) {
    const Result found = explore(turn(false, true, 2), {.print = false});
    ASSERT_TRUE(fails(found, "posters"));
    setenv("VIA_MODEL_REPLAY", ("turn [weak]: " + found.schedule).c_str(), 1);
    const Result again = explore(turn(false, true, 2), {.print = false});
    const Result other = explore(ring({}, 1), {.print = false});
    unsetenv("VIA_MODEL_REPLAY");
    EXPECT_EQ(again.executions, 1u);
    EXPECT_EQ(again.trace, found.trace);
    EXPECT_TRUE(passes(other));
}

TEST(Explorer, bad_schedules_are_refused) {
    for (const char* text : {"x", "0 9", "0.", "1.5", "0' 1"}) {
        const Result result = explore(turn(true, true, 2), {.replay = text, .print = false});
        EXPECT_FALSE(result.failure.empty()) << text;
    }
}

TEST(Explorer, a_trace_tells_the_story) {
    const Result result = explore(sleep_and_wake(false, true, false), {.memory = Memory::tso});
    ASSERT_TRUE(fails(result, "T0 sleeps on asleep"));
    for (const char* part : {"store asleep = 1 relaxed (buffered)", "load work -> 0 acquire",
                             "store work = 1", "fence seq_cst", "load asleep -> 0 relaxed",
                             "store of asleep = 1 arrives", "futex_wait asleep, 1 -> sleeps"})
        EXPECT_NE(result.trace.find(part), std::string::npos) << part << "\n" << result.trace;
}

TEST(Explorer, nondeterminism_is_reported) {
    unsigned runs = 0;
    const Program<Sleep> program{"nondeterministic",
                                 {[&](Sleep& s) {
                                      if (runs++ == 0) s.work.store(1);
                                      s.asleep.store(1);
                                  },
                                  [](Sleep& s) {
                                      s.work.load();
                                      s.asleep.load();
                                  }}};
    const Result result = explore(program, {.memory = Memory::sc});
    EXPECT_FALSE(result.passed());
    EXPECT_NE(result.failure.find("not deterministic"), std::string::npos) << result.report();
}

TEST(Explorer, limits_make_a_result_that_has_not_passed) {
    const Result bounded = explore(ring({}, 3), {.max_executions = 5});
    EXPECT_TRUE(bounded.failure.empty());
    EXPECT_FALSE(bounded.exhaustive);
    EXPECT_FALSE(bounded.passed());
}

// The mistake needs the turn taken away once at the wrong moment.
TEST(Explorer, preemption_bound) {
    const auto program = turn(false, true, 2);
    const Options none{.memory = Memory::sc, .preemption_bound = 0};
    const Options one{.memory = Memory::sc, .preemption_bound = 1};
    const Result without = explore(program, none);
    EXPECT_TRUE(without.failure.empty());
    EXPECT_FALSE(without.exhaustive);
    EXPECT_TRUE(fails(explore(program, one), "posters"));
}

TEST(Explorer, exceptions_and_failures_are_reported) {
    const Program<Sleep> thrown{"exception", {[](Sleep&) { throw std::runtime_error("oh"); }}};
    EXPECT_EQ(explore(thrown).failure, "exception: oh");
    Program<Sleep> late{"finally", {[](Sleep& s) { s.work.store(1); }}};
    late.finally = [](Sleep& s) { VIA_MODEL_CHECK(s.work.load() == 2); };
    EXPECT_NE(explore(late).failure.find("s.work.load() == 2"), std::string::npos);
}

TEST(Explorer, assertions_of_the_code_under_test_are_failures) {
    const Program<Sleep> program{
        "assertion",
        {[](Sleep& s) { s.work.store(1); }, [](Sleep& s) { VIA_ASSERT(s.work.load() == 0); }}};
    EXPECT_TRUE(fails(explore(program), "VIA_ASSERT(s.work.load() == 0)"));
}

TEST(Explorer, overlapping_atomics_are_reported) {
    struct Overlap {
        alignas(8) std::array<std::uint32_t, 2> words{};
    };
    const Program<Overlap> program{
        "overlap",
        {[](Overlap& o) { atomic_store_at(&o.words[1], 1, release); },
         [](Overlap& o) {
             atomic_load_at(reinterpret_cast<std::uint64_t*>(o.words.data()), acquire);
         }}};
    EXPECT_NE(explore(program).failure.find("overlap"), std::string::npos);
}

TEST(Explorer, explore_all_names_the_first_memory_that_fails) {
    EXPECT_TRUE(passes(explore_all(sleep_and_wake(true, true, false))));
    EXPECT_EQ(explore_all(sleep_and_wake(false, true, false)).memory, Memory::tso);
    const Result arm_only =
        explore_all(Program<Sleep>{"message",
                                   {[](Sleep& s) {
                                        s.work.store(1, relaxed);
                                        s.asleep.store(1, relaxed);
                                    },
                                    [](Sleep& s) {
                                        if (s.asleep.load(acquire) == 1)
                                            VIA_MODEL_CHECK(s.work.load(relaxed) == 1);
                                    }}});
    EXPECT_EQ(arm_only.memory, Memory::weak);
    EXPECT_FALSE(arm_only.passed());
}

}  // namespace
}  // namespace via::model::checker_test
