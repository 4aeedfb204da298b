#include "mpi/command.hpp"

#include <strings.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace via::cli::mpi {

namespace {

using Words = std::vector<std::string>;

constexpr const char* path_variable = "FI_PROVIDER_PATH";
constexpr const char* own_variable = "FI_VIA_RDM";

// Debian's configuration of Open MPI forbids both mtl/ofi and osc/pt2pt, without which programs on
// several hosts have no windows. pml/cm ends a job rather than falling back to another transport.
constexpr std::pair<const char*, const char*> parameters[] = {
    {"pml", "cm"},
    {"mtl", "ofi"},
    {"osc", "^ucx"},
};
// Windows by the memory of peers: osc/rdma stands on btl/ofi, which Debian's configuration forbids,
// and which hears of mtl/ofi's provider too late. Other ways to move bytes are not to be preferred.
constexpr std::pair<const char*, const char*> rdma_parameters[] = {
    {"btl", "self,ofi"},
    {"btl_ofi_provider_include", "via"},
};
constexpr const char* provider_parameter = "mtl_ofi_provider_include";
constexpr const char* layered = "via;ofi_rxm";

bool is_parameter_option(const std::string& option) {
    return option.ends_with("-mca") || option.ends_with("-gmca");
}

/// What the user says of that parameter of Open MPI, or nothing.
std::string value_of(const Words& arguments, std::string_view name) {
    for (std::size_t at = 0; at + 2 < arguments.size(); ++at)
        if (is_parameter_option(arguments[at]) && arguments[at + 1] == name)
            return arguments[at + 2];
    return {};
}

bool names_parameter(const Words& arguments, std::string_view name) {
    for (std::size_t at = 0; at + 1 < arguments.size(); ++at) {
        if (is_parameter_option(arguments[at]) && arguments[at + 1] == name) return true;
    }
    return false;
}

/// mpirun takes its long options with one dash or two.
bool names_option(const Words& arguments, std::string_view name) {
    return std::ranges::any_of(arguments, [name](const std::string& one) {
        const std::string_view word = one;
        return word.starts_with("-") && word.substr(word.find_first_not_of('-')) == name;
    });
}

bool names_variable(const Words& arguments, std::string_view name) {
    for (std::size_t at = 0; at + 1 < arguments.size(); ++at) {
        const std::string_view given = arguments[at + 1];
        if (arguments[at] == "-x" && given.substr(0, given.find('=')) == name) return true;
    }
    return false;
}

/// The provider's own endpoints, unless somebody says something else: the user by naming a
/// provider, or the variable that offers them.
bool is_own(const Surroundings& around, const Words& arguments) {
    if (names_parameter(arguments, provider_parameter))
        return value_of(arguments, provider_parameter) == "via";
    const std::string given = std::string(own_variable) + "=";
    for (std::size_t at = 0; at + 1 < arguments.size(); ++at)
        if (arguments[at] == "-x" && arguments[at + 1].starts_with(given))
            return !says_no(arguments[at + 1].substr(given.size()));
    return !around.is_layered;
}

/// Does the user want windows by osc/rdma? By name; what Open MPI may choose is as it was.
bool wants_rdma_windows(const Words& arguments) {
    const std::string wanted = value_of(arguments, "osc");
    return !wanted.starts_with('^') && ("," + wanted + ",").find(",rdma,") != std::string::npos;
}

Words variable_options(const Surroundings& around, const Words& arguments) {
    Words options;
    const bool is_passed = names_variable(arguments, own_variable) ||
                           std::ranges::count(around.variables, own_variable) != 0;
    if (is_own(around, arguments) && !is_passed)
        options.insert(options.end(), {"-x", std::string(own_variable) + "=1"});
    if (!around.provider_folder.empty() && !names_variable(arguments, path_variable)) {
        options.insert(options.end(),
                       {"-x", std::string(path_variable) + "=" + around.provider_folder});
    }
    for (const std::string& name : around.variables) {
        if (!names_variable(arguments, name)) options.insert(options.end(), {"-x", name});
    }
    return options;
}

}  // namespace

Words command(const Surroundings& around, const Words& arguments) {
    Words made{around.mpirun};
    if (around.is_root && !names_option(arguments, "allow-run-as-root"))
        made.emplace_back("--allow-run-as-root");
    if (!names_option(arguments, "oversubscribe") && !names_option(arguments, "nooversubscribe"))
        made.emplace_back("--oversubscribe");
    for (const auto& [name, value] : parameters) {
        if (!names_parameter(arguments, name)) made.insert(made.end(), {"--mca", name, value});
    }
    if (is_own(around, arguments) && wants_rdma_windows(arguments))
        for (const auto& [name, value] : rdma_parameters)
            if (!names_parameter(arguments, name)) made.insert(made.end(), {"--mca", name, value});
    if (!names_parameter(arguments, provider_parameter))
        made.insert(made.end(),
                    {"--mca", provider_parameter, is_own(around, arguments) ? "via" : layered});
    const Words variables = variable_options(around, arguments);
    made.insert(made.end(), variables.begin(), variables.end());
    for (const std::string& argument : arguments) {
        made.push_back(argument);
        if (argument == ":") made.insert(made.end(), variables.begin(), variables.end());
    }
    return made;
}

std::string shell_line(const Words& words) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%^";
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line += ' ';
        if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (const char one : word) {
            if (one == '\'') line += "'\\'";
            line += one;
        }
        line += '\'';
    }
    return line;
}

Words folders_of(const std::string& provider_path) {
    Words folders;
    std::string_view rest = provider_path;
    while (!rest.empty()) {
        std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
        if (folder.starts_with('@')) folder.remove_prefix(1);
        if (!folder.empty()) folders.emplace_back(folder);
    }
    return folders;
}

std::string passed_name(const std::string& variable) {
    const std::string name = variable.substr(0, variable.find('='));
    if (name == path_variable || variable.size() <= name.size() + 1) return {};
    return name.starts_with("FI_") || name.starts_with("OPENVIA_") ? name : std::string{};
}

bool says_no(const std::string& value) {
    constexpr const char* words[] = {"0", "no", "false", "off"};
    return std::ranges::any_of(
        words, [&](const char* word) { return strcasecmp(value.c_str(), word) == 0; });
}

}  // namespace via::cli::mpi
