#include "cli/decode_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belfry::cli {

std::string to_text(const Listing& listing) {
  std::size_t width = 0;
  for (const ListingSection& section : listing.sections) {
    for (const ListingField& field : section.fields) width = std::max(width, field.label.size());
  }
  std::string out = listing.title + "\n";
  for (const ListingSection& section : listing.sections) {
    if (!section.title.empty()) out += fmt::format("{}\n", section.title);
    for (const ListingField& field : section.fields) {
      if (!field.label.empty()) out += fmt::format("  {:<{}}  {}\n", field.label, width, field.text);
    }
  }
  for (const std::string& note : listing.notes) out += fmt::format("note: {}\n", note);
  return out;
}

nlohmann::json to_json(const Listing& listing) {
  nlohmann::json sections = nlohmann::json::array();
  for (const ListingSection& section : listing.sections) {
    nlohmann::json object = nlohmann::json::object();
    if (!section.title.empty()) object["title"] = section.title;
    for (const ListingField& field : section.fields) object[field.key] = field.value;
    sections.push_back(std::move(object));
  }
  return {{"kind", listing.kind},
          {"title", listing.title},
          {"sections", std::move(sections)},
          {"notes", listing.notes}};
}

}  // namespace belfry::cli
