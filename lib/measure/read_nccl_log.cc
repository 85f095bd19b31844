#include "measure/read_nccl_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  size_t at = 0;
  while (at < line.size()) {
    const size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool all_digits(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Where a row has its times: counted after size, count and type, and redop and root where the
// header has them.
struct Columns {
  size_t first = 0;     // of the out-of-place time
  size_t in_place = 0;  // of the in-place time
  size_t wrong = 0;     // of #wrong after a time
};

// "#       size  count  type  redop  root  time  algbw  busbw #wrong  time ..."
std::optional<Columns> columns_of(const Words& words) {
  if (words.size() < 6 || words[0] != "#" || words[1] != "size" || words[2] != "count")
    return std::nullopt;
  Columns columns;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "time" || words[i] == "cputime") {
      (columns.first == 0 ? columns.first : columns.in_place) = i - 1;
    } else if (columns.wrong == 0 && (words[i] == "#wrong" || words[i] == "error")) {
      columns.wrong = i - 1 - columns.first;
    }
  }
  if (columns.first == 0 || columns.in_place == 0 || columns.wrong == 0) return std::nullopt;
  return columns;
}

class NcclLogReader {
 public:
  explicit NcclLogReader(std::string file) : file_(std::move(file)) {
    op_ = program_op(name_of_file());
  }

  Status read(std::string_view line, int64_t number) {
    number_ = number;
    const Words words = words_of(line);
    if (words.empty()) return Done{};
    if (words[0] == "#") {
      read_comment(line, words);
      return Done{};
    }
    if (!columns_ || !all_digits(words[0])) return Done{};  // another program's line
    return read_row(words);
  }
  MeasuredFile take() { return std::move(found_); }

 private:
  [[nodiscard]] std::string place() const { return file_ + ":" + std::to_string(number_); }
  [[nodiscard]] std::string name_of_file() const {
    const size_t slash = file_.rfind('/');
    return slash == std::string::npos ? file_ : file_.substr(slash + 1);
  }

  void begin_test() {
    groups_.clear();
    by_host_.clear();
    columns_.reset();
    iterations_ = 1;
  }
  void read_comment(std::string_view line, const Words& words) {
    if (line.find("Collective test starting:") != std::string_view::npos) {
      begin_test();
      program_ = std::string(words.back());
      op_ = program_op(program_);
    } else if (words.size() > 2 && words[1] == "nThread") {
      if (!groups_.empty()) begin_test();
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == "iters:" && words[i - 1] != "warmup" && words[i - 1] != "agg" &&
            all_digits(words[i + 1]))
          iterations_ = parse_int(words[i + 1]).value_or(1);
      }
    } else if (words.size() > 8 && words[1] == "Rank" && words[3] == "Group") {
      read_rank(line, words);
    } else if (const auto columns = columns_of(words)) {
      columns_ = columns;
    }
  }
  // "#  Rank  0 Group  0 Pid 6899 on HOST device  0 [0000:04:00] NVIDIA H100 80GB HBM3"; before
  // 2.13 "#   Rank  0 Pid  6899 on HOST device  0 [0x04] NVIDIA A100".
  void read_rank(std::string_view line, const Words& words) {
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on == words.end() || on + 1 == words.end()) return;
    const std::string host(*(on + 1));
    ++groups_[std::string(words[4])][host];
    found_.host_ranks = std::max(found_.host_ranks, ++by_host_[host]);
    for (const char* rack : {"GB200", "GB300"})
      found_.one_domain = found_.one_domain || line.find(rack) != std::string_view::npos;
  }

  Status read_row(const Words& words) {
    const auto size = parse_int(words[0]);
    if (!size || words.size() <= columns_->first + columns_->wrong)
      return bad_input(place() +
                       ": expected size, count, type, times and #wrong, as the header has it");
    // An empty out-of-place half leaves as many words as one half has.
    const std::string_view time = words[columns_->first];
    const std::string_view wrong = words[columns_->first + columns_->wrong];
    const auto us = number_of(time);
    if (!us || *us < 0 || *us > 1e12)
      return bad_input(place() + ": \"" + printable(std::string(time), 40) +
                       "\" is not a time in microseconds");
    const auto errors = number_of(wrong);
    if (!errors && wrong != "N/A")
      return bad_input(place() + ": \"" + printable(std::string(wrong), 40) +
                       "\" is not a number of wrong elements");
    if (errors && *errors != 0)
      return bad_input(place() + ": the measured data is wrong, so its times are not used");
    if (groups_.empty())
      return bad_input(place() +
                       ": no line \"#  Rank 0 Group 0 Pid ... on HOST device ...\" stands "
                       "before; ranks and hosts are read from them");
    if (!op_) return add_unknown(words);
    return add_row(*size, *us, time);
  }
  Status add_unknown(const Words&) {
    if (program_.empty())
      return bad_input(place() +
                       ": cannot tell which collective was measured; expected \"# "
                       "Collective test starting: all_reduce_perf\" before, or the "
                       "program in the file's name");
    add_unused(found_, place(), printable(program_, 60) + " measures an op that plans do not use");
    return Done{};
  }
  Status add_row(int64_t size, double us, std::string_view time) {
    const HostRanks& group = groups_.begin()->second;
    const int64_t ranks = all_ranks(group);
    const int64_t a_host = ranks_a_host(group);
    const int64_t ns = std::llround(us * 1000);
    if (const char* why = why_unused(size, ranks, a_host)) {
      add_unused(found_, place(), why);
      return Done{};
    }
    if (ns == 0) return bad_input(place() + ": " + no_time_text(time, "us", size, ranks));
    FoundRow row;
    row.row = {place(), *op_, {}, size, ns, iterations_, {}};
    row.ranks = ranks;
    row.per_host = a_host;
    found_.rows.push_back(std::move(row));
    return Done{};
  }
  static const char* why_unused(int64_t size, int64_t ranks, int64_t a_host) {
    if (size == 0) return "no bytes were moved";
    if (ranks < 2) return "a group of one rank moves nothing";
    return a_host == 0 ? "hosts have different numbers of the group's ranks" : nullptr;
  }

  std::string file_;
  int64_t number_ = 0;
  std::optional<Op> op_;
  std::string program_;
  std::map<std::string, HostRanks> groups_;
  HostRanks by_host_;  // of all groups
  std::optional<Columns> columns_;
  int64_t iterations_ = 1;
  MeasuredFile found_;
};

}  // namespace

int64_t ranks_a_host(const HostRanks& group) {
  const int64_t first = group.empty() ? 0 : group.begin()->second;
  const bool alike = std::all_of(group.begin(), group.end(),
                                 [first](const auto& host) { return host.second == first; });
  return alike ? first : 0;
}

int64_t all_ranks(const HostRanks& group) {
  int64_t ranks = 0;
  for (const auto& [host, number] : group) ranks += number;
  return ranks;
}

bool is_nccl_log(std::string_view text) {
  for (const char* mark : {"# nThread", "# Collective test starting", "# Using devices"}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

Result<MeasuredFile> read_nccl_log(std::string_view text, const std::string& file) {
  NcclLogReader reader(file);
  int64_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (auto read = reader.read(text.substr(at, end - at), number); !read) return read.error();
    at = end + 1;
  }
  return reader.take();
}

}  // namespace meshplan
