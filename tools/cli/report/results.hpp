// What `via bench --json` printed, read back from files. Whoever wrote them is not believed: what
// is no such line is a failure that names file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/types.hpp"

namespace via::report {

using bench::fail;
using bench::Result;
using bench::Status;

// Name and text, in the order of the file.
using Fields = std::vector<std::pair<std::string, std::string>>;

std::string_view value_of(const Fields& fields, std::string_view name);  // empty: not there

// One channel's answer to one question in one mode.
struct Figure {
    std::string bench;
    std::string device;
    std::string version;  // of a program of others, else empty
    std::string mode;
    std::string unit;
    bool ours = false;
    std::uint64_t size = 0;
    Fields question;  // all else that tells the question: op, wait, depth and so on
    double median = 0;
    std::optional<double> p99, p999, cpu_us, probe_ns;
    std::optional<double> ratio;  // ours to this channel's median; ours has none
    std::vector<double> values;   // of the rounds; at least one
    std::uint64_t dropped = 0;
    std::size_t line = 0;  // in the file

    // More is better: all but a time.
    bool more_is_better() const { return unit != "us" && unit != "ns"; }
    bool is_better_than(const Figure& other) const {
        return more_is_better() ? median > other.median : median < other.median;
    }
    std::string_view asked(std::string_view name) const { return value_of(question, name); }
    // And channel, and mode unless it may be any.
    bool same_question(const Figure& other, bool any_mode = false) const;
};

// A line of another schema of ours ("via-bench-register-1"): shown as it is.
struct Note {
    std::string schema;
    Fields fields;  // members of members as "outer.inner"
};

// One file: everything in it was measured in turn, so that its figures may be compared.
struct Run {
    std::string name;  // of the file, without ".jsonl"
    std::vector<Figure> figures;
    std::vector<Note> notes;
};

// The text of a file, for messages called `file`.
Result<Run> parse_run(const std::string& file, std::string_view text);

// A file, or all *.jsonl of a folder by name. Fails when there is none.
Result<std::vector<Run>> read_runs(const std::filesystem::path& place);

// The members of machine.json, those of members as "outer.inner", lists line by line. Nothing if
// the file is not there.
Result<Fields> parse_machine(const std::string& file, std::string_view text);
Result<Fields> read_machine(const std::filesystem::path& folder);

}  // namespace via::report
