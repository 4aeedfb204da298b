// The report as a list of blocks, which html_of and markdown_of write down.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/charts.hpp"

namespace via::report {

/// Text as HTML and SVG want it.
std::string escaped_markup(std::string_view text);

struct Heading {
    int level = 2;
    std::string text;
};

struct Paragraph {
    std::string text;
};

struct Table {
    std::string summary;  // what a long one is folded under
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    std::vector<bool> ours;  // rows to stress; as many as rows
    bool is_long() const { return rows.size() > 24; }
    void add(std::vector<std::string> row, bool is_ours = false) {
        rows.push_back(std::move(row));
        ours.push_back(is_ours);
    }
};

struct Commands {
    std::vector<std::string> lines;
};

struct Picture {
    std::string name;
    std::string title;
    std::string svg;  // fit for a page
};

using Block = std::variant<Heading, Paragraph, Table, Commands, Picture>;

struct Page {
    std::string title;
    std::vector<Block> blocks;
};

// Draws the pictures of a chart or of bars; injected, so that a page can be made without gnuplot.
using Draw = Result<std::string> (*)(const std::string& name, const std::string& script);

Result<Page> page_of(const std::vector<Run>& runs, const Fields& machine, Draw draw);

// One page that needs nothing else.
std::string html_of(const Page& page);

// `pictures` is the folder of the pictures' files as the Markdown file sees it.
std::string markdown_of(const Page& page, const std::string& pictures);

}  // namespace via::report
