// What the pages of a range allow, asked of the kernel without a signal and without touching one
// but for the last of each mapping of a file: pages of the program's own that were never touched
// stay so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/file.hpp"

namespace via::agent {

/// A mapping of the process: addresses [begin, end).
struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool readable = false;
    bool writable = false;
    bool of_file = false;  ///< or of memory that is called one
};

/// The mappings of this process as they are, /proc/self/maps. Not thread-safe.
class Mappings {
public:
    enum class Way {
        by_address,  ///< the kernel finds it (Linux 6.11)
        by_text,     ///< all are read, in order
    };

    /// Falls back to the text where the kernel knows no better way.
    explicit Mappings(Way way = Way::by_address);

    /// The mapping that holds `address`, or else the first one beyond it; none: there is none.
    /// By increasing addresses. Throws bad_alloc.
    std::optional<Mapping> at(std::uint64_t address);
    /// False: the kernel does not tell; what at() answered means nothing.
    bool told() const { return told_; }

private:
    std::optional<Mapping> ask(std::uint64_t address);
    bool next_line(std::string& line);

    Way way_;
    File file_;
    bool told_;
    std::string text_;  ///< read, and not yet looked at from at_ on
    std::size_t at_ = 0;
    Mapping last_;
};

/// The first address of the range at which there is ...; none: all of it is better.
struct PageRights {
    static constexpr std::uint64_t none = ~0ULL;

    std::uint64_t unmapped = none;   ///< nothing mapped
    std::uint64_t closed = none;     ///< a page that may be neither read nor written
    std::uint64_t read_only = none;  ///< a page that may not be written
    std::uint64_t no_file = none;    ///< a page behind the end of the file that is mapped there
};

/// "0x" and the address.
std::string place_text(std::uint64_t address);
/// What is wrong with memory that is to be used at all, with the place; none: nothing.
std::optional<std::string> fault_of(const PageRights& rights);

/// Of [begin, end). Where the kernel does not tell, all seems to be allowed. Throws bad_alloc.
PageRights page_rights(Mappings& mappings, std::uint64_t begin, std::uint64_t end);

}  // namespace via::agent
