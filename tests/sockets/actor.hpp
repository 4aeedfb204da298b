// What the parts of one process of the fuzzer share.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

using Words = std::istringstream;

/// The byte at a position of a stream is known from the stream's seed.
std::vector<unsigned char> pattern(std::uint64_t seed, std::uint64_t at, std::size_t length);
std::string result(long value, int error);
std::string digest(const unsigned char* bytes, long length);
/// Bytes that were sent are a moment on their way; the script's model knows of none.
void await_bytes(int fd, std::size_t length);

/// SO_SNDTIMEO: until a blocking call that has nothing sent comes back.
std::string flood_with_limit(int fd, std::uint64_t seed, std::uint64_t at);
std::string do_memory(Words& words);
std::string do_crowd_send(Words& words, int fd);
std::string do_crowd_told(Words& words, int fd);
std::string do_crowd_receive(Words& words, int fd);
std::string do_reader(Words& words, int fd);
std::string do_joined(int fd);
