// Who carries parcels instead of the weather: a model of NICs and a network that takes its time by
// itself. It lives on the world's clock: whoever moves that asks for next(), and calls run() first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/address.hpp"
#include "base/extent.hpp"
#include "base/time.hpp"
#include "device/sim/virtual_clock.hpp"
#include "device/sim/weather.hpp"

namespace via::device::sim {

class Fabric;
struct Parcel;

/// What the VIs of a node have posted to receive, as far as nothing has come for it.
class Receives {
public:
    virtual ~Receives() = default;
    /// VIs are numbered from 0; there is none at this one and behind it.
    virtual std::uint32_t vis_end() const = 0;
    virtual std::uint32_t outstanding(std::uint32_t vi) const = 0;
    /// Where the first segment of the nth-oldest of them lies, and how long all are together.
    virtual Extent posted(std::uint32_t vi, std::uint32_t nth) const = 0;
};

class Carrier {
public:
    virtual ~Carrier() = default;
    virtual void join(NodeId node, const HostAddress& address) = 0;
    virtual void leave(NodeId node) = 0;
    /// What the node posts to receive is known from now on, while it is there.
    virtual void attend(NodeId node, const Receives& receives) = 0;
    /// The program of that node looked for completions; its host's processor takes part in that.
    virtual void poll(NodeId node) = 0;
    /// The program of that node waited so long in the kernel for something, and goes on.
    virtual void wake(NodeId node, Duration waited) = 0;
    /// What the node's program began is not over for its host's processor.
    virtual bool busy(NodeId node) const = 0;
    /// Gives it to Fabric::arrive() when it has arrived. Those of a link stay in order.
    virtual void carry(NodeId from, NodeId to, std::unique_ptr<Parcel> parcel) = 0;
    /// When something happens next; never() if nothing will.
    virtual Time next() const = 0;
    /// Lets happen what does by `end`, and moves the clock along. It ends early when a parcel
    /// arrives or a host is no longer busy, and after a while.
    virtual void run(Time end) = 0;
    /// Hosts can import each other's memory.
    virtual bool shares_memory() const { return false; }
    /// The longest that a parcel may be under way by itself.
    virtual Duration one_way_max() const = 0;
};

/// Clock and fabric outlive what it makes.
using CarrierMaker = std::function<std::unique_ptr<Carrier>(VirtualClock& clock, Fabric& fabric,
                                                            std::uint64_t seed)>;

}  // namespace via::device::sim
