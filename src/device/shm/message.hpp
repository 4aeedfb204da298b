// Sending and receiving one message of a channel's Unix socket, descriptors included.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "device/shm/hello.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// The most that a message carries.
constexpr std::size_t descriptors_max = 4;

/// One received message. Descriptors that came with it are closed with it.
class Message {
public:
    explicit Message(System& system) : system_(system) {}
    ~Message();
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    /// Without waiting; once per object. errno, or 0; end of file is an empty message.
    int receive(int socket);

    std::span<const std::byte> bytes() const { return {bytes_, length_}; }
    std::span<const int> descriptors() const { return {descriptors_, descriptor_count_}; }
    /// Something attached was dropped, most likely because we are out of descriptors.
    bool cut() const { return cut_; }

private:
    System& system_;
    alignas(8) std::byte bytes_[message_max];
    std::size_t length_ = 0;
    int descriptors_[descriptors_max];
    std::size_t descriptor_count_ = 0;
    bool cut_ = false;
};

/// Without waiting, with `descriptors` attached. errno, or 0.
int send_message(System& system, int socket, std::span<const std::byte> bytes,
                 std::span<const int> descriptors = {});

/// Tells the peer why it is left. If that cannot be sent, the closed socket says enough.
void say_goodbye(System& system, int socket, std::string_view text);

/// True when `error` of a socket call says that the peer is no longer there.
bool means_gone(int error);

}  // namespace via::device::shm
