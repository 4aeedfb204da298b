// Where users of one host see of each other what they put down for each other.
#pragma once

#include <expected>
#include <string>

namespace via::agent {

/// A folder that other users may look into by name, but neither list nor write: made in /dev/shm,
/// with a random end of its name so that nobody can take it first. `parent`/`name` leads to it, for
/// this user's processes; theirs for the same `host` and `name` have the same name up to the last
/// six characters. Whoever uses it last may remove it; what is left over of
/// those who could not is removed when another one is made.
/// Where there is no /dev/shm that is the system's: sub_directory(parent, name), unless NICs of
/// this user are in one that can only be read from here.
struct SharedDirectory {
    std::string path;
    bool shared = false;
};
std::expected<SharedDirectory, std::string> shared_directory(const std::string& parent,
                                                             const std::string& name,
                                                             const std::string& place = "/dev/shm");

}  // namespace via::agent
