// What answers are made with: designs by their words, measured as they are asked for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/study/bench.hpp"
#include "lab/study/today.hpp"

namespace via::lab::study {

struct Proposal {
    const char* name;
    std::string_view words;
};

class Asking {
protected:
    /// Microseconds of a latency; none where the design cannot be, for instance for its memory.
    std::optional<double> us(const Trial& trial, const Question& question) {
        const auto found = latency(trial, question);
        if (found) return found->mean_ns / 1e3;
        refusal_ = found.error();
        return std::nullopt;
    }
    /// The machine's own design, but for those words.
    Trial trial_of(const Machine& machine, std::string_view words, std::int64_t vis) {
        Trial trial{machine, machine.design, {vis, 1 << 20}, {}};
        const auto added = design::add(trial.design, words);
        if (!added) trial.design.clear();  // can be nowhere, then
        return trial;
    }
    void add(Curve curve) {
        if (curve.x.empty())
            answer_.findings.push_back(curve.name + " is nowhere: " + refusal_);
        else
            answer_.curves.push_back(std::move(curve));
    }
    /// The first text, unless there are no curves at all.
    std::expected<Answer, std::string> take() {
        if (answer_.curves.empty()) return std::unexpected(refusal_);
        return std::move(answer_);
    }
    void find(std::string sentence) { answer_.findings.push_back(std::move(sentence)); }

    Answer answer_;
    std::string refusal_;
};

}  // namespace via::lab::study
