// Who listens where, among the processes at one NIC address: files in a directory of their user,
// beside those of other users.
//
// Each NIC has a file nic-PID-PORT-INSTANCE, which it keeps locked while it lives, however it ends.
// The lock is for writing, and so can be seen, but not feigned, by who may only read.
// A discriminator somebody listens to is a symbolic link d-HEX to that name. A name whose owner is
// dead is taken over or removed by the next that meets it. The link `holder` leads to the one that
// answers for the host.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/link_name.hpp"
#include "device/udp/other_users.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class Listeners {
public:
    /// `directory` exists, is ours, and nobody else may write or list it. `shared`: others of its
    /// name up to the last six characters are those of other users; then it is removed with its
    /// last name. Removes what the dead left behind. error: what failed and why.
    static std::expected<Listeners, std::string> open(System& system, const std::string& directory,
                                                      bool shared, std::uint16_t data_port,
                                                      std::uint64_t instance);
    Listeners(Listeners&& other) noexcept = default;
    /// Removes our names.
    ~Listeners();

    /// Is our file where others look for it? Not once a cleaner of temporary files took it away.
    bool is_known() const;
    bool is_listened_to() const { return !listening_.empty(); }
    /// Puts file and discriminators down anew, in a directory as that of open(). Who holds one
    /// of these by now keeps it. error, in words: that, or what failed.
    std::expected<void, std::string> make_known(const std::string& directory, bool shared,
                                                std::uint16_t data_port, std::uint64_t instance);
    /// Makes `discriminator` lead to us. Calls nest by count. error: it leads to somebody alive, or
    /// the directory cannot be written.
    std::expected<void, std::string> listen(const Discriminator& discriminator);
    void unlisten(const Discriminator& discriminator);
    /// Of those alive that listen to it, who does longest; false: nobody does.
    bool find(const Discriminator& discriminator, std::uint16_t& data_port,
              std::uint64_t& instance);
    /// We answer for the host from now on.
    void note_holder();
    /// Name of the one of this user that does so, as far as is known; else empty.
    std::string holder() const;
    /// Does another one of this user, that lives, say that it does? If nobody does, we say so.
    bool is_replaced();
    /// Lets `inotify` tell when the one that answers for the host ends. False: there is none that
    /// lives, or that cannot be had.
    bool watch_holder(int inotify);
    /// Does any other NIC of this user at this address live, or one of another user that answers?
    bool has_others();

private:
    friend bool somebody_lives(System& system, const std::string& directory);
    Listeners(System& system, Descriptor directory, std::string path, bool shared)
        : system_(&system),
          directory_(std::move(directory)),
          path_(std::move(path)),
          shared_(shared),
          others_(system, path_, shared) {}

    std::expected<void, std::string> put_down(std::uint16_t data_port, std::uint64_t instance);
    void list(const std::function<bool(const std::string&)>& take) const;
    bool was_never_made(const std::string& name) const;
    bool is_left_over(const std::string& name) const;
    void remove_leftovers();
    bool is_alive(const std::string& name) const;
    std::string target_of(const std::string& link) const;
    std::optional<Since> own_since(const std::string& link) const;
    std::string others_owner(const std::string& link);
    std::expected<void, std::string> take_link(const std::string& link);
    bool lock_directory() const;
    bool remove(const std::string& name) const;

    System* system_;
    Descriptor directory_;
    std::string path_;
    bool shared_;
    OtherUsers others_;
    std::string name_;                           ///< empty: moved away, or not put down
    std::string place_;                          ///< path of that name, as is_known() needs it
    Descriptor lock_;                            ///< of our file
    std::map<std::string, unsigned> listening_;  ///< link name, how often
};

/// Does a NIC of the address whose directory this is live?
bool somebody_lives(System& system, const std::string& directory);

}  // namespace via::device::udp
