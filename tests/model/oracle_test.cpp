// Random small programs: the checker must show exactly the outcomes that three independent
// definitions allow: all interleavings, x86-TSO as a machine, and C++ as axioms (RC11 without load
// buffering). Each program is also run without reduction, which must not change the outcomes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "checker.hpp"

namespace via::model::oracle_test {
namespace {

using Set = std::set<std::string>;

enum class What : std::uint8_t { load, store, exchange, fence };

struct Instruction {
    What what;
    unsigned variable;
    int value;  // different for every write
    memory_order order;
    unsigned result;  // index of what it reads
};
using Thread = std::vector<Instruction>;

struct Test {
    std::vector<Thread> threads;
    unsigned results = 0;
};

const char* name_of(memory_order order) {
    switch (order) {
        case memory_order_relaxed:
            return "rlx";
        case memory_order_acquire:
            return "acq";
        case memory_order_release:
            return "rel";
        case memory_order_acq_rel:
            return "acqrel";
        default:
            return "sc";
    }
}

std::string text_of(const Test& test) {
    std::string text;
    for (const Thread& thread : test.threads) {
        for (const Instruction& i : thread) {
            const std::string variable = i.variable == 0 ? "x" : "y";
            if (i.what == What::load) text += "r" + std::to_string(i.result) + "=" + variable;
            if (i.what == What::store) text += variable + "=" + std::to_string(i.value);
            if (i.what == What::exchange)
                text += "r" + std::to_string(i.result) + "=xchg(" + variable + "," +
                        std::to_string(i.value) + ")";
            if (i.what == What::fence) text += "fence";
            text += std::string(".") + name_of(i.order) + "; ";
        }
        text += "|| ";
    }
    return text;
}

// What text_of writes.
Test parse(const std::string& text) {
    Test test;
    test.threads.emplace_back();
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        if (word == "||") {
            test.threads.emplace_back();
            continue;
        }
        const std::size_t dot = word.find('.');
        Instruction made{What::fence, 0, 0, memory_order_seq_cst, 0};
        for (const memory_order order : {memory_order_relaxed, memory_order_acquire,
                                         memory_order_release, memory_order_acq_rel})
            if (word.substr(dot + 1) == std::string(name_of(order)) + ";") made.order = order;
        const std::size_t exchange = word.find("xchg(");
        if (exchange != std::string::npos) {
            made.what = What::exchange;
            made.variable = word[exchange + 5] == 'x' ? 0 : 1;
            made.value = word[exchange + 7] - '0';
        } else if (word[0] == 'r') {
            made.what = What::load;
            made.variable = word[3] == 'x' ? 0 : 1;
        } else if (word[0] != 'f') {
            made.what = What::store;
            made.variable = word[0] == 'x' ? 0 : 1;
            made.value = word[2] - '0';
        }
        if (word[0] == 'r') {
            made.result = static_cast<unsigned>(word[1] - '0');
            test.results = std::max(test.results, made.result + 1);
        }
        test.threads.back().push_back(made);
    }
    if (test.threads.back().empty()) test.threads.pop_back();
    return test;
}

class Generator {
public:
    explicit Generator(unsigned seed) : random_(seed) {}

    // `sc_accesses`: loads and stores may be seq_cst too, not only fences.
    Test test(unsigned threads, unsigned instructions, bool sc_accesses) {
        Test test;
        int value = 1;
        test.threads.resize(threads);
        for (unsigned i = 0; i < instructions; ++i)
            test.threads[i < threads ? i : pick(threads)].push_back(
                instruction(test, value, sc_accesses));
        return test;
    }

private:
    unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }

    Instruction instruction(Test& test, int& value, bool sc_accesses) {
        static constexpr memory_order orders[3][3] = {
            {memory_order_relaxed, memory_order_acquire, memory_order_seq_cst},
            {memory_order_relaxed, memory_order_release, memory_order_seq_cst},
            {memory_order_relaxed, memory_order_acq_rel, memory_order_seq_cst}};
        const unsigned kind = pick(11);
        const unsigned order = pick(sc_accesses ? 3 : 2);
        Instruction made{What::fence, pick(2), 0, memory_order_seq_cst, 0};
        if (kind < 4) {
            made.what = What::load;
            made.order = orders[0][order];
        } else if (kind < 8) {
            made.what = What::store;
            made.order = orders[1][order];
        } else if (kind < 9) {
            made.what = What::exchange;
            made.order = orders[2][order];
        } else if (kind < 10) {
            made.order = pick(2) == 0 ? memory_order_acquire : memory_order_release;
        }
        if (made.what == What::store || made.what == What::exchange) made.value = value++;
        if (made.what == What::load || made.what == What::exchange) made.result = test.results++;
        return made;
    }

    std::mt19937 random_;
};

std::string outcome(const std::vector<int>& results, int x, int y) {
    std::string text;
    for (const int result : results) text += std::to_string(result);
    return text + ":" + std::to_string(x) + std::to_string(y);
}

// --- the checker ---

struct Box {
    std::array<Atomic<int>, 2> variable{};
    std::vector<int> results;
};

Set checked(const Test& test, Memory memory, bool reduction) {
    Set seen;
    Program<Box> program;
    program.name = "random";
    for (const Thread& thread : test.threads) {
        program.threads.emplace_back([&](Box& box) {
            for (const Instruction& i : thread) {
                Atomic<int>& variable = box.variable[i.variable];
                switch (i.what) {
                    case What::load:
                        box.results[i.result] = variable.load(i.order);
                        break;
                    case What::store:
                        variable.store(i.value, i.order);
                        break;
                    case What::exchange:
                        box.results[i.result] = variable.exchange(i.value, i.order);
                        break;
                    case What::fence:
                        atomic_fence(i.order);
                        break;
                }
            }
        });
    }
    // Results are made by whoever is first; threads have not run in parallel with that.
    for (auto& thread : program.threads)
        thread = [&test, thread](Box& box) {
            if (box.results.empty()) box.results.resize(test.results);
            thread(box);
        };
    program.finally = [&](Box& box) {
        seen.insert(outcome(box.results, box.variable[0].load(), box.variable[1].load()));
    };
    Options options{.memory = memory, .reduction = reduction, .print = false};
    options.max_executions = 50'000'000;
    const Result result = explore(program, options);
    EXPECT_TRUE(result.passed()) << result.report();
    return seen;
}

// --- sc and tso as machines ---

class Machine {
public:
    Machine(const Test& test, bool buffers) : test_(test), buffers_(buffers) {}

    Set outcomes() {
        State state;
        state.at.resize(test_.threads.size());
        state.buffer.resize(test_.threads.size());
        state.results.resize(test_.results);
        explore(state);
        return seen_;
    }

private:
    struct State {
        std::vector<unsigned> at;
        std::vector<std::vector<std::pair<unsigned, int>>> buffer;
        std::array<int, 2> memory{};
        std::vector<int> results;
        auto operator<=>(const State&) const = default;
    };

    void explore(const State& state) {
        if (!visited_.insert(state).second) return;
        bool over = true;
        for (unsigned t = 0; t < state.at.size(); ++t) {
            if (!state.buffer[t].empty()) {
                over = false;
                State next = state;
                next.memory[next.buffer[t][0].first] = next.buffer[t][0].second;
                next.buffer[t].erase(next.buffer[t].begin());
                explore(next);
            }
            if (state.at[t] == test_.threads[t].size()) continue;
            over = false;
            State next = state;
            if (execute(next, t, test_.threads[t][next.at[t]++])) explore(next);
        }
        if (over) seen_.insert(outcome(state.results, state.memory[0], state.memory[1]));
    }

    // False: it has to wait for the buffer.
    bool execute(State& state, unsigned t, const Instruction& i) const {
        auto& buffer = state.buffer[t];
        const bool full = i.order == memory_order_seq_cst;
        switch (i.what) {
            case What::load: {
                int value = state.memory[i.variable];
                for (const auto& [variable, stored] : buffer)
                    if (variable == i.variable) value = stored;
                state.results[i.result] = value;
                return true;
            }
            case What::store:
                if (buffers_ && !full) {
                    buffer.emplace_back(i.variable, i.value);
                    return true;
                }
                state.memory[i.variable] = i.value;
                return buffer.empty();
            case What::exchange:
                state.results[i.result] = state.memory[i.variable];
                state.memory[i.variable] = i.value;
                return buffer.empty();
            case What::fence:
                return !full || buffer.empty();
        }
        return false;
    }

    const Test& test_;
    bool buffers_;
    std::set<State> visited_;
    Set seen_;
};

// --- C++ as axioms (RC11: Lahav, Vafeiadis, Kang, Hur, Dreyer, PLDI 2017) ---

// A relation between at most 16 events.
struct Relation {
    std::array<std::uint16_t, 16> to{};

    bool has(unsigned a, unsigned b) const { return (to[a] >> b & 1) != 0; }
    void add(unsigned a, unsigned b) { to[a] = static_cast<std::uint16_t>(to[a] | 1u << b); }
    Relation operator|(const Relation& other) const {
        Relation sum = *this;
        for (unsigned a = 0; a < 16; ++a)
            sum.to[a] = static_cast<std::uint16_t>(to[a] | other.to[a]);
        return sum;
    }
    Relation then(const Relation& next) const {
        Relation product;
        for (unsigned a = 0; a < 16; ++a)
            for (unsigned b = 0; b < 16; ++b)
                if (has(a, b))
                    product.to[a] = static_cast<std::uint16_t>(product.to[a] | next.to[b]);
        return product;
    }
    Relation maybe() const {
        Relation with = *this;
        for (unsigned a = 0; a < 16; ++a) with.add(a, a);
        return with;
    }
    Relation closure() const {
        Relation all = *this;
        for (unsigned via = 0; via < 16; ++via)
            for (unsigned a = 0; a < 16; ++a)
                if (all.has(a, via))
                    all.to[a] = static_cast<std::uint16_t>(all.to[a] | all.to[via]);
        return all;
    }
    bool irreflexive() const {
        for (unsigned a = 0; a < 16; ++a)
            if (has(a, a)) return false;
        return true;
    }
    bool acyclic() const { return closure().irreflexive(); }
    template <typename Keep>
    Relation where(Keep keep) const {
        Relation part;
        for (unsigned a = 0; a < 16; ++a)
            for (unsigned b = 0; b < 16; ++b)
                if (has(a, b) && keep(a, b)) part.add(a, b);
        return part;
    }
};

class Axioms {
public:
    explicit Axioms(const Test& test) : results_(test.results) {
        for (unsigned v = 0; v < 2; ++v) events_.push_back({none, {What::store, v, 0, {}, 0}});
        for (unsigned t = 0; t < test.threads.size(); ++t)
            for (const Instruction& i : test.threads[t]) events_.push_back({t, i});
        for (unsigned a = 0; a < events_.size(); ++a)
            for (unsigned b = 0; b < events_.size(); ++b)
                if (a != b &&
                    (events_[a].thread == events_[b].thread ? a < b && a >= 2 : a < 2 && b >= 2))
                    po_.add(a, b);
        from_.resize(events_.size());
    }

    Set outcomes() {
        choose_reads(0);
        return seen_;
    }

private:
    static constexpr unsigned none = 99;
    struct Event {
        unsigned thread;
        Instruction i;
    };

    bool reads(unsigned e) const {
        return events_[e].i.what == What::load || events_[e].i.what == What::exchange;
    }
    bool writes(unsigned e) const {
        return events_[e].i.what == What::store || events_[e].i.what == What::exchange;
    }
    bool fence(unsigned e) const { return events_[e].i.what == What::fence; }
    bool sc(unsigned e) const { return e >= 2 && events_[e].i.order == memory_order_seq_cst; }
    bool acquires(unsigned e) const {
        return e >= 2 && (sc(e) || events_[e].i.order == memory_order_acquire ||
                          events_[e].i.order == memory_order_acq_rel);
    }
    bool releases(unsigned e) const {
        return e >= 2 && (sc(e) || events_[e].i.order == memory_order_release ||
                          events_[e].i.order == memory_order_acq_rel);
    }
    bool same_variable(unsigned a, unsigned b) const {
        return !fence(a) && !fence(b) && events_[a].i.variable == events_[b].i.variable;
    }

    void choose_reads(unsigned e) {
        if (e == events_.size()) {
            choose_order(0);
            return;
        }
        if (!reads(e)) {
            choose_reads(e + 1);
            return;
        }
        for (unsigned w = 0; w < events_.size(); ++w) {
            if (w == e || !writes(w) || !same_variable(w, e)) continue;
            from_[e] = w;
            choose_reads(e + 1);
        }
    }

    void choose_order(unsigned variable) {
        if (variable == 2) {
            judge();
            return;
        }
        std::vector<unsigned> order;
        for (unsigned e = 2; e < events_.size(); ++e)
            if (writes(e) && events_[e].i.variable == variable) order.push_back(e);
        do {
            order_[variable] = order;
            choose_order(variable + 1);
        } while (std::next_permutation(order.begin(), order.end()));
    }

    void judge() {
        Relation rf;
        Relation mo;
        for (unsigned e = 0; e < events_.size(); ++e)
            if (reads(e)) rf.add(from_[e], e);
        for (unsigned v = 0; v < 2; ++v) {
            for (unsigned i = 0; i < order_[v].size(); ++i) {
                mo.add(v, order_[v][i]);
                for (unsigned j = i + 1; j < order_[v].size(); ++j)
                    mo.add(order_[v][i], order_[v][j]);
            }
        }
        if (!consistent(rf, mo)) return;
        std::vector<int> results(results_);
        for (unsigned e = 0; e < events_.size(); ++e)
            if (reads(e)) results[events_[e].i.result] = events_[from_[e]].i.value;
        const auto last = [&](unsigned v) {
            return order_[v].empty() ? 0 : events_[order_[v].back()].i.value;
        };
        seen_.insert(outcome(results, last(0), last(1)));
    }

    bool consistent(const Relation& rf, const Relation& mo) const {
        Relation fr;  // a read, to all that overwrite what it read
        for (unsigned e = 0; e < events_.size(); ++e)
            for (unsigned w = 0; w < events_.size(); ++w)
                if (reads(e) && e != w && mo.has(from_[e], w)) fr.add(e, w);
        const Relation eco = (rf | mo | fr).closure();

        // Synchronizes-with: release [fence; po] write, read-modify-writes, read [po; fence]
        // acquire.
        const Relation rmw_steps =
            rf.where([&](unsigned, unsigned b) { return writes(b); }).closure();
        Relation head;  // release side, to the write
        Relation tail;  // the read, to the acquire side
        for (unsigned a = 2; a < events_.size(); ++a) {
            for (unsigned b = 2; b < events_.size(); ++b) {
                if (writes(b) && releases(a) && ((a == b) || (fence(a) && po_.has(a, b))))
                    head.add(a, b);
                if (reads(a) && acquires(b) && ((a == b) || (fence(b) && po_.has(a, b))))
                    tail.add(a, b);
            }
        }
        const Relation sw = head.then(rmw_steps.maybe()).then(rf).then(tail);
        const Relation hb = (po_ | sw).closure();

        // Coherence; eco too, because here a read-modify-write is one event.
        if (!hb.irreflexive() || !eco.irreflexive() || !hb.then(eco).irreflexive()) return false;
        if (!(po_ | rf).acyclic()) return false;       // nothing out of thin air, no load buffering
        for (unsigned e = 0; e < events_.size(); ++e)  // atomicity
            if (reads(e) && writes(e))
                for (unsigned w = 0; w < events_.size(); ++w)
                    if (fr.has(e, w) && mo.has(w, e)) return false;

        // The order of seq_cst accesses and fences.
        const Relation po_other =
            po_.where([&](unsigned a, unsigned b) { return !same_variable(a, b); });
        const Relation hb_same =
            hb.where([&](unsigned a, unsigned b) { return same_variable(a, b); });
        const Relation scb = po_ | po_other.then(hb).then(po_other) | hb_same | mo | fr;
        Relation begin;  // SC event, to where its order counts from
        Relation end;
        for (unsigned a = 0; a < events_.size(); ++a) {
            if (!sc(a)) continue;
            begin.add(a, a);
            end.add(a, a);
            if (!fence(a)) continue;
            for (unsigned b = 0; b < events_.size(); ++b) {
                if (hb.has(a, b)) begin.add(a, b);
                if (hb.has(b, a)) end.add(b, a);
            }
        }
        const auto both_fences = [&](unsigned a, unsigned b) {
            return sc(a) && sc(b) && fence(a) && fence(b);
        };
        const Relation psc =
            begin.then(scb).then(end) | (hb | hb.then(eco).then(hb)).where(both_fences);
        // RC11 asks for no more than that psc be acyclic. The checker forbids a little that x86 and
        // arm64 forbid too: it runs seq_cst operations in the order in which it runs everything,
        // and a fence makes known what its thread has read, from whomever.
        Relation before_fence;
        for (unsigned a = 0; a < events_.size(); ++a)
            for (unsigned b = 0; b < events_.size(); ++b)
                if (sc(b) && fence(b) && hb.has(a, b)) before_fence.add(a, b);
        const Relation read_before_fence =
            eco.then(before_fence).where([&](unsigned a, unsigned b) { return sc(a) && sc(b); });
        return (psc | read_before_fence | po_ | rf).acyclic();
    }

    unsigned results_;
    std::vector<Event> events_;
    Relation po_;
    std::vector<unsigned> from_;
    std::array<std::vector<unsigned>, 2> order_;
    Set seen_;
};

void expect_same(const Test& test, const char* what, const Set& got, const Set& wanted) {
    for (const std::string& one : wanted)
        EXPECT_TRUE(got.contains(one)) << what << " misses " << one << " of " << text_of(test);
    for (const std::string& one : got)
        EXPECT_TRUE(wanted.contains(one))
            << what << " wrongly has " << one << " of " << text_of(test);
}

void compare(const Test& test) {
    const Set sc = checked(test, Memory::sc, true);
    const Set tso = checked(test, Memory::tso, true);
    const Set weak = checked(test, Memory::weak, true);
    EXPECT_TRUE(std::ranges::includes(tso, sc) && std::ranges::includes(weak, tso))
        << text_of(test);
    expect_same(test, "sc against the machine", sc, Machine(test, false).outcomes());
    expect_same(test, "tso against the machine", tso, Machine(test, true).outcomes());
    expect_same(test, "weak against the axioms", weak, Axioms(test).outcomes());
    expect_same(test, "sc with reduction", sc, checked(test, Memory::sc, false));
    expect_same(test, "tso with reduction", tso, checked(test, Memory::tso, false));
    expect_same(test, "weak with reduction", weak, checked(test, Memory::weak, false));
}

void compare_many(unsigned seed, unsigned count, unsigned threads, unsigned least, unsigned most,
                  bool sc_accesses) {
    Generator generator(seed);
    for (unsigned i = 0; i < count && !testing::Test::HasFailure(); ++i)
        compare(generator.test(threads, least + i % (most - least + 1), sc_accesses));
}

// Rare ones, in which a step depends on another by the order of fences and seq_cst accesses alone.
TEST(Oracle, kept_programs) {
    for (const char* text : {
             "fence.sc; y=2.rel; r2=xchg(x,4).rlx; || r0=x.sc; r1=y.sc; || x=1.rel; y=3.sc; || ",
             "x=1.rlx; fence.sc; || fence.sc; r0=y.rlx; r1=x.rlx; || r2=x.rlx; y=1.rlx; || ",
         }) {
        const auto test = parse(text);
        EXPECT_EQ(text_of(test), text);
        compare(test);
    }
}

TEST(Oracle, two_threads) { compare_many(1, 500, 2, 3, 6, false); }
TEST(Oracle, two_threads_with_sc_accesses) { compare_many(2, 500, 2, 3, 6, true); }
TEST(Oracle, three_threads) { compare_many(3, 250, 3, 4, 6, false); }
TEST(Oracle, three_threads_with_sc_accesses) { compare_many(4, 250, 3, 4, 6, true); }

}  // namespace
}  // namespace via::model::oracle_test
