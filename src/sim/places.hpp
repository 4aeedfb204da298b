// Memory of descriptors: the bytes that they lie in, that messages come from and go to, and such as
// are wrong on purpose. Nobody else has them until they are given back.
#pragma once

#include <optional>

#include "sim/observer.hpp"
#include "sim/parameters.hpp"

namespace via::sim {

class Places {
public:
    static constexpr std::uint32_t wrong_handle = 0x80001234;  ///< a window's, that is none's

    Places(const Parameters& parameters, Model& model, Observer& observer)
        : parameters_(parameters), model_(model), observer_(observer) {}

    /// One that a VI with that tag may use, with these rights for its peer; nullptr: there is none.
    static Region* any_region(Node& node, memory::ProtectionTag vi_tag, bool write, bool read);
    // False: there is no room.
    bool give_pieces(Work& work, std::uint32_t length);
    bool give_descriptor(Work& work);
    bool give_target(Work& work, std::uint32_t length, queue::Segment& remote);
    bool give_wrong_target(Work& work, queue::Segment& remote);
    static bool is_forbidden(const Work& work);
    static void misplace(Piece& piece, const Vi& vi, queue::Segment& segment, bool receive);
    void give_back(Work& work);
    void withdraw(Work& work);

private:
    std::optional<std::uint64_t> take_block(Node& node, Region& region, std::uint64_t length);
    const Window* give_window(const Vi& there, const Target& target, bool write);
    static bool give_wrong_window(Node& node, std::uint64_t length, queue::Segment& remote);

    const Parameters& parameters_;
    Model& model_;
    Observer& observer_;
};

}  // namespace via::sim
