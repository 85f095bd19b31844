#include "cli/cannot_write.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace meshplan {

Error cannot_write(const std::string& where, int error) {
  // What the machine lacks; all other errors are of the path or of who may write there.
  static constexpr std::array lacking = {ENOSPC, EDQUOT, EFBIG,   EIO,  ENOMEM,
                                         EMFILE, ENFILE, ENOBUFS, EBADF};
  std::string message = "cannot write " + where + ": " + std::generic_category().message(error);
  const bool lacks = std::find(lacking.begin(), lacking.end(), error) != lacking.end();
  return lacks ? environment(std::move(message)) : bad_input(std::move(message));
}

}  // namespace meshplan
