// What `via lab` prints: tables for people, lines of JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/machine.hpp"
#include "lab/study/explain.hpp"
#include "lab/study/measure.hpp"
#include "lab/study/rows.hpp"
#include "table.hpp"

namespace via::cli {

/// Measurements of a machine, one after the other.
class LabOutput {
public:
    LabOutput(std::string machine, bool json, bool parts)
        : machine_(std::move(machine)), json_(json), parts_(parts) {}
    void add(std::int64_t size, const lab::study::Latency& latency);
    void add(std::int64_t size, const lab::study::Bandwidth& bandwidth);
    std::string text() const { return json_ ? lines_ : table_.text(); }

private:
    void head(std::vector<std::string> names);

    std::string machine_;
    bool json_;
    bool parts_;
    bool begun_ = false;
    Table table_;
    std::string lines_;
};

/// Of a share of time, in JSON.
std::string key_of(lab::Share share);
std::string text_of(const lab::study::Explanation& explanation);
std::string json_of(const lab::study::Explanation& explanation);
std::string text_of(const lab::Machine& machine, const std::vector<lab::study::Row>& rows);
std::string json_of(const lab::Machine& machine, const std::vector<lab::study::Row>& rows);
std::string text_of(const lab::Machine& machine);
std::string json_of(const lab::Machine& machine);
/// What a design takes of the NIC's memory.
std::string text_of(const lab::Design& design, const lab::study::Trial& trial);
std::string text_of_parts();

struct LabOptions;
/// exec.cpp
int run_lab_exec(const lab::study::Trial& trial, const LabOptions& options);

}  // namespace via::cli
