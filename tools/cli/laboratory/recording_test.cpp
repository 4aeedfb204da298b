// Recordings of processes become one trace: who is connected with whom, and in which order.
#include "laboratory/recording.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "laboratory/trace_file.hpp"

namespace via::cli::recording_test {

using lab::study::TraceKind;

TEST(LabRecording, AskersAndAcceptersOfOneNameArePaired) {
    const auto made =
        recording_of({"C 5 aa a 01 02\nC 7 ab a 01 02\nV 8 aa 1000 10\n",
                      "C 6 ba q 01 02\nS 9 ba 3000 10\n", "C 8 ca q 01 02\nW a ca 1000 4000 8\n"});
    ASSERT_TRUE(made.has_value()) << made.error();
    ASSERT_EQ(made->trace.connections.size(), 2U);
    EXPECT_EQ(made->trace.connections[0].from, 1U);
    EXPECT_EQ(made->trace.connections[1].from, 2U);
    EXPECT_EQ(made->trace.connections[1].to, 0U);
    ASSERT_EQ(made->trace.events.size(), 3U);
    EXPECT_EQ(made->trace.events[0].kind, TraceKind::receive);
    EXPECT_EQ(made->trace.events[1].pieces[0].address, 0x3000U);
    EXPECT_EQ(made->trace.events[2].remote, 0x1000U);
}

TEST(LabRecording, PeersArePairedByBothNames) {
    const auto made = recording_of({"C 5 aa p 01 02\n", "C 6 ba p 02 01\n"});
    ASSERT_TRUE(made.has_value());
    ASSERT_EQ(made->trace.connections.size(), 1U);
    const auto same = recording_of({"C 5 aa p 01 01\n", "C 6 ba p 01 01\n"});
    ASSERT_TRUE(same.has_value());
    EXPECT_EQ(same->trace.connections.size(), 1U);
}

TEST(LabRecording, AViIsConnectedAgain) {
    const auto made =
        recording_of({"V 1 aa 1000 10\nC 2 aa q 01 02\nS 5 aa 1000 10\n"
                      "C 7 aa q 01 03\nS 9 aa 1000 10\n",
                      "C 3 ba a 01 02\n", "C 8 ca a 01 03\n"});
    ASSERT_TRUE(made.has_value());
    ASSERT_EQ(made->trace.events.size(), 3U);
    EXPECT_EQ(made->trace.events[0].connection, made->trace.events[1].connection);
    EXPECT_EQ(made->trace.peer_of(made->trace.events[2]), 2U);
}

TEST(LabRecording, PostsWithoutAnOtherEndAreCounted) {
    const auto made = recording_of({"C 2 aa q 01 02\nS 5 aa 1000 10\n"});
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->alone, 1U);
    EXPECT_TRUE(made->trace.events.empty());
}

TEST(LabRecording, WhatNoTraceHasIsCounted) {
    const auto made = recording_of(
        {"A 1\nC 2 aa q 01 02\nI 3 aa\nI 4 aa\nS 5 aa 1000 10\n", "C 3 ba a 01 02\nI 3 ba\n"});
    ASSERT_TRUE(made.has_value()) << made.error();
    EXPECT_EQ(made->imports, 3U);
    EXPECT_EQ(made->all_memory, 1U);
    EXPECT_EQ(made->trace.events.size(), 1U);
}

TEST(LabRecording, ALineThatIsNoneIsSaid) {
    for (const char* bad : {"A\n", "S\n", "I 1\n", "S 1 zz\n", "C 1 2 q 01\n", "send 1 2\n", "\n"})
        EXPECT_FALSE(recording_of({bad}).has_value()) << bad;
}

TEST(LabTraceFile, IsCompressedAndWhole) {
    const auto path = std::filesystem::path(testing::TempDir()) / "lab_trace_file.trace";
    const auto made = recording_of({"C 5 aa a 01 02\nV 8 aa 1000 10\n", "C 6 ba q 01 02\n"});
    ASSERT_TRUE(made.has_value());
    ASSERT_TRUE(save_trace(path, made->trace).has_value());
    const auto read = load_trace(path);
    ASSERT_TRUE(read.has_value()) << read.error();
    EXPECT_EQ(read->events, made->trace.events);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
    EXPECT_FALSE(load_trace(path).has_value());
    std::ofstream(path) << "no trace";
    EXPECT_FALSE(load_trace(path).has_value());
    std::filesystem::remove(path);
    EXPECT_FALSE(load_trace(path).has_value());
}

TEST(LabTraceFile, WhatNobodyCouldReadIsNotWritten) {
    const auto path = std::filesystem::path(testing::TempDir()) / "lab_trace_file_too_long.trace";
    lab::study::Trace trace;
    trace.processes = 2;
    trace.connections = {{0, 1}};
    trace.events.push_back(
        {TraceKind::send, 0, 0, 0, {{0x1000, lab::study::trace_message_max + 1}}});
    const auto saved = save_trace(path, trace);
    ASSERT_FALSE(saved.has_value());
    EXPECT_NE(saved.error().find("event 1, byte"), std::string::npos) << saved.error();
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace via::cli::recording_test
