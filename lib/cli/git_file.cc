#include "cli/git_file.h"

namespace meshplan {

Result<std::optional<std::string>> read_from_git(Context& context, const std::string& against,
                                                 bool new_file) {
  const size_t colon = against.find(':', 4);
  if (against.rfind("git:", 0) != 0 || colon == std::string::npos || colon == 4 ||
      colon + 1 == against.size()) {
    return bad_input("--against: expected git:REF:PATH, such as git:main:plan.json, not \"" +
                     against + "\"");
  }
  const std::string ref = against.substr(4, colon - 4);
  std::string path = against.substr(colon + 1);
  if (ref.front() == '-') return bad_input("--against: \"" + ref + "\" is not a git revision");
  // The path is relative to the current folder, not to the top of the repository.
  if (path.front() != '/' && path.rfind("./", 0) != 0 && path.rfind("../", 0) != 0)
    path.insert(0, "./");
  if (new_file) {
    const auto found =
        context.system.run_program({"git", "ls-tree", "--name-only", ref, "--", path});
    if (found && found->empty()) return std::optional<std::string>();
  }
  auto text = context.system.run_program({"git", "show", ref + ":" + path});
  if (text) return std::optional(*std::move(text));
  Error error = text.error();
  error.message = "--against " + against + ": " + error.message;
  if (!new_file && error.message.find("git failed: fatal: path ") != std::string::npos)
    error.message += "; if the file is new: --new-file";
  return error;
}

}  // namespace meshplan
