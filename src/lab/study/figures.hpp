// What makes rows of figures.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lab/study/rows.hpp"

namespace via::lab::study {

inline std::string text_of(double value, const char* unit) {
    if (!std::isfinite(value)) return std::string("no ") + unit;
    char text[48];
    std::snprintf(text, sizeof text, "%.4g %s", value, unit);
    return text;
}

inline std::string percent(double ours, double paper) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f %%", (ours / paper - 1) * 100);
    return text;
}

inline bool within(double ours, double paper, double part) {
    return std::abs(ours / paper - 1) <= part;
}

/// Rows of one paper or machine. What is a figure is reproduced within a part of it.
class Figures {
protected:
    void add(Row row) { rows_.push_back(std::move(row)); }
    void add_figure(const char* figure, double paper, const char* unit, const char* place,
                    double ours, double part, bool calibrated = false, const char* note = "",
                    bool expected = true) {
        char bound[32];
        std::snprintf(bound, sizeof bound, "%g %%", part * 100);
        add({figure, text_of(paper, unit) + " (" + place + ")", text_of(ours, unit),
             percent(ours, paper), bound, calibrated, within(ours, paper, part), expected, note});
    }
    std::vector<Row> take() { return std::move(rows_); }

private:
    std::vector<Row> rows_;
};

}  // namespace via::lab::study
