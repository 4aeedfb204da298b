// The live counters of an open NIC, readable from outside: a sealed memory file that its owner
// writes and other processes of the same user map read-only (`via stat`). Who asks for it is also
// told how the NIC's packets go to its peers just then.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/file.hpp"
#include "agent/same_file.hpp"
#include "base/counters.hpp"
#include "device/types.hpp"

namespace via::agent {

/// What the memory file holds. Written once at opening, but for the counters.
struct StatisticsPage {
    static constexpr std::uint64_t magic_value = 0x3254415453414956ULL;  // "VIASTAT2"
    std::uint64_t magic;
    std::uint32_t counter_count;
    std::uint32_t process;
    std::uint64_t opened_at;  ///< seconds since 1970
    char name[64];            ///< of the NIC, zero-terminated
    char program[64];         ///< of the process, zero-terminated
    alignas(64) Counters counters;
};

/// What a caller is told besides.
struct WaysNow {
    std::vector<device::Way> ways;
    std::size_t all = 0;  ///< more than ways.size(): these are too many to be told
};

/// The page's owner. Everything but counters() is for one thread at a time.
class Statistics {
public:
    /// Makes the page and a socket in `directory` that hands it out to processes of this user.
    /// error: what failed, why and what to do.
    static std::expected<std::unique_ptr<Statistics>, std::string> open(
        const std::string& directory, const std::string& nic_name);
    /// Removes the socket, but in a forked child.
    ~Statistics();
    Statistics(const Statistics&) = delete;
    Statistics& operator=(const Statistics&) = delete;

    /// Of the socket.
    const std::string& path() const { return path_; }
    /// Is the socket where readers look for it? Not once a cleaner of temporary files took it away.
    bool is_known() const;
    /// Makes it anew, in `directory`. As open(); the former one stays if that fails.
    std::expected<void, std::string> make_known(const std::string& directory);

    Counters& counters() { return page_->counters; }
    /// The NIC is closed: removes the socket and gives the descriptors back. The page stays, for a
    /// late call that still counts.
    void retire();
    /// False: our descriptors are closed, and their numbers perhaps others'. The program did that
    /// (closefrom(3)).
    bool has_its_descriptors() const;
    /// Readable when somebody asks for the page. Stays the same.
    int descriptor() const { return knocks_.get(); }
    /// Answers all who ask now; without descriptors to spare it turns them away. Never blocks, and
    /// leaves descriptor() unreadable until somebody new asks or work is left. `ways_now` is asked
    /// for at most ways_max of them, once for each caller.
    static constexpr std::size_t ways_max = 1024;
    using AskForWays = std::function<WaysNow()>;
    void answer(const AskForWays& ways_now = [] { return WaysNow{}; });

private:
    Statistics() = default;
    std::expected<void, std::string> make_page(const std::string& nic_name);
    std::expected<void, std::string> listen(const std::string& directory);
    std::expected<void, std::string> watch_callers();
    void hand_out(int peer, const AskForWays& ways_now);
    bool turn_away(int error);

    StatisticsPage* page_ = nullptr;
    File file_;  ///< of the page, read-only: what others get
    File listener_;
    File knocks_;   ///< an epoll that tells each new caller once, so that none can make us spin
    File reserve_;  ///< given up for a moment to turn callers away
    pid_t owner_ = 0;
    SameFile same_file_;  ///< as file_, whatever has its number
    std::string path_;    ///< of the socket
};

/// Another process's page, mapped read-only. It may change at any moment, in every byte.
class StatisticsView {
public:
    StatisticsView(const StatisticsPage* page, int process, WaysNow ways)
        : page_(page), process_(process), ways_(std::move(ways)) {}
    ~StatisticsView();
    StatisticsView(StatisticsView&& other) noexcept;
    StatisticsView& operator=(StatisticsView&& other) noexcept;
    StatisticsView(const StatisticsView&) = delete;
    StatisticsView& operator=(const StatisticsView&) = delete;

    /// Whose it is, by the kernel's word.
    int process() const { return process_; }
    std::uint64_t opened_at() const {
        return atomic_load_at(&page_->opened_at, std::memory_order_relaxed);
    }
    /// Copies; only printable characters.
    std::string nic_name() const;
    std::string program() const;
    const Counters& counters() const { return page_->counters; }
    /// As of when it was asked.
    const WaysNow& ways() const { return ways_; }

private:
    const StatisticsPage* page_;
    int process_;
    WaysNow ways_;
};

/// The pages of all NICs open now under `directory`, by process and time of opening. Sockets of
/// dead processes are removed; a process that does not answer within a second, or answers
/// anything but such a page, is left out with a line in the log. `complete`, unless null: whether
/// none was, nor any overlooked.
std::vector<StatisticsView> find_statistics(const std::string& directory, bool* complete = nullptr);

}  // namespace via::agent
