// The operating system behind cli/system.h.
#pragma once

#include "cli/system.h"

namespace meshplan {

class RealSystem : public System {
 public:
  [[nodiscard]] Result<std::string> read_file(const std::string& path) override;
  [[nodiscard]] Status write_file(const std::string& path, const std::string& text) override;
  [[nodiscard]] Status write_parts(const std::string& path, const TextWriter& write) override;
  [[nodiscard]] Status may_write(const std::string& path) override;
  [[nodiscard]] bool same_file(const std::string& a, const std::string& b) override;
  [[nodiscard]] bool is_folder(const std::string& path) override;
  [[nodiscard]] bool may_wait(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list_json(const std::string& folder) override;
  [[nodiscard]] Result<std::string> run_program(const std::vector<std::string>& command) override;
  [[nodiscard]] Result<int> run_attached(const std::vector<std::string>& command,
                                         const Variables& defaults) override;
  [[nodiscard]] Result<FileWriting> run_writer(const std::string& name, const std::string& variable,
                                               const WriterCommand& command) override;
  [[nodiscard]] Result<int> launch(const std::vector<std::string>& command, int64_t ranks,
                                   std::string& messages) override;
  [[nodiscard]] std::string own_path() override;
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) override;
  [[nodiscard]] bool is_terminal(Stream stream) override;
  [[nodiscard]] int64_t terminal_columns() override;
  [[nodiscard]] int64_t now_ms() override;
};

}  // namespace meshplan
