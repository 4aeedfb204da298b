// Pictures as SVG, drawn by the program gnuplot.
#pragma once

#include <string>
#include <string_view>

#include "report/charts.hpp"

namespace via::report {

// What gnuplot is told. No text from a file of results can leave its quotes.
std::string script_of(const Chart& chart);
std::string script_of(const Bars& bars);

// gnuplot's SVG made fit for a page: whatever was black has the colour of the text around it, ids
// begin with `name`, groups of nothing are gone.
std::string fit_for_page(std::string svg, std::string_view name);

// The same as a file of its own, which follows the reader's choice of light or dark.
std::string fit_for_file(const std::string& svg);

// Runs gnuplot; fails with the package to install, or with what it says.
Result<std::string> draw(const std::string& name, const std::string& script);

}  // namespace via::report
