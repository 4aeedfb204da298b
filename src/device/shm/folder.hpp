// The directories in which the NICs of one user on one host meet: a folder for each NIC address,
// side by side, named after the address. So who knows an address knows the way, and nothing that
// lies in a folder has to be believed for it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "device/shm/failure.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

class Folder {
public:
    /// Checks that it is there, ours and closed to others.
    static Outcome<Folder> open(System& system, std::string path);
    /// The folder of `address`, which lies beside this one. not_reachable without a text: there is
    /// none, so nobody ever had that address.
    Outcome<Folder> beside(const HostAddress& address) const;

    System& system() const { return *system_; }
    int descriptor() const { return descriptor_.get(); }
    const std::string& path() const { return path_; }

    /// Is there an entry of that name? -1 and errno: cannot tell.
    int has(const std::string& entry) const;
    /// Was it made so long ago that nobody is still making it?
    bool is_old(const std::string& entry) const;
    /// One more try for what an interruption or a lack of memory prevented; what stays nevertheless
    /// is removed by a later opener.
    bool remove(const std::string& entry) const;
    /// The NIC's name that `link` leads to; empty: none or malformed, then `exists` tells which.
    std::string read_nic(const std::string& link, bool* exists = nullptr) const;
    /// Says that the NICs here belong to host `name`. error_resource: they belong to another one.
    Outcome<void> claim(const std::string& name) const;
    /// The host's name, or empty.
    std::string host() const;
    /// All entries, until `take` answers false.
    void list(const std::function<bool(std::string_view)>& take) const;

    enum class Reach : std::uint8_t {
        connected,
        busy,    ///< alive, but its queue is full: try again later
        gone,    ///< nobody is there
        failed,  ///< errno says why
    };
    /// Connects `socket` to the NIC called `name`.
    Reach connect(int socket, const std::string& name) const;
    /// What to bind or connect to.
    std::string socket_path(const std::string& name) const;
    /// Is the owner of NIC `name` dead? Asks the process table first: most owners live, and their
    /// sockets should not be bothered.
    bool looks_dead(const std::string& name) const;
    /// The same by its socket alone.
    bool is_dead(const std::string& name) const;

private:
    Folder(System& system, std::string path, int descriptor)
        : system_(&system), path_(std::move(path)), descriptor_(system, descriptor) {}
    Outcome<void> check() const;
    bool process_ended(pid_t pid) const;

    System* system_;
    std::string path_;
    Descriptor descriptor_;
};

/// Name of the folder of `address`, which is IPv4 and port: shm-127.0.0.1-9741.
std::string folder_name(const HostAddress& address);
/// False: `name` is not such a name.
bool parse_folder_name(const std::string& name, HostAddress& address);

/// A host of this machine's shm NICs.
struct Host {
    HostAddress address;
    std::string name;  ///< empty: the one without a name
};
/// The hosts with at least one NIC whose process lives, by address. `directory` holds the folders.
std::vector<Host> present_hosts(System& system, const std::string& directory);
/// Who has the folder of `address` in `directory`, also when nobody lives there any more.
std::optional<Host> find_host(System& system, const std::string& directory,
                              const HostAddress& address);

}  // namespace via::device::shm
