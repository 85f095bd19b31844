// What a run of random tests may be told from outside: another seed, more rounds.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace meshplan::test {

// MESHPLAN_TEST_SEED, or `usual`.
inline uint64_t seed_or(uint64_t usual) {
  const char* given = std::getenv("MESHPLAN_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

// MESHPLAN_TEST_ROUNDS, or `usual`.
inline int64_t rounds_or(int64_t usual) {
  const char* given = std::getenv("MESHPLAN_TEST_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return given == nullptr ? usual : std::strtoll(given, nullptr, 10);
}

}  // namespace meshplan::test
