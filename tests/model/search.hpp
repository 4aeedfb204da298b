#pragma once
// Which executions to run: depth first, from the start each time. Source sets with sleep sets
// (dynamic partial order reduction) leave out interleavings that are equal to one that is run.

#include <string>
#include <vector>

#include "checker.hpp"
#include "clock.hpp"
#include "world.hpp"

namespace via::model {

class Search {
public:
    Search(const ErasedProgram& program, const Options& options);
    Result run();

private:
    // The state before a step, and the step taken from it at present.
    struct Node {
        ProcessSet enabled = 0;
        ProcessSet sleep = 0;      // all that starts with these has been seen elsewhere
        ProcessSet backtrack = 0;  // to be tried from here
        ProcessSet done = 0;       // tried
        unsigned process = 0;
        unsigned choice = 0;
        unsigned choices = 1;
        bool analysed = false;  // the rest is known
        Footprint print;
        StepClock past;   // what decides the choices
        StepClock clock;  // all that the step depends on, and itself
        int preemptions = 0;
        unsigned last_thread = max_threads;
    };
    enum class End { complete, cut, failed };

    bool reducing() const { return options_.reduction && options_.preemption_bound < 0; }
    End execute(bool tracing);
    bool open(ProcessSet enabled, ProcessSet sleep);
    ProcessSet affordable(const Node& node) const;
    void analyse(std::size_t depth);
    void reverse(std::size_t earlier, std::size_t later);
    StepClock dependencies(std::size_t depth, StepClock clock);
    StepClock choice_dependencies(std::size_t depth, StepClock clock, unsigned variable) const;
    ProcessSet still_asleep(const Node& node);
    bool advance();
    void finish_failure(Result& result);
    std::string schedule() const;
    bool parse(const std::string& text);

    const ErasedProgram& program_;
    Options options_;
    World world_;
    std::vector<Node> nodes_;
    std::vector<std::pair<unsigned, unsigned>> replay_;
    std::vector<std::size_t> races_;  // of the step analysed last
    std::uint64_t steps_ = 0;
};

const char* memory_name(Memory memory);

}  // namespace via::model
