// Reads what programs of others print, and believes it only as far as it makes sense.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/types.hpp"

namespace via::bench {

// The parts between any characters of `at`; no empty ones.
std::vector<std::string_view> split(std::string_view text, std::string_view at);

// Finite and positive, or 0.
double positive_number_in(std::string_view text);

// A line of names and the line of numbers below it.
class PrintedRow {
public:
    // The first line that begins with `first_name`, and the next; nothing if there is no number
    // for each name.
    PrintedRow(std::string_view printed, std::string_view first_name, std::string_view between);
    // 0: there is none, or it is not positive.
    double number(std::string_view name) const;

private:
    std::vector<std::string_view> names_;
    std::vector<std::string_view> numbers_;
};

// Two readings of one thing that differ by no more than `part` of it.
bool agree(double a, double b, double part);

std::unexpected<Failure> makes_no_sense(std::string_view program, std::string_view printed);

}  // namespace via::bench
