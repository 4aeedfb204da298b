// Which arenas there are: the folder of their names, those that this process has mapped, and who is
// in them.
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "arena.hpp"
#include "real.hpp"

namespace via::sockets {

namespace {

/// Not std::mutex: a child by fork() makes it anew.
constinit Lock known_lock{};
struct KnownHold {
    KnownHold() : taken(known_lock.take()) {}
    ~KnownHold() {
        if (taken) known_lock.let_go();
    }
    KnownHold(const KnownHold&) = delete;
    KnownHold& operator=(const KnownHold&) = delete;
    bool taken;
};
std::vector<Arena*>& known() {
    static auto* list = new std::vector<Arena*>;
    return *list;
}

std::string path_of(std::uint64_t id) {
    char name[24];
    std::snprintf(name, sizeof name, "/%016lx", static_cast<unsigned long>(id));
    return arena_folder() + name;
}

/// Nobody else can have put anything there.
bool owns_folder() {
    const std::string folder = arena_folder();
    struct stat found;
    return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
           found.st_uid == geteuid() && (found.st_mode & 077) == 0;
}

std::uint64_t process_names() {
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace

std::optional<std::uint64_t> start_of(std::uint32_t process) {
    char path[32];
    char text[1024];
    std::snprintf(path, sizeof path, "/proc/%u/stat", process);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) return std::nullopt;
    if (fd < 0) return 0;
    const long got = real().read(fd, text, sizeof text - 1);
    real().close(fd);
    if (got <= 0) return 0;
    text[got] = 0;
    const char* rest = std::strrchr(text, ')');
    unsigned long long started = 0;
    char state = 0;
    if (rest == nullptr ||
        std::sscanf(rest + 2,
                    "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                    "%*d %*d %llu",
                    &state, &started) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : started + 1;
}

bool have_arena_folder() {
    // Of a mode that does not depend on the umask of whoever made it: all later ones would be shut
    // out.
    const std::string folder = arena_folder();
    return (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) && owns_folder() &&
           chmod(folder.c_str(), 0700) == 0;
}

std::string arena_folder() { return "/dev/shm/openvia-sockets-" + std::to_string(geteuid()); }

std::string Arena::path() const { return path_of(head().id); }

Arena* Arena::create() {
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < size || !have_arena_folder())
        return nullptr;
    std::uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != sizeof id) return nullptr;
    const std::string path = path_of(id);
    const std::string hidden = path + ".new";
    const int fd = ::open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return nullptr;
    Arena* made = nullptr;
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, size) == 0 && posix_fallocate(fd, 0, step) == 0)
        made = map(fd);
    real().close(fd);
    if (made != nullptr) {
        ArenaHead& head = made->head();
        head.id = id;
        head.process_names = sockets::process_names();
        std::snprintf(head.program, sizeof head.program, "%s", program_invocation_short_name);
        head.used = (sizeof(ArenaHead) + 4095) / 4096 * 4096;
        head.backed = step;
        head.magic = ArenaHead::right_magic;
        made->enter();
        const KnownHold hold;
        known().push_back(made);
    }
    if (made == nullptr || rename(hidden.c_str(), path.c_str()) < 0) unlink(hidden.c_str());
    return made;
}

/// With the list held.
Arena* Arena::map_known(std::uint64_t id) {
    if (!owns_folder()) return nullptr;
    const int fd = ::open(path_of(id).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return nullptr;
    struct stat found;
    Arena* made = nullptr;
    if (fstat(fd, &found) == 0 && found.st_uid == geteuid() &&
        found.st_size == static_cast<off_t>(size))
        made = map(fd);
    real().close(fd);
    if (made == nullptr) return nullptr;
    const ArenaHead& head = made->head();
    if (head.magic != ArenaHead::right_magic || head.id != id ||
        head.process_names != sockets::process_names()) {
        delete made;
        return nullptr;
    }
    known().push_back(made);
    return made;
}

/// With the list held. Peers come and go; their memory goes with them.
void Arena::unmap_deserted() {
    std::erase_if(known(), [](Arena* arena) {
        if (arena->holders_.load() != 0 || !arena->deserted()) return false;
        unlink(arena->path().c_str());
        delete arena;
        return true;
    });
}

HeldArena Arena::open(std::uint64_t id) {
    const KnownHold hold;
    if (!hold.taken) return nullptr;
    for (Arena* const arena : known())
        if (arena->head().id == id) return arena->hold();
    unmap_deserted();
    return HeldArena(map_known(id));
}

HeldArena Arena::hold() {
    holders_.fetch_add(1);
    return HeldArena(this);
}

void LetGo::operator()(Arena* arena) const { arena->holders_.fetch_sub(1); }

std::vector<HeldArena> Arena::all() {
    std::vector<HeldArena> found;
    if (!owns_folder()) return found;
    DIR* const list = opendir(arena_folder().c_str());
    if (list == nullptr) return found;
    while (const dirent* const entry = readdir(list)) {
        if (std::strlen(entry->d_name) != 16) continue;
        const std::uint64_t id = std::strtoull(entry->d_name, nullptr, 16);
        HeldArena arena = open(id);
        if (arena == nullptr) continue;
        if (arena->deserted())
            unlink(path_of(id).c_str());
        else
            found.push_back(std::move(arena));
    }
    closedir(list);
    return found;
}

void Arena::renew_after_fork() { known_lock.let_go(); }

bool Arena::enter() {
    const auto process = static_cast<std::uint32_t>(getpid());
    for (ArenaHead::User& user : head().users) {
        std::uint32_t there = user.process.load();
        const auto started = there == 0 ? 0 : start_of(there);
        if (there != 0 && (!started || started == user.started.load())) continue;
        if (!user.process.compare_exchange_strong(there, process)) continue;
        user.started.store(start_of(process).value_or(0));
        return true;
    }
    return false;
}

void Arena::leave() {
    const auto process = static_cast<std::uint32_t>(getpid());
    for (ArenaHead::User& user : head().users)
        if (user.process.load() == process) user.process.store(0);
    if (deserted()) unlink(path_of(head().id).c_str());
}

bool Arena::deserted() const {
    for (const ArenaHead::User& user : head().users) {
        const std::uint32_t process = user.process.load();
        if (process == 0) continue;
        // Its start is written a moment later.
        const std::uint64_t started = user.started.load();
        const auto now = start_of(process);
        if (!now || (*now != 0 && (started == 0 || now == started))) return false;
    }
    return true;
}

}  // namespace via::sockets
