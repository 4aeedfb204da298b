// Taking completed descriptors back, from their queues or by completion queues.
#pragma once

#include "sim/places.hpp"

namespace via::sim {

class Taking {
public:
    Taking(Observer& observer, Places& places) : observer_(observer), places_(places) {}

    /// Some, at random.
    void take(Node& node);
    void take_all(Node& node);

private:
    void take_from(Vi& vi, Queue& queue);
    void take_by_queue(Node& node, std::uint64_t name);
    void on_taken(Vi& vi, Queue& queue, void* descriptor);

    Observer& observer_;
    Places& places_;
};

}  // namespace via::sim
