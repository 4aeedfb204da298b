// Where all of a user's processes on a host come together, whatever started them.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "agent/file.hpp"

namespace via::agent {

/// Where a user's processes meet that were told no place: a folder in the one that the system made
/// for the user at login, or in one that everybody may write.
struct StandardPlaces {
    std::string runtime = "/run/user/";      ///< the user's number follows
    std::string fallback = "/tmp/openvia-";  ///< likewise
};

/// Path of the directory that holds the folders of hosts; it need not exist.
/// $XDG_RUNTIME_DIR/openvia where that is absolute, ours, writable for nobody else and not the
/// standard place. Otherwise the standard place in which somebody holds the directory, or else the
/// first that can be had: so a process finds the others though it has no XDG_RUNTIME_DIR, or they
/// started before the login.
std::expected<std::string, std::string> base_directory(const StandardPlaces& places = {});

/// Held while a NIC is open: says that somebody is there, and that cleaners of temporary files
/// shall leave the directory and what is in it alone (tmpfiles.d(5), a shared flock). Not valid: it
/// cannot be had.
File hold_directory(const std::string& base);

/// Other places in which processes of this user have NICs, that are not met in `base`.
std::vector<std::string> other_bases(const std::string& base, const StandardPlaces& places = {});

}  // namespace via::agent
