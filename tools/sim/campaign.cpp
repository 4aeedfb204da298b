#include "campaign.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

namespace via::sim_tool {

namespace {

/// TIME TREE MEDIUM FIRST..LAST COUNT worlds, BAD bad, ...
bool parse(const std::string& line, std::string& medium, Block& block, bool& good) {
    std::istringstream words(line);
    std::string time;
    std::string tree;
    std::string range;
    std::string count;
    std::string unit;
    std::uint64_t bad = 0;
    if (!(words >> time >> tree >> medium >> range >> count >> unit >> bad)) return false;
    good = bad == 0;
    unsigned long long first = 0;
    unsigned long long last = 0;
    if (std::sscanf(range.c_str(), "%llu..%llu", &first, &last) != 2) return false;
    block = {first, last};
    return first <= last;
}

}  // namespace

bool Campaign::read() {
    std::ifstream stream(file_);
    for (std::string line; std::getline(stream, line);) {
        std::string medium;
        Block block{};
        bool good = false;
        if (!parse(line, medium, block, good)) return false;
        if (good && medium == medium_) done_.push_back(block);
    }
    return !stream.bad();
}

bool Campaign::next(const Block& all, std::uint64_t length_max, Block& block) const {
    std::vector<Block> done = done_;
    std::sort(done.begin(), done.end(),
              [](const Block& a, const Block& b) { return a.first < b.first; });
    block = {all.first, all.last};
    for (const Block& each : done) {
        if (each.last < block.first) continue;
        if (each.first > block.first) {
            block.last = std::min(block.last, each.first - 1);
            break;
        }
        block.first = each.last + 1;
    }
    if (block.first > all.last) return false;
    block.last = std::min(block.last, block.first + length_max - 1);
    return true;
}

bool Campaign::note(const Block& block, const std::vector<std::uint64_t>& bad, double seconds) {
    done_.push_back(block);
    std::FILE* file = std::fopen(file_.c_str(), "a");
    if (file == nullptr) return false;
    fmt::print(file, "{:%Y-%m-%dT%H:%M:%SZ} {} {} {}..{} {} worlds, {} bad, {:.1f} s",
               fmt::gmtime(std::time(nullptr)), tree_, medium_, block.first, block.last,
               block.last - block.first + 1, bad.size(), seconds);
    for (const std::uint64_t seed : bad) fmt::print(file, " {}", seed);
    fmt::print(file, "\n");
    const bool written = std::ferror(file) == 0;
    return std::fclose(file) == 0 && written;
}

}  // namespace via::sim_tool
