// The log of a search over many seeds: a line for each block of worlds that is done, with the time,
// the tree and what came of it. A search that was interrupted goes on where its log ends, and does
// again what was bad.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace via::sim_tool {

struct Block {
    std::uint64_t first;
    std::uint64_t last;
};

class Campaign {
public:
    /// `tree`: what ran, as the log shall name it; one word.
    Campaign(std::string file, std::string medium, std::string tree)
        : file_(std::move(file)), medium_(std::move(medium)), tree_(std::move(tree)) {}

    /// Reads what was done before; a log that is not there yet is empty. error: why it cannot be
    /// read, or which line is none of ours.
    std::expected<void, std::string> read();
    /// The first worlds among those that were not done, at most `length_max`; nothing left: false.
    bool next(const Block& all, std::uint64_t length_max, Block& block) const;
    /// Appends the line of a block. error: why it could not be written.
    std::expected<void, std::string> note(const Block& block, const std::vector<std::uint64_t>& bad,
                                          double seconds);

private:
    std::string file_;
    std::string medium_;
    std::string tree_;
    bool is_cut_off_ = false;  ///< its last line has no end
    std::vector<Block> done_;  ///< of our medium, good or in this run
};

}  // namespace via::sim_tool
