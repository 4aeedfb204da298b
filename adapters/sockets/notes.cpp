#include "notes.hpp"

#include <elf.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "arena.hpp"
#include "real.hpp"

namespace via::sockets {

namespace {

constexpr const char* begins = "note-";

/// The text of a small file; empty: there is none.
std::string text_in(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return {};
    std::array<char, 1024> text{};
    const ssize_t got = real().read(fd, text.data(), text.size());
    real().close(fd);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// Of a program that gets rights which its user does not have; null: of none such.
const char* other_rights_of(const std::string& file) {
    struct stat found;
    struct statvfs mount;
    if (stat(file.c_str(), &found) < 0 || statvfs(file.c_str(), &mount) < 0) return nullptr;
    const bool may = (mount.f_flag & ST_NOSUID) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
    const bool user = may && (found.st_mode & S_ISUID) != 0;
    if ((user ? found.st_uid : geteuid()) != getuid())
        return user ? "set-user-ID" : "run with another user's rights";
    const bool group = may && (found.st_mode & S_ISGID) != 0 && (found.st_mode & S_IXGRP) != 0;
    if ((group ? found.st_gid : getegid()) != getgid())
        return group ? "set-group-ID" : "run with another group's rights";
    const bool more = may && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
    return more && getuid() != 0 ? "given capabilities" : nullptr;
}

}  // namespace

void leave_note(const Note& note) {
    const auto started = start_of(note.process);
    if (!started || !have_arena_folder()) return;
    notes();  // those of processes that have ended go
    const std::string path = arena_folder() + "/" + begins + std::to_string(note.process) + "-" +
                             std::to_string(*started);
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    const std::string text = note.program + "\n" + note.why + "\n";
    // Cut short it says less.
    if (real().write(fd, text.data(), text.size()) < 0) unlink(path.c_str());
    real().close(fd);
}

std::vector<Note> notes() {
    std::vector<Note> found;
    if (!have_arena_folder()) return found;
    DIR* const list = opendir(arena_folder().c_str());
    if (list == nullptr) return found;
    while (const dirent* const entry = readdir(list)) {
        unsigned process = 0;
        unsigned long long began = 0;
        if (std::sscanf(entry->d_name, "note-%u-%llu", &process, &began) != 2) continue;
        const std::string path = arena_folder() + "/" + entry->d_name;
        const auto now = start_of(process);
        if (now && *now != began) {
            unlink(path.c_str());
            continue;
        }
        const std::string text = text_in(path);
        const std::size_t cut = text.find('\n');
        if (cut == std::string::npos) continue;
        const std::size_t end = text.find('\n', cut + 1);
        found.push_back({process, text.substr(0, cut), text.substr(cut + 1, end - cut - 1)});
    }
    closedir(list);
    return found;
}

std::string why_not_loaded(const std::string& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    // One that may be run and not read can be none that we know, but it can have other rights.
    std::array<char, 4096> bytes{};
    const ssize_t got = fd < 0 ? 0 : real().read(fd, bytes.data(), bytes.size());
    if (fd >= 0) real().close(fd);
    // Of a script's rights nothing comes.
    if (got >= 2 && std::memcmp(bytes.data(), "#!", 2) == 0) return {};
    if (const char* const rights = other_rights_of(file); rights != nullptr)
        return std::string("it is ") + rights +
               ", and the system loads nothing of ours into such programs";
    Elf64_Ehdr head;
    if (got < static_cast<ssize_t>(sizeof head)) return {};
    std::memcpy(&head, bytes.data(), sizeof head);
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
    for (std::size_t at = 0; at < head.e_phnum; ++at) {
        const std::size_t place = head.e_phoff + at * head.e_phentsize;
        Elf64_Phdr part;
        if (place + sizeof part > bytes.size()) return {};
        std::memcpy(&part, bytes.data() + place, sizeof part);
        if (part.p_type == PT_INTERP) return {};
    }
    return "it is linked statically, so that nothing can be loaded before its libraries";
}

}  // namespace via::sockets
