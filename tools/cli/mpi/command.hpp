// What `via mpirun` makes of its arguments: the command line of Open MPI's own mpirun.
#pragma once

#include <string>
#include <vector>

namespace via::cli::mpi {

/// The file that libfabric loads.
inline constexpr const char* provider_file = "libvia-fi.so";

/// What the command line depends on besides the user's arguments.
struct Surroundings {
    std::string mpirun;           // the program to run
    std::string provider_folder;  // where `provider_file` is; empty: libfabric finds it itself
    bool is_root = false;
    bool is_layered = false;  // FI_VIA_RDM says no: ofi_rxm, not the endpoints of the provider
    std::vector<std::string> variables;  // names of environment variables that all ranks shall have
};

/// The whole command, program first. Whatever `arguments` say of a matter themselves is left out of
/// what is added; they follow unchanged, but that each program of several (`a : b`) gets the
/// variables, which mpirun passes to one only.
std::vector<std::string> command(const Surroundings& around,
                                 const std::vector<std::string>& arguments);

/// One line that a shell reads as just these words.
std::string shell_line(const std::vector<std::string>& words);

/// Folders of a list in the form of FI_PROVIDER_PATH: `[@]FOLDER[:[@]FOLDER]...`.
std::vector<std::string> folders_of(const std::string& provider_path);

/// The name of a variable ("NAME=value") that steers libfabric, its providers or this library, and
/// so must be the same on all hosts; empty if it is none, or has no value. FI_PROVIDER_PATH is
/// dealt with apart.
std::string passed_name(const std::string& variable);

/// Does a variable with that value switch something off, as libfabric reads it?
bool says_no(const std::string& value);

}  // namespace via::cli::mpi
