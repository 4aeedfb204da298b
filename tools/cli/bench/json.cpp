#include "json.hpp"

#include <nlohmann/json.hpp>

namespace via::cli {

// Names of NICs and programs may be of any bytes, JSON is of characters.
std::string JsonLine::quoted(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace via::cli
