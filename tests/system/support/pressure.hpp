// Memory pressure on purpose: a memory control group (version 1 or 2) with little memory, and swap.
// A guardian, a process of its own that outlives a kill of the test, takes both away again.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace system_test {

class Pressure {
public:
    /// A group with `memory` bytes, and at least `swap` bytes of swap; 0: it does not swap.
    Pressure(std::size_t memory, std::size_t swap);
    /// The group's processes must have ended. Returns when all is taken away.
    ~Pressure();
    Pressure(const Pressure&) = delete;
    Pressure& operator=(const Pressure&) = delete;

    /// Why there can be none here; empty: there is.
    const std::string& why_not() const { return why_not_; }
    /// What this process allocates from now on counts for the group.
    void enclose(pid_t pid) const;

private:
    /// What is wrong, or nothing.
    std::string make_group(std::size_t memory, bool swaps);
    std::string make_swap(std::size_t bytes);
    void start_guardian();
    [[noreturn]] void guard(int socket) const;

    /// Directories that may be made, and files.
    struct Group {
        std::string path;
        bool is_first_version;
    };
    std::vector<Group> groups_;
    std::vector<std::string> swap_files_;
    std::string group_;  ///< the one that was made
    std::string why_not_;
    int guardian_ = -1;  ///< a socket to it
};

/// What the page table of a process says of some memory.
struct PageCensus {
    std::size_t present = 0;
    std::size_t swapped = 0;
};
PageCensus census(pid_t pid, std::uint64_t address, std::size_t bytes);
/// The numbers of the page frames of this process's memory, all of it present; empty: it may not
/// see them.
std::vector<std::uint64_t> frames(std::uint64_t address, std::size_t bytes);

}  // namespace system_test
