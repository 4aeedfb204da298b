// A peer that speaks the channel's protocol by hand, byte by byte, so that it can break every rule
// of it. It has no NIC of ours.
#pragma once

#include <fcntl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/shm/hello.hpp"
#include "device/shm/layout.hpp"
#include "device/shm/ring_reader.hpp"
#include "device/shm/ring_writer.hpp"
#include "support/must.hpp"
#include "wire/frame.hpp"

namespace system_test {

namespace shm = via::device::shm;
namespace wire = via::wire;

/// What memory the attacker offers; by default what a good peer would.
struct Offer {
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    std::size_t bytes = 0;  ///< 0: what the layout demands
    bool header = true;     ///< with the header that the greeting announces
    unsigned memfd_flags = 0;
};

class Attacker {
public:
    /// Of the NIC that process `victim` has open in the directory.
    Attacker(const std::string& meeting_place, pid_t victim);
    ~Attacker();
    Attacker(const Attacker&) = delete;
    Attacker& operator=(const Attacker&) = delete;

    // The socket
    bool dial();
    int socket() const { return socket_; }
    /// A descriptor that lives as long as the attacker.
    int keep(int descriptor);
    int make_memory(const Offer& offer = {});
    int make_mailbox(const Offer& offer = {});
    shm::Hello hello() const;
    bool say(const void* bytes, std::size_t length, const std::vector<int>& descriptors = {});
    bool greet(const shm::Hello& hello, const std::vector<int>& descriptors) {
        return say(&hello, sizeof hello, descriptors);
    }
    /// Next message of the victim, waiting for it; empty: it hung up.
    std::vector<std::byte> hear();
    /// Waits until the victim hung up; what it said as a goodbye or refusal before, if anything.
    std::string hear_the_end();
    bool hung_up() const;
    /// Everything that a good peer does, until the channel is there.
    void enter(Where where = Where::current());

    // The channel, after enter()
    shm::Control& control() const { return *reinterpret_cast<shm::Control*>(memory_); }
    shm::Slot* ring() const {
        return reinterpret_cast<shm::Slot*>(memory_ + shm::Layout::ring_offset);
    }
    std::byte* arena() const { return memory_ + layout.arena_offset(); }
    shm::RingWriter& writer() { return writer_; }
    shm::RingReader& reader() { return reader_; }
    /// Writes a slot as it is and publishes it; `lengths` is the upper half of word 0.
    void write_slot(std::uint32_t lengths, const void* bytes, std::size_t length);
    /// Sends a well-formed frame whose bytes are a header and a payload. False: no room, as long
    /// as we wait.
    bool send(const wire::Header& header, const void* payload = nullptr, std::size_t length = 0);
    bool send_raw(const void* bytes, std::uint32_t length);
    /// The same, but gives up at once when there is no room.
    bool try_send(const wire::Header& header, const void* payload = nullptr,
                  std::size_t length = 0);
    /// Wakes the victim, which may sleep and not see what was sent.
    void wake() const;
    /// Publishes the sleep word "awake" for ever: the victim need not wake us.

    // VIs
    /// Connects a VI of ours, number `own`, to the victim's door; its number over there.
    std::uint32_t connect_vi(VIP_RELIABILITY_LEVEL level, std::uint32_t length,
                             std::uint32_t own = 1, Where where = Where::current());
    bool request_vi(VIP_RELIABILITY_LEVEL level, std::uint32_t length, std::uint32_t own,
                    const std::string& door);
    struct Received {
        wire::Header header;
        std::vector<std::byte> payload;
    };
    /// Next frame of the victim, if there is one.
    std::optional<Received> receive();
    /// Waits for the next frame of that kind; drops others.
    Received wait_frame(wire::FrameKind kind, Where where = Where::current());

    shm::Layout layout{1024, 1U << 20};

private:
    std::string directory_;
    std::string victim_;  ///< its NIC's name
    std::string name_;    ///< path of our own
    int socket_ = -1;
    std::vector<int> kept_;
    int victim_memory_ = -1;
    std::byte* memory_ = nullptr;
    std::size_t memory_bytes_ = 0;
    const std::byte* theirs_ = nullptr;
    std::size_t theirs_bytes_ = 0;
    std::unique_ptr<std::uint64_t[]> shadow_;
    shm::RingWriter writer_;
    shm::RingReader reader_;
};

}  // namespace system_test
