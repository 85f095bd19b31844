#include "base/result.h"

namespace meshplan {

int exit_code(Fault fault) {
  switch (fault) {
    case Fault::bad_input:
      return 2;
    case Fault::no_plan:
      return 3;
    case Fault::wrong_data:
      return 4;
    case Fault::environment:
      return 5;
  }
  return 70;
}

}  // namespace meshplan
