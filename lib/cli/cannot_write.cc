#include "cli/cannot_write.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/shell_quoted.h"

namespace meshplan {

Error cannot_write(const std::string& where, int error) {
  // What the machine lacks; all other errors are of the path or of who may write there.
  static constexpr std::array lacking = {ENOSPC, EDQUOT, EFBIG,   EIO,  ENOMEM,
                                         EMFILE, ENFILE, ENOBUFS, EBADF};
  std::string message = "cannot write " + where + ": " + std::generic_category().message(error);
  const bool lacks = std::find(lacking.begin(), lacking.end(), error) != lacking.end();
  return lacks ? environment(std::move(message)) : bad_input(std::move(message));
}

Error cannot_make(const std::string& shown, const std::string& target, int error) {
  std::string folder = std::filesystem::path(target).parent_path().string();
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  const auto facts = std::filesystem::status(folder, ignored);
  const std::string start = "cannot write " + shown + ": ";
  if (facts.type() == std::filesystem::file_type::not_found && error == ENOENT) {
    return bad_input(start + "there is no folder " + folder + "; make it (mkdir -p " +
                     shell_quoted(folder) + ") or write to another one");
  }
  if (error == ENOTDIR) return bad_input(start + folder + " is no folder; write to another path");
  if (error == EACCES || error == EPERM || error == EROFS) {
    return bad_input(start + "no file can be made in the folder " + folder + " (" +
                     std::generic_category().message(error) +
                     "); write to another one, or allow it there");
  }
  return cannot_write(shown, error);
}

}  // namespace meshplan
