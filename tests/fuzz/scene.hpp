// Memory with guards around it, for targets that let a peer or a program tell the NIC where to
// write.
#pragma once

#include <array>
#include <cstdint>

#include "input.hpp"
#include "memory/table.hpp"
#include "queue/descriptor.hpp"

namespace fuzz {

/// Guarded regions one behind the other. Nothing may ever change a guard or the secret, nor send a
/// byte of the secret.
struct alignas(64) Arena {
    static constexpr std::size_t guard_bytes = 256;
    static constexpr std::size_t descriptors_max = 64;
    static constexpr std::size_t buffer_bytes = 20000;
    static constexpr std::size_t open_bytes = 4096 - 7;
    static constexpr std::size_t secret_bytes = 4096;

    std::array<std::byte, guard_bytes> guard_0;
    /// Room for some segments beyond the two that each declares.
    struct alignas(64) Slot {
        via::queue::Descriptor descriptor;
        via::queue::Segment more[4];
    };
    std::array<Slot, descriptors_max> descriptors;
    std::array<std::byte, guard_bytes> guard_1;
    std::array<std::byte, buffer_bytes> buffer;  ///< the program's: no rights for peers
    std::array<std::byte, guard_bytes> guard_2;
    std::array<std::byte, open_bytes> open;  ///< peers may write and read
    std::array<std::byte, guard_bytes> guard_3;
    std::array<std::byte, secret_bytes> secret;  ///< registered, but no rights and never posted
    std::array<std::byte, guard_bytes> guard_4;

    static constexpr std::byte guard_value{0xA7};
    static constexpr std::byte secret_value{0x5C};

    Arena() {
        std::memset(static_cast<void*>(this), 0, sizeof *this);
        for (auto* guard : {&guard_0, &guard_1, &guard_2, &guard_3, &guard_4})
            guard->fill(guard_value);
        secret.fill(secret_value);
    }
    void check() const {
        for (const auto* guard : {&guard_0, &guard_1, &guard_2, &guard_3, &guard_4})
            for (const std::byte value : *guard)
                require(value == guard_value, "the guards are untouched");
        for (const std::byte value : secret)
            require(value == secret_value, "the secret is untouched");
    }
};

/// True when that many bytes hold a piece of the secret.
inline bool betrays(const std::byte* bytes, std::size_t length) {
    std::size_t run = 0;
    for (std::size_t n = 0; n < length; ++n) {
        run = bytes[n] == Arena::secret_value ? run + 1 : 0;
        if (run == 8) return true;
    }
    return false;
}

inline std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

}  // namespace fuzz
