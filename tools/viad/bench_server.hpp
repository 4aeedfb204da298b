// 'via bench serve' beside the daemon, so that others can measure the way to this host.
#pragma once

#include <sys/types.h>

#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace via::viad {

/// Owns the process, which ends with this object and with the thread that started it.
class BenchServer {
public:
    /// Starts the program `via` of the folder that ours lies in; before other threads. `address`:
    /// HOST[:PORT] of TCP, which it parses itself. Error: why it cannot be started.
    static std::expected<std::unique_ptr<BenchServer>, std::string> start(
        const std::string& address);
    ~BenchServer();
    BenchServer(const BenchServer&) = delete;
    BenchServer& operator=(const BenchServer&) = delete;

    /// How it ended, once it has: after SIGCHLD.
    std::optional<std::string> ended();

private:
    explicit BenchServer(pid_t pid) : pid_(pid) {}

    pid_t pid_;  ///< 0: it has ended
};

}  // namespace via::viad
