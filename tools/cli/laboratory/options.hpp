// What the sub-commands of `via lab` have in common: their options, and trials made of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "lab/study/measure.hpp"
#include "laboratory/command.hpp"

namespace via::cli {

constexpr std::int64_t lab_message_max = 1 << 20;
constexpr std::int64_t lab_registered_max = std::int64_t{1} << 40;

/// "4", "1K", "64M", "1G"; -1 for what is none, or more than `most`.
std::int64_t lab_bytes_of(const std::string& text, std::int64_t most);
CLI::Validator lab_bytes(std::int64_t most);

/// A machine, and over its own words those of `design`.
std::expected<lab::study::Trial, std::string> lab_trial_of(const LabOptions& options,
                                                           const std::string& machine,
                                                           const std::string& design);
lab::study::Question lab_question_of(const LabOptions& options);
/// Those of the command line, or the usual ones.
std::vector<std::string> lab_sizes_of(const LabOptions& options);
void add_lab_sizes(CLI::App& command, LabOptions& options);
/// What hosts do with their NICs; the seed, and --json.
void add_lab_load(CLI::App& command, LabOptions& options);
/// -o DIR
void add_lab_folder(CLI::App& command, LabOptions& options);
/// Says why on standard error.
int lab_failed(const std::string& why);

/// `via lab record` and `via lab replay`.
void add_lab_traces(CLI::App& lab, LabOptions& options);
int run_lab_record(const LabOptions& options);
int run_lab_replay(const LabOptions& options);
/// --per-host, --divide and --divide-lines.
void add_lab_caches(CLI::App& command, LabOptions& options);
/// `via lab reproduce PAPER --trace FILE`: the paper's figures that programs decide.
int run_lab_trace_rows(const LabOptions& options);
/// `via lab measure`.
void add_lab_measure(CLI::App& lab, LabOptions& options);
int run_lab_measure(const LabOptions& options);
/// `via lab sweep`.
void add_lab_sweep(CLI::App& lab, LabOptions& options);
int run_lab_sweep(const LabOptions& options);
/// `via lab ask`.
void add_lab_ask(CLI::App& lab, LabOptions& options);
int run_lab_ask(const LabOptions& options);
/// `via lab without`.
void add_lab_without(CLI::App& lab, LabOptions& options);
int run_lab_without(const LabOptions& options);
/// `via lab compare`.
void add_lab_compare(CLI::App& lab, LabOptions& options);
int run_lab_compare(const LabOptions& options);

}  // namespace via::cli
