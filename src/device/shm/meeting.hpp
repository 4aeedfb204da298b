// How peers are found and let in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/shm/channels.hpp"
#include "device/shm/handshake.hpp"
#include "device/shm/rendezvous.hpp"
#include "device/shm/reports.hpp"
#include "device/shm/shm_config.hpp"
#include "device/shm/system.hpp"
#include "device/shm/wait_set.hpp"

namespace via::device::shm {

/// Owns our names in the directory, and the peers that have no path yet.
class Meeting {
public:
    /// `may_have_deadline`: becomes true with each new deadline.
    Meeting(const ShmConfig& config, System& system, WaitSet& wait_set, Channels& channels,
            Reports& reports, bool& may_have_deadline);
    /// First the names, so that nobody comes any more.
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    Outcome<void> open();
    /// Our name in the directory.
    const std::string& name() const { return rendezvous_->name(); }

    /// As in device.hpp.
    void resolve(const NetAddress& remote, std::uint64_t cookie);
    Status listen(const Discriminator& discriminator);
    void unlisten(const Discriminator& discriminator) { rendezvous_->unlisten(discriminator); }

    // With each service(), in this order ----------------------------------------------------------
    /// What was put off: accepting, a look at our names.
    void begin_service(Time now);
    /// Events of the wait handle.
    void accept_peers();
    void run_handshake(std::uint32_t id);
    void expire_handshakes();

    Time next_deadline() const;

private:
    using Handshakes = std::map<std::uint32_t, Handshake>;

    void push_unresolved(std::uint64_t cookie, Status status) {
        channels_.push({PathEventKind::unresolved, 0, status, cookie});
    }
    // Names
    void look_at_names();
    void make_known();
    // Handshakes
    void begin_handshake(Handshake handshake);
    void fail_handshake(Handshakes::iterator at, const Breakdown& why);
    void finish_handshake(Handshakes::iterator at);
    bool watch(Handshake& handshake, PathId path, std::uint32_t serial);
    // Peers that come
    void admit(Descriptor socket);
    bool is_crowded(std::int32_t pid) const;
    void drop_oldest_handshake();
    bool is_programs(int descriptor) const;
    void say_short_of_descriptors();
    bool accept_failed(int error);
    int turn_one_away();
    bool watch_listener();
    void pause_accepting();
    void resume_accepting();

    const ShmConfig& config_;
    System& system_;
    WaitSet& wait_set_;
    Channels& channels_;
    Reports& reports_;
    bool& may_have_deadline_;
    Layout layout_;
    std::unique_ptr<Rendezvous> rendezvous_;
    Descriptor reserve_;  ///< given up to turn away a peer when descriptors run out
    Handshakes handshakes_;
    std::uint32_t serial_ = 0;  ///< tells later users of a path, and handshakes, apart
    Time now_{};                ///< of the last service()
    Time accept_deadline_ = Time::never();
    Time names_look_{};  ///< due while somebody may look for us
    bool short_of_descriptors_ = false;
};

}  // namespace via::device::shm
