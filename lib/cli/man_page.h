// `meshplan --help-man`: the help as a man page.
#pragma once

#include <string>

namespace meshplan {

[[nodiscard]] std::string man_page();

}  // namespace meshplan
