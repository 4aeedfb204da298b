// Which arenas there are: the folder of their names, those that this process has mapped, and who is
// in them.
#include <errno.h>
#include <sys/random.h>
#include <sys/shm.h>
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

std::uint64_t namespace_of(const char* kind) {
    struct stat found;
    const std::string path = std::string("/proc/self/ns/") + kind;
    return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

/// A file that is empty. The system's number of a segment means nothing in another namespace.
std::string name_of(std::uint64_t id) {
    std::array<char, 40> name{};
    std::snprintf(name.data(), name.size(), "%016lx-%lx", static_cast<unsigned long>(id),
                  static_cast<unsigned long>(namespace_of("ipc")));
    return name.data();
}

std::string path_of(const std::string& name) { return arena_folder() + "/" + name; }

/// The system keeps it until everybody who had it mapped has ended.
bool is_gone(std::uint64_t id) {
    shmid_ds found;
    if (shmctl(segment_of(id), IPC_STAT, &found) < 0) return errno == EINVAL || errno == EIDRM;
    return found.shm_segsz != Arena::size || found.shm_perm.cuid != geteuid();
}

/// Nobody else can have put anything there.
bool owns_folder() {
    const std::string folder = arena_folder();
    struct stat found;
    return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
           found.st_uid == geteuid() && (found.st_mode & 077) == 0;
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

bool Arena::say_name() const {
    // Needs no descriptor, of which there may be none left.
    return mknod(path_of(name_of(id_)).c_str(), S_IFREG | 0600, 0) == 0;
}

/// A child by fork() may come in meanwhile. One that comes later finds no name, and says it again.
bool Arena::remove_name_if_deserted() const {
    if (!deserted()) return false;
    unlink(path_of(name_of(id_)).c_str());
    if (deserted()) return true;
    say_name();
    return false;
}

Arena* Arena::create() {
    std::uint32_t drawn = 0;
    if (!have_arena_folder() || getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return nullptr;
    const int segment = shmget(IPC_PRIVATE, size, IPC_CREAT | SHM_NORESERVE | 0600);
    if (segment < 0) return nullptr;
    const std::uint64_t id = std::uint64_t{drawn} << 32 | static_cast<unsigned>(segment);
    Arena* const made = map(id);
    shmctl(segment, IPC_RMID, nullptr);  // from now on it goes with its last mapping
    if (made == nullptr) return nullptr;
    if (!made->populate(0, step)) {
        delete made;
        return nullptr;
    }
    ArenaHead& head = made->head();
    head.id = id;
    head.process_names = namespace_of("pid");
    std::snprintf(head.program, sizeof head.program, "%s", program_invocation_short_name);
    head.used = (sizeof(ArenaHead) + 4095) / 4096 * 4096;
    head.backed = step;
    head.magic = ArenaHead::right_magic;
    made->enter();
    if (!made->say_name()) {
        delete made;
        return nullptr;
    }
    const KnownHold hold;
    known().push_back(made);
    return made;
}

/// With the list held.
Arena* Arena::map_known(std::uint64_t id) {
    if (is_gone(id)) return nullptr;
    Arena* const made = map(id);
    if (made == nullptr) return nullptr;
    const ArenaHead& head = made->head();
    if (head.magic != ArenaHead::right_magic || head.id != id ||
        head.process_names != namespace_of("pid")) {
        delete made;
        return nullptr;
    }
    known().push_back(made);
    return made;
}

/// With the list held. Peers come and go; their memory goes with them.
void Arena::unmap_deserted() {
    std::erase_if(known(), [](Arena* arena) {
        if (arena->holders_.load() != 0 || !arena->remove_name_if_deserted()) return false;
        delete arena;
        return true;
    });
}

HeldArena Arena::open(std::uint64_t id) {
    const KnownHold hold;
    if (!hold.taken) return nullptr;
    for (Arena* const arena : known())
        if (arena->id_ == id) return arena->hold();
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
        unsigned long id = 0;
        if (std::sscanf(entry->d_name, "%16lx-", &id) != 1 || name_of(id) != entry->d_name)
            continue;
        HeldArena arena = open(id);
        if (arena == nullptr && is_gone(id))
            unlink(path_of(entry->d_name).c_str());
        else if (arena != nullptr && !arena->remove_name_if_deserted())
            found.push_back(std::move(arena));
    }
    closedir(list);
    return found;
}

void Arena::renew_after_fork() { known_lock.let_go(); }

bool Arena::enter_as_child() {
    if (!enter()) return false;
    const auto is_other = [](const ArenaHead::User& user) {
        return user.process.load() != 0 && user.process.load() != static_cast<unsigned>(getpid());
    };
    // Whoever leaves later sees this process.
    if (std::none_of(head().users.begin(), head().users.end(), is_other)) say_name();
    return true;
}

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
    remove_name_if_deserted();
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
