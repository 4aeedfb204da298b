#include "agent/page_rights.hpp"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace via::agent {

namespace {

/// The kernel's struct procmap_query, which older headers lack; fields that we do not ask for are
/// 0.
struct MappingQuery {
    std::uint64_t size = sizeof(MappingQuery);
    std::uint64_t query_flags = 0;
    std::uint64_t query_address = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t flags = 0;
    std::uint64_t page_size = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t device[2] = {};
    std::uint32_t name_size = 0;
    std::uint32_t build_id_size = 0;
    std::uint64_t name = 0;
    std::uint64_t build_id = 0;
};
static_assert(sizeof(MappingQuery) == 104);

constexpr unsigned long query_request = _IOWR('f', 17, MappingQuery);  // PROCMAP_QUERY
constexpr std::uint64_t covering_or_next = 0x10;
constexpr std::uint64_t flag_readable = 1;
constexpr std::uint64_t flag_writable = 2;

constexpr std::size_t read_bytes = 4096;

/// "begin-end rwxp ...", in hexadecimal digits.
std::optional<Mapping> parse(const std::string& line) {
    Mapping found;
    char* rest = nullptr;
    found.begin = std::strtoull(line.c_str(), &rest, 16);
    if (*rest != '-') return {};
    found.end = std::strtoull(rest + 1, &rest, 16);
    if (rest[0] != ' ' || rest[1] == '\0' || rest[2] == '\0') return {};
    found.readable = rest[1] == 'r';
    found.writable = rest[2] == 'w';
    unsigned long inode = 0;
    found.of_file = std::sscanf(rest, " %*s %*x %*x:%*x %lu", &inode) == 1 && inode != 0;
    return found;
}

std::uint64_t page_bytes() {
    static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

/// Whether a use of that page would raise SIGBUS; one that would not is there afterwards.
bool is_behind_file(std::uint64_t page) {
    return syscall(SYS_madvise, page * page_bytes(), page_bytes(), MADV_POPULATE_READ) < 0 &&
           errno == EFAULT;
}

/// The first page of [begin, end), all of one mapping of a file, that the file does not reach.
std::uint64_t behind_file(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t first = begin / page_bytes();
    std::uint64_t last = (end - 1) / page_bytes();
    if (!is_behind_file(last)) return PageRights::none;
    while (first < last) {
        const std::uint64_t middle = first + (last - first) / 2;
        if (is_behind_file(middle))
            last = middle;
        else
            first = middle + 1;
    }
    return std::max(begin, first * page_bytes());
}

}  // namespace

// By syscall(): no cancellation point, as lines are locked under the turn.
Mappings::Mappings(Way way)
    : way_(way),
      file_(
          static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC))),
      told_(file_.valid()) {}

std::optional<Mapping> Mappings::at(std::uint64_t address) {
    if (!told_) return {};
    if (way_ == Way::by_address) return ask(address);
    std::string line;
    while (last_.end <= address) {
        if (!next_line(line)) return {};
        const auto found = parse(line);
        if (!found) continue;
        last_ = *found;
    }
    return last_;
}

std::optional<Mapping> Mappings::ask(std::uint64_t address) {
    MappingQuery query;
    query.query_flags = covering_or_next;
    query.query_address = address;
    if (ioctl(file_.get(), query_request, &query) == 0)
        return Mapping{query.begin, query.end, (query.flags & flag_readable) != 0,
                       (query.flags & flag_writable) != 0, query.inode != 0};
    if (errno == ENOENT) return {};
    way_ = Way::by_text;
    return at(address);
}

bool Mappings::next_line(std::string& line) {
    for (;;) {
        const std::size_t end = text_.find('\n', at_);
        if (end != text_.npos) {
            line.assign(text_, at_, end - at_);
            at_ = end + 1;
            return true;
        }
        text_.erase(0, at_);
        at_ = 0;
        const std::size_t kept = text_.size();
        text_.resize(kept + read_bytes);
        const long got = syscall(SYS_read, file_.get(), text_.data() + kept, read_bytes);
        text_.resize(kept + static_cast<std::size_t>(std::max(got, 0L)));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            told_ = got == 0;
            return false;
        }
    }
}

std::string place_text(std::uint64_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%" PRIx64, address);
    return text;
}

std::optional<std::string> fault_of(const PageRights& rights) {
    if (rights.unmapped != PageRights::none) return place_text(rights.unmapped) + " is not mapped";
    if (rights.closed != PageRights::none)
        return place_text(rights.closed) + " may be neither read nor written (PROT_NONE)";
    if (rights.no_file != PageRights::none)
        return place_text(rights.no_file) + " is behind the end of the file that is mapped there";
    return {};
}

PageRights page_rights(Mappings& mappings, std::uint64_t begin, std::uint64_t end) {
    PageRights rights;
    const auto note = [](std::uint64_t& first, std::uint64_t address) {
        first = std::min(first, address);
    };
    for (std::uint64_t at = begin; at < end;) {
        const auto found = mappings.at(at);
        if (!mappings.told()) return {};
        if (!found || found->begin > at) {
            note(rights.unmapped, at);
            if (!found || found->begin >= end) break;
            at = found->begin;
        }
        if (!found->writable) note(rights.read_only, at);
        if (!found->readable && !found->writable) note(rights.closed, at);
        if (found->of_file && found->readable)
            note(rights.no_file, behind_file(at, std::min(end, found->end)));
        at = found->end;
    }
    return rights;
}

}  // namespace via::agent
