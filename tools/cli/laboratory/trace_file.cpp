#include "laboratory/trace_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace via::cli {
namespace {

struct Close {
    void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

}  // namespace

std::expected<lab::study::Trace, std::string> load_trace(const std::string& path) {
    const File file(gzopen(path.c_str(), "rbe"));
    if (!file) return std::unexpected(fmt::format("cannot read {}: {}", path, strerror(errno)));
    std::string bytes;
    std::array<char, 1 << 16> part{};
    for (;;) {
        const int count = gzread(file.get(), part.data(), part.size());
        if (count < 0) return std::unexpected(path + ": what is compressed is not whole");
        if (count == 0) break;
        bytes.append(part.data(), static_cast<std::size_t>(count));
        if (bytes.size() > trace_file_max)
            return std::unexpected(fmt::format("{}: more than {} bytes", path, trace_file_max));
    }
    // What ends in the midst is no error of gzread().
    int error = Z_OK;
    gzerror(file.get(), &error);
    if (error != Z_OK) return std::unexpected(path + ": it ends too early");
    auto trace = lab::study::decode(bytes);
    if (!trace) return std::unexpected(path + ": " + trace.error());
    return trace;
}

std::expected<std::size_t, std::string> save_trace(const std::string& path,
                                                   const lab::study::Trace& trace) {
    const std::string bytes = lab::study::encode(trace);
    if (bytes.size() > trace_file_max)
        return std::unexpected(fmt::format("{}: more than {} bytes", path, trace_file_max));
    if (const auto read = lab::study::decode(bytes); !read)
        return std::unexpected(fmt::format("{}: nobody could read it: {}", path, read.error()));
    gzFile file = gzopen(path.c_str(), "wb9e");
    if (file == nullptr)
        return std::unexpected(fmt::format("cannot write {}: {}", path, strerror(errno)));
    const auto size = static_cast<unsigned>(bytes.size());
    const bool written = gzwrite(file, bytes.data(), size) == static_cast<int>(size);
    if (gzclose(file) != Z_OK || !written) return std::unexpected("cannot write " + path);
    std::error_code ignored;
    return static_cast<std::size_t>(std::filesystem::file_size(path, ignored));
}

}  // namespace via::cli
