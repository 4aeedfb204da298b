// `via bench suite`: asks the papers' questions one after the other, each by a `via bench` of its
// own, and keeps what they print, with a description of the machine, in a folder.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/clock.hpp"
#include "bench/file_handle.hpp"
#include "bench/machine.hpp"
#include "bench/suite.hpp"
#include "bench/types.hpp"
#include "commands.hpp"

namespace via::cli {

namespace {

using namespace via::bench;
using Words = std::vector<std::string>;

int complain(const std::string& what, int code) {
    fmt::print(stderr, "via bench suite: {}\n", what);
    return code;
}

std::string list_of(const Words& values) {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
    return text;
}

// What the questions have in common. Operations and registering know less of it.
Words common_words(const BenchOptions& options, const std::string& bench) {
    const auto given = [&](const char* name) {
        return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
    };
    Words words{"--device", options.device, "--rounds",
                std::to_string(given("--rounds") ? options.rounds
                               : options.quick   ? 3
                                                 : 10)};
    const auto add = [&](const char* name, const std::string& value) {
        if (given(name)) words.insert(words.end(), {name, value});
    };
    add("--cpus", options.cpus);
    if (bench == "register") return words;
    add("--netns", list_of(options.netns));
    if (options.keep_disturbed) words.emplace_back("--keep-disturbed");
    words.insert(words.end(),
                 {"--max-seconds", std::to_string(given("--max-seconds") ? options.max_seconds
                                                  : options.quick        ? 30
                                                                         : 120)});
    if (bench == "operations") return words;
    add("--mode", options.mode);
    add("--near-below", fmt::format("{}", options.near_below_ns));
    add("--far-above", fmt::format("{}", options.far_above_ns));
    return words;
}

Status fits(const BenchOptions& options) {
    constexpr std::array<std::string_view, 13> ours{
        "bench",        "--quick",     "--output", "--device",      "--against",
        "--netns",      "--rounds",    "--cpus",   "--max-seconds", "--keep-disturbed",
        "--near-below", "--far-above", "--mode"};
    for (const std::string& name : options.given) {
        if (std::find(ours.begin(), ours.end(), name) == ours.end()) {
            return fail("{} is each question's own", name);
        }
    }
    return {};
}

// Runs `via bench WORDS`, its standard output behind what is in `file`. Returns the exit code.
Result<int> run(const Words& words, int file) {
    Words all{"via", "bench"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> pointers;
    for (std::string& word : all) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO);
    pid_t pid = -1;
    const int code =
        ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (code != 0) return fail("cannot start via: {}", std::strerror(code));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return fail_errno("waitpid");
    }
    if (!WIFEXITED(status)) return fail("'via {}' ended by a signal", joined(words));
    return WEXITSTATUS(status);
}

Result<AskedQuestion> ask(const SuiteQuestion& question, const BenchOptions& options,
                          const std::filesystem::path& folder) {
    const std::string path = folder / (question.name + ".jsonl");
    const FileHandle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) return fail_errno(path);
    const Words against =
        options.against.empty() ? Words{} : Words{"--against", list_of(options.against)};
    AskedQuestion asked{question.name, {}, 0, 0};
    const std::int64_t start_ns = now_ns();
    const Words common = common_words(options, question.words.front());
    for (const Words& words : commands_of(question, common, against)) {
        asked.command += (asked.command.empty() ? "via bench " : "; via bench ") + joined(words);
        const auto code = run(words, file.get());
        if (!code) return std::unexpected(code.error());
        // Failed says more than inconclusive.
        if (*code != exit_good && asked.code != exit_failed) {
            asked.code = *code == exit_inconclusive ? exit_inconclusive : exit_failed;
        }
    }
    asked.seconds = static_cast<double>(now_ns() - start_ns) / 1e9;
    return asked;
}

Status write_machine(const std::filesystem::path& folder, const std::vector<AskedQuestion>& asked,
                     const BenchOptions& options) {
    const std::filesystem::path path = folder / "machine.json";
    std::ofstream file(path);
    file << machine_json(asked, joined(common_words(options, "latency")));
    return file.flush() ? Status{} : fail_errno(path.string());
}

}  // namespace

int run_bench_suite(const BenchOptions& options) {
    if (auto good = fits(options); !good) return complain(good.error().what, exit_usage);
    const std::filesystem::path folder = options.output;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return complain(fmt::format("{}: {}", folder.string(), error.message()), exit_failed);
    const bool same_memory = options.device.starts_with("shm") && options.netns.empty();
    std::vector<AskedQuestion> all;
    int worst = exit_good;
    for (const SuiteQuestion& question : suite_questions(options.quick)) {
        if (question.in_segments && !same_memory) continue;
        const auto asked = ask(question, options, folder);
        if (!asked) return complain(asked.error().what, exit_failed);
        fmt::print("{:<22} {:>6.1f} s  {}\n", asked->name, asked->seconds,
                   asked->code == exit_good           ? "done"
                   : asked->code == exit_inconclusive ? "inconclusive"
                                                      : "failed");
        std::fflush(stdout);
        if (worst != exit_failed && asked->code != exit_good) worst = asked->code;
        all.push_back(*asked);
        if (auto written = write_machine(folder, all, options); !written) {
            return complain(written.error().what, exit_failed);
        }
    }
    fmt::print("{} files and machine.json are in {}\n", all.size(), folder.string());
    return worst;
}

}  // namespace via::cli
