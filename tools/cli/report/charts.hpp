// Which pictures the figures of a run deserve, as data; gnuplot.hpp draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/results.hpp"

namespace via::report {

// The figures of one run that may stand in one picture: of one question, unit and mode.
struct Group {
    std::string bench;
    std::string mode;
    std::string unit;
    std::vector<const Figure*> figures;
    std::vector<std::string> varied;  // members of the question that tell figures apart, but size
};

// In the order of the run; modes are never mixed.
std::vector<Group> groups_of(const Run& run);

// The channel, with what tells it from its other lines in this group: "shm block, vis 100".
std::string label_of(const Figure& figure, const Group& group, std::string_view but = {});

// The distinct sizes, ascending; at most `most` of them, those that everybody asks for first.
std::vector<std::uint64_t> sizes_of(const Group& group, std::size_t most);

struct Point {
    double x = 0;
    double y = 0;
    double low = 0;  // the quartiles of y over the rounds
    double high = 0;
};

struct Curve {
    std::string label;
    bool ours = false;
    std::vector<Point> points;
};

struct Axis {
    std::string label;
    bool logarithmic = true;
    bool bytes = false;
};

struct Chart {
    std::string name;  // for a file
    std::string title;
    Axis x, y;
    std::vector<Curve> curves;
};

// How many times as good as each channel ours is, by size.
struct Bars {
    std::string name;
    std::string title;
    std::vector<std::string> channels;
    std::vector<std::string> keys;                           // one bar each
    std::vector<std::vector<std::optional<double>>> values;  // by channel, then key
};

// Over size, or over whatever number else was varied; none where nothing was.
std::optional<Chart> chart_over_size(const Run& run, const Group& group);
// As NetPIPE draws it: a latency's bandwidth over its time.
std::optional<Chart> saturation_chart(const Run& run, const Group& group);
std::optional<Bars> ratio_bars(const Run& run, const Group& group);

}  // namespace via::report
