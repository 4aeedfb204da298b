// The classic litmus tests: which outcomes each memory model of the checker shows.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/asymmetric_fence.hpp"
#include "checker.hpp"

namespace via::model::litmus_test {
namespace {

constexpr auto relaxed = memory_order_relaxed;
constexpr auto acquire = memory_order_acquire;
constexpr auto release = memory_order_release;
constexpr auto seq_cst = memory_order_seq_cst;

// Up to three variables and six results, all 0 at first.
struct Box {
    Atomic<int> x, y, z;
    std::array<int, 6> r{};

    Box() {
        name(&x, "x");
        name(&y, "y");
        name(&z, "z");
    }
};
using Threads = std::vector<std::function<void(Box&)>>;

// Every outcome: the first `results` results, then if asked for the last values of x and y.
std::set<std::string> outcomes(Memory memory, const Threads& threads, unsigned results,
                               bool values = false, bool reduction = true) {
    std::set<std::string> seen;
    const Program<Box> program{"litmus", threads, [&](Box& box) {
                                   std::string text;
                                   for (unsigned i = 0; i < results; ++i)
                                       text += std::to_string(box.r[i]);
                                   if (values) {
                                       text += ":" + std::to_string(box.x.load());
                                       text += std::to_string(box.y.load());
                                   }
                                   seen.insert(text);
                               }};
    const Result result = explore(
        program, {.memory = memory, .reduction = reduction, .heavy_fences = true, .print = false});
    EXPECT_TRUE(result.passed()) << result.report();
    return seen;
}

using Set = std::set<std::string>;

Threads store_buffering(memory_order store, memory_order load, bool fence) {
    return {[=](Box& b) {
                b.x.store(1, store);
                if (fence) atomic_fence(seq_cst);
                b.r[0] = b.y.load(load);
            },
            [=](Box& b) {
                b.y.store(1, store);
                if (fence) atomic_fence(seq_cst);
                b.r[1] = b.x.load(load);
            }};
}

TEST(Litmus, store_buffering) {
    const Set strong{"01", "10", "11"};
    const Set all{"00", "01", "10", "11"};
    EXPECT_EQ(outcomes(Memory::sc, store_buffering(relaxed, relaxed, false), 2), strong);
    for (const Memory memory : {Memory::tso, Memory::weak}) {
        EXPECT_EQ(outcomes(memory, store_buffering(relaxed, relaxed, false), 2), all);
        EXPECT_EQ(outcomes(memory, store_buffering(release, acquire, false), 2), all);
        EXPECT_EQ(outcomes(memory, store_buffering(relaxed, relaxed, true), 2), strong);
        EXPECT_EQ(outcomes(memory, store_buffering(seq_cst, seq_cst, false), 2), strong);
    }
    // On x86 a seq_cst store drains the buffer; C++ promises nothing for a relaxed load after it.
    EXPECT_EQ(outcomes(Memory::tso, store_buffering(seq_cst, relaxed, false), 2), strong);
    EXPECT_EQ(outcomes(Memory::weak, store_buffering(seq_cst, relaxed, false), 2), all);
}

TEST(Litmus, store_buffering_with_one_fence) {
    const Threads threads{[](Box& b) {
                              b.x.store(1, relaxed);
                              atomic_fence(seq_cst);
                              b.r[0] = b.y.load(relaxed);
                          },
                          [](Box& b) {
                              b.y.store(1, relaxed);
                              b.r[1] = b.x.load(relaxed);
                          }};
    for (const Memory memory : {Memory::tso, Memory::weak})
        EXPECT_TRUE(outcomes(memory, threads, 2).contains("00"));
}

// A read-modify-write drains the x86 buffer, but is no fence in C++ (nor on arm64).
TEST(Litmus, exchange_is_no_fence_in_the_weak_model) {
    const Threads threads{[](Box& b) {
                              b.x.exchange(1, seq_cst);
                              b.r[0] = b.y.load(relaxed);
                          },
                          [](Box& b) {
                              b.y.exchange(1, seq_cst);
                              b.r[1] = b.x.load(relaxed);
                          }};
    EXPECT_EQ(outcomes(Memory::tso, threads, 2), (Set{"01", "10", "11"}));
    EXPECT_EQ(outcomes(Memory::weak, threads, 2), (Set{"00", "01", "10", "11"}));
}

// Dekker's figure with asymmetric fences.
TEST(Litmus, store_buffering_with_asymmetric_fences) {
    enum class Fence : std::uint8_t { none, light, full, heavy };
    const auto make = [](Fence fence) {
        if (fence == Fence::light) light_fence();
        if (fence == Fence::full) atomic_fence(seq_cst);
        if (fence == Fence::heavy) heavy_fence(FenceReach::process);
    };
    const auto threads = [&](Fence one, Fence other) {
        return Threads{[=](Box& b) {
                           b.x.store(1, relaxed);
                           make(one);
                           b.r[0] = b.y.load(relaxed);
                           b.r[2] = b.y.load(relaxed);  // it has not ended yet when it has r[0]
                       },
                       [=](Box& b) {
                           b.y.store(1, relaxed);
                           make(other);
                           b.r[1] = b.x.load(relaxed);
                       }};
    };
    const Set strong{"01", "10", "11"};
    for (const bool reduction : {true, false}) {
        const auto seen = [&](Memory memory, Fence one, Fence other) {
            return outcomes(memory, threads(one, other), 2, false, reduction);
        };
        for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
            for (const Fence frequent : {Fence::light, Fence::full, Fence::heavy})
                EXPECT_EQ(seen(memory, frequent, Fence::heavy), strong);
        for (const Memory memory : {Memory::tso, Memory::weak}) {
            EXPECT_TRUE(seen(memory, Fence::light, Fence::light).contains("00"));
            EXPECT_TRUE(seen(memory, Fence::light, Fence::full).contains("00"));
            // The compiler may store behind the load, and so behind the other one's fence.
            EXPECT_TRUE(seen(memory, Fence::none, Fence::heavy).contains("00"));
        }
    }
}

TEST(Litmus, fence_after_rmw) {
    const auto threads = [](bool exchange) {
        const auto half = [=](Atomic<int> Box::* mine, Atomic<int> Box::* other, unsigned at) {
            return [=](Box& b) {
                if (exchange)
                    (b.*mine).exchange(1, relaxed);
                else
                    (b.*mine).store(1, relaxed);
                atomic_fence_after_rmw();
                b.r[at] = (b.*other).load(relaxed);
            };
        };
        return Threads{half(&Box::x, &Box::y, 0), half(&Box::y, &Box::x, 1)};
    };
    const Set strong{"01", "10", "11"};
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
        EXPECT_EQ(outcomes(memory, threads(true), 2), strong);
    // After a store it is none on x86, and the checker says so.
    EXPECT_TRUE(outcomes(Memory::tso, threads(false), 2).contains("00"));
}

Threads message_passing(memory_order store, memory_order load) {
    return {[=](Box& b) {
                b.x.store(1, relaxed);
                b.y.store(1, store);
            },
            [=](Box& b) {
                b.r[0] = b.y.load(load);
                b.r[1] = b.x.load(relaxed);
            }};
}

TEST(Litmus, message_passing) {
    const Set strong{"00", "01", "11"};
    const Set all{"00", "01", "10", "11"};
    EXPECT_EQ(outcomes(Memory::weak, message_passing(release, acquire), 2), strong);
    EXPECT_EQ(outcomes(Memory::weak, message_passing(relaxed, acquire), 2), all);
    EXPECT_EQ(outcomes(Memory::weak, message_passing(release, relaxed), 2), all);
    EXPECT_EQ(outcomes(Memory::tso, message_passing(relaxed, relaxed), 2), strong);
    EXPECT_EQ(outcomes(Memory::sc, message_passing(relaxed, relaxed), 2), strong);
}

TEST(Litmus, message_passing_by_fences) {
    const auto threads = [](bool sender, bool receiver) {
        return Threads{[=](Box& b) {
                           b.x.store(1, relaxed);
                           if (sender) atomic_fence(release);
                           b.y.store(1, relaxed);
                       },
                       [=](Box& b) {
                           b.r[0] = b.y.load(relaxed);
                           if (receiver) atomic_fence(acquire);
                           b.r[1] = b.x.load(relaxed);
                       }};
    };
    EXPECT_FALSE(outcomes(Memory::weak, threads(true, true), 2).contains("10"));
    EXPECT_TRUE(outcomes(Memory::weak, threads(false, true), 2).contains("10"));
    EXPECT_TRUE(outcomes(Memory::weak, threads(true, false), 2).contains("10"));
}

// A read-modify-write by another thread carries the release on; a plain store does not.
TEST(Litmus, release_sequence) {
    const auto threads = [](bool rmw) {
        return Threads{[](Box& b) {
                           b.x.store(1, relaxed);
                           b.y.store(1, release);
                       },
                       [=](Box& b) {
                           if (rmw)
                               b.y.fetch_add(2, relaxed);
                           else if (b.y.load(relaxed) == 1)
                               b.y.store(3, relaxed);
                       },
                       [](Box& b) {
                           b.r[0] = b.y.load(acquire);
                           b.r[1] = b.x.load(relaxed);
                       }};
    };
    EXPECT_FALSE(outcomes(Memory::weak, threads(true), 2).contains("30"));
    EXPECT_TRUE(outcomes(Memory::weak, threads(false), 2).contains("30"));
}

TEST(Litmus, causality_through_a_third_thread) {
    const auto threads = [](memory_order store, memory_order load) {
        return Threads{[](Box& b) { b.x.store(1, relaxed); },
                       [=](Box& b) {
                           b.r[0] = b.x.load(load);
                           b.y.store(1, store);
                       },
                       [=](Box& b) {
                           b.r[1] = b.y.load(load);
                           b.r[2] = b.x.load(relaxed);
                       }};
    };
    EXPECT_TRUE(outcomes(Memory::weak, threads(relaxed, relaxed), 3).contains("110"));
    EXPECT_FALSE(outcomes(Memory::weak, threads(release, acquire), 3).contains("110"));
    EXPECT_FALSE(outcomes(Memory::tso, threads(relaxed, relaxed), 3).contains("110"));
}

// Two readers that disagree about the order of two writes.
TEST(Litmus, independent_reads_of_independent_writes) {
    const auto threads = [](memory_order store, memory_order load) {
        return Threads{[=](Box& b) { b.x.store(1, store); }, [=](Box& b) { b.y.store(1, store); },
                       [=](Box& b) {
                           b.r[0] = b.x.load(load);
                           b.r[1] = b.y.load(load);
                       },
                       [=](Box& b) {
                           b.r[2] = b.y.load(load);
                           b.r[3] = b.x.load(load);
                       }};
    };
    EXPECT_TRUE(outcomes(Memory::weak, threads(release, acquire), 4).contains("1010"));
    EXPECT_FALSE(outcomes(Memory::weak, threads(seq_cst, seq_cst), 4).contains("1010"));
    EXPECT_FALSE(outcomes(Memory::tso, threads(relaxed, relaxed), 4).contains("1010"));
}

TEST(Litmus, one_variable_is_coherent) {
    const Threads threads{[](Box& b) {
                              b.x.store(1, relaxed);
                              b.x.store(2, relaxed);
                          },
                          [](Box& b) {
                              b.r[0] = b.x.load(relaxed);
                              b.r[1] = b.x.load(relaxed);
                          }};
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
        EXPECT_EQ(outcomes(memory, threads, 2), (Set{"00", "01", "02", "11", "12", "22"}));
}

TEST(Litmus, readers_agree_on_the_order_of_one_variable) {
    const auto reader = [](unsigned at) {
        return [at](Box& b) {
            b.r[at] = b.x.load(relaxed);
            b.r[at + 1] = b.x.load(relaxed);
        };
    };
    const Threads threads{[](Box& b) { b.x.store(1, relaxed); },
                          [](Box& b) { b.x.store(2, relaxed); }, reader(0), reader(2)};
    const Set seen = outcomes(Memory::weak, threads, 4);
    EXPECT_TRUE(seen.contains("1212") && seen.contains("2121"));
    EXPECT_FALSE(seen.contains("1221") || seen.contains("2112"));
}

// Stores of one thread may land in the other order.
TEST(Litmus, two_plus_two_writes) {
    const auto threads = [](memory_order order) {
        return Threads{[=](Box& b) {
                           b.x.store(1, relaxed);
                           b.y.store(2, order);
                       },
                       [=](Box& b) {
                           b.y.store(1, relaxed);
                           b.x.store(2, order);
                       }};
    };
    const Set strong{":12", ":21", ":22"};
    EXPECT_EQ(outcomes(Memory::sc, threads(relaxed), 0, true), strong);
    EXPECT_EQ(outcomes(Memory::tso, threads(relaxed), 0, true), strong);
    EXPECT_TRUE(outcomes(Memory::weak, threads(relaxed), 0, true).contains(":11"));
}

TEST(Litmus, store_to_load_forwarding) {
    const Threads threads{[](Box& b) {
                              b.x.store(1, relaxed);
                              b.r[0] = b.x.load(relaxed);
                              b.r[1] = b.y.load(relaxed);
                          },
                          [](Box& b) {
                              b.y.store(1, relaxed);
                              b.r[2] = b.y.load(relaxed);
                              b.r[3] = b.x.load(relaxed);
                          }};
    EXPECT_FALSE(outcomes(Memory::sc, threads, 4).contains("1010"));
    EXPECT_TRUE(outcomes(Memory::tso, threads, 4).contains("1010"));
    EXPECT_TRUE(outcomes(Memory::weak, threads, 4).contains("1010"));
}

TEST(Litmus, read_modify_writes_are_atomic) {
    const Threads threads{[](Box& b) { b.r[0] = b.x.fetch_add(1, relaxed); },
                          [](Box& b) { b.r[1] = b.x.fetch_add(1, relaxed); },
                          [](Box& b) { b.r[2] = b.x.fetch_add(1, relaxed); }};
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak}) {
        const Set seen = outcomes(memory, threads, 3, true);
        EXPECT_EQ(seen, (Set{"012:30", "021:30", "102:30", "120:30", "201:30", "210:30"}));
    }
}

TEST(Litmus, compare_exchange_has_one_winner) {
    const auto contender = [](unsigned at) {
        return [at](Box& b) {
            int expected = 0;
            b.r[at] =
                b.x.compare_exchange_strong(expected, static_cast<int>(at) + 1, relaxed) ? 1 : 0;
        };
    };
    for (const Memory memory : {Memory::sc, Memory::tso, Memory::weak})
        EXPECT_EQ(outcomes(memory, {contender(0), contender(1), contender(2)}, 3, true),
                  (Set{"100:10", "010:20", "001:30"}));
}

// Seq_cst fences in all threads restore sequential consistency.
TEST(Litmus, fences_restore_order) {
    const auto fence = [] { atomic_fence(seq_cst); };
    const Threads threads{[=](Box& b) { b.x.store(1, relaxed); },
                          [=](Box& b) { b.y.store(1, relaxed); },
                          [=](Box& b) {
                              b.r[0] = b.x.load(relaxed);
                              fence();
                              b.r[1] = b.y.load(relaxed);
                          },
                          [=](Box& b) {
                              b.r[2] = b.y.load(relaxed);
                              fence();
                              b.r[3] = b.x.load(relaxed);
                          }};
    EXPECT_FALSE(outcomes(Memory::weak, threads, 4).contains("1010"));
}

// What the weak model leaves out, so that nobody takes a pass for more than it is.
TEST(Litmus, load_buffering_is_not_modelled) {
    const Threads threads{[](Box& b) {
                              b.r[0] = b.x.load(relaxed);
                              b.y.store(1, relaxed);
                          },
                          [](Box& b) {
                              b.r[1] = b.y.load(relaxed);
                              b.x.store(1, relaxed);
                          }};
    EXPECT_FALSE(outcomes(Memory::weak, threads, 2).contains("11"));
}

}  // namespace
}  // namespace via::model::litmus_test
