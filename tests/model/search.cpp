#include "search.hpp"

#include <bit>
#include <charconv>
#include <sstream>
#include <tuple>

namespace via::model {

namespace {

unsigned lowest(ProcessSet set) { return static_cast<unsigned>(std::countr_zero(set)); }

constexpr ProcessSet all_threads = bit(max_threads) - 1;

}  // namespace

const char* memory_name(Memory memory) {
    switch (memory) {
        case Memory::sc:
            return "sc";
        case Memory::tso:
            return "tso";
        case Memory::weak:
            return "weak";
    }
    return "?";
}

Search::Search(const ErasedProgram& program, const Options& options)
    : program_(program), options_(options) {}

Result Search::run() {
    Result result;
    result.name = program_.name;
    result.memory = options_.memory;
    if (program_.threads.empty() || program_.threads.size() > max_threads) {
        result.failure = "a program has 1 to " + std::to_string(max_threads) + " threads";
        return result;
    }
    const bool replaying = !options_.replay.empty();
    if (replaying && !parse(options_.replay)) {
        result.failure = "not a schedule: " + options_.replay;
        return result;
    }
    for (;;) {
        const End end = execute(replaying);
        if (end == End::cut)
            ++result.cut;
        else
            ++result.executions;
        if (end == End::failed) {
            finish_failure(result);
            break;
        }
        if (replaying) {
            for (const std::string& line : world_.trace()) result.trace += line + "\n";
            result.schedule = schedule();
            break;
        }
        if (!advance()) {
            result.exhaustive = options_.preemption_bound < 0;
            break;
        }
        if (result.executions + result.cut >= options_.max_executions) break;
    }
    result.steps = steps_;
    return result;
}

// One execution: the steps of nodes_ as far as they go, then new ones.
Search::End Search::execute(bool tracing) {
    world_.begin(program_, options_, tracing);
    End end = End::complete;
    ProcessSet sleep = 0;
    for (std::size_t depth = 0;; ++depth) {
        if (!world_.failure().empty()) break;
        const ProcessSet enabled = world_.enabled();
        if (depth == nodes_.size()) {
            if (enabled == 0) break;
            if (depth == options_.max_steps) {
                world_.record("more than " + std::to_string(depth) +
                              " steps: a loop without relax(), or raise Options::max_steps");
                break;
            }
            if (!open(enabled, sleep)) {
                end = End::cut;
                break;
            }
        }
        Node& node = nodes_[depth];
        if (node.enabled != enabled || (enabled & bit(node.process)) == 0) {
            world_.record("the program is not deterministic, or the schedule is another program's");
            break;
        }
        if (!node.analysed) analyse(depth);
        node.choices = world_.choices(node.process, node.past);
        if (node.choice >= node.choices) {
            world_.record("the program is not deterministic, or the schedule is another program's");
            break;
        }
        if (depth + 1 == nodes_.size()) sleep = still_asleep(node);
        world_.execute(node.process, node.choice, node.clock);
        ++steps_;
    }
    if (end == End::complete && world_.failure().empty()) {
        switch (world_.ending()) {
            case World::Ending::complete:
                if (program_.finally) program_.finally();
                break;
            case World::Ending::repeats:
                end = End::cut;
                break;
            case World::Ending::stuck:
                world_.record(world_.describe_stuck());
                break;
        }
    }
    program_.teardown();
    return world_.failure().empty() ? end : End::failed;
}

// A node for a state not seen yet. False: all that may happen from here has been seen elsewhere.
bool Search::open(ProcessSet enabled, ProcessSet sleep) {
    Node node;
    node.enabled = enabled;
    node.sleep = sleep;
    if (!nodes_.empty()) {
        const Node& before = nodes_.back();
        const bool thread = before.process < max_threads;
        node.last_thread = thread ? before.process : before.last_thread;
        const bool could_go_on =
            before.last_thread < max_threads && (before.enabled & bit(before.last_thread)) != 0;
        node.preemptions = before.preemptions +
                           (thread && could_go_on && before.process != before.last_thread ? 1 : 0);
    }
    ProcessSet possible = enabled & ~sleep;
    if (nodes_.size() < replay_.size()) {
        std::tie(node.process, node.choice) = replay_[nodes_.size()];
        nodes_.push_back(node);
        return true;
    }
    if (possible == 0) return false;
    if (!reducing()) {
        possible = affordable(node);
        node.backtrack = possible;
    }
    // Going on with the same thread makes traces readable.
    const bool same = node.last_thread < max_threads && (possible & bit(node.last_thread)) != 0;
    node.process = same ? node.last_thread : lowest(possible);
    node.backtrack |= bit(node.process);
    nodes_.push_back(node);
    return true;
}

// What the bound on preemptions permits. Store buffers cost nothing.
ProcessSet Search::affordable(const Node& node) const {
    const int bound = options_.preemption_bound;
    if (bound < 0 || node.preemptions < bound || node.last_thread == max_threads)
        return node.enabled;
    if ((node.enabled & bit(node.last_thread)) == 0) return node.enabled;
    return node.enabled & (bit(node.last_thread) | ~all_threads);
}

// Which of those asleep stay so after the node's step: those that it does not matter to.
ProcessSet Search::still_asleep(const Node& node) {
    if (!reducing()) return 0;
    ProcessSet asleep = (node.sleep | node.done) & ~bit(node.process);
    for (ProcessSet rest = asleep; rest != 0; rest &= rest - 1) {
        const unsigned process = lowest(rest);
        if (world_.footprint(process).conflicts(node.print)) asleep &= ~bit(process);
    }
    return asleep;
}

// `clock` and all earlier steps that the node's step depends on. Those among them that it depends
// on directly only are the races: the order could have been the other one.
StepClock Search::dependencies(std::size_t depth, StepClock clock) {
    races_.clear();
    for (std::size_t i = depth; i-- > 0;) {
        const Node& earlier = nodes_[i];
        if (clock.includes(earlier.process, earlier.clock.at[earlier.process])) continue;
        if (!earlier.print.conflicts(nodes_[depth].print)) continue;
        races_.push_back(i);
        clock.join(earlier.clock);
    }
    return clock;
}

// The same without those that it depends on through its variable alone: it could have come before
// them and seen and done the same. Not so among seq_cst operations, whose order is kept.
StepClock Search::choice_dependencies(std::size_t depth, StepClock clock, unsigned variable) const {
    const Footprint& print = nodes_[depth].print;
    Footprint others = print;
    if (variable != 0) {
        others.reads.reset(variable);
        others.writes.reset(variable);
    }
    if (others.reads.none() && others.writes.none()) return clock;
    const auto ordered = [](const Footprint& step) {
        return step.reads.test(fence_object) || step.writes.test(fence_object);
    };
    for (std::size_t i = depth; i-- > 0;) {
        const Node& earlier = nodes_[i];
        if (clock.includes(earlier.process, earlier.clock.at[earlier.process])) continue;
        const bool both = ordered(print) && ordered(earlier.print);
        if (earlier.print.conflicts(both ? print : others)) clock.join(earlier.clock);
    }
    return clock;
}

void Search::analyse(std::size_t depth) {
    Node& node = nodes_[depth];
    const unsigned process = node.process;
    node.analysed = true;
    node.print = world_.footprint(process);
    node.past = world_.past(process);
    node.clock = node.past;
    if (reducing()) {
        node.clock = dependencies(depth, node.clock);
        node.past = choice_dependencies(depth, node.past, world_.variable(process));
    }
    ++node.clock.at[process];
    if (!reducing()) return;
    for (const std::size_t earlier : races_) reverse(earlier, depth);
}

// Sees to it that the later step is also tried before the earlier one, if it is not yet: some
// process that can begin the sequence of what happens in between without the earlier step.
void Search::reverse(std::size_t earlier, std::size_t later) {
    Node& node = nodes_[earlier];
    const unsigned count = node.clock.at[node.process];
    std::vector<std::size_t> sequence;
    ProcessSet initials = 0;
    for (std::size_t i = earlier + 1; i <= later; ++i) {
        const Node& step = nodes_[i];
        if (i != later && step.clock.includes(node.process, count)) continue;
        bool first = true;
        for (const std::size_t before : sequence) {
            const Node& other = nodes_[before];
            first = first && !step.clock.includes(other.process, other.clock.at[other.process]);
        }
        if (first) initials |= bit(step.process);
        sequence.push_back(i);
    }
    if ((initials & (node.backtrack | node.done | node.sleep)) != 0) return;
    const ProcessSet possible = initials & node.enabled;
    if (possible == 0) {
        // A spinning thread that only the earlier step let go on: there is no other order.
        if (!world_.is_relax(nodes_[later].process)) node.backtrack |= node.enabled;
        return;
    }
    const unsigned wanted = nodes_[later].process;
    node.backtrack |= (possible & bit(wanted)) != 0 ? bit(wanted) : bit(lowest(possible));
}

// To the next execution. False: there is none.
bool Search::advance() {
    while (!nodes_.empty()) {
        Node& node = nodes_.back();
        if (++node.choice < node.choices) return true;
        node.done |= bit(node.process);
        const ProcessSet left = node.backtrack & ~node.done & ~node.sleep;
        if (left != 0) {
            node.process = lowest(left);
            node.choice = 0;
            node.analysed = false;
            return true;
        }
        nodes_.pop_back();
    }
    return false;
}

void Search::finish_failure(Result& result) {
    result.failure = world_.failure();
    result.schedule = schedule();
    if (!world_.tracing()) {  // once more, with a trace and names
        execute(true);
        if (world_.failure().empty())
            result.failure += " (but not when run again)";
        else
            result.failure = world_.failure();
    }
    for (const std::string& line : world_.trace()) result.trace += line + "\n";
}

std::string Search::schedule() const {
    std::string text;
    for (const Node& node : nodes_) {
        const bool thread = node.process < max_threads;
        if (!text.empty()) text += ' ';
        text += std::to_string(thread ? node.process : node.process - max_threads);
        if (!thread) text += '\'';
        if (node.choice != 0) text += "." + std::to_string(node.choice);
    }
    return text;
}

bool Search::parse(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        unsigned process = 0;
        unsigned choice = 0;
        const char* end = word.data() + word.size();
        auto [at, error] = std::from_chars(word.data(), end, process);
        if (error != std::errc{} || process >= max_threads) return false;
        if (at != end && *at == '\'') {
            process += max_threads;
            ++at;
        }
        if (at != end && *at == '.') {
            const auto more = std::from_chars(at + 1, end, choice);
            if (more.ec != std::errc{}) return false;
            at = more.ptr;
        }
        if (at != end) return false;
        replay_.emplace_back(process, choice);
    }
    return !replay_.empty();
}

}  // namespace via::model
