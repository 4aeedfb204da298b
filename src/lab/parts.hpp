// What can be exchanged in a NIC: six small interfaces. Each alternative is one file of
// lab/design, and is named in its list (list.cpp) alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lab/lookup.hpp"
#include "lab/packet.hpp"
#include "lab/task.hpp"

namespace via::lab {

/// From the program's addresses to those of the bus.
class Translation : public Part {
public:
    /// Posts go through the kernel for it.
    virtual bool in_kernel() const = 0;
    /// Does the physical descriptor have an address for each page, or one for the buffer?
    virtual bool piece_per_page() const = 0;
    /// Time of the NIC until it knows where that page lies.
    virtual Task<> on_nic(Adapter& adapter, std::int64_t address, MessageId message) = 0;
    /// Bytes of a page of imported memory, whose place and tag the sending NIC looks up; 0: it has
    /// no table of them, and RDMA is the receiver's affair alone.
    virtual std::int64_t import_page() const { return 0; }
    /// Time of the NIC until it knows where that imported page lies.
    virtual Task<> on_import(Adapter&, std::int64_t, MessageId) { co_return; }
    /// From now on only VIs of that process reach these pages, which are the host's, or imported.
    virtual void protect(const Buffer&, std::uint32_t, bool /*imported*/) {}
    /// Do their tags let it?
    virtual bool opens(std::uint32_t, const Buffer&, bool /*imported*/) const { return true; }
    /// Asked of a page of payload before on_nic() is, and instead. nullptr: nothing ever misses.
    virtual Lookup* lookup() { return nullptr; }
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
    /// Within the descriptor, however that comes.
    virtual bool inside(std::int64_t length) const = 0;
    /// Is it copied from there, or sent from where it lies?
    virtual bool copied() const = 0;
};

/// Where a NIC brings the bytes of RDMA: no descriptor of their receiver says where its pages lie.
class Rdma : public Part {
public:
    /// Time of the NIC until it knows where that page lies, or some other place for its bytes.
    virtual Task<> locate(Adapter& adapter, std::int64_t address, MessageId message) = 0;
    /// The bytes are in memory of the kernel then, and the host copies them to where they belong.
    virtual bool host_copies() const = 0;
};

struct Design {
    std::unique_ptr<Translation> translation;
    std::unique_ptr<Doorbell> doorbell;
    std::unique_ptr<Descriptors> descriptors;
    std::unique_ptr<Completions> completions;
    std::unique_ptr<Payload> payload;
    std::unique_ptr<Rdma> rdma;
    std::unique_ptr<Lookup> buffers;
    std::unique_ptr<Lookup> processes;
    bool holds = false;  ///< what misses waits on the NIC, and is not dropped and sent again
    std::int64_t high_water = 0;  ///< pages that stay pinned though the NIC has them no more
    std::int64_t packet = 0;      ///< bytes of payload in a packet
    bool staged = false;  ///< a packet is whole on the NIC before its way to the host begins

    std::int64_t nic_memory(const Load& load) const {
        return translation->nic_memory(load) + doorbell->nic_memory(load) +
               descriptors->nic_memory(load) + completions->nic_memory(load) +
               payload->nic_memory(load) + rdma->nic_memory(load) + lookups_memory(load);
    }
    /// Of it, what handles of buffers and processes take.
    std::int64_t lookups_memory(const Load& load) const {
        return buffers->nic_memory(load) + processes->nic_memory(load);
    }
    /// Can a message find something missing?
    bool dynamic() const {
        return translation->lookup() != nullptr || buffers->dynamic() || processes->dynamic();
    }
};

/// Mechanisms that a test takes away, to see what depends on them.
struct Without {
    bool page_boundaries = false;  ///< packets cross pages
    bool fifo_end = false;         ///< the Send-FIFO holds everything
    bool refills = false;          ///< the NIC never asks for descriptors
    bool missed_looks = false;     ///< the firmware waits for a DMA instead of going round
    bool parking = false;          ///< idle firmware polls event by event
    bool leaving = false;          ///< a send is over before its last packet has left
    bool staging = false;          ///< no packet has to be whole on the NIC before it goes on
    bool copies = false;           ///< the kernel copies nothing
    bool cache_end = false;        ///< processors' caches hold everything
    bool locks = false;            ///< a second processor makes no lock more expensive
    bool interrupts = false;       ///< packets come to the kernel without one
    bool sleeping = false;         ///< who waits is never asleep
    bool misses = false;           ///< every translation is found in the NIC's cache
    bool combining = false;        ///< each word of a window's stores is a burst of its own
    bool barriers = false;         ///< what is stored lands in the order of its stores
};

}  // namespace via::lab
