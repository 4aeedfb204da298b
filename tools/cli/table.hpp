// A table in columns that are as wide as they have to be.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace via::cli {

class Table {
public:
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    /// The first column to the left, the others to the right unless `left`.
    std::string text(bool left = false) const {
        std::vector<std::size_t> widths;
        for (const auto& row : rows_) {
            widths.resize(std::max(widths.size(), row.size()));
            for (std::size_t n = 0; n < row.size(); ++n)
                widths[n] = std::max(widths[n], row[n].size());
        }
        std::string all;
        for (const auto& row : rows_) {
            std::string line;
            for (std::size_t n = 0; n < row.size(); ++n) {
                const bool to_left = left || n == 0;
                line += to_left ? fmt::format("{:<{}}", row[n], widths[n])
                                : fmt::format("{:>{}}", row[n], widths[n]);
                line += "  ";
            }
            line.erase(line.find_last_not_of(' ') + 1);
            all += line + '\n';
        }
        return all;
    }

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace via::cli
