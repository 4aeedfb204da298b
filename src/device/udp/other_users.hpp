// Listeners of other users at the same NIC address. Each user has a directory of its own in one
// place that is the system's (/dev/shm), called PREFIX-XXXXXX, which the others may look into by
// name, but neither list nor write. All that stands in it is its user's word: read once, checked,
// and good for that user's own ports only. How many names lie there is everybody's word, too.
#pragma once

#include <compare>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/udp/system.hpp"

namespace via::device::udp {

/// Since when somebody listens: when its link was made, which nobody can change, not even to an
/// earlier time. Of those of one tick of the clock the lower inode is earlier (tmpfs counts up).
struct Since {
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    std::uint64_t inode = 0;

    auto operator<=>(const Since&) const = default;
};

struct Claim {
    std::string owner;  ///< name of the NIC's file
    Since since;
};

/// Nothing: the link cannot be seen.
std::optional<Since> made_when(System& system, int directory, const std::string& link);
/// What a link leads to; empty: nothing, or too much.
std::string link_target(System& system, int directory, const std::string& link);

class OtherUsers {
public:
    /// Those beside `directory`, ours. `shared` false: it lies where no other user can come.
    OtherUsers(System& system, const std::string& directory, bool shared);

    /// Looks who is there, now or when it last looked some time ago. Anybody can make names there,
    /// and this is called with the turn: so it looks at a part of them, the next time at the next.
    void look_around(bool now);
    /// Looks at all names, or so many that no honest place has them. Not with the turn.
    void look_at_all();
    /// Of those alive that listen by `link`, who has it longest.
    std::optional<Claim> oldest(const std::string& link) const;
    /// The open file of the NIC that answers for the host by another user's word; not valid: none.
    Descriptor open_holder(const std::string& link) const;

private:
    struct User {
        std::string directory;  ///< its name
        uid_t user;
    };

    bool look_further();
    void consider(const std::string& name);
    Descriptor open_directory(const User& user) const;
    Descriptor open_alive(int directory, uid_t user, const std::string& nic) const;

    System* system_;
    std::string parent_path_;  ///< empty: there are no others
    std::string own_;
    Descriptor parent_;        ///< opened by the first look
    Descriptor listing_;       ///< stands where the next look goes on; not valid: at the beginning
    std::vector<User> users_;  ///< of the last complete listing, and of the present one so far
    std::vector<User> found_;  ///< of the present one
    int considered_ = 0;       ///< directories that this look opened
    Time looked_{};
};

}  // namespace via::device::udp
