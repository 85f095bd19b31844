// What pages are made of: the style of all, the script of a plan's page.
#pragma once

#include <string>

namespace meshplan {

// From <!DOCTYPE> to the open <body>.
[[nodiscard]] std::string page_head(const std::string& title);
// A <script> element. It finds the parts of the page by their ids and data- attributes:
//   #which #step #at   the chosen redistribution, the step and its text
//   .plan .frame       a section a redistribution, in it a frame a step; data-senders: JSON, by
//                      receiver a list of [sender, box, bytes]
//   [data-rank]        a rank of a frame
//   #find #all         the search field and the table; rows have data-section, those of repeats
//                      data-as: the row of the first; cells data-value where it is not their text
[[nodiscard]] std::string plan_page_script();

}  // namespace meshplan
