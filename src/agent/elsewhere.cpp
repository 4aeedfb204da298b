#include "agent/elsewhere.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

namespace via::agent {

namespace {

/// A NIC's socket, taken apart: BASE/HOST/FOLDER/NAME, or of its counters BASE/HOST/NAME.
struct SocketPath {
    std::string base;
    std::string folder;
    std::string name;
};

/// The part behind the last slash, taken off.
std::string take_last(std::string_view& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {};
    std::string last(path.substr(slash + 1));
    path.remove_suffix(path.size() - slash);
    return last;
}

std::optional<SocketPath> parse_socket_path(std::string_view path, const std::string& host) {
    SocketPath parts;
    parts.name = take_last(path);
    std::string folder = take_last(path);
    if (folder != host) {
        parts.folder = std::move(folder);
        if (take_last(path) != host) return {};
    }
    parts.base = path;
    return parts;
}

/// Path of a socket that listens; the kernel shows the name that it was bound to. Empty: none.
std::string_view listening_path(std::string_view line) {
    constexpr unsigned flags_column = 3;
    constexpr unsigned path_column = 7;
    bool listens = false;
    for (unsigned column = 0; column < path_column; ++column) {
        const std::size_t end = line.find(' ');
        if (end == line.npos) return {};
        if (column == flags_column) listens = line.substr(0, end) == "00010000";
        line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    }
    return listens && line.starts_with('/') ? line : std::string_view();
}

/// Sockets get their last names once they listen.
std::string last_name(const std::string& bound) {
    if (bound.starts_with("new-stat-")) return bound.substr(4);
    return bound.starts_with("new-") ? "nic-" + bound.substr(4) : bound;
}

bool is_ours(const std::string& base, const StandardPlaces& places) {
    struct stat status;
    if (lstat(base.c_str(), &status) == 0) return status.st_uid == geteuid();
    const std::string user = std::to_string(geteuid());
    return base == places.fallback + user || base.starts_with(places.runtime + user + "/");
}

bool is_seen(const SocketPath& socket, const std::string& host) {
    const std::string folder = socket.folder.empty() ? "" : "/" + socket.folder;
    const std::string path = socket.base + "/" + host + folder + "/" + last_name(socket.name);
    struct stat status;
    return lstat(path.c_str(), &status) == 0;
}

}  // namespace

std::string Elsewhere::text() const {
    return hidden ? base +
                        " as others see it, where this process sees another directory (a private "
                        "/tmp, a container) or somebody removed their names"
                  : base;
}

std::vector<Elsewhere> nics_elsewhere(const std::string& host_directory,
                                      const StandardPlaces& places, const char* sockets) {
    std::string_view own_base = host_directory;
    const std::string host = take_last(own_base);
    std::vector<Elsewhere> all;
    std::ifstream file(sockets);
    for (std::string line; std::getline(file, line);) {
        const auto socket = parse_socket_path(listening_path(line), host);
        if (!socket) continue;
        const bool hidden = socket->base == own_base;
        if (hidden ? is_seen(*socket, host) : !is_ours(socket->base, places)) continue;
        auto at = std::find_if(all.begin(), all.end(), [&](const Elsewhere& one) {
            return one.base == socket->base && one.hidden == hidden;
        });
        if (at == all.end()) at = all.insert(all.end(), {socket->base, hidden, {}});
        if (!socket->folder.empty()) at->folders.push_back(socket->folder);
    }
    return all;
}

}  // namespace via::agent
