// The published VIA benchmarks, in a fixed list: what `via bench suite` runs.
#pragma once

#include <string>
#include <vector>

namespace via::bench {

// Goes into a file of its own. Variants are commands one after the other; only a question without
// them is asked of other channels too, so that nobody answers the same twice in one file.
struct SuiteQuestion {
    std::string name;
    std::vector<std::string> words;                  // of the command, from "latency" on
    std::vector<std::vector<std::string>> variants;  // further words, a command each
    bool compared = false;
    bool in_segments = false;           // needs segments that both sides have
    std::vector<std::string> beside{};  // channels always compared with, on one host only
};

// `quick`: few sizes and few of the variants.
std::vector<SuiteQuestion> suite_questions(bool quick);

// Its commands, whole: words, the words of a variant, `common`, the channels it is compared with,
// of which `against` are those wanted, and "--json".
std::vector<std::vector<std::string>> commands_of(const SuiteQuestion& question,
                                                  const std::vector<std::string>& common,
                                                  const std::vector<std::string>& against,
                                                  bool one_host = true);

// As one would type it in a shell, for words without blanks.
std::string joined(const std::vector<std::string>& words);

}  // namespace via::bench
