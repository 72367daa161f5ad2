#pragma once

#include <functional>
#include <string>
#include <string_view>

/// Text as HTML.
namespace tilestep::app {

/// `text` for use between tags and in attributes.
std::string html_escaped(std::string_view text);

/// A link of a text: what it leads to, and its words as HTML. Answers the HTML of both.
using HtmlLink = std::function<std::string(const std::string& target, const std::string& words)>;

/// Markdown as HTML. Headings are of level `heading` and below.
std::string markdown_html(std::string_view markdown, int heading, const HtmlLink& link);

}  // namespace tilestep::app
