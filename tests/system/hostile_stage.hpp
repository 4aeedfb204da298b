// A victim with a healthy connection to a good peer, each a process, and an attacker: us. Whatever
// the attacker does, the healthy connection goes on and nothing else happens.
#pragma once

#include "hostile_attacker.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"

namespace system_test {

/// Shared by victim, good peer and test.
struct HostilePage {
    TrafficPage traffic;                      ///< of the good connection
    std::atomic<std::uint32_t> accepted;      ///< the attacker's VIs that were connected
    std::atomic<std::uint32_t> lost;          ///< of those, now in ERROR
    std::atomic<std::uint32_t> received;      ///< messages delivered on them
    std::atomic<std::uint32_t> done;          ///< descriptors completed on them without error
    std::atomic<std::uint32_t> failed;        ///< and with one
    std::atomic<std::uint64_t> open_address;  ///< memory that peers may write and read
    std::atomic<std::uint32_t> open_handle;
    std::atomic<std::uint64_t> guard_address;  ///< memory that nobody may touch
    std::atomic<std::uint32_t> guard_handle;
};
constexpr std::size_t open_bytes = 65536;
constexpr std::size_t guard_bytes = 65536;

class HostileStage {
public:
    HostileStage();

    HostilePage& page() { return victim_.shared<HostilePage>(); }
    Child& victim() { return victim_; }
    std::unique_ptr<Attacker> attacker() const;

    /// The good connection has moved on since the call, undamaged.
    void expect_undisturbed(Where where = Where::current());
    /// No byte of the guarded memory has changed; nor of the open one unless it may have.
    void expect_intact(bool open_too = true, Where where = Where::current());
    /// The victim's log holds `text`, or will in a moment.
    void expect_log(const std::string& text, Where where = Where::current());
    std::string log() const;
    void expect_lost(std::uint32_t vis, Where where = Where::current());
    /// The victim holds what it held before the first attacker came.
    void expect_given_back(Where where = Where::current());
    std::size_t victim_rss_kib() const { return Holdings::of(victim_.pid()).rss_kib; }
    /// Tells the victim to do something on the attacker's VI that was connected last.
    void order(const std::string& command, Where where = Where::current());
    /// Everybody ends in good order.
    void end(Where where = Where::current());

private:
    Host host_;
    std::string log_path_;
    Child victim_;
    Child good_;
    Holdings before_;
};

}  // namespace system_test
