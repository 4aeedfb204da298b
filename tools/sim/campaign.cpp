#include "campaign.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

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

std::unexpected<std::string> refused(const char* call, int error) {
    return std::unexpected(fmt::format("{}: {}", call, std::strerror(error)));
}

}  // namespace

std::expected<void, std::string> Campaign::read() {
    std::error_code error;
    const auto status = std::filesystem::status(file_, error);
    if (status.type() == std::filesystem::file_type::not_found) return {};
    if (error) return std::unexpected("stat: " + error.message());
    if (!std::filesystem::is_regular_file(status)) return std::unexpected("it is no regular file");
    std::ifstream stream(file_);
    if (!stream) return refused("open", errno);
    std::uint64_t number = 0;
    for (std::string line; std::getline(stream, line);) {
        ++number;
        is_cut_off_ = stream.eof();
        std::string medium;
        Block block{};
        bool good = false;
        if (!parse(line, medium, block, good))
            return std::unexpected(fmt::format("line {} is none of a log: '{}'", number, line));
        if (good && medium == medium_) done_.push_back(block);
    }
    if (stream.bad()) return refused("read", errno);
    return {};
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
        if (each.last >= all.last) return false;
        block.first = each.last + 1;
    }
    // Near the end of all seeds a sum would begin again at 0.
    if (block.last - block.first >= length_max) block.last = block.first + length_max - 1;
    return true;
}

std::expected<void, std::string> Campaign::note(const Block& block,
                                                const std::vector<std::uint64_t>& bad,
                                                double seconds) {
    done_.push_back(block);
    std::string line = is_cut_off_ ? "\n" : "";
    line += fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {}..{} {} worlds, {} bad, {:.1f} s",
                        fmt::gmtime(std::time(nullptr)), tree_, medium_, block.first, block.last,
                        block.last - block.first + 1, bad.size(), seconds);
    for (const std::uint64_t seed : bad) line += fmt::format(" {}", seed);
    line += '\n';
    is_cut_off_ = false;
    std::FILE* file = std::fopen(file_.c_str(), "a");
    if (file == nullptr) return refused("open", errno);
    const bool written = std::fputs(line.c_str(), file) >= 0 && std::fflush(file) == 0;
    const int why = errno;
    std::fclose(file);
    if (!written) return refused("write", why);
    return {};
}

}  // namespace via::sim_tool
