// What the programs of a world do: any call that a program may make, at random, with faults on
// purpose where the parameters say so. It knows what each call must answer and tells the checkers.
#pragma once

#include <optional>

#include "sim/observer.hpp"
#include "sim/parameters.hpp"
#include "sim/places.hpp"
#include "sim/sharing.hpp"
#include "sim/taking.hpp"

namespace via::sim {

class Workload {
public:
    Workload(const Parameters& parameters, Model& model, Observer& observer,
             const device::sim::VirtualClock& clock, const Medium& medium)
        : parameters_(parameters),
          model_(model),
          observer_(observer),
          clock_(clock),
          medium_(medium),
          sharing_(observer),
          places_(parameters, model, observer),
          taking_(observer, places_) {}

    /// Regions and a completion queue or two, so that there is something to begin with.
    void furnish(Node& node);
    /// One action of the node's program. True: it closes its NIC, which the world does.
    bool step(Node& node);

    // The end of a run
    void take_all(Node& node) { taking_.take_all(node); }
    void disconnect_all(Node& node);
    /// Posts the receives that messages wait for, or parts the two.
    void feed(Node& node);
    /// Answers and calls off what waits.
    void decline_all(Node& node);
    /// Gives everything back; each call must succeed.
    void dismantle(Node& node);

private:
    // workload_connect.cpp
    void make_vi(Node& node);
    void destroy_vi(Node& node);
    void destroy(Vi& vi);
    void listen(Node& node);
    void stop_listening(Node& node, std::size_t index);
    void answer(Node& node);
    void accept(Node& node, const Offer& offer);
    NetAddress somewhere(Node& node);
    Status listen_must_answer(const Node& node, const Discriminator& discriminator) const;
    void connect(Node& node);
    void connect_peers(Node& node);
    void connect_peer(Vi& vi, Vi& other);
    void disconnect(Vi& vi);

    // workload_memory.cpp
    void change_memory(Node& node);
    void add_region(Node& node);
    void change_region(Node& node, Region& region);
    void drop_region(Node& node, Region& region);
    void forget_dead_regions(Node& node);
    static void trouble(Node& node, const Region& region);
    static void trouble(Node& node, const Window& window);
    void end_window(Node& node, std::size_t index);
    void change_queues(Node& node);

    // workload_post.cpp
    /// A descriptor before its post.
    struct Draft {
        Work* work;
        queue::ControlSegment control;
        std::optional<queue::Segment> remote;
        std::uint32_t fault;
    };
    void post_nonsense(Vi& vi);
    void write_descriptor(Draft& draft, bool full);
    Status post_together(Vi& vi, bool receive, std::span<const Draft> drafts, std::size_t& posted);
    void post(std::span<Draft> drafts);
    std::uint32_t spoil(Work& work, queue::ControlSegment& control,
                        std::vector<queue::Segment>& segments);
    void open_for(Work& work);
    void begin(Work& work, ViState state, std::uint32_t fault, const queue::Segment* remote);

    // workload_shared.cpp
    void make_shared(Node& node);
    void attach(Vi& vi);
    void post_shared(Node& node);
    void use_limit(Node& node);
    void destroy_shared(Node& node);

    // workload_atomic.cpp
    Word* word_for(const Vi& there);
    void post_atomic(Vi& vi);

    // workload_draft.cpp
    void post_some(Vi& vi, bool receive);
    bool draft_receive(Vi& vi, std::vector<Draft>& drafts);
    bool draft_send(Vi& vi, std::vector<Draft>& drafts);
    bool aim(Work& work, bool faulty, queue::Segment& remote);
    std::size_t receives_left(const Vi& vi) const;

    Vi* idle_vi(Node& node, const engine::RemoteAttributes* like);
    void expect(const char* what, Status got, Status expected) {
        observer_.expect(what, got, expected);
    }

    const Parameters& parameters_;
    Model& model_;
    Observer& observer_;
    const device::sim::VirtualClock& clock_;
    const Medium& medium_;
    Sharing sharing_;
    Places places_;
    Taking taking_;
};

}  // namespace via::sim
