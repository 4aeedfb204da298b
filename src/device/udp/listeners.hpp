// Who listens where, among the processes of one user at one NIC address: files in a directory that
// only they can enter.
//
// Each NIC has a file nic-PID-PORT-INSTANCE, which it keeps locked while it lives, however it ends.
// A discriminator somebody listens to is a symbolic link d-HEX to that name. A name whose owner is
// dead is taken over or removed by whoever meets it. The link `holder` leads to the one that
// answers for the host.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/status.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class Listeners {
public:
    /// `directory` exists, is ours and closed to others. Removes what the dead left behind. error:
    /// what failed and why.
    static std::expected<Listeners, std::string> open(System& system, const std::string& directory,
                                                      std::uint16_t data_port,
                                                      std::uint64_t instance);
    Listeners(Listeners&&) = default;
    /// Removes our names.
    ~Listeners();

    /// Makes `discriminator` lead to us. Calls nest by count. error_resource: it leads to somebody
    /// alive, or the directory cannot be written.
    Status listen(const Discriminator& discriminator);
    void unlisten(const Discriminator& discriminator);
    /// False: nobody alive listens to it.
    bool find(const Discriminator& discriminator, std::uint16_t& data_port,
              std::uint64_t& instance) const;
    /// We answer for the host from now on.
    void note_holder();
    /// Lets `inotify` tell when the one that answers for the host ends. False: there is none that
    /// lives, or that cannot be had.
    bool watch_holder(int inotify) const;
    /// Does any other NIC of this address live?
    bool has_others() const;

private:
    friend bool somebody_lives(System& system, const std::string& directory);
    Listeners(System& system, Descriptor directory, std::string path)
        : system_(&system), directory_(std::move(directory)), path_(std::move(path)) {}

    std::expected<void, std::string> put_down(std::uint16_t data_port, std::uint64_t instance);
    void list(const std::function<bool(const std::string&)>& take) const;
    bool is_left_over(const std::string& name) const;
    void remove_leftovers();
    bool is_alive(const std::string& name) const;
    std::string target_of(const std::string& link) const;
    bool take_link(const std::string& link);
    bool lock_directory() const;
    bool remove(const std::string& name) const;

    System* system_;
    Descriptor directory_;
    std::string path_;
    std::string name_;                           ///< empty: moved away, or not put down
    Descriptor lock_;                            ///< of our file
    std::map<std::string, unsigned> listening_;  ///< link name, how often
};

/// Does a NIC of the address whose directory this is live?
bool somebody_lives(System& system, const std::string& directory);

}  // namespace via::device::udp
