// Atomic operations: each is carried out exactly once, all of a word one after the other, and
// brings the word as it was before it. Those that the program did not hear of were carried out or
// were not.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/checker.hpp"

namespace via::sim {

class CheckAtomics final : public Checker {
public:
    const char* name() const override { return "atomics"; }
    void observe(const Event& event) override;
    void finish(Time now) override;

private:
    /// The word grew from one to the other, by that operation.
    struct Growth {
        std::uint64_t from;
        std::uint64_t to;
        WorkNumber work;
    };
    struct Word {
        std::uint64_t first = 0;
        std::optional<std::uint64_t> last;
        std::vector<Growth> growths;
        std::map<ChannelNumber, std::uint64_t> known;  ///< what a channel's next one finds at least
    };
    void on_found(const WordFound& found);
    void check(WordNumber number, Word& word, std::uint64_t unheard);

    std::map<WordNumber, Word> words_;
    std::map<WorkNumber, WordAsked> asked_;  ///< and not heard of
};

}  // namespace via::sim
