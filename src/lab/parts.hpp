// What can be exchanged in a NIC: five small interfaces. Each alternative is one file of
// lab/design, and a line in its list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lab/packet.hpp"
#include "lab/task.hpp"

namespace via::lab {

class Adapter;
class Host;

/// What a NIC has to keep for its programs.
struct Load {
    std::int64_t vis = 1;
    std::int64_t registered = 0;  ///< bytes
};

/// A part takes memory of the NIC.
class Part {
public:
    virtual ~Part() = default;
    virtual std::int64_t nic_memory(const Load& load) const = 0;
};

/// From the program's addresses to those of the bus.
class Translation : public Part {
public:
    /// Posts go through the kernel for it.
    virtual bool in_kernel() const = 0;
    /// Does the physical descriptor have an address for each page, or one for the buffer?
    virtual bool piece_per_page() const = 0;
    /// Time of the NIC until it knows where that page lies.
    virtual Task<> on_nic(Adapter& adapter, std::int64_t address, MessageId message) = 0;
};

/// How the NIC learns of a descriptor that was posted to a send queue.
class Doorbell : public Part {
public:
    virtual bool in_kernel() const = 0;
    /// Time of the host; may wait until the NIC has seen a former one.
    virtual Task<> ring(Host& host, ViId vi, MessageId message) = 0;
    /// Time of the NIC; which VI has work.
    virtual Task<std::optional<ViId>> look(Adapter& adapter) = 0;
};

/// How a descriptor comes to the NIC.
class Descriptors : public Part {
public:
    /// Descriptors of a queue that the NIC can hold; what is more waits in the host.
    virtual std::int64_t capacity(bool receive) const = 0;
    virtual std::int64_t watermark() const = 0;
    /// Time of the host, for one descriptor that the NIC has room for.
    virtual Task<> post(Host& host, const PhysicalDescriptor& descriptor) = 0;
    /// Time of the NIC until it knows what is in it.
    virtual Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool receive) = 0;
};

/// How a program learns of what is done.
class Completions : public Part {
public:
    /// Status, length and whatever the program looks at, to the host; time of the NIC. `landed` is
    /// called when the program can see it.
    virtual Task<> on_nic(Adapter& adapter, MessageId message, std::function<void()> landed) = 0;
    /// Time of the host to find it among `queues` work queues.
    virtual Task<> on_host(Host& host, std::int64_t queues, MessageId message) = 0;
};

/// How a message's bytes come to the NIC.
class Payload : public Part {
public:
    /// Within the descriptor, by programmed I/O.
    virtual bool inside(std::int64_t length) const = 0;
};

struct Design {
    std::unique_ptr<Translation> translation;
    std::unique_ptr<Doorbell> doorbell;
    std::unique_ptr<Descriptors> descriptors;
    std::unique_ptr<Completions> completions;
    std::unique_ptr<Payload> payload;
    std::int64_t packet = 0;  ///< bytes of payload in a packet

    std::int64_t nic_memory(const Load& load) const {
        return translation->nic_memory(load) + doorbell->nic_memory(load) +
               descriptors->nic_memory(load) + completions->nic_memory(load) +
               payload->nic_memory(load);
    }
};

/// Mechanisms that a test takes away, to see what depends on them.
struct Without {
    bool page_boundaries = false;  ///< packets cross pages
    bool fifo_end = false;         ///< the Send-FIFO holds everything
    bool refills = false;          ///< the NIC never asks for descriptors
    bool missed_looks = false;     ///< the firmware waits for a DMA instead of going round
    bool leaving = false;          ///< a send is over before its last packet has left
};

}  // namespace via::lab
