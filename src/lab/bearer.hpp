// A host as whoever has messages of his own sees it: he knows connections himself, says of each
// message who makes it and where it goes, and hears what has come. Programs of the laboratory's own
// see a Station.
#pragma once

#include <cstdint>
#include <functional>

#include "lab/packet.hpp"
#include "lab/task.hpp"

namespace via::lab {

class Bearer {
public:
    /// Who hears of messages.
    struct Listener {
        std::function<void(MessageId)> received;
        std::function<void(MessageId)> took;  ///< a receive descriptor, for that message
        /// A message finds no receive of its VI: will one come?
        std::function<bool(ViId)> expects;
    };
    virtual ~Bearer() = default;
    /// Once, before there are messages.
    virtual void tell(Listener listener) = 0;
    virtual NodeId node() const = 0;
    /// Time of the host until the program, or the driver, has posted it. It has a target.
    virtual Task<> send(PhysicalDescriptor descriptor, bool by_driver) = 0;
    /// An answer to a message: the program has no part in it.
    virtual void send_own(const PhysicalDescriptor& descriptor) = 0;
    virtual Task<> post_receive(ViId vi, Buffer buffer) = 0;
    /// Receives of a VI that were posted and that no message has taken, but those being written.
    virtual std::int64_t receives_waiting(ViId vi) = 0;
    /// The oldest of them are the program's again.
    virtual void take_back(ViId vi, std::int64_t receives) = 0;
    /// The program looks at a queue.
    virtual Task<> poll() = 0;
    /// A program that waited so long for something goes on.
    virtual Task<> wake(Duration waited) = 0;
};

}  // namespace via::lab
