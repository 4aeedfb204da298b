// Memory that processes share: segments of ours that peers attach to, and theirs that we have. All
// by the holder of the turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shared_memory.hpp"
#include "base/status.hpp"
#include "device/device.hpp"
#include "engine/engine.hpp"
#include "memory/handle.hpp"
#include "nic/path.hpp"

namespace via::nic {

/// Owns the segments: which there are, who was granted them, and which of peers are mapped.
class SharedSegments {
public:
    SharedSegments(engine::Engine& engine, std::vector<Path>& paths)
        : engine_(engine), paths_(paths) {}

    struct Segment;
    // Ours ----------------------------------------------------------------------------------------
    /// One that is not registered yet.
    Segment& add(const SharedMemory& memory);
    void remove(const Segment& segment);
    /// The one that begins there, or nullptr.
    Segment* find(const std::byte* base);
    /// Peers that attached to the region begin nothing any more. `registered`: it goes on.
    void revoke(memory::MemoryHandle handle, bool registered);
    /// Of peers, for segments; and grants of connections that are over end.
    void answer_questions();
    /// Grants on it are gone.
    void path_went(engine::PathId path);

    // Theirs --------------------------------------------------------------------------------------
    void keep(const Attachment& import) { imports_.push_back(import); }
    /// False: no import begins there.
    bool release(const std::byte* base);
    void clear() {
        imports_.clear();
        segments_.clear();
    }

    /// A grant to a segment, for one connection of a VI of ours.
    struct Grant {
        std::uint32_t vi;
        engine::PathId path;
        device::GrantId id;
        bool writable;
    };
    struct Segment {
        SharedMemory memory;
        memory::MemoryHandle handle = 0;  ///< 0: not registered any more
        std::vector<Grant> grants;
    };

private:
    void end(const Grant& grant);
    void end_grants(std::uint32_t vi);
    void offer(const engine::AttachQuestion& question);

    engine::Engine& engine_;
    std::vector<Path>& paths_;
    std::vector<Segment> segments_;    ///< of ours
    std::vector<Attachment> imports_;  ///< of peers
};

}  // namespace via::nic
