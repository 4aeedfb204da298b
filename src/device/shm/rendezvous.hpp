// The directory in which the NICs of one user on one host find each other.
//
// Each NIC has a listening socket nic-PID-KEY; a discriminator somebody listens to is a symbolic
// link d-HEX to that name. A name whose owner is dead is taken over or removed by whoever meets
// it. Removing a dead owner's link happens under a lock on the directory, so that two who do it at
// once cannot remove a third one's new link; nobody waits for that lock.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/link_name.hpp"
#include "device/shm/failure.hpp"
#include "device/shm/folder.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

class Rendezvous {
public:
    /// Checks the directory (there, ours, closed to others), claims it for `host`, removes what the
    /// dead left behind, and begins to listen as nic-PID-`key`.
    static Outcome<std::unique_ptr<Rendezvous>> open(System& system, const std::string& directory,
                                                     std::uint64_t key, const Host& host = {});
    /// Removes our names and closes the socket.
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    const std::string& name() const { return name_; }
    int listening_socket() const { return socket_.get(); }

    /// Is our name where others look for it? Not once a cleaner of temporary files, or the end of
    /// a login, took it away.
    bool is_known() const;
    bool is_listened_to() const { return !listening_.empty(); }
    /// Begins to listen anew in `directory`, with the name and the discriminators that we have.
    /// Whoever holds one of these by now keeps it.
    Outcome<void> make_known(const std::string& directory);
    /// Makes those links anew that are gone.
    Outcome<void> make_links();

    /// Makes `discriminator` lead to us. Calls nest. error_resource: it leads to somebody alive.
    Outcome<void> listen(const Discriminator& discriminator);
    void unlisten(const Discriminator& discriminator);

    /// Name of the NIC of our address that listens to `discriminator`, or empty. It may be dead.
    std::string find(const Discriminator& discriminator) const;
    /// The same at any address. not_reachable: no NIC over shared memory can have that address.
    Outcome<std::string> find(const NetAddress& remote) const;
    /// Is there a NIC called `name` among those of `address`?
    Outcome<bool> knows(const HostAddress& address, const std::string& name) const;
    /// Connects `socket` to the NIC called `name` among those of `address`.
    Outcome<Folder::Reach> connect(int socket, const HostAddress& address,
                                   const std::string& name) const;

    /// A new descriptor of the directory: something to hold in reserve. -1 and errno on failure.
    int duplicate_descriptor() const { return system_.duplicate(folder_.descriptor()); }

private:
    bool is_here(const HostAddress& address) const;
    Rendezvous(Folder folder, Host host, std::uint64_t key)
        : folder_(std::move(folder)),
          system_(folder_.system()),
          host_(std::move(host)),
          key_(key) {}

    static Outcome<Folder> enter(System& system, const std::string& directory, const Host& host);
    Outcome<void> open_socket();
    int bind_and_listen(const std::string& temporary);
    void remove_leftovers();
    void consider_leftover(std::string_view entry, std::map<std::string, bool, std::less<>>& dead);
    Outcome<void> take_name(const std::string& link);
    bool remove_dead_link(const std::string& link, const std::string& target);
    bool lock_directory() const;

    Folder folder_;
    System& system_;
    Host host_;
    std::uint64_t key_;
    Descriptor socket_;
    std::string name_;
    std::string place_;  ///< path of that name: looked for where there may be no memory
    std::map<std::string, unsigned> listening_;  ///< link name, how often
};

}  // namespace via::device::shm
