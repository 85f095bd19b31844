#include "cli/context.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/cannot_write.h"
#include "diag/outcome_codes.h"

namespace meshplan {
namespace {

// spdlog's own default writes to stdout, which is for data.
void log_to(std::ostream& err, spdlog::level::level_enum level, std::string_view message) {
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(err, true);
  spdlog::logger logger("meshplan", sink);
  logger.set_level(spdlog::level::trace);
  logger.set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "meshplan: %v", spdlog::pattern_time_type::local, "\n"));
  logger.log(level, "{}", message);
}

}  // namespace

Result<std::string> Context::peek_input(const std::string& path) {
  auto text = read_input(path);
  if (path == "-" && text) peeked_ = *text;
  return text;
}

Result<std::string> Context::read_input(const std::string& path) {
  if (path != "-") return system.read_file(path);
  if (peeked_) return *std::exchange(peeked_, std::nullopt);
  std::string text;
  std::array<char, 65536> buffer;
  errno = 0;
  while (text.size() <= max_input_bytes && in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    text.append(buffer.data(), static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else runs yet
    const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
    return bad_input("cannot read stdin" + why);
  }
  if (text.size() > max_input_bytes) {
    return bad_input("cannot read stdin: larger than the limit of " + human_bytes(max_input_bytes));
  }
  return text;
}

std::optional<std::string> Context::read_input(const std::string& path, int& code) {
  auto text = read_input(path);
  if (text) return *std::move(text);
  code = fail(path, text.error());
  return std::nullopt;
}

Status Context::write_output(const std::string& path, const std::string& text) {
  if (!path.empty() && path != "-") return system.write_file(path, text);
  return write_parts(path, [&](const TextSink& sink) { return sink(text); });
}

int Context::finish(const std::string& path, const std::string& text) {
  const Status written = write_output(path, text);
  return written ? 0 : fail("", written.error());
}

Status Context::write_parts(const std::string& path, const TextWriter& write) {
  if (!path.empty() && path != "-") return system.write_parts(path, write);
  // A reader that stops (`meshplan show plan.json | head`) is not an error; it ends the writing.
  bool reader_left = false;
  const auto written = write([&](std::string_view text) -> Status {
    errno = 0;
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (out) return Done{};
    reader_left = errno == EPIPE;
    return cannot_write("to stdout", errno != 0 ? errno : EIO);
  });
  return reader_left ? Status(Done{}) : written;
}

void Context::say(std::string_view message) {
  // Diagnostics as one document stand alone on stderr.
  const bool document =
      flags.diagnostics == DiagnosticFormat::json || flags.diagnostics == DiagnosticFormat::sarif;
  if (!flags.quiet && !document) log_to(err, spdlog::level::info, one_line(message));
}

void Context::explain(std::string_view message) {
  if (flags.verbose) log_to(err, spdlog::level::debug, one_line(message));
}

int Context::fail(const std::string& file, const Error& error) {
  return fail_at(whole_file(file), error);
}

int Context::fail_at(Place place, const Error& error) {
  diagnostics.add(diagnostic_of(std::move(place), error));
  return exit_code(error.fault);
}

int Context::fail(const std::string& file, const Error& error, std::string_view code) {
  return fail_at(whole_file(file), error, code);
}

int Context::fail_at(Place place, const Error& error, std::string_view code) {
  Diagnostic diagnostic = diagnostic_of(std::move(place), error);
  diagnostic.code = std::string(code);
  diagnostics.add(std::move(diagnostic));
  return exit_code(error.fault);
}

bool Context::color(Stream stream) {
  if (flags.color != ColorChoice::automatic) return flags.color == ColorChoice::always;
  if (const auto no_color = system.variable("NO_COLOR"); no_color && !no_color->empty())
    return false;
  if (const auto term = system.variable("TERM"); term && *term == "dumb") return false;
  return system.is_terminal(stream);
}

int64_t Context::columns() {
  if (const auto columns = system.variable("COLUMNS")) {
    if (const auto value = parse_int(*columns); value && *value > 0)
      return std::max<int64_t>(*value, 40);
  }
  if (!system.is_terminal(Stream::out)) return 0;
  const int64_t columns = system.terminal_columns();
  return columns > 0 ? std::max<int64_t>(columns, 40) : 0;
}

bool Context::unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = system.variable(name);
    if (!value || value->empty()) continue;
    std::string upper = *value;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return upper.find("UTF-8") != std::string::npos || upper.find("UTF8") != std::string::npos;
  }
  return false;
}

void Progress::update(size_t done, size_t all, std::string_view what) {
  if (context_.flags.quiet || !context_.system.is_terminal(Stream::err)) return;
  const int64_t now = context_.system.now_ms();
  if (now - start_ms_ < 1000 || (shown_ && now - shown_ms_ < 100)) return;
  context_.err << "\r\x1b[K" << done << "/" << all << " " << one_line(what) << std::flush;
  shown_ = true;
  shown_ms_ = now;
}

void Progress::clear() {
  if (shown_) context_.err << "\r\x1b[K" << std::flush;
  shown_ = false;
}

}  // namespace meshplan
