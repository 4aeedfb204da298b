// A host as its programs see it, whatever lies below: posts, and waiting for what they become.
#pragma once

#include <cstdint>

#include "lab/adapter.hpp"
#include "lab/packet.hpp"
#include "lab/task.hpp"

namespace via::lab {

class Station {
public:
    virtual ~Station() = default;
    /// That VI is connected with the VI of the same number there.
    virtual void connect(ViId vi, NodeId peer) = 0;
    virtual Task<> post_send(ViId vi, Buffer buffer, MessageId message) = 0;
    virtual Task<> post_receive(ViId vi, Buffer buffer) = 0;
    /// Waits until a message is there, and the program has seen it among `queues` work queues.
    virtual Task<MessageId> receive(ViId vi, std::int64_t queues) = 0;
    /// A message is there that no receive() has taken.
    virtual bool holds(ViId vi) const = 0;
    /// The same as receive() for a send.
    virtual Task<MessageId> sent(ViId vi, std::int64_t queues) = 0;
    /// On which its programs run.
    virtual ResourceId processor() const = 0;
    /// Of its adapter; nothing has happened where there is none.
    virtual AdapterCounts counts() const { return {}; }
};

}  // namespace via::lab
