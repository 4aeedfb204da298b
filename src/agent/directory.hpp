// Where processes of one user and one host meet: a directory that only the user can enter, one
// per boot and network namespace, so that namespaces are different hosts.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <expected>
#include <string>

namespace via::agent {

/// The host's directory, made if it is missing: a folder for the host in base_directory().
/// Folders that earlier boots left are removed. Any thread; makes system calls.
/// error: what is wrong with it and what to do.
std::expected<std::string, std::string> host_directory();

/// A folder within it, made if it is missing and checked like it. `name` is one plain file name.
std::expected<std::string, std::string> sub_directory(const std::string& parent,
                                                      const std::string& name);

// What host_directory() is made of, for tests and `via info`
// ---------------------------------------

/// `path`, made with mode 0700 if it is missing; a directory (no symbolic link) that belongs to
/// us and that nobody else may enter.
std::expected<std::string, std::string> private_directory(const std::string& path);

/// Who owns something, for people; of one whom this user namespace does not know it says so.
std::string owner_text(uid_t user);

/// Name of this host's folder: 8 hexadecimal digits of the boot id, '-', network namespace.
std::expected<std::string, std::string> host_folder();

/// Removes from `directory` the folders of hosts of other boots that were last changed before this
/// boot: files, sockets and links of ours in them and in folders one below, nothing else.
/// Returns how many are gone; what cannot be removed stays, with a line in the log.
std::size_t remove_old_hosts(const std::string& directory);

}  // namespace via::agent
