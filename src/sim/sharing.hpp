// Memory that the programs of a world share: segments of theirs, questions for those of peers, and
// what they were given. RDMA to a segment that a VI has goes without frames.
#pragma once

#include "sim/observer.hpp"

namespace via::sim {

class Sharing {
public:
    explicit Sharing(Observer& observer) : observer_(observer) {}

    Result<memory::MemoryHandle> add(Node& node, std::uint64_t begin, std::uint64_t length,
                                     const memory::MemoryAttributes& attributes);
    Status remove(Node& node, const Region& region);
    /// The VI's program asks for a segment, takes the answer, or lets go of one.
    void act(Vi& vi);
    /// A segment of the peer's that the VI asked for and may use so, or nullptr.
    static Region* segment_of(const Vi& vi, bool write);
    /// One that it had asked for and that is no segment any more.
    static std::optional<queue::Segment> gone_segment_of(const Vi& vi);
    /// Before the node closes its NIC, or leaves: nothing is asked for or held any more.
    void end(Node& node);

private:
    void ask(Vi& vi);
    void take_answer(Vi& vi);
    void let_go(Node& node);

    Observer& observer_;
};

}  // namespace via::sim
