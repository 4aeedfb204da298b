// What one process posted on its VIs and was given back, told to the simulator's checker of
// completions; and of every message a digest, so that what one process sent can be held against
// what another received (compare.py).
#pragma once

#include <vipl.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "sim/check_completion.hpp"

namespace via::witness {

/// Messages of one direction of one connection, in order: how many, and a digest of them all.
class Chain {
public:
    /// Digests before the last are kept for so many: what was under way when all ended.
    static constexpr std::size_t kept = 4096;

    void add(std::uint64_t digest);
    std::uint64_t count() const { return count_; }
    /// After `back` messages less.
    std::uint64_t digest(std::uint64_t back = 0) const { return last_[(count_ - back) % kept]; }

private:
    std::uint64_t count_ = 0;
    std::array<std::uint64_t, kept> last_{};
};

/// Any thread: whoever calls holds the VI's lock over the call that it tells of.
class Ledger {
public:
    struct Posted {
        VIP_DESCRIPTOR* descriptor;
        sim::WorkNumber work;
    };
    struct Vi {
        std::mutex lock;
        sim::ViNumber number = 0;
        VIP_RELIABILITY_LEVEL level = 0;
        std::deque<Posted> posted[2];  ///< sends, receives
        Chain sent, received;
    };

    void made(VIP_VI_HANDLE handle, VIP_RELIABILITY_LEVEL level);
    /// nullptr: it was made before anybody watched.
    Vi* find(VIP_VI_HANDLE handle);
    /// What its last connection carried is written down; this one begins anew.
    void connecting(Vi& vi);
    void destroyed(VIP_VI_HANDLE handle);

    /// What a descriptor looks like before it is posted: the post and the NIC write to it.
    struct Intent {
        std::uint32_t operation = 0;
        std::uint64_t digest = 0;
        bool message = false;  ///< consumes a receive of the peer's
    };
    static Intent intent(const VIP_DESCRIPTOR& descriptor, bool receive);
    void posted(Vi& vi, bool receive, VIP_DESCRIPTOR* descriptor, const Intent& intent);
    void given_back(Vi& vi, bool receive, VIP_DESCRIPTOR* descriptor);

    /// Everything, at the end of the process.
    void write();
    explicit Ledger(std::string path) : path_(std::move(path)) {}

private:
    void tell(const sim::Happening& what);
    void write_down(const Vi& vi);

    std::mutex lock_;  ///< of all below
    std::string path_;
    std::map<VIP_VI_HANDLE, Vi> vis_;
    sim::CheckCompletion completions_;
    sim::ViNumber vis_made_ = 0;
    sim::WorkNumber works_ = 0;
    std::uint64_t given_back_ = 0;
    std::string lines_;
};

}  // namespace via::witness
