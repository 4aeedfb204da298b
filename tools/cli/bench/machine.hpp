// What a result was measured on, as one JSON object: machine.json of a suite.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace via::bench {

// One question of a suite, as it was asked and how it ended.
struct AskedQuestion {
    std::string name;     // of its file, without ".jsonl"
    std::string command;  // as one would type it
    int code = 0;         // exit code
    double seconds = 0;
};

// The value of `key` in text of lines "key : value", as /proc/cpuinfo and /proc/meminfo have them;
// empty if it is not there.
std::string value_in(std::string_view lines, std::string_view key);

// Processor, memory, kernel, libraries, compiler, and what was asked; with its end of line.
std::string machine_json(const std::vector<AskedQuestion>& asked, const std::string& options);

}  // namespace via::bench
