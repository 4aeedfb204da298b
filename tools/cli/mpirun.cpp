// `via mpirun`: Open MPI's own mpirun, with the options that bring its programs onto VIA.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "commands.hpp"
#include "console/output.hpp"
#include "mpi/command.hpp"

namespace via::cli {

namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr const char* help = R"(via mpirun [--show] MPIRUN-ARGUMENT...

Runs Open MPI's mpirun (Debian: openmpi-bin) with the options that let its programs talk over VIA.
All arguments go to it unchanged:

  via mpirun -np 4 ./app             four ranks on this host, over shared memory
  via mpirun -np 4 -H a:2,b:2 ./app  two on each host, over the network between them
  via mpirun --show                  only print the command, for a script or another mpirun

What is added: --mca pml cm, --mca mtl ofi, --mca mtl_ofi_provider_include via with -x FI_VIA_RDM=1
(with FI_VIA_RDM=0: 'via;ofi_rxm', libfabric's layer on the same connections), --mca osc ^ucx
(windows between hosts), with --mca osc rdma also --mca btl self,ofi and
--mca btl_ofi_provider_include via (windows by the memory of peers), -x FI_PROVIDER_PATH=... where
libfabric does not find the provider by itself, -x for each FI_... and OPENVIA_... variable that is
set, --oversubscribe, and for root --allow-run-as-root. What the arguments say themselves of any of
these is left to them.
FI_VIA_DEVICE (shm, auto:INTERFACE, udp:INTERFACE) forces a device. docs/guide/mpi.md tells more.
)";

/// In PATH; Debian's name first, since plain mpirun may belong to another MPI.
std::string find_mpirun() {
    const char* path = std::getenv("PATH");
    for (const std::string& folder : mpi::folders_of(path == nullptr ? "/usr/bin" : path)) {
        std::string file = folder + "/mpirun.openmpi";
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

bool holds_provider(const fs::path& folder) {
    std::error_code ignored;
    return fs::exists(folder / mpi::provider_file, ignored);
}

/// Where libfabric looks by itself: beside its library, in libfabric/.
fs::path folder_of_libfabric() {
    void* library = dlopen("libfabric.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return {};
    Dl_info found{};
    const void* symbol = dlsym(library, "fi_getinfo");
    fs::path folder;
    if (symbol != nullptr && dladdr(symbol, &found) != 0)
        folder = fs::path(found.dli_fname).parent_path() / "libfabric";
    dlclose(library);
    return folder;
}

/// Where the provider may be: what the user says, then the tree or prefix that we are in.
Words provider_folders() {
    const char* given = std::getenv("FI_PROVIDER_PATH");
    Words folders = mpi::folders_of(given == nullptr ? "" : given);
    std::error_code error;
    const fs::path ours = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
    folders.push_back(ours / "lib/libfabric");
    if (folders.back() != ours / VIA_PROVIDER_FOLDER) folders.push_back(ours / VIA_PROVIDER_FOLDER);
    return folders;
}

int fail(const std::string& why) {
    console::complain("via mpirun: {}", why);
    return exit_failed;
}

int fail_without_provider(const fs::path& known, const Words& folders) {
    return fail(fmt::format(
        "there is no {} in {}{}.\nInstall the package openvia-libfabric, or build it: "
        "./dev setup --mpi && ./dev build; or say in FI_PROVIDER_PATH where it is.",
        mpi::provider_file, known.empty() ? "" : known.string() + ", ", fmt::join(folders, ", ")));
}

Words variables_to_pass() {
    Words names;
    for (char** one = environ; *one != nullptr; ++one) {
        std::string name = mpi::passed_name(*one);
        if (!name.empty()) names.push_back(std::move(name));
    }
    return names;
}

bool is_switched_off(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && mpi::says_no(value);
}

int become(Words words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    return fail(fmt::format("cannot run {} (execv): {}", words[0], std::strerror(errno)));
}

}  // namespace

int run_mpirun(const Words& given) {
    const bool show = !given.empty() && given[0] == "--show";
    const Words arguments(given.begin() + (show ? 1 : 0), given.end());
    if (!show && (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h")) {
        fmt::print("{}", help);
        return arguments.empty() ? exit_usage : exit_good;
    }
    mpi::Surroundings around{.mpirun = find_mpirun(),
                             .provider_folder = {},
                             .is_root = geteuid() == 0,
                             .is_layered = is_switched_off("FI_VIA_RDM"),
                             .variables = variables_to_pass()};
    if (around.mpirun.empty()) {
        return fail(
            "there is no mpirun.openmpi in PATH. Install Open MPI: apt install openmpi-bin "
            "(libopenmpi-dev to compile programs), or ./dev setup --mpi.");
    }
    const fs::path known = folder_of_libfabric();
    if (known.empty())
        return fail("there is no libfabric.so.1. Install it: apt install libfabric1.");
    const Words folders = provider_folders();
    for (const std::string& folder : folders) {
        if (around.provider_folder.empty() && holds_provider(folder))
            around.provider_folder = fs::absolute(folder);
    }
    if (around.provider_folder.empty()) {
        if (!holds_provider(known)) return fail_without_provider(known, folders);
        around.provider_folder = known;
    }
    // A variable that is set, though to another folder, keeps libfabric from looking there itself.
    std::error_code ignored;
    if (fs::equivalent(around.provider_folder, known, ignored) &&
        std::getenv("FI_PROVIDER_PATH") == nullptr)
        around.provider_folder.clear();
    const Words words = mpi::command(around, arguments);
    if (!show) return become(words);
    fmt::print("{}\n", mpi::shell_line(words));
    return exit_good;
}

}  // namespace via::cli
