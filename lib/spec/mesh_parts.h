// Parts that the simple form and the operations of "meshes" share: dims, ranks, order of dims.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/reader.h"
#include "mesh/mesh.h"

namespace meshplan {

using NamedSizes = std::vector<std::pair<std::string, int64_t>>;

// Reports the error of a mesh operation: what follows its last ';' is the help.
void report_failure(Reader& reader, const char* code, uint32_t index, const Error& error);

// [{"name": "dp", "size": 2}, ...]: distinct names, sizes of at least 1 whose product fits in 64
// bits.
[[nodiscard]] std::optional<NamedSizes> read_dims(Reader& reader, uint32_t index);
// The product of the sizes that read_dims gave.
[[nodiscard]] int64_t product_of(const NamedSizes& dims);

// Global ranks: distinct, 0 or more, as many as the world has; any number if the world is unknown
// (-1). A run of them is the text "8-15", in the list or in its place.
[[nodiscard]] std::optional<std::vector<int64_t>> read_ranks(Reader& reader, uint32_t index,
                                                             int64_t world);

// Whether the dims, in the order listed, descend by stride: what slices and flattens need.
[[nodiscard]] bool descends(const Mesh& mesh, const std::vector<size_t>& dims);
[[nodiscard]] std::vector<std::string> names_at(const Mesh& mesh, const std::vector<size_t>& dims);

}  // namespace meshplan
